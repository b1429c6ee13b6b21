#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace trinity {

/// The repeated layers of a network, found by the names of its operators.
struct Layers {
  int32_t count = 0;  ///< 0: none
  /// [operator]: its layer from 0; -1 before the first layer, `count` after the last. Backward and
  /// update operators have the layer of their forward operator.
  std::vector<int32_t> of;
  std::string stem;  ///< common beginning of their names: "block_"
};

/// A layer is a set of operators that share a name prefix ending in a number: "block_7/..." or
/// "model/layers.7/...". Among several such families the one with the most forward operators counts
/// (ties: the first in the graph). A family with a single number counts only if no family has more
/// and its stem contains "layer" or "block". Operators outside layers are before the layers if some
/// layer depends on them, else after. O(operators + edges).
Layers repeated_layers(const Graph& graph);

/// This rule, for messages.
inline constexpr const char* kLayerRule =
    "a layer is the set of operators whose names share a prefix that ends in a number and a slash: "
    "'layer_1/...', 'layer_2/...'; other operators are before the layers if a layer depends on "
    "them, else after";

/// [operator]: true if it belongs to the core of attention: the forward operators between two
/// matmuls of a layer's activations (scores, softmax, weighted values), or a fused one (Attention).
std::vector<bool> attention_core(const Graph& graph, const Layers& layers);

/// True if a forward operator writes router scores: its output goes to a TopK, directly or through
/// a softmax or sigmoid.
bool chooses_experts(const Graph& graph, int32_t op);

}  // namespace trinity
