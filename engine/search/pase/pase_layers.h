#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "graph/iteration_space.h"

namespace trinity {

/// How PaSE's cost model prices a layer (papers/notes.md "PaSE: cost model").
enum class LayerKind : uint8_t {
  product,        ///< matrix products: Conv, Gemm, MatMul, Einsum, embeddings
  pooling,        ///< moving windows
  normalisation,  ///< over the coupled dimension
  mean,           ///< sums over reduced dimensions
  softmax,
  loss,  ///< softmax and cross-entropy over the coupled dimension
  lstm,  ///< stacked layers of equal width over time
  elementwise,
  movement,  ///< joins, cuts and reorders; free
};
const char* layer_kind_name(LayerKind kind);

/// A node of PaSE's layer graph.
struct PaseLayer {
  std::string name;  ///< that of its first operator
  std::string type;  ///< the operator's type
  LayerKind kind = LayerKind::elementwise;
  std::vector<Dimension> dimensions;  ///< its iteration space
  int32_t pointwise = 0;              ///< element-wise operators that run with it
  std::array<int64_t, 2> window{};    ///< extents of a window; 0 where there is none
  std::vector<int64_t> input_shape;   ///< of the tensor that a window moves over
  bool contiguous = false;            ///< parts must be contiguous in memory (Ravel, Unravel)
  std::vector<int32_t> operators;     ///< forward operators of the graph, ascending
  std::vector<TensorAxes> written;    ///< per operator: dimensions that its first output carries
  int64_t recurrent_inputs = 0;       ///< LSTM: width of the first layer's input

  std::string dimension_names() const;  ///< "b c h w r s n"
};

/// A tensor between two layers.
struct PaseEdge {
  int32_t from = 0, to = 0;
  std::vector<int64_t> shape;
  TensorAxes source, target;  ///< by dimension of the writing and of the reading layer
  bool operator==(const PaseEdge&) const = default;
};

/// The graph that PaSE searches: layers in topological order, an edge per tensor between two.
struct PaseGraph {
  std::string name;
  uint64_t fingerprint = 0;  ///< of the operator graph that the layers stand for
  std::vector<PaseLayer> layers;
  std::vector<PaseEdge> edges;  ///< by reading layer, in its argument order
};

/// The layers of the forward part of `graph`. What is folded, as PaSE's own graphs have it:
///   - element-wise operators with one input run with the layer before them: at the cost of a
///     point-wise operation behind products, sums and LSTMs, at none behind others (PaSE counts a
///     ReLU behind a convolution or a sum, not behind a normalisation);
///   - reshapes that only drop or add axes of extent 1 are nothing;
///   - a Flatten of several axes is a Ravel and an Unravel, whose parts are contiguous;
///   - LSTM layers of equal width that follow each other are one layer with a dimension l;
///   - inputs, constants and variables are no layers, and what they feed has no edge for it.
/// Throws ArgumentError when no layer is left.
PaseGraph pase_layers(const Graph& graph);

}  // namespace trinity
