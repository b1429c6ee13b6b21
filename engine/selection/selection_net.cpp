#include "selection/selection_net.h"

#include <algorithm>

namespace trinity {
namespace {

int64_t padded(int64_t states) { return (states + 3) / 4 * 4; }

}  // namespace

SelectionNet::SelectionNet(const SelectionModel& model, const SelectionMemory& memory)
    : model_(model), memory_(memory) {
  first_.push_back(0);
  for (const auto& node : model.nodes) {
    states_.push_back(node.states());
    first_.push_back(first_.back() + padded(node.states()));
    for (const double cost : node.cost) costs_.push_back(static_cast<float>(cost));
    costs_.resize(at(first_.back()), 0.0f);
  }
  int64_t entries = 0;
  for (const auto& edge : model.edges)
    entries += int64_t{states(edge.u)} * width(edge.v) + int64_t{states(edge.v)} * width(edge.u);
  tables_.assign(at(entries), 0.0f);
  std::vector<std::vector<Link>> links(model.nodes.size());
  float* next = tables_.data();
  for (size_t e = 0; e < model.edges.size(); ++e) {
    const auto& edge = model.edges[e];
    const int32_t rows = states(edge.u), columns = states(edge.v);
    float* by_u = next;
    float* by_v = by_u + int64_t{rows} * width(edge.v);
    next = by_v + int64_t{columns} * width(edge.u);
    for (int32_t s = 0; s < rows; ++s)
      for (int32_t t = 0; t < columns; ++t) {
        const auto cost = static_cast<float>(edge.table[at(int64_t{s} * columns + t)]);
        by_u[int64_t{s} * width(edge.v) + t] = cost;
        by_v[int64_t{t} * width(edge.u) + s] = cost;
      }
    const int64_t to_u = message_entries_, to_v = to_u + width(edge.u);
    message_entries_ = to_v + width(edge.v);
    const auto number = static_cast<int32_t>(e);
    links[at(edge.u)].push_back({edge.v, number, by_v, by_u, to_u, to_v});
    links[at(edge.v)].push_back({edge.u, number, by_u, by_v, to_v, to_u});
  }
  first_link_.push_back(0);
  for (auto& of_node : links) {
    std::sort(of_node.begin(), of_node.end(),
              [](const Link& a, const Link& b) { return a.other < b.other; });
    links_.insert(links_.end(), of_node.begin(), of_node.end());
    first_link_.push_back(static_cast<int64_t>(links_.size()));
  }
}

void SelectionNet::price(int32_t v, std::span<const double> tail, float* out) const {
  const auto points = memory_.breakpoints(v);
  for (int32_t s = 0; s < states(v); ++s) {
    const auto changes = memory_.changes(v, s);
    double sum = 0;
    for (size_t i = 0; i < points.size(); ++i)
      sum += static_cast<double>(changes[i]) * tail[at(points[i])];
    out[s] = static_cast<float>(sum);
  }
}

void min_plus(const float* __restrict in, int32_t states, const float* __restrict table,
              int32_t width, float* __restrict out) {
  for (int32_t t = 0; t < width; ++t) out[t] = in[0] + table[t];
  for (int32_t s = 1; s < states; ++s) {
    const float* __restrict row = table + int64_t{s} * width;
    const float mine = in[s];
    for (int32_t t = 0; t < width; ++t) {
      const float sum = mine + row[t];
      out[t] = sum < out[t] ? sum : out[t];
    }
  }
}

}  // namespace trinity
