#include "search/pipeline/layer_row.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/index.h"
#include "graph/operator_types.h"
#include "search/pipeline/max_load_search.h"
#include "search/pipeline/pipeline_cuts.h"
#include "simulator/simulator.h"

namespace trinity {
namespace {

constexpr int32_t kMostLayers = 1024;  // of a network: the maximum number of devices of planners

/// `layers` layers without cost.
LayerRow empty_row(size_t layers) {
  LayerRow row;
  row.type.assign(layers, "layer");
  for (auto* bytes : {&row.parameter_bytes, &row.fixed_bytes, &row.activation_bytes})
    bytes->assign(layers, 0);
  row.forward_bytes.assign(layers + 1, 0);
  row.backward_bytes = row.forward_bytes;
  return row;
}

LayerRow::Kind idle_kind(int32_t device, size_t layers) {
  const std::vector<double> none(layers, 0);
  return {device, none, none, none};
}

/// Builds the row of a graph.
class GraphRow {
 public:
  explicit GraphRow(const Problem& problem) : problem_(problem), graph_(problem.graph()) {}

  LayerRow make() {
    find_layers();
    for (int32_t o = 0; o < graph_.operator_count(); ++o) add_bytes(graph_.op(o), layer_of_[o]);
    add_devices();
    add_crossing();
    row_.layer_of = std::move(layer_of_);
    return std::move(row_);
  }

 private:
  void find_layers() {
    std::vector<int32_t> layer_of_unit(at(graph_.unit_count()), -1), first;
    for (int32_t o = 0; o < graph_.operator_count(); ++o) {
      auto& layer = layer_of_unit[graph_.units()[o]];
      if (graph_.op(o).phase != Phase::forward || layer >= 0) continue;
      layer = static_cast<int32_t>(first.size());
      first.push_back(o);
    }
    if (first.empty())
      throw ArgumentError("graph '{}' has no forward operators", graph_.name());
    row_ = empty_row(first.size());
    for (size_t l = 0; l < first.size(); ++l) row_.type[l] = graph_.op(first[l]).type;
    int32_t last = 0;
    for (int32_t o = 0; o < graph_.operator_count(); ++o) {
      const int32_t own = layer_of_unit[graph_.units()[o]], serves = graph_.op(o).forward;
      const int32_t served = serves < 0 ? -1 : layer_of_unit[graph_.units()[serves]];
      last = own >= 0 ? own : served >= 0 ? served : last;
      layer_of_.push_back(last);
    }
  }

  void add_bytes(const Operator& op, int32_t layer) {
    const auto parameters = static_cast<double>(op.parameter_bytes());
    row_.parameter_bytes[layer] += parameters;
    row_.fixed_bytes[layer] += parameters + static_cast<double>(op.persistent_bytes);
    if (op.phase != Phase::forward || is_variable(op))
      return;  // a variable's output is its weights
    for (const int32_t tensor : op.outputs)
      row_.activation_bytes[layer] += static_cast<double>(graph_.tensor(tensor).bytes);
  }

  void add_devices() {
    const auto& cluster = problem_.cluster();
    std::vector<int32_t> kind_of(problem_.tables().first().size(), -1);
    for (int32_t d = 0; d < problem_.devices(); ++d) {
      auto& kind = kind_of[problem_.cost_class(d)];
      if (kind < 0) {
        kind = static_cast<int32_t>(row_.kinds.size());
        row_.kinds.push_back(times_on(d));
      }
      double narrowest = std::numeric_limits<double>::infinity();
      for (int32_t to = 0; to < problem_.devices(); ++to)
        if (to != d) narrowest = std::min(narrowest, cluster.bandwidth_bytes_per_s(d, to));
      row_.devices.push_back({kind, static_cast<double>(cluster.room_bytes(d)), narrowest});
    }
  }

  /// Seconds of layers if all operators are on a device.
  LayerRow::Kind times_on(int32_t device) const {
    const std::vector<int32_t> placement(layer_of_.size(), device);
    Metrics metrics;
    Timeline timeline;
    Simulator(problem_).run(placement, metrics, &timeline);
    auto kind = idle_kind(device, at(row_.count()));
    for (int32_t o = 0; o < graph_.operator_count(); ++o) {
      const auto& op = graph_.op(o);
      if (op.collective >= 0) continue;
      const double time_s = static_cast<double>(timeline.end_ns[o]) / 1e9 -
                            static_cast<double>(timeline.start_ns[o]) / 1e9;
      (op.phase == Phase::forward ? kind.forward_s : kind.backward_s)[layer_of_[o]] += time_s;
      if (op.phase == Phase::update) kind.update_s[layer_of_[o]] += time_s;
    }
    return kind;
  }

