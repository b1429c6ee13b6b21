#pragma once

#include <vector>

#include "execute/executor.h"
#include "execute/feed.h"
#include "execute/program.h"
#include "execute/weights.h"

namespace trinity {

/// Runs the forward pass of a single-device training graph over all held-out samples, without
/// dropout; batch norms use the batch's statistics. Throws ArgumentError unless the graph has
/// exactly one loss, a cross-entropy.
HeldOut evaluate(const Program& program, const std::vector<NamedTensor>& weights, const Feed& feed,
                 at::ScalarType real);

}  // namespace trinity
