#pragma once

#include <cstdint>
#include <vector>

namespace trinity {

/// Node2vec (Grover and Leskovec 2016): second-order random walks, then skip-gram with negative
/// sampling. Defaults of p, q, walks and window follow the published Trinity code
/// (papers/notes.md "Trinity: features"); walks are longer and epochs fewer, which gives
/// neighbours closer vectors on graphs of some hundred nodes.
struct Node2VecOptions {
  int32_t dimensions = 64;
  double return_parameter = 0.25;
  double in_out_parameter = 4;
  int32_t walk_length = 8;
  int32_t walks_per_node = 10;
  int32_t window = 2;
  int32_t epochs = 3;
  int32_t negatives = 5;
  double learning_rate = 0.025;
};

/// Vectors of all nodes, row by row, every column scaled to mean 0 and variance 1 (0 if constant).
/// `neighbours[v]` is ascending. The result depends only on the arguments.
std::vector<float> node2vec(const std::vector<std::vector<int32_t>>& neighbours,
                            const Node2VecOptions& options, uint64_t seed);

/// Scales every column of a row-major matrix to mean 0 and variance 1; constant columns to 0.
void standardise_columns(std::vector<float>& matrix, int32_t columns);

}  // namespace trinity
