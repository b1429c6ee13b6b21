#pragma once

#include <vector>

#include "execute/feed.h"
#include "execute/program.h"
#include "execute/weights.h"

namespace trinity {

/// Quality of weights on held-out samples.
struct Evaluation {
  int64_t samples = 0;
  double loss = 0;      ///< mean
  double accuracy = 0;  ///< fraction of labels with the largest logit
};

/// Runs the forward pass of a single-device training graph over all held-out samples, without
/// dropout; batch norms use the batch's statistics. Throws ArgumentError unless the graph has
/// exactly one loss, a cross-entropy.
Evaluation evaluate(const Program& program, const std::vector<NamedTensor>& weights,
                    const Feed& feed, at::ScalarType real);

}  // namespace trinity
