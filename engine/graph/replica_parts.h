#pragma once

#include <cstdint>
#include <vector>

// Of replication.h alone: parts of a batch, and what is joined over replicas.

namespace trinity::replication {

/// Where a part of the batch begins: part / parts of it.
struct Cut {
  int64_t part, parts;
  bool before(const Cut& other) const { return part * other.parts < other.part * parts; }
  double share() const { return static_cast<double>(part) / static_cast<double>(parts); }
};

/// A piece of a copy's output: the samples from one cut to another.
struct Piece {
  Cut from, to;
  int32_t tensor;  // in the builder
};

/// What is joined over replicas together: gradients, in the order of production, or weights.
struct Bucket {
  int32_t stage, spread;
  std::vector<int32_t> items;  // tensors of the original graph; of weights tensors + update
  int64_t bytes = 0;
};

/// Replicas that take part in collectives of one kind at the same time.
using Groups = std::vector<std::vector<int32_t>>;

}  // namespace trinity::replication
