#pragma once

#include <span>

#include "search/pase/pase_costs.h"
#include "strategy/splits.h"

namespace trinity {

/// A PaSE strategy as splits of the operators that its layers stand for: the operator that a layer
/// is named after takes the layer's factors; those that run with it are split as the tensor between
/// them, in as many copies as make up the layer's parts. Layers of an LSTM stack that are split
/// along l stand on devices of their own. `devices` lists those to use, from 0. Throws
/// ArgumentError for a configuration that makes no sense for its layer, or more parts than devices.
Splits pase_splits(const Graph& graph, const PaseProblem& problem,
                   std::span<const Configuration> strategy, std::span<const int32_t> devices);

}  // namespace trinity
