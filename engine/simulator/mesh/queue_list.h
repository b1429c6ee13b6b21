#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/index.h"

// Of the search for symmetry alone (symmetry.cpp).

namespace trinity {

/// Lists of numbers one behind the other.
struct Lists {
  std::vector<int32_t> all;
  std::vector<size_t> first{0};

  void end() { first.push_back(all.size()); }
  size_t count() const { return first.size() - 1; }
  std::span<const int32_t> operator[](size_t i) const {
    return std::span(all).subspan(first[i], first[i + 1] - first[i]);
  }
};

/// Channels of routes, or pairs of devices, numbered as they are met.
struct QueueList {
  std::vector<int32_t> owner;  // the lane's copy whose transfers take it, or -1
  std::vector<int32_t> place;  // its place among that one's
  std::vector<int32_t> group;  // the last one found whose collectives take it, or -1
  Lists groups;                // all of these
};

}  // namespace trinity
