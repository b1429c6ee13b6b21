#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace trinity {

/// The layers that a network repeats, found by the names of its operators.
struct Layers {
  int32_t count = 0;  ///< 0: it repeats none
  /// Of every operator: from 0; -1 before the first layer, `count` behind the last. Backward and
  /// update operators have the layer of their forward operator.
  std::vector<int32_t> of;
  std::string stem;  ///< what their names begin with: "block_"
};

/// A layer is what shares a part of its name up to a number: "block_7/..." or "model/layers.7/...".
/// Of several such families the one with most forward operators counts, of equal ones the first in
/// the graph; one of a single number only where no family has more and its stem says "layer" or
/// "block". What belongs to no layer is before the layers where some layer depends on it, else
/// behind them. O(operators + edges).
Layers repeated_layers(const Graph& graph);

/// The rule of names, for messages.
inline constexpr const char* kLayerRule =
    "a layer is what shares a name up to a number and a slash ('layer_1/...', 'layer_2/...'); an "
    "operator without such a name goes before the layers where one depends on it, else after them";

/// Of every operator whether it belongs to the core of attention: the forward operators between two
/// products of activations of a layer (scores, softmax, weighted values), or one that is all of them
/// (Attention).
std::vector<bool> attention_core(const Graph& graph, const Layers& layers);

/// Whether a forward operator writes what experts are chosen by: what it writes goes to a TopK, at
/// once or through a softmax or sigmoid.
bool chooses_experts(const Graph& graph, int32_t op);

/// Whether operators are equal in all that costs and memory go by, names, inputs, outputs and
/// collectives aside.
bool same_work(const Operator& a, const Operator& b);
/// Whether tensors are equal but for their names and writers.
bool same_tensor(const Tensor& a, const Tensor& b);

}  // namespace trinity
