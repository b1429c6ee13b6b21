#pragma once

#include <vector>

#include "execute/feed.h"
#include "execute/program.h"
#include "execute/weights.h"

namespace trinity {

/// How well weights do on samples that did not train.
struct Evaluation {
  int64_t samples = 0;
  double loss = 0;      ///< the mean
  double accuracy = 0;  ///< the share of labels that have the largest logit
};

/// Runs a training graph of one device forward over all held-out samples, without dropout; norms
/// over a batch take that batch's statistics. Throws ArgumentError where the graph has other losses
/// than one cross-entropy.
Evaluation evaluate(const Program& program, const std::vector<NamedTensor>& weights,
                    const Feed& feed, at::ScalarType real);

}  // namespace trinity
