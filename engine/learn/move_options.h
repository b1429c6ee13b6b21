#pragma once

#include "base/options.h"
#include "learn/move_trainer.h"

// Every option of rankers of moves and of their training, once (base/options.h).

namespace trinity {

/// `Options`: RankingOptions, const or not, lasting or not.
template <class Options, class Visit>
void each_ranking_option(Options&& o, Visit&& visit) {
  visit("candidates", o.candidates, 2, 1024, "candidate moves per evaluated move");
  visit("sharpness", o.sharpness, 0, 100, "inverse temperature: one is sampled with probability "
                                          "proportional to exp(sharpness x score)");
  visit("plain_one_in", o.plain_one_in, 1, 1e6, "one move in N is sampled without the ranker");
  visit("fit_sizes", o.fit_sizes, "candidates are no larger than moves that the ranker has chosen");
}

/// `Options`: MoveTrainingOptions, const or not, lasting or not.
template <class Options, class Visit>
void each_training_option(Options&& o, Visit&& visit) {
  visit("evaluations", o.evaluations, 16, 1e9, "of an episode: one annealing");
  visit("candidates", o.candidates, 2, 1024, "candidate moves per evaluated move");
  visit("sharpness", o.sharpness, 1e-3, 100, "inverse temperature: one is sampled with probability "
                                             "proportional to exp(sharpness x score)");
  visit("plain_one_in", o.plain_one_in, 1, 1e6, "one move in N is sampled without the ranker");
  visit("first_temperature", o.first_temperature, 1e-12, 1e12, "of the annealing");
  visit("learning_rate", o.learning_rate, 1e-9, 10, "of Adam");
  visit("discount", o.discount, 0, 0.9999, "discount per later trial");
  visit("entropy", o.entropy, 0, 10, "weight of the choice's entropy");
  visit("clip", o.clip, 0, 1, "of the probability ratio; 0: REINFORCE instead of PPO");
  visit("epochs", o.epochs, 1, 100, "passes over the trials of a round (PPO only)");
  visit("baseline_trials", o.baseline_trials, 2, 1e6, "whose mean return is the baseline");
}

}  // namespace trinity
