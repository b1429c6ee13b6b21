#include "graph/units.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "graph/algorithms.h"

namespace trinity {
namespace {

/// Counts every tensor once per pair of units, whatever its number of readers.
std::vector<UnitGraph::Edge> unit_edges(const Graph& graph, const std::vector<int32_t>& unit_of) {
  std::vector<std::tuple<int32_t, int32_t, int32_t>> flows;  // from, to, tensor
  for (int32_t o = 0; o < graph.operator_count(); ++o) {
    for (const int32_t tensor : graph.op(o).inputs) {
      const int32_t from = unit_of[graph.tensor(tensor).producer];
      if (from != unit_of[o]) flows.emplace_back(from, unit_of[o], tensor);
    }
  }
  std::sort(flows.begin(), flows.end());
  flows.erase(std::unique(flows.begin(), flows.end()), flows.end());
  std::vector<UnitGraph::Edge> edges;
  for (const auto& [from, to, tensor] : flows) {
    if (edges.empty() || edges.back().from != from || edges.back().to != to)
      edges.push_back({from, to, 0});
    edges.back().bytes += graph.tensor(tensor).bytes;
  }
  return edges;
}

UnitGraph make(const Graph& graph, std::vector<int32_t> unit_of,
               const std::vector<std::vector<int32_t>>& members_of) {
  const size_t n = members_of.size();
  UnitGraph units;
  units.edges = unit_edges(graph, unit_of);
  units.unit_of = std::move(unit_of);
  units.neighbours.resize(n);
  units.output_bytes.assign(n, 0);
  for (const auto& edge : units.edges) {
    units.neighbours[edge.from].push_back(edge.to);
    units.neighbours[edge.to].push_back(edge.from);
  }
  for (auto& list : units.neighbours) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
  std::map<std::string, int32_t> known;
  for (size_t u = 0; u < n; ++u) {
    const auto& members = members_of[u];
    const auto& first = graph.op(members[0]);
    const auto [entry, added] = known.emplace(first.type, static_cast<int32_t>(units.types.size()));
    if (added) units.types.push_back(first.type);
    units.type.push_back(entry->second);
    units.first_operator.push_back(members[0]);
    units.depth.push_back(graph.depth()[members[0]]);
    for (const int32_t member : members)
      if (graph.op(member).phase == Phase::forward || members.size() == 1)
        for (const int32_t output : graph.op(member).outputs)
          units.output_bytes[u] += graph.tensor(output).bytes;
  }
  return units;
}

}  // namespace

UnitGraph make_unit_graph(const Graph& graph) {
  const auto of = graph.units();
  std::vector<std::vector<int32_t>> members;
  for (int32_t u = 0; u < graph.unit_count(); ++u) {
    const auto list = graph.unit(u);
    members.emplace_back(list.begin(), list.end());
  }
  return make(graph, {of.begin(), of.end()}, members);
}

UnitGraph make_operator_graph(const Graph& graph) {
  std::vector<int32_t> alone(static_cast<size_t>(graph.operator_count()));
  std::iota(alone.begin(), alone.end(), 0);
  std::vector<std::vector<int32_t>> members;
  for (const int32_t o : alone) members.push_back({o});
  return make(graph, alone, members);
}

int32_t GraphBuilder::unit_root(int32_t op) const {
  while (unit_parent_[op] != op) op = unit_parent_[op];
  return op;
}

void GraphBuilder::colocate(int32_t a, int32_t b) { join_sets(unit_parent_, a, b); }

}  // namespace trinity
