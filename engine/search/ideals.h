#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace trinity {

struct LoadInstance;

/// The down-sets of a partial order (sets that hold the predecessors of their elements), from the
/// empty set (0) to all (the last), in order of size. With each, those that are one element
/// smaller.
class Ideals {
 public:
  struct Below {
    int32_t ideal, element;  ///< this ideal without `element`
  };

  /// Of elements 0 .. count - 1 with edges from lower to higher ones; nothing when there are more
  /// than `most`.
  static std::optional<Ideals> of_order(int32_t count,
                                        std::span<const std::pair<int32_t, int32_t>> edges,
                                        int32_t most);
  /// Of the order 0, 1, 2, ...
  static Ideals of_chain(int32_t count);

  int32_t count() const { return static_cast<int32_t>(below_first_.size()) - 1; }
  std::span<const Below> below(int32_t ideal) const {
    const auto first = static_cast<size_t>(below_first_[static_cast<size_t>(ideal)]);
    const auto last = static_cast<size_t>(below_first_[static_cast<size_t>(ideal) + 1]);
    return {below_.data() + first, last - first};
  }
  /// The elements of `ideal` that `sub`, which it holds, lacks; ascending.
  std::vector<int32_t> difference(int32_t ideal, int32_t sub) const;

 private:
  size_t words_ = 0;
  std::vector<uint64_t> bits_;  // words_ an ideal
  std::vector<int32_t> below_first_;
  std::vector<Below> below_;
};

/// What a max-load split decides over: groups of nodes that stay together, numbered in a
/// topological order of their forward parts.
struct LoadOrder {
  std::vector<std::vector<int32_t>> groups;        ///< nodes of every group
  std::vector<std::pair<int32_t, int32_t>> edges;  ///< between groups, distinct, low to high

  /// Whether the order is total.
  bool is_chain() const;
};

/// See max_load_split(). With `heavy_leaves` idle leaves that hold memory join their neighbour too.
LoadOrder make_load_order(const LoadInstance& instance, bool heavy_leaves);

}  // namespace trinity
