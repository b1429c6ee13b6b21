#pragma once

#include <cstdint>
#include <vector>

namespace trinity {

/// Rows of a matrix with many zeros, in blocks of up to 6: for every block the columns in which one
/// of its rows has something, and the entries there. See SparseRows.
struct SparseView {
  int64_t rows, depth;
  const int32_t* column;  ///< of all blocks in turn
  const float* value;     ///< 6 for every column, zeros for rows that a block lacks
  const int64_t* end;     ///< of every block, in `column`
};

/// The inner loops of the policy, on plain arrays of 32-bit numbers, row by row. Written once
/// (kernels_body.h) and compiled for two instruction sets; kernels() picks what the CPU supports.
/// Small matmuls with the same weights are most of a recurrent network: weights
/// packed once make them 2.5 times as fast as a BLAS call (10 rows, width 256:
/// tests/bench/bench_learn.cpp), and as fast as OpenBLAS for many rows. By hand on purpose.
struct Kernels {
  const char* name;  ///< "avx2" or "plain"

  /// Columns of a packed matrix that lie together; pack() fills up the last ones with zeros.
  int64_t panel;

  /// Packs B [depth, columns], whose entry (k, n) lies at b[k * row + n * column], into panels:
  /// packed_size(depth, columns) numbers at `out`.
  void (*pack)(int64_t depth, int64_t columns, const float* b, int64_t row, int64_t column,
               float* out);

  /// C [rows, columns] += A [rows, depth] B. Entry (i, k) of A lies at a[i * row + k * step]; rows
  /// of C are `stride` apart.
  void (*multiply)(int64_t rows, int64_t columns, int64_t depth, const float* a, int64_t row,
                   int64_t step, const float* packed, float* c, int64_t stride);

  /// The same for a compressed A.
  void (*multiply_sparse)(int64_t columns, const SparseView& a, const float* packed, float* c,
                          int64_t stride);

  /// One step of LSTM cells. gates [rows, 4 width] (input, forget, cell, output; before their
  /// functions) become activations; cell and tanh_cell [rows, width] are written, and hidden, its
  /// rows `stride` apart.
  void (*cell_forward)(int64_t rows, int64_t width, float* gates, const float* cell_before,
                       float* cell, float* tanh_cell, float* hidden, int64_t stride);

  /// Its gradients: d_hidden [rows, width] and d_cell, which becomes the gradient of the cell
  /// before; d_gates [rows, 4 width] is written.
  void (*cell_backward)(int64_t rows, int64_t width, const float* gates, const float* cell_before,
                        const float* tanh_cell, const float* d_hidden, float* d_cell,
                        float* d_gates);

  /// to = exp(2 from) of `count` numbers, those beyond +-21 taken as +-21. In place as well.
  void (*doubled_exponential)(int64_t count, const float* from, float* to);

  /// Scores of additive attention: v . tanh(query_t + memory_j) as [steps, keys], given the doubled
  /// exponentials of query [steps, width] and memory [keys, width].
  void (*attention_scores)(int64_t steps, int64_t keys, int64_t width, const float* query,
                           const float* memory, const float* v, float* scores);

  /// Its gradients, given the gradients of the scores [steps, keys] and the same exponentials:
  /// d_query [steps, width] is written, to d_memory [keys, width] and d_v [width] is added.
  /// `scratch` has space for [keys, panel].
  void (*attention_backward)(int64_t steps, int64_t keys, int64_t width, const float* query,
                             const float* memory, const float* v, const float* d_scores,
                             float* d_query, float* d_memory, float* d_v, float* scratch);

  /// Softmax of every row in place.
  void (*softmax)(int64_t rows, int64_t columns, float* values);

  /// Logarithms of the softmax of every row, in place, and the softmax itself to `probability`.
  void (*log_softmax)(int64_t rows, int64_t columns, float* values, float* probability);

  /// values = tanh(values * scale).
  void (*scaled_tanh)(int64_t count, float scale, float* values);

  /// to [columns, rows] = the transpose of from [rows, columns], whose rows are `stride` apart.
  void (*transpose)(int64_t rows, int64_t columns, const float* from, int64_t stride, float* to);

  /// values = max(0, values), and gradients through it, which depend on its result.
  void (*rectify)(int64_t count, float* values);
  void (*rectify_backward)(int64_t count, const float* result, float* gradient);

  /// y += x.
  void (*add)(int64_t count, const float* x, float* y);

  /// Skip-gram's step for the pair of vectors v and c: with g = rate * (label - sigmoid(v . c)),
  /// adds g c to `step` and g v to c.
  void (*skip_gram)(int64_t width, float rate, float label, const float* v, float* c, float* step);

  /// Sum of squares.
  double (*square_sum)(int64_t count, const float* x);

  /// One step of Adam (Kingma and Ba 2015) with moments m and v; gradients are multiplied by
  /// `scale` first. `rate` and `root` are the learning rate and the square root of the second
  /// moment's bias correction; `rate` includes the first moment's.
  void (*adam)(int64_t count, float* weight, const float* gradient, float* m, float* v, float scale,
               float rate, float root);

  int64_t packed_size(int64_t depth, int64_t columns) const {
    return (columns + panel - 1) / panel * panel * depth;
  }
};

const Kernels& kernels();

/// The memory of a SparseView. Not thread-safe.
class SparseRows {
 public:
  /// Compresses A [rows, depth], its rows one after the other.
  void assign(int64_t rows, int64_t depth, const float* a);
  SparseView view() const { return {rows_, depth_, column_.data(), value_.data(), end_.data()}; }

 private:
  int64_t rows_ = 0, depth_ = 0;
  std::vector<int32_t> column_;
  std::vector<float> value_;
  std::vector<int64_t> end_;
};

/// The variant for every CPU, for tests.
const Kernels& plain_kernels();

}  // namespace trinity