  /// Fills bytes over cuts, first as differences to the previous cut.
  void add_crossing() {
    std::vector<int32_t> low(graph_.tensors().size(), row_.count()), high(low.size(), -1);
    for (int32_t o = 0; o < graph_.operator_count(); ++o)
      for (const int32_t tensor : graph_.op(o).inputs) {
        low[tensor] = std::min(low[tensor], layer_of_[o]);
        high[tensor] = std::max(high[tensor], layer_of_[o]);
      }
    const auto add = [](std::vector<double>& bytes, int32_t from, int32_t to, int64_t more) {
      if (from >= to) return;  // over the cuts after layers `from` to `to` - 1
      bytes[from + 1] += static_cast<double>(more);
      bytes[to + 1] -= static_cast<double>(more);
    };
    for (int32_t o = 0; o < graph_.operator_count(); ++o)
      for (const int32_t tensor : graph_.op(o).outputs) {
        const int64_t bytes = graph_.tensor(tensor).bytes;
        add(row_.forward_bytes, layer_of_[o], high[tensor], bytes);
        add(row_.backward_bytes, low[tensor], layer_of_[o], bytes);
      }
    for (auto* bytes : {&row_.forward_bytes, &row_.backward_bytes})
      for (size_t c = 1; c < bytes->size(); ++c) (*bytes)[c] += (*bytes)[c - 1];
  }

  const Problem& problem_;
  const Graph& graph_;
  std::vector<int32_t> layer_of_;
  LayerRow row_;
};

}  // namespace

LayerRow layer_row_of(const Problem& problem) { return GraphRow(problem).make(); }

LayerRow layer_row_of(const PipelineNetwork& network, const PipelineMachine& machine) {
  PipelineMachine wide;
  wide.devices = std::clamp(network.count(), 1, kMostLayers);
  wide.bandwidth_bytes_per_s = machine.bandwidth_bytes_per_s;
  const auto instance = load_instance(network, wide);
  auto layer_of = cut_by_rule(instance, CutRule::equal);
  const auto loads = max_load_loads_s(instance, layer_of);
  wide.bandwidth_bytes_per_s = 1e30;
  const auto times = max_load_loads_s(load_instance(network, wide), layer_of);
  const auto layers = at(*std::max_element(layer_of.begin(), layer_of.end()) + 1);
  auto row = empty_row(layers);
  row.layer_of = std::move(layer_of);
  row.kinds = {idle_kind(0, layers)};
  for (size_t l = 0; l < layers; ++l) {
    row.kinds[0].forward_s[l] = times[l];
    row.forward_bytes[l + 1] = std::max(0.0, loads[l] - times[l]) * machine.bandwidth_bytes_per_s;
  }
  const double capacity = machine.memory_bytes > 0 ? static_cast<double>(machine.memory_bytes)
                                                   : std::numeric_limits<double>::infinity();
  row.devices.assign(at(machine.devices), {0, capacity, machine.bandwidth_bytes_per_s});
  return row;
}

LayerRow layer_row_of(const LoadInstance& instance, const LoadOrder& order) {
  auto row = empty_row(order.groups.size());
  row.layer_of.assign(instance.nodes.size(), 0);
  row.kinds = {idle_kind(0, order.groups.size())};
  for (size_t l = 0; l < order.groups.size(); ++l)
    for (const int32_t node : order.groups[l]) {
      row.layer_of[node] = static_cast<int32_t>(l);
      row.kinds[0].forward_s[l] += instance.nodes[node].accelerator_s;
      row.fixed_bytes[l] += static_cast<double>(instance.nodes[node].memory_bytes);
    }
  row.devices.assign(at(instance.accelerators), {0, static_cast<double>(instance.memory_bytes),
                                                 std::numeric_limits<double>::infinity()});
  return row;
}

}  // namespace trinity
