#pragma once

#include <memory>

#include "simulator/record.h"

namespace trinity {

/// A simulation engine of one problem. Not thread-safe; working memory is kept between runs.
class Engine {
 public:
  virtual ~Engine() = default;

  /// Fills `record`, which it resets first. Stops early, with record.rejected, once the step is certain to exceed
  /// `limit_ns`. Throws the errors of Simulator::run().
  virtual void run(const Plan& plan, int64_t limit_ns, Record& record) = 0;
};

/// The published Placeto / Trinity simulator, event by event (SimulationRules::placeto()). It has no limit of time.
std::unique_ptr<Engine> placeto_engine(const Problem& problem);

/// The simulator of Doppler's authors, event by event (SimulationRules::doppler()).
std::unique_ptr<Engine> doppler_engine(const Problem& problem);

/// Memory model of the published simulator (papers/notes.md "Trinity: the published simulator"):
/// all outputs of an operator are allocated at its start and released one microsecond before its
/// last reader ends (never without a reader). At one instant allocations come before releases.
void account_outputs_only(const Problem& problem, std::span<const int32_t> placement,
                          const Record& record, Metrics& metrics);

}  // namespace trinity
