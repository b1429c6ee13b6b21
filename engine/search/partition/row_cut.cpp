#include "search/partition/row_cut.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/index.h"

namespace trinity {
namespace {

/// Loads of all elements on a part.
std::span<const int64_t> loads_of(std::span<const int64_t> work, size_t elements, int32_t part) {
  return work.size() == elements ? work : work.subspan(at(part) * elements, elements);
}

/// Upper bound on every part's total.
int64_t largest_total(std::span<const int64_t> work, size_t elements) {
  int64_t largest = 0;
  for (size_t first = 0; first < work.size(); first += elements) {
    int64_t sum = 0;
    for (const int64_t load : work.subspan(first, elements)) {
      if (load < 0)
        throw ArgumentError("internal error: row cut: expected loads >= 0, got {}", load);
      if (__builtin_add_overflow(sum, load, &sum))
        throw LimitError("row cut: the loads add up to more than 64 bits hold");
    }
    largest = std::max(largest, sum);
  }
  return largest;
}

}  // namespace

std::vector<int32_t> fill_row(std::span<const int64_t> work, size_t elements, int32_t parts,
                              int64_t limit) {
  std::vector<int32_t> part_of(elements, parts);
  size_t next = 0;
  for (int32_t part = 0; part < parts; ++part) {
    const auto loads = loads_of(work, elements, part);
    for (int64_t load = 0; next < elements && loads[next] <= limit - load; ++next) {
      load += loads[next];
      part_of[next] = part;
    }
  }
  return part_of;
}

std::vector<int32_t> cut_row(std::span<const int64_t> work, size_t elements, int32_t parts) {
  if (parts < 1 || (work.size() != elements && work.size() != elements * at(parts)))
    throw ArgumentError("internal error: row cut: {} loads do not fit {} elements on {} parts", work.size(), elements,
                        parts);
  if (elements == 0) return {};
  int64_t low = 0, high = largest_total(work, elements);
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (fill_row(work, elements, parts, middle).back() < parts)
      high = middle;
    else
      low = middle + 1;
  }
  return fill_row(work, elements, parts, high);
}

std::vector<int32_t> cut_row(const std::vector<double>& work, int32_t parts) {
  const double all = std::accumulate(work.begin(), work.end(), 0.0);
  std::vector<int64_t> whole;
  for (const double w : work) {
    if (!(w >= 0 && std::isfinite(w)))
      throw ArgumentError("internal error: row cut: expected loads >= 0, got {}", w);
    whole.push_back(all > 0 ? std::llround(w / all * 0x1p40) : 0);
  }
  return cut_row(whole, whole.size(), parts);
}

}  // namespace trinity
