#include "search/placement/placement_space.h"

#include <cmath>
#include <map>
#include <numeric>

#include "base/error.h"
#include "base/hash.h"
#include "strategy/strategy.h"

namespace trinity {
namespace {

bool equal_devices(const Problem& problem) {
  const auto& cluster = problem.cluster();
  if (problem.tables().first().size() != 1) return false;
  for (int32_t d = 1; d < problem.devices(); ++d)
    if (cluster.capacity_bytes(d) != cluster.capacity_bytes(0)) return false;
  return problem.devices() == 1 || problem.outputs() == 0 || !problem.uniform_wires().empty();
}

bool numbers_matter(const Problem& problem) {
  const auto queue = problem.rules().queue;
  if (queue == QueueModel::route || queue == QueueModel::fair) return true;
  return problem.rules().event_order || !problem.graph().collectives().empty();
}

}  // namespace

PlacementSpace::PlacementSpace(const Problem& problem)
    : problem_(problem), graph_(make_unit_graph(problem.graph())) {
  bind_neighbours();
  bind_costs();
  interchangeable_ = equal_devices(problem) && !numbers_matter(problem);
}

void PlacementSpace::bind_neighbours() {
  std::vector<std::map<int32_t, int64_t>> lists(static_cast<size_t>(units()));
  for (const auto& edge : graph_.edges) {
    lists[edge.from][edge.to] += edge.bytes;
    lists[edge.to][edge.from] += edge.bytes;
  }
  first_neighbour_.push_back(0);
  for (const auto& list : lists) {
    for (const auto& [unit, bytes] : list) neighbours_.push_back({unit, bytes});
    first_neighbour_.push_back(static_cast<int32_t>(neighbours_.size()));
  }
}

void PlacementSpace::bind_costs() {
  const auto n = static_cast<size_t>(units());
  cost_ns_.assign(n * problem_.tables().first().size(), 0);
  std::vector<bool> bound(problem_.tables().first().size(), false);
  for (int32_t device = 0; device < devices(); ++device) {
    const auto row = static_cast<size_t>(problem_.cost_class(device));
    if (bound[row]) continue;
    bound[row] = true;
    for (int32_t op = 0; op < problem_.operators(); ++op) {
      const auto unit = static_cast<size_t>(problem_.graph().units()[op]);
      cost_ns_[row * n + unit] += problem_.cost_ns(device, op);
    }
  }
}

/// With interchangeable devices: the sum over k <= devices of the Stirling numbers of the second
/// kind S(units, k).
double PlacementSpace::choices() const {
  if (!interchangeable_) return std::pow(devices(), units());
  // number of ways, by number of sets
  std::vector<double> sets(static_cast<size_t>(devices()) + 1, 0);
  sets[0] = 1;
  for (int32_t unit = 0; unit < units(); ++unit) {
    for (size_t k = sets.size() - 1; k > 0; --k)
      sets[k] = sets[k] * static_cast<double>(k) + sets[k - 1];
    sets[0] = 0;
  }
  return std::accumulate(sets.begin(), sets.end(), 0.0);
}

std::vector<int32_t> PlacementSpace::placement(const Assignment& assignment) const {
  const auto unit_of = problem_.graph().units();
  std::vector<int32_t> placement(unit_of.size());
  for (size_t op = 0; op < unit_of.size(); ++op) placement[op] = assignment[unit_of[op]];
  return placement;
}

Assignment PlacementSpace::assignment(std::span<const int32_t> placement) const {
  check_placement(placement, problem_.graph(), problem_.cluster());
  Assignment assignment(static_cast<size_t>(units()));
  for (size_t unit = 0; unit < assignment.size(); ++unit)
    assignment[unit] = placement[graph_.first_operator[unit]];
  return assignment;
}

void PlacementSpace::check(const Assignment& assignment) const {
  if (assignment.size() != static_cast<size_t>(units()))
    throw ArgumentError("expected a device for each of {} colocation units, got {}", units(), assignment.size());
  for (const int32_t device : assignment)
    if (device < 0 || device >= devices())
      throw ArgumentError("expected devices from 1 to {}, got {}", devices(), static_cast<int64_t>(device) + 1);
}

uint64_t PlacementSpace::key(const Assignment& assignment) const {
  std::vector<int32_t> name(static_cast<size_t>(devices()), -1);
  int32_t next = 0;
  uint64_t hash = assignment.size();
  uint64_t unit = 0;
  for (const int32_t device : assignment) {
    auto& known = name[device];
    if (known < 0) known = interchangeable_ ? next++ : device;
    hash += mix64((unit++ << 24) ^ static_cast<uint64_t>(known));
  }
  return hash;
}

}  // namespace trinity
