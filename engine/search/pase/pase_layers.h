#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "graph/iteration_space.h"

namespace trinity {

/// Layer types of PaSE's cost model (papers/notes.md "PaSE: cost model").
enum class LayerKind : uint8_t {
  product,        ///< matmuls: Conv, Gemm, MatMul, Einsum, embeddings
  pooling,        ///< moving windows
  normalisation,  ///< over the coupled dimension
  mean,           ///< sums over reduced dimensions
  softmax,
  loss,  ///< softmax and cross-entropy over the coupled dimension
  lstm,  ///< stacked layers of equal width over time
  elementwise,
  movement,  ///< concatenation, slicing, reordering: free
};
template <>
inline constexpr auto kWords<LayerKind> =
    words("layer kind", "product", "pooling", "normalisation", "mean", "softmax", "loss", "lstm", "elementwise",
          "movement");

/// A node of PaSE's layer graph.
struct PaseLayer {
  std::string name;  ///< of its first operator
  std::string type;  ///< of its first operator
  LayerKind kind = LayerKind::elementwise;
  std::vector<Dimension> dimensions;  ///< its iteration space
  int32_t pointwise = 0;              ///< number of element-wise operators fused into it
  std::array<int64_t, 2> window{};    ///< extents of a window; 0: none
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

/// The graph that PaSE searches: layers in topological order, one edge per tensor between two
/// layers.
struct PaseGraph {
  std::string name;
  uint64_t fingerprint = 0;  ///< of the operator graph
  std::vector<PaseLayer> layers;
  std::vector<PaseEdge> edges;  ///< by reading layer, in its argument order
};

/// The layers of the forward part of `graph`, folded as in PaSE's own graphs:
///   - element-wise operators with one input belong to the previous layer: at the cost of a
///     point-wise operation after matmuls, sums and LSTMs, at no cost after others (PaSE counts a
///     ReLU after a convolution or a sum, not after a normalisation);
///   - reshapes that only drop or add axes of extent 1 disappear;
///   - a Flatten of several axes is a Ravel and an Unravel, whose parts are contiguous;
///   - consecutive LSTM layers of equal width are one layer with a dimension l;
///   - inputs, constants and variables are not layers and have no edges.
/// Throws ArgumentError if no layer is left.
PaseGraph pase_layers(const Graph& graph);

}  // namespace trinity
