#pragma once

#include <vector>

#include "graph/graph.h"
#include "graph/layers.h"

namespace trinity {

/// Of every operator whether it belongs to the core of attention: the forward operators between two
/// products of activations of a layer (scores, softmax, weighted values), or one that is all of them
/// (Attention).
std::vector<bool> attention_core(const Graph& graph, const Layers& layers);

/// Whether a forward operator writes what experts are chosen by: what it writes goes to a TopK, at
/// once or through a softmax or sigmoid.
bool chooses_experts(const Graph& graph, int32_t op);

}  // namespace trinity
