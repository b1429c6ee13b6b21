#pragma once

#include "base/options.h"
#include "learn/move_trainer.h"

// Every option of rankers of moves and of their training, once (base/options.h).

namespace trinity {

/// `Options`: RankingOptions, const or not, lasting or not.
template <class Options, class Visit>
void each_ranking_option(Options&& o, Visit&& visit) {
  visit("candidates", o.candidates, 2, 1024, "moves drawn for each that is tried");
  visit("sharpness", o.sharpness, 0, 100, "one is drawn with odds exp(sharpness x score)");
  visit("plain_one_in", o.plain_one_in, 1, 1e6, "one move in so many is drawn as it comes");
  visit("fit_sizes", o.fit_sizes, "candidates are no larger than what is chosen now and then");
}

/// `Options`: MoveTrainingOptions, const or not, lasting or not.
template <class Options, class Visit>
void each_training_option(Options&& o, Visit&& visit) {
  visit("evaluations", o.evaluations, 16, 1e9, "of an episode: one annealing");
  visit("candidates", o.candidates, 2, 1024, "moves drawn for each that is tried");
  visit("sharpness", o.sharpness, 1e-3, 100, "one is drawn with odds exp(sharpness x score)");
  visit("plain_one_in", o.plain_one_in, 1, 1e6, "one move in so many is drawn as it comes");
  visit("first_temperature", o.first_temperature, 1e-12, 1e12, "of the annealing");
  visit("learning_rate", o.learning_rate, 1e-9, 10, "of Adam");
  visit("discount", o.discount, 0, 0.9999, "of the worth of a trial later");
  visit("entropy", o.entropy, 0, 10, "weight of the choice's entropy");
  visit("clip", o.clip, 0, 1, "of the ratio of chances; 0: REINFORCE instead of PPO");
  visit("epochs", o.epochs, 1, 100, "over the trials of a round, but of REINFORCE");
  visit("baseline_trials", o.baseline_trials, 2, 1e6, "whose mean return is the baseline");
}

}  // namespace trinity
