#include "search/placement/task_graph.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "base/index.h"

namespace trinity {
namespace {

/// Means of latency and 1 / rate over ordered pairs of different devices.
std::pair<double, double> mean_link(const TaskGraph& graph) {
  double latency = 0, inverse_rate = 0;
  int64_t pairs = 0;
  for (int32_t p = 0; p < graph.processors; ++p)
    for (int32_t q = 0; q < graph.processors; ++q) {
      if (p == q) continue;
      const size_t link = at(p) * at(graph.processors) + at(q);
      latency += static_cast<double>(graph.latency[link]);
      inverse_rate += 1 / graph.rate[link];
      ++pairs;
    }
  if (pairs == 0) return {0, 0};
  return {latency / static_cast<double>(pairs), inverse_rate / static_cast<double>(pairs)};
}

}  // namespace

void TaskGraph::index() {
  const auto key = [](const Edge& e) { return std::tuple(e.from, e.to, e.tensor); };
  std::sort(edges.begin(), edges.end(),
            [&](const Edge& a, const Edge& b) { return key(a) < key(b); });
  edges.erase(std::unique(edges.begin(), edges.end(),
                          [&](const Edge& a, const Edge& b) { return key(a) == key(b); }),
              edges.end());
  out_first.assign(at(tasks) + 1, 0);
  in_first.assign(at(tasks) + 1, 0);
  for (const auto& edge : edges) {
    ++out_first[at(edge.from) + 1];
    ++in_first[at(edge.to) + 1];
  }
  std::partial_sum(out_first.begin(), out_first.end(), out_first.begin());
  std::partial_sum(in_first.begin(), in_first.end(), in_first.begin());
  in.resize(edges.size());
  auto next = in_first;
  for (size_t e = 0; e < edges.size(); ++e) in[next[edges[e].to]++] = static_cast<int32_t>(e);
  std::tie(mean_latency_, mean_inverse_rate_) = mean_link(*this);
  find_followers();
}

void TaskGraph::find_followers() {
  follows.assign(at(tasks), false);
  for (int32_t t = 0; t < tasks; ++t) {
    bool free = true;
    for (int32_t p = 0; p < processors; ++p) free = free && cost_of(t, p) == 0;
    for (const int32_t e : inputs(t)) free = free && follows[edges[e].from];
    follows[t] = free;
  }
}

double TaskGraph::mean_cost(int32_t task) const {
  double sum = 0;
  for (int32_t p = 0; p < processors; ++p) sum += static_cast<double>(cost_of(task, p));
  return sum / processors;
}

std::span<const int32_t> TaskGraph::inputs(int32_t task) const {
  const size_t first = at(in_first[task]);
  return {in.data() + first, at(in_first[at(task) + 1]) - first};
}

TaskGraph make_task_graph(const Problem& problem) {
  TaskGraph graph;
  graph.tasks = problem.operators();
  graph.processors = problem.devices();
  for (int32_t o = 0; o < graph.tasks; ++o) {
    for (int32_t d = 0; d < graph.processors; ++d) graph.cost.push_back(problem.cost_ns(d, o));
    for (const auto& reader : problem.readers(o))
      graph.edges.push_back({o, reader.op, problem.first_output(o) + reader.output,
                             problem.output_bytes(o, reader.output)});
  }
  for (int32_t p = 0; p < graph.processors; ++p)
    for (int32_t q = 0; q < graph.processors; ++q) {
      graph.latency.push_back(p == q ? 0 : problem.tables().latency_ns(p, q));
      graph.rate.push_back(p == q ? 1 : problem.cluster().bandwidth_bytes_per_s(p, q) / 1e9);
    }
  const auto units = problem.graph().units();
  graph.group.assign(units.begin(), units.end());
  graph.index();
  return graph;
}

}  // namespace trinity
