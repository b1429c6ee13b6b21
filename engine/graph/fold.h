#pragma once

#include "graph/graph.h"

namespace trinity {

/// A forward graph with one operator per layer that takes as long as its forward and backward pass
/// together, as Placeto's simulator takes a profile: measured times are summed, the loader time
/// that attribute `loader_time_s` keeps is added, operators keep their order in the file (attribute
/// `file_position`). Weights, outputs and readers stay. Throws ArgumentError for a graph with
/// backward operators or collectives, and naming an operator without measured times.
Graph fold_backward(const Graph& forward);

}  // namespace trinity
