#pragma once

#include <span>

#include "search/pase/pase_costs.h"
#include "strategy/splits.h"

namespace trinity {

/// Converts a PaSE strategy to splits of the operators of its layers. The operator that names a
/// layer takes the layer's factors; operators fused with it are split like the tensor between them,
/// in enough copies to make up the layer's parts. Layers of an LSTM stack that are split along l
/// use different devices. `devices` lists the devices to use, from 0. Throws ArgumentError for a
/// configuration that does not fit its layer, or more parts than devices.
Splits pase_splits(const Graph& graph, const PaseProblem& problem,
                   std::span<const Configuration> strategy, std::span<const int32_t> devices);

}  // namespace trinity
