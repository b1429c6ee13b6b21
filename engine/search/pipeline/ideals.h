#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/deadline.h"

namespace trinity {

struct LoadInstance;

/// The down-sets (ideals) of a partial order: sets that contain the predecessors of their elements,
/// from the empty set (0) to the full set (last), in order of size. Immutable.
class Ideals {
 public:
  /// The ideals of elements 0 .. count - 1, with an edge (a, b) for a before b; none if there are
  /// more than `most`. O(ideals * count). Throws Interrupted, TimeIsUp.
  static std::optional<Ideals> of_order(int32_t count,
                                        std::span<const std::pair<int32_t, int32_t>> edges,
                                        int32_t most, const Deadline& deadline = {});

  int32_t count() const { return count_; }
  /// The elements of an ideal as bits, element i in word i / 64.
  std::span<const uint64_t> bits(int32_t ideal) const {
    return {bits_.data() + static_cast<size_t>(ideal) * words_, words_};
  }
  /// True if `sub` is a subset of `ideal`.
  bool holds(int32_t ideal, int32_t sub) const {
    const auto whole = bits(ideal), part = bits(sub);
    for (size_t w = 0; w < words_; ++w)
      if (part[w] & ~whole[w]) return false;
    return true;
  }
  /// Calls body(element) for every element of `ideal` that is not in `sub`, ascending.
  template <class Body>
  void for_difference(int32_t ideal, int32_t sub, Body body) const {
    const auto whole = bits(ideal), part = bits(sub);
    for (size_t w = 0; w < words_; ++w)
      for (uint64_t left = whole[w] & ~part[w]; left != 0; left &= left - 1)
        body(static_cast<int32_t>(w * 64) + std::countr_zero(left));
  }
  std::vector<int32_t> difference(int32_t ideal, int32_t sub) const;

 private:
  size_t words_ = 0;
  int32_t count_ = 0;
  std::vector<uint64_t> bits_;  // words_ per ideal
};

/// Elements of a max-load cut: groups of nodes that stay together, numbered in a topological order
/// of their forward parts.
struct LoadOrder {
  std::vector<std::vector<int32_t>> groups;        ///< nodes per group
  std::vector<std::pair<int32_t, int32_t>> edges;  ///< between groups, distinct, low to high

  /// True if the order is total.
  bool is_chain() const;
};

/// See max_load_cut(). With `heavy_leaves` leaves without work that hold memory also join their
/// neighbour. Groups are numbered in the order of their first node if that is topological.
LoadOrder make_load_order(const LoadInstance& instance, bool heavy_leaves);

/// The same groups in another topological order: variant 0 depth first (the latest that became
/// ready comes next), 1 breadth first, from 2 on random, with `variant` as the seed.
LoadOrder reordered(const LoadOrder& order, uint64_t variant);

}  // namespace trinity
