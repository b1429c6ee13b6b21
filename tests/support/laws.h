#pragma once

#include <string>
#include <vector>

#include "simulator/simulator.h"

namespace trinity::test {

/// The invariants (manual/simulator.md "Invariants") that a simulated plan breaks, one sentence each;
/// none if all hold:
///   tasks         every task runs exactly once, for its cost, where it is placed;
///   devices       run one task at a time, never idle while one is ready, and take them by rule;
///   inputs        a task is ready when its last input arrives, starts no earlier, and every copy
///                 is sent exactly once;
///   queues        carry one transfer or collective at a time, in order of booking, without a gap;
///                 a fair share is never faster than the whole wire;
///   collectives   start when the last member is ready and take what they cost;
///   metrics       are the sums and peaks of the timeline, sent bytes are received bytes;
///   bounds        lower_bounds() <= step <= everything after one another;
///   memory        between what every task needs at once and everything at once.
/// Throws std::logic_error for the published rules (broadcast, last_event, outputs_only).
std::vector<std::string> broken_laws(const Problem& problem, const Plan& plan,
                                     const Metrics& metrics, const Timeline& timeline);

/// Fails the running test with the laws that are broken.
void check_laws(const Problem& problem, const Plan& plan, const Metrics& metrics,
                const Timeline& timeline);

/// Everything equal, memory levels too.
inline bool equal(const Timeline& a, const Timeline& b) {
  return a.micro_batches == b.micro_batches && a.device == b.device && a.ready_ns == b.ready_ns &&
         a.start_ns == b.start_ns && a.end_ns == b.end_ns && a.transfers == b.transfers &&
         a.collectives == b.collectives && a.memory == b.memory;
}

}  // namespace trinity::test
