#pragma once

#include "base/options.h"

// Declarations of all options of partitioners except the seed (base/options.h).

namespace trinity {

/// `Options`: FmOptions, MetisOptions or ScotchOptions, const or not, lvalue or rvalue.
template <class Options, class Visit>
void each_partition_option(Options&& o, Visit&& visit) {
  visit("imbalance", o.imbalance, 1e-6, 10,
        "fraction by which a device may exceed its share of work and memory");
}

}  // namespace trinity
