#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "search/construct/list_schedule.h"
#include "simulator/problem.h"

namespace trinity {

/// Baechi (Jeon et al., "Baechi: Fast Device Placement of Machine Learning Graphs", SoCC 2020;
/// manual/papers.md "Baechi"): placement by list scheduling under memory limits.
///
/// MEMORY, as counted by Baechi. A colocation unit's fixed bytes are allocated when it is placed
/// and stay. An operator's workspace and outputs are allocated when it is scheduled; the workspace
/// is released at once, outputs when the last reader is scheduled. Copies of tensors of other
/// devices do not count. A device is considered only if an operator's needs fit into its free
/// memory. The simulator is stricter (copies, slots), so a placement that fits here may not fit
/// there.
///
/// LINKS. A transfer takes wire_ns() and occupies the sender's and the receiver's only channel; a
/// tensor goes to a device once. Transfers are booked when their reader is scheduled.
///
/// UNITS. The first operator of a unit that is scheduled places the unit. Operators that follow
/// (see TaskGraph) go with their first reader, and their units' fixed bytes are checked with it. In
/// a training graph units join an operator and its gradients, so forward operators decide, as in
/// Baechi.
///
/// RETRIES. Baechi stops if its first try does not fit. Here it is retried with a fraction (0.1 to
/// 0.9) of every device's memory reserved from new units, for later operators of placed units
/// (gradients). If nothing fits, the result is feasible = false, not an error.
struct BaechiResult {
  bool feasible = false;
  std::string reason;               ///< of an infeasible result, one sentence
  ListSchedule list;                ///< the placement with Baechi's times; empty if infeasible
  std::vector<int64_t> peak_bytes;  ///< [device], as counted above
};

/// m-TOPO: units in order of their first operator, device by device. The next device begins when
/// the present one's memory (fixed bytes, workspace and outputs of all operators, nothing released)
/// would exceed (total / devices + the largest unit). Balances memory, not time; ignores
/// capacities, as published. Returns the device of every operator.
std::vector<int32_t> m_topo(const Problem& problem);

/// m-ETF: at every instant of its own clock, among all free devices and operators whose inputs can
/// have arrived, schedules the lowest operator (ties: the lower device); then the clock advances to
/// the next instant at which anything can start.
BaechiResult m_etf(const Problem& problem);

}  // namespace trinity
