#include "simulator/problem.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/error.h"
#include "base/units.h"
#include "strategy/cost.h"

namespace trinity {

SimulationRules SimulationRules::standard(const Cluster& cluster) {
  SimulationRules rules;
  rules.queue = cluster.queue();
  return rules;
}

SimulationRules SimulationRules::compat() {
  SimulationRules rules;
  rules.device_dead_ns = 5700;
  rules.link_dead_ns = 25000;
  rules.broadcast = true;
  rules.last_event = true;
  rules.outputs_only_memory = true;
  return rules;
}

Problem::Problem(std::shared_ptr<const Graph> graph, std::shared_ptr<const Cluster> cluster,
                 SimulationRules rules)
    : graph_(std::move(graph)), cluster_(std::move(cluster)), rules_(rules) {
  key_bits_ = std::bit_width(static_cast<uint32_t>(operators()));
  bind_costs();
  bind_edges();
  bind_wires();
  check_range();
  lower_bound_ns_ = compute_lower_bound();
}

void Problem::bind_costs() {
  cost_ns_.reserve(static_cast<size_t>(operators()) * static_cast<size_t>(devices()));
  for (int32_t d = 0; d < devices(); ++d) {
    for (const auto& op : graph_->operators()) {
      const double time_s = operator_time_s(*graph_, op, cluster_->device(d), cluster_->type_of(d));
      if (!(time_s >= 0 && time_s < 1e6))
        throw LimitError(fmt::format("operator '{}' would take {} s on device '{}'", op.name,
                                     time_s, cluster_->device(d).name));
      cost_ns_.push_back(std::llround(time_s * 1e9));
    }
  }
  for (const auto& op : graph_->operators())
    fixed_bytes_.push_back(op.parameter_bytes() + op.persistent_bytes);
}

void Problem::bind_edges() {
  missing_.assign(static_cast<size_t>(operators()), 0);
  reader_offsets_.push_back(0);
  output_offsets_.push_back(0);
  for (int32_t o = 0; o < operators(); ++o) {
    const auto& outputs = graph_->op(o).outputs;
    for (const int32_t tensor : outputs) output_bytes_.push_back(graph_->tensor(tensor).bytes);
    output_offsets_.push_back(static_cast<int32_t>(output_bytes_.size()));
    max_outputs_ = std::max(max_outputs_, static_cast<int32_t>(outputs.size()));
    const auto [first, last] = boost::out_edges(o, graph_->csr());
    for (auto edge = first; edge != last; ++edge) {
      const int32_t tensor = graph_->csr()[*edge].tensor;
      const auto at = std::find(outputs.begin(), outputs.end(), tensor);
      const auto reader = static_cast<int32_t>(boost::target(*edge, graph_->csr()));
      readers_.push_back({reader, static_cast<int32_t>(at - outputs.begin())});
      ++missing_[static_cast<size_t>(reader)];
    }
    std::sort(readers_.begin() + reader_offsets_.back(), readers_.end(),
              [](const Reader& a, const Reader& b) {
                return a.op != b.op ? a.op < b.op : a.output < b.output;
              });
    reader_offsets_.push_back(static_cast<int32_t>(readers_.size()));
  }
}

void Problem::bind_wires() {
  const auto n = static_cast<size_t>(devices());
  latency_ns_.assign(n * n, 0);
  ns_per_byte_.assign(n * n, 0);
  for (int32_t a = 0; a < devices(); ++a) {
    for (int32_t b = 0; b < devices(); ++b) {
      if (a == b) continue;
      const size_t at = static_cast<size_t>(a) * n + static_cast<size_t>(b);
      latency_ns_[at] = std::llround(cluster_->latency_s(a, b) * 1e9);
      ns_per_byte_[at] = 1e9 / cluster_->bandwidth_bytes_per_s(a, b);
    }
  }
}

int64_t Problem::wire_ns(int32_t from, int32_t to, int64_t bytes) const {
  const size_t at =
      static_cast<size_t>(from) * static_cast<size_t>(devices()) + static_cast<size_t>(to);
  return latency_ns_[at] + std::llround(static_cast<double>(bytes) * ns_per_byte_[at]);
}

/// Something always runs, so no step outlasts all operators plus all possible transfers.
void Problem::check_range() const {
  double latest_ns = 0;
  for (int32_t o = 0; o < operators(); ++o) {
    int64_t slowest = 0;
    for (int32_t d = 0; d < devices(); ++d) slowest = std::max(slowest, cost_ns(d, o));
    latest_ns += static_cast<double>(slowest + rules_.device_dead_ns);
  }
  const double latency =
      static_cast<double>(*std::max_element(latency_ns_.begin(), latency_ns_.end()));
  const double per_byte = *std::max_element(ns_per_byte_.begin(), ns_per_byte_.end());
  for (int32_t o = 0; o < operators(); ++o)
    for (const auto& reader : readers(o))
      latest_ns += latency + static_cast<double>(rules_.link_dead_ns) +
                   per_byte * static_cast<double>(output_bytes(o, reader.output));
  if (latest_ns >= std::ldexp(1.0, 63 - key_bits_))
    throw LimitError(fmt::format(
        "graph '{}' on cluster '{}': a step could take {:.3g} s, more than the simulator's clock "
        "holds ({:.3g} s); check the units of bandwidths and times",
        graph_->name(), cluster_->name(), latest_ns * 1e-9,
        std::ldexp(1.0, 63 - key_bits_) * 1e-9));
}

void Problem::check_memory() const {
  int64_t largest = 0, together = 0, fixed = 0;
  for (int32_t d = 0; d < devices(); ++d) {
    largest = std::max(largest, cluster_->capacity_bytes(d));
    together += cluster_->capacity_bytes(d);
  }
  std::vector<int64_t> unit_fixed(static_cast<size_t>(graph_->unit_count()), 0);
  for (int32_t o = 0; o < operators(); ++o) {
    fixed += fixed_bytes(o);
    auto& unit = unit_fixed[static_cast<size_t>(graph_->op(o).unit)];
    unit += fixed_bytes(o);
    int64_t live = 0;
    auto tensors = graph_->op(o).inputs;
    std::sort(tensors.begin(), tensors.end());
    tensors.erase(std::unique(tensors.begin(), tensors.end()), tensors.end());
    for (const int32_t tensor : tensors) live += graph_->tensor(tensor).bytes;
    for (const int32_t tensor : graph_->op(o).outputs) live += graph_->tensor(tensor).bytes;
    if (unit + live > largest)
      throw LimitError(fmt::format(
          "graph '{}' does not fit: operator '{}' alone needs {} and the largest device of "
          "cluster '{}' has {}",
          graph_->name(), graph_->op(o).name, format_bytes(unit + live), cluster_->name(),
          format_bytes(largest)));
  }
  if (fixed > together)
    throw LimitError(fmt::format(
        "graph '{}' does not fit: weights and optimiser state need {} and all {} devices of "
        "cluster '{}' together have {}",
        graph_->name(), format_bytes(fixed), devices(), cluster_->name(), format_bytes(together)));
}

int64_t Problem::compute_lower_bound() const {
  std::vector<int64_t> earliest(static_cast<size_t>(operators()), 0);
  int64_t path = 0, work = 0;
  for (int32_t o = 0; o < operators(); ++o) {
    int64_t fastest = cost_ns(0, o);
    for (int32_t d = 1; d < devices(); ++d) fastest = std::min(fastest, cost_ns(d, o));
    const int64_t end = earliest[static_cast<size_t>(o)] + fastest;
    path = std::max(path, end);
    work += fastest;
    for (const auto& reader : readers(o)) {
      auto& start = earliest[static_cast<size_t>(reader.op)];
      start = std::max(start, end);
    }
  }
  return std::max(path, (work + devices() - 1) / devices());
}

}  // namespace trinity
