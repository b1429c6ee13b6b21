#include "search/pipeline_split.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "search/task_graph.h"

namespace trinity {
namespace {

size_t at(int32_t i) { return static_cast<size_t>(i); }

/// Fills parts in turn up to `limit`; returns how many elements fit.
size_t fill(std::span<const int64_t> work, size_t elements, size_t parts, int64_t limit,
            std::vector<int32_t>& part_of) {
  size_t next = 0;
  for (size_t part = 0; part < parts; ++part) {
    const auto loads = work.subspan(part * elements, elements);
    for (int64_t load = 0; next < elements && loads[next] <= limit - load; ++next) {
      load += loads[next];
      part_of[next] = static_cast<int32_t>(part);
    }
  }
  return next;
}

/// No part's total exceeds this.
int64_t largest_total(std::span<const int64_t> work, size_t elements, size_t parts) {
  int64_t largest = 0;
  for (size_t part = 0; part < parts; ++part) {
    int64_t sum = 0;
    for (const int64_t load : work.subspan(part * elements, elements)) {
      if (load < 0) throw ArgumentError(fmt::format("contiguous split: a load is {}", load));
      if (__builtin_add_overflow(sum, load, &sum))
        throw LimitError("contiguous split: the loads add up to more than 64 bits hold");
    }
    largest = std::max(largest, sum);
  }
  return largest;
}

}  // namespace

std::vector<int32_t> contiguous_split(std::span<const int64_t> work, int32_t parts) {
  if (parts < 1 || work.size() % at(parts) != 0)
    throw ArgumentError(fmt::format("contiguous split: {} loads for {} parts", work.size(), parts));
  const size_t elements = work.size() / at(parts);
  std::vector<int32_t> part_of(elements, 0);
  int64_t low = 0, high = largest_total(work, elements, at(parts));
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (fill(work, elements, at(parts), middle, part_of) == elements)
      high = middle;
    else
      low = middle + 1;
  }
  fill(work, elements, at(parts), high, part_of);
  return part_of;
}

std::vector<int32_t> pipeline_order(const Problem& problem) {
  const auto tasks = make_task_graph(problem);
  const auto units = problem.graph().unit_count();
  constexpr int32_t kNone = std::numeric_limits<int32_t>::max();
  std::vector<int32_t> key(at(units), kNone);
  for (int32_t o = 0; o < tasks.tasks; ++o)
    if (!tasks.follows[at(o)]) {
      auto& first = key[at(tasks.group[at(o)])];
      first = std::min(first, o);
    }
  // A weight's own gradient and update cost something, but its first reader comes before them.
  for (int32_t o = tasks.tasks - 1; o >= 0; --o) {
    if (!tasks.follows[at(o)]) continue;
    auto& first = key[at(tasks.group[at(o)])];
    for (const auto& edge : tasks.readers(o))
      first =
          std::min(first, tasks.follows[at(edge.to)] ? key[at(tasks.group[at(edge.to)])] : edge.to);
  }
  std::vector<int32_t> order(at(units));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return key[at(a)] < key[at(b)]; });
  return order;
}

PipelineSplit gpipe_split(const Problem& problem, std::span<const int32_t> devices) {
  std::vector<int32_t> on(devices.begin(), devices.end());
  if (on.empty()) {
    on.resize(at(problem.devices()));
    std::iota(on.begin(), on.end(), 0);
  }
  for (const int32_t d : on)
    if (d < 0 || d >= problem.devices())
      throw ArgumentError(
          fmt::format("gpipe: expected devices from 0 to {}, got {}", problem.devices() - 1, d));
  const auto order = pipeline_order(problem);
  std::vector<int64_t> work;
  for (const int32_t d : on)
    for (const int32_t unit : order) {
      int64_t sum = 0;
      for (const int32_t o : problem.graph().unit(unit)) sum += problem.cost_ns(d, o);
      work.push_back(sum);
    }
  const auto part = contiguous_split(work, static_cast<int32_t>(on.size()));
  PipelineSplit split;
  split.stage.resize(at(problem.operators()));
  split.placement.resize(at(problem.operators()));
  std::vector<int64_t> load(on.size(), 0);
  for (size_t i = 0; i < order.size(); ++i) {
    load[at(part[i])] += work[at(part[i]) * order.size() + i];
    for (const int32_t o : problem.graph().unit(order[i])) {
      split.stage[at(o)] = part[i];
      split.placement[at(o)] = on[at(part[i])];
    }
  }
  split.load_ns = *std::max_element(load.begin(), load.end());
  return split;
}

}  // namespace trinity
