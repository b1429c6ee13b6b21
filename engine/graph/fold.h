#pragma once

#include "graph/graph.h"

namespace trinity {

/// A forward graph with one operator per layer that takes the time of its forward and backward pass
/// together, as Placeto's simulator reads a profile: measured times are summed, the loader time of
/// attribute `loader_time_s` is added, and operators keep their order in the file (attribute
/// `file_position`). Weights, outputs and readers are unchanged. Throws ArgumentError for a graph
/// with backward operators or collectives, and for an operator without measured times (it names
/// it).
Graph fold_backward(const Graph& forward);

}  // namespace trinity
