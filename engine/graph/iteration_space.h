#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace trinity {

/// Role of a dimension of an iteration space.
enum class DimensionRole : uint8_t {
  rows,     ///< independent points; carried by inputs and outputs
  batch,    ///< of a matmul: batch of matrices; otherwise like rows
  columns,  ///< of a matmul: carried by the second operand (the weights) and the output
  reduced,  ///< summed over: no output carries it
  coupled,  ///< points need statistics of each other (a softmax's axis, a norm's)
};

template <>
inline constexpr auto kWords<DimensionRole> = words("role", "rows", "batch", "columns", "reduced", "coupled");

/// A named dimension of an iteration space.
struct Dimension {
  std::string name;
  int64_t size = 1;  ///< number of points
  DimensionRole role = DimensionRole::rows;
  bool splits = true;  ///< false: it cannot be split (a concatenated axis)
};

/// [axis of a tensor]: the dimensions whose parts cut it, outermost first; empty: never cut.
using TensorAxes = std::vector<std::vector<int32_t>>;

/// The loop nest of an operator: its named dimensions, and which of them its tensors carry. A split
/// gives a factor per dimension; each part of the operator then reads and writes the blocks of its
/// tensors along the carried dimensions.
struct IterationSpace {
  std::vector<Dimension> dimensions;
  std::vector<TensorAxes> inputs;      ///< per input tensor, in argument order
  std::vector<TensorAxes> outputs;     ///< per output tensor
  std::vector<TensorAxes> parameters;  ///< per parameter

  /// Index of the dimension called `name`, or -1.
  int32_t find(std::string_view name) const;
  /// True if parts along `dimension` cut some axis of the tensor.
  static bool carries(const TensorAxes& axes, int32_t dimension);
};

/// The iteration space of a forward operator, from its type, attributes and shapes:
///
///   Conv              b c h w r s n     image [b c h w], weight [n c r s], output [b n h w]
///   MaxPool, ...      b c h w           output positions
///   Gemm, MatMul      b (s ...) n c     [b s c] times [c n]; batch axes of MatMul first
///   Gather (rows)     b s d v           numbers [b s], table [v d]: a matmul with one-hot rows
///   Attention         b s h             queries [b s h], keys and values [b . h] of h heads; in a
///                     ring all [b s h]
///   LatentKeyValue    b s h             heads [b s h], shared [b s .], keys and values [b s h]
///   ExpertDispatch    s                 tokens [. s .] to rows [E s .]; ExpertCombine: back
///   AllToAll          s d               rows [. s d] on both sides
///   TopK              b s ...           all axes except the one of which it takes the largest
///   LSTM              s b n c           one layer; s (time) does not split; weights [4n c], [4n n]
///   Einsum            its letters       output letters first, then summed ones
///   Softmax, norms    b (c h w | s d)   the normalised axis is coupled; BatchNormalization: b
///   GlobalAveragePool b c h w           h w reduced
///   Concat, Split     axes of the whole tensor, the joined one does not split
///   Reshape, Flatten  one dimension per run of axes with equal extent on both sides
///   others            element-wise over the output's axes, inputs broadcast from the right
///
/// Operators whose parts would need more than blocks of their inputs (sorting, scattering, padding)
/// have dimensions that do not split. Never fails: a tensor without a shape is not cut.
IterationSpace iteration_space(const Graph& graph, int32_t op);

/// True if attention passes keys and values around a ring (attribute `ring`): parts along s then
/// hold their own rows of keys and values, and see all others one after the other.
bool is_ring(const Operator& op);

/// Names of `count` dimensions of a tensor: b c h w for images, b s d for sequences, b n for
/// matrices.
std::vector<std::string> axis_names(size_t count);

/// A list-of-integers attribute, or empty.
std::vector<int64_t> integers_attribute(const Operator& op, const std::string& name);

}  // namespace trinity
