#pragma once

#include <string>
#include <vector>

#include "simulator/simulator.h"

namespace trinity::test {

/// The invariants of manual/simulator.md "Invariants" that a simulated plan violates, one sentence each;
/// empty if all hold:
///   tasks         every task runs exactly once, for its cost, on its device;
///   devices       run one task at a time, are never idle while one is ready, and choose by the
///                 rule;
///   inputs        a task is ready when its last input arrives and starts no earlier; every copy is
///                 sent exactly once;
///   queues        carry one transfer or collective at a time, in order of booking, without gaps; a
///                 fair share is never faster than the whole link;
///   collectives   start when the last member is ready and take their cost;
///   metrics       are the sums and peaks of the timeline; sent bytes equal received bytes;
///   bounds        lower_bounds() <= step <= everything in sequence;
///   memory        lies between the need of every single task and everything at once.
/// Throws std::logic_error for the published rules (broadcast, last_event, outputs_only).
std::vector<std::string> broken_laws(const Problem& problem, const Plan& plan,
                                     const Metrics& metrics, const Timeline& timeline);

/// Fails the running test with the violated invariants.
void check_laws(const Problem& problem, const Plan& plan, const Metrics& metrics,
                const Timeline& timeline);

/// True if everything is equal, including memory levels.
inline bool equal(const Timeline& a, const Timeline& b) {
  return a.micro_batches == b.micro_batches && a.device == b.device && a.ready_ns == b.ready_ns &&
         a.start_ns == b.start_ns && a.end_ns == b.end_ns && a.transfers == b.transfers &&
         a.collectives == b.collectives && a.memory == b.memory;
}

}  // namespace trinity::test
