#pragma once

#include "base/options.h"
#include "search/placement/annealing.h"
#include "search/placement/mcmc.h"

// Declarations of all options that only placement searches have (base/options.h).

namespace trinity {

/// `Options`: AnnealingOptions, const or not, lvalue or rvalue.
template <class Options, class Visit>
void each_annealing_option(Options&& o, Visit&& visit) {
  visit("first_temperature", o.first_temperature, 1e-12, 1e12,
        "in multiples of the start's value per unit");
  visit("last_temperature", o.last_temperature, 1e-12, 1e12,
        "in multiples of the start's value per unit, at most first_temperature");
  visit("batch", o.batch, 1, 4096, "trials of one state, simulated together");
  visit("groups", o.mix.groups, "one move in eight moves a group of units of any level");
  visit("evenly_one_in", o.mix.evenly_one_in, 1, 1e6,
        "one pivot unit in this many is uniform, the others follow critical-path time");
  visit("look_every", o.look_every, 1, 1e9,
        "minimum evaluations between two critical-path analyses");
}

/// `Options`: McmcOptions, const or not, lvalue or rvalue.
template <class Options, class Visit>
void each_mcmc_option(Options&& o, Visit&& visit) {
  visit("alpha_per_ms", o.alpha_per_ms, 0, 1e12, "alpha per millisecond; 0: 100 over the start's");
}

}  // namespace trinity
