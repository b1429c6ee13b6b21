#pragma once

namespace trinity {

/// Which trials become the state of an annealing, in place of Metropolis' rule.
class Acceptance {
 public:
  virtual ~Acceptance() = default;
  /// By how much a trial may be worse than the state, in multiples of the start's value per unit, as
  /// temperatures are; below 0: it has to be better by so much. progress: of the cooling, from 0 to 1;
  /// drawn: even in [0, 1). Asked before the trial is simulated.
  virtual double rise(double progress, double drawn) = 0;
};

}  // namespace trinity
