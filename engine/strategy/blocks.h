#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/shared.h"
#include "graph/iteration_space.h"

// Blocks of tensors and of iteration spaces under a split: the arithmetic of strategy/splits.

namespace trinity {

struct Range {
  int64_t begin = 0, end = 0;
  int64_t length() const { return end - begin; }
  auto operator<=>(const Range&) const = default;
};

/// A range per axis of a tensor; no axes if the shape is not known. Splits make hundreds of thousands of blocks.
using Block = ShortList<Range, 5>;
inline auto operator<=>(const Block& a, const Block& b) {
  return std::lexicographical_compare_three_way(a.begin(), a.end(), b.begin(), b.end());
}

int64_t block_elements(const Block& block);
Block whole_block(const std::vector<int64_t>& shape);
/// True if a block has this shape; a block without axes has any.
bool has_lengths(const Block& block, const std::vector<int64_t>& shape);
/// Gives a tensor the shape of its block; one that has it keeps what it shares with others.
void take_lengths(const Block& block, SharedList<int64_t>& shape);
/// The overlap of two blocks of one tensor; empty ranges if there is none.
Block overlap(const Block& a, const Block& b);
bool is_empty(const Block& block);
/// True if a block is inside another one, so that their overlap is the block itself.
bool lies_in(const Block& block, const Block& other);
/// Number of elements that two blocks share; 1 if the shape is not known.
int64_t shared_elements(const Block& a, const Block& b);

/// The parts of one operator: part numbers count the first dimension slowest, copies of one block
/// fastest. Copies count as a dimension, the last one, which no tensor carries. `padded`: blocks are
/// equally long, rounded up, and the last ones may reach beyond the end.
/// Immutable after construction.
class OperatorCut {
 public:
  OperatorCut() = default;
  OperatorCut(IterationSpace space, std::vector<int32_t> factors, int32_t copies = 1,
              bool padded = false);
  /// For a space with a dimension of copies.
  OperatorCut(std::shared_ptr<const IterationSpace> space, std::vector<int32_t> factors,
              int32_t copies, bool padded);

  const IterationSpace& space() const { return *space_; }
  const std::vector<int32_t>& factors() const { return factors_; }
  int32_t parts() const { return parts_; }
  /// The coordinate of a part along every dimension.
  std::vector<int32_t> coordinates(int32_t part) const;
  int32_t coordinate(int32_t part, size_t dimension) const {
    return part / stride_[dimension] % factors_[dimension];
  }
  /// The block of a tensor with these axes that a part reads or writes. An axis of n points cut in
  /// c has blocks [i n / c, (i + 1) n / c), or, padded, c of ceil(n / c).
  Block block(const std::vector<int64_t>& shape, const TensorAxes& axes, int32_t part) const {
    Block block;
    for (size_t i = 0; i < shape.size(); ++i)
      block.push_back(i < axes.size() && !axes[i].empty() ? range(shape[i], axes[i], part)
                                                          : Range{0, shape[i]});
    return block;
  }
  /// True if parts have different blocks of a tensor with these axes.
  bool cuts(const TensorAxes& axes) const;
  /// True if the blocks of a tensor that parts of one number have of both cuts are the same: those
  /// with these axes here and with those there.
  bool same_blocks(const TensorAxes& axes, const OperatorCut& other,
                   const TensorAxes& others) const;
  /// Length of a part along a dimension.
  int64_t length(size_t dimension, int32_t part) const;
  /// Fraction of the iteration space's points that a part has.
  double share(int32_t part) const;
  /// Dimensions, without copies, with several parts that a tensor with these axes does not carry.
  std::vector<int32_t> missing(const TensorAxes& axes) const;
  /// For every part a number that it shares with those that differ from it along `dimensions`
  /// alone.
  std::vector<int32_t> groups(const std::vector<int32_t>& dimensions) const;

 private:
  Range range(int64_t extent, std::span<const int32_t> dimensions, int32_t part) const {
    int64_t index = 0, count = 1;
    for (const int32_t d : dimensions) {
      const auto i = static_cast<size_t>(d);
      if (factors_[i] == 1) continue;
      index = index * factors_[i] + coordinate(part, i);
      count *= factors_[i];
    }
    if (!padded_) return {index * extent / count, (index + 1) * extent / count};
    const int64_t length = count == 1 ? extent : (extent + count - 1) / count;
    return {index * length, (index + 1) * length};
  }

  std::shared_ptr<const IterationSpace> space_;
  std::vector<int32_t> factors_, stride_;  // by dimension; parts from one coordinate to the next
  int32_t parts_ = 1;
  bool padded_ = false;
};

}  // namespace trinity
