#include "search/construct/favourite_child.h"

#include <algorithm>
#include <numeric>

#include "base/index.h"
#include "base/late.h"
#include "search/linear/sct_solver.h"

namespace trinity {
namespace {

constexpr double kThreshold = 0.5;
/// The longest path through every edge, wires included.
std::vector<double> path_through(const SctProgram& program) {
  const auto& edges = program.edges;
  std::vector<double> before(program.time.size(), 0), after(program.time.size(), 0);
  std::vector<int32_t> order(edges.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return edges[a].from < edges[b].from; });
  for (const int32_t e : order) {
    const auto& [from, to, wire, joined] = edges[e];
    before[to] = std::max(before[to], before[from] + program.time[from] + wire);
  }
  for (auto e = order.rbegin(); e != order.rend(); ++e) {
    const auto& [from, to, wire, joined] = edges[*e];
    after[from] = std::max(after[from], wire + program.time[to] + after[to]);
  }
  std::vector<double> length;
  for (const auto& [from, to, wire, joined] : edges)
    length.push_back(before[from] + program.time[from] + wire + program.time[to] + after[to]);
  return length;
}

/// Takes edges in order of `key`, then of number, while both ends are free.
void match(const SctProgram& program, const std::vector<int32_t>& candidates,
           const std::vector<double>& key, FavouriteChildren& result) {
  auto order = candidates;
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return key[a] < key[b]; });
  for (const int32_t e : order) {
    auto& child = result.child[program.edges[e].from];
    auto& parent = result.parent[program.edges[e].to];
    if (child >= 0 || parent >= 0) continue;
    child = program.edges[e].to;
    parent = program.edges[e].from;
  }
}

/// Fills x, makespan and iterations; false when the solver stopped before the optimum.
bool solve(const SctProgram& program, const SctLimits& limits, FavouriteChildren& result) {
  static auto* const solver = late<SctSolver>(kLinearPart, "trinity_solve_sct");
  const auto lengths = path_through(program);
  return solver(program, limits, *std::max_element(lengths.begin(), lengths.end()), result);
}

}  // namespace

FavouriteChildren favourite_children(const SctProgram& program, const SctLimits& limits) {
  FavouriteChildren result;
  result.child.assign(program.time.size(), -1);
  result.parent.assign(program.time.size(), -1);
  const auto edges = static_cast<int32_t>(program.edges.size());
  std::vector<int32_t> candidates;
  result.solved = edges <= limits.most_edges && (edges == 0 || solve(program, limits, result));
  if (result.solved) {
    for (int32_t e = 0; e < edges; ++e)
      if (!program.edges[e].joined && result.x[e] <= kThreshold + 1e-6) candidates.push_back(e);
    match(program, candidates, result.x, result);
    return result;
  }
  for (int32_t e = 0; e < edges; ++e)
    if (!program.edges[e].joined) candidates.push_back(e);
  auto key = path_through(program);
  for (auto& length : key) length = -length;
  match(program, candidates, key, result);
  result.x.assign(at(edges), 1);
  for (int32_t e = 0; e < edges; ++e)
    if (result.child[program.edges[e].from] == program.edges[e].to) result.x[e] = 0;
  return result;
}

}  // namespace trinity
