#pragma once

namespace trinity {

/// Decides which trials become the state of an annealing, in place of the Metropolis rule. Called
/// by one thread at a time.
class Acceptance {
 public:
  virtual ~Acceptance() = default;
  /// Maximum by which a trial may be worse than the state, as a fraction of the start's value (the
  /// unit of temperatures); negative: it must be better by that much. Called before the trial is
  /// simulated. progress: of the cooling, from 0 to 1; `drawn`: a uniform random number in [0, 1).
  virtual double rise(double progress, double drawn) = 0;
};

}  // namespace trinity
