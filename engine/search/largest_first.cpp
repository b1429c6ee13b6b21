#include "search/largest_first.h"

#include <algorithm>
#include <numeric>

namespace trinity {
namespace {

/// Fills devices in turn up to `most_ns` each. False when the last one does not hold the rest.
bool fill(const PlacementSpace& space, int64_t most_ns, Assignment& assignment) {
  int32_t device = 0;
  int64_t filled_ns = 0;
  for (int32_t unit = 0; unit < space.units(); ++unit) {
    while (filled_ns + space.cost_ns(unit, device) > most_ns) {
      if (++device == space.devices()) return false;
      filled_ns = 0;
    }
    filled_ns += space.cost_ns(unit, device);
    assignment[static_cast<size_t>(unit)] = device;
  }
  return true;
}

}  // namespace

Assignment largest_first(const PlacementSpace& space) {
  std::vector<int64_t> work_ns(static_cast<size_t>(space.units()), 0);
  for (int32_t unit = 0; unit < space.units(); ++unit)
    for (int32_t device = 0; device < space.devices(); ++device)
      work_ns[static_cast<size_t>(unit)] += space.cost_ns(unit, device);
  std::vector<int32_t> order(work_ns.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return work_ns[static_cast<size_t>(a)] > work_ns[static_cast<size_t>(b)];
  });
  std::vector<int64_t> end_ns(static_cast<size_t>(space.devices()), 0);
  Assignment assignment(work_ns.size());
  for (const int32_t unit : order) {
    const auto end = [&](int32_t d) {
      return end_ns[static_cast<size_t>(d)] + space.cost_ns(unit, d);
    };
    int32_t least = 0;
    for (int32_t device = 1; device < space.devices(); ++device)
      if (end(device) < end(least)) least = device;
    end_ns[static_cast<size_t>(least)] = end(least);
    assignment[static_cast<size_t>(unit)] = least;
  }
  return assignment;
}

Assignment contiguous_split(const PlacementSpace& space) {
  Assignment assignment(static_cast<size_t>(space.units()), 0);
  int64_t low = -1, high = 0;  // the least time lies in (low, high]
  for (int32_t unit = 0; unit < space.units(); ++unit) high += space.cost_ns(unit, 0);
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (fill(space, middle, assignment) ? high : low) = middle;
  }
  fill(space, high, assignment);
  return assignment;
}

}  // namespace trinity
