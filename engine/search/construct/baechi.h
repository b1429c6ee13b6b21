#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "search/construct/list_schedule.h"
#include "simulator/problem.h"

namespace trinity {

/// Baechi (Jeon et al., "Baechi: Fast Device Placement of Machine Learning Graphs", SoCC 2020;
/// papers/notes.md "Baechi"): placement by list scheduling under memory limits.
///
/// MEMORY, as Baechi counts it. A colocation unit's fixed bytes are taken when it is placed and
/// stay. An operator's workspace and outputs are taken when it is scheduled; the workspace is given
/// back at once, outputs when the last reader is scheduled. Copies of tensors of other devices do
/// not count. A device is asked only when what an operator needs fits what is free there. The
/// simulator is stricter (copies, slots), so a placement that fits here may not fit there.
///
/// WIRES. A transfer takes wire_ns() and occupies the sender's and the receiver's one channel; a
/// tensor goes to a device once. Transfers are booked when their reader is scheduled.
///
/// UNITS. The first operator of a unit that is scheduled places the unit; operators that follow
/// (see TaskGraph) go with their first reader, and their units' fixed bytes are asked for with it.
/// In a training graph units join an operator and its gradients, so forward operators decide, as in
/// Baechi.
///
/// RETRIES. Baechi stops where its first try does not fit. Here it is tried again with a part of
/// every device's memory, 0.1 to 0.9, that no unit may be placed into, so that operators of placed
/// units (gradients) find room. Nothing fits even so: that is an answer (feasible = false), not an
/// error.
struct BaechiResult {
  bool feasible = false;
  std::string reason;               ///< of an infeasible result, one sentence
  ListSchedule list;                ///< the placement with Baechi's times; empty when infeasible
  std::vector<int64_t> peak_bytes;  ///< of every device, as counted above
};

/// m-TOPO: units in order of their first operator, device by device: the next device begins when
/// the present one's memory (fixed bytes, workspace and outputs of all operators, nothing given
/// back) would exceed (total / devices + the largest unit). Balances memory, not time; asks no
/// device's capacity, as published. Returns the device of every operator.
std::vector<int32_t> m_topo(const Problem& problem);

/// m-ETF: at every instant of its own clock, of all free devices and operators whose inputs can be
/// there by now the lowest operator (ties: the lower device) is scheduled; then the clock moves to
/// the next instant at which anything can start.
BaechiResult m_etf(const Problem& problem);

}  // namespace trinity
