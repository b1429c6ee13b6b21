#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "base/index.h"

// Only for the search for symmetry (symmetry.cpp).

namespace trinity {

/// Lists of numbers, stored one after the other.
struct Lists {
  std::vector<int32_t> all;
  std::vector<size_t> first{0};

  void end() { first.push_back(all.size()); }
  size_t count() const { return first.size() - 1; }
  std::span<const int32_t> operator[](size_t i) const {
    return std::span(all).subspan(first[i], first[i + 1] - first[i]);
  }
  /// The inverse: for each number in [0, numbers) the lists that contain it, ascending.
  Lists turned(size_t numbers) const {
    Lists lists{std::vector<int32_t>(all.size()), std::vector<size_t>(numbers + 1, 0)};
    for (const int32_t number : all) ++lists.first[at(number) + 1];
    std::partial_sum(lists.first.begin(), lists.first.end(), lists.first.begin());
    auto next = lists.first;
    for (size_t i = 0; i < count(); ++i)
      for (const int32_t number : (*this)[i]) lists.all[next[at(number)]++] = static_cast<int32_t>(i);
    return lists;
  }
};

/// Devices of a replica in the replicas first, first + step, ...
struct ReplicaGroup {
  std::span<const int32_t> members;
  // of the members (Refinement::find_places()); empty for one device
  std::span<const uint64_t> places;
  int32_t first = 0, step = 1, count = 1;
  bool inner = false;  // within one replica, whatever their number
  int32_t price = 0;   // groups with equal values cost the same
  int32_t colour = 0;
  bool meets = true;  // a collective may join these devices

  bool has(int32_t replica) const {
    const int32_t on = replica - first;
    return on >= 0 && on % step == 0 && on / step < count;
  }
  bool shares_replica(const ReplicaGroup& other) const {
    if (has(other.first) || other.has(first)) return true;  // always so for equal steps
    if (step == other.step) return false;
    if (count > other.count) return other.shares_replica(*this);
    int32_t i = 1;
    while (i < count && !other.has(first + i * step)) ++i;
    return i < count;
  }
  template <class Visit>
  void for_replicas(Visit visit) const {
    for (int32_t i = 0; i < count; ++i) visit(first + i * step);
  }
};

/// Channels of routes, or pairs of devices, numbered by first appearance.
struct QueueList {
  std::vector<int32_t> owner;  // pipeline group whose transfers use it, or -1
  std::vector<int32_t> place;  // index among the queues of its owner
  std::vector<int32_t> group;  // last group found whose collectives use it, or -1
  Lists groups;                // all such groups
};

}  // namespace trinity
