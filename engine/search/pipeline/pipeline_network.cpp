#include "search/pipeline/pipeline_network.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "base/index.h"
#include "graph/order.h"
#include "search/pipeline/ideals.h"
#include "search/placement/task_graph.h"

namespace trinity {
namespace {

/// Bytes that a cut at a node's output moves in one direction.
double output_bytes(const PipelineNetwork& network, int32_t node) {
  const auto& about = network.nodes[node];
  if (about.transfer < 0) return about.output_bytes;
  return about.transfer * network.unit_s * network.bandwidth_bytes_per_s;
}

/// True if every node is a layer of its own.
bool is_plain(const PipelineNetwork& network) {
  std::vector<bool> seen(network.nodes.size(), false);
  for (const auto& node : network.nodes) {
    if (node.backward || seen[node.unit]) return false;
    seen[node.unit] = true;
  }
  return true;
}

/// Layers in a topological order: plain nodes in file order if that is topological, others folded.
LoadOrder layer_order(const PipelineNetwork& network) {
  if (!is_plain(network)) {
    const PipelineMachine any{1, 0, 0, 1, 1};
    return make_load_order(load_instance(network, any), false);
  }
  LoadOrder order;
  std::vector<int32_t> number(network.nodes.size(), -1);
  for (const int32_t node : stable_order(network.count(), network.edges)) {
    number[node] = static_cast<int32_t>(order.groups.size());
    order.groups.push_back({node});
  }
  for (const auto& [from, to] : network.edges) order.edges.emplace_back(number[from], number[to]);
  std::sort(order.edges.begin(), order.edges.end());
  return order;
}

/// Sums over a folded layer.
struct Folded {
  double time = 0, parameter_bytes = 0, memory_bytes = 0, output_bytes = 0;
};

std::vector<Folded> fold(const PipelineNetwork& network, const LoadOrder& order) {
  std::vector<int32_t> layer(network.nodes.size(), -1);
  for (size_t g = 0; g < order.groups.size(); ++g)
    for (const int32_t node : order.groups[g]) layer[node] = static_cast<int32_t>(g);
  std::vector<bool> crosses(network.nodes.size(), false);
  for (const auto& [from, to] : network.edges)
    if (layer[from] != layer[to] && !network.nodes[from].backward) crosses[from] = true;
  std::vector<Folded> folded(order.groups.size());
  for (int32_t n = 0; n < network.count(); ++n) {
    const auto& node = network.nodes[n];
    auto& into = folded[layer[n]];
    into.time += node.time;
    into.parameter_bytes += node.parameter_bytes;
    into.memory_bytes += static_cast<double>(node.memory_bytes);
    if (crosses[n] || order.groups[layer[n]].size() == 1)
      into.output_bytes += output_bytes(network, n);
  }
  return folded;
}

PiperProblem plain_problem(const PipelineNetwork& network,
                           std::vector<std::vector<int32_t>>& members) {
  const auto order = layer_order(network);
  const auto folded = fold(network, order);
  members = order.groups;
  PiperProblem problem;
  problem.layers.resize(order.groups.size());
  for (const auto& [from, to] : order.edges)
    problem.edges.push_back({from, to, folded[from].output_bytes});
  problem.index();
  for (size_t l = 0; l < folded.size(); ++l) {
    auto& layer = problem.layers[l];
    PiperProblem::Configuration plain;
    plain.id = "vanilla";
    plain.time = folded[l].time;
    plain.parameter_bytes = folded[l].parameter_bytes;
    // The memory of a whole step is one number that includes everything.
    const bool whole = folded[l].parameter_bytes >= folded[l].memory_bytes;
    plain.bytes_per_batch = whole ? 0 : folded[l].memory_bytes - folded[l].parameter_bytes;
    plain.fixed_bytes = folded[l].memory_bytes - plain.bytes_per_batch;
    plain.sync_bytes.assign(layer.edges.size(), 0);
    layer.degrees = {{1, {plain}}};
  }
  return problem;
}

/// Builds the network of a problem.
class ProblemNetwork {
 public:
  explicit ProblemNetwork(const Problem& problem)
      : problem_(problem),
        graph_(problem.graph()),
        training_(problem.graph().has_backward()),
        node_of_(at(problem.operators()), -1) {}

  PipelineNetwork make() {
    add_nodes();
    const auto tasks = make_task_graph(problem_);
    for (int32_t o = 0; o < graph_.operator_count(); ++o) {
      auto& node = network_.nodes[node_of_[o]];
      node.time += tasks.mean_cost(o) / 1e9;
      node.parameter_bytes += static_cast<double>(graph_.op(o).parameter_bytes());
      node.memory_bytes += problem_.fixed_bytes(o);
      if (is_ahead(o)) add_outputs(o, node);
    }
    network_.edges.assign(edges_.begin(), edges_.end());
    return std::move(network_);
  }

 private:
  /// True for forward operators, and for all operators of a graph without a backward pass.
  bool is_ahead(int32_t o) const { return !training_ || graph_.op(o).phase == Phase::forward; }

  /// One node per forward operator, in file order if known; other operators belong to their forward
  /// operator's node, or to their unit's.
  void add_nodes() {
    std::vector<std::pair<int64_t, int32_t>> ahead;  // position in the file, operator
    for (int32_t o = 0; o < graph_.operator_count(); ++o) {
      if (!is_ahead(o)) continue;
      ahead.emplace_back(integer_attribute(graph_.op(o).attributes, "file_position", o + 1), o);
    }
    std::stable_sort(ahead.begin(), ahead.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    std::map<int32_t, int32_t> first_of_unit;
    for (const auto& [place, o] : ahead) {
      const int32_t number = network_.count();
      node_of_[o] = number;
      auto& node = network_.nodes.emplace_back();
      network_.operators.push_back(o);
      node.unit = first_of_unit.emplace(graph_.op(o).unit, number).first->second;
    }
    for (int32_t o = 0; o < graph_.operator_count(); ++o) {
      if (node_of_[o] >= 0) continue;
      const int32_t serves = graph_.op(o).forward;
      const auto unit = first_of_unit.find(graph_.op(o).unit);
      if (serves >= 0) node_of_[o] = node_of_[serves];
      if (node_of_[o] < 0) node_of_[o] = unit == first_of_unit.end() ? 0 : unit->second;
    }
  }

  /// Bytes that an operator sends to other nodes, and that its gradients will read.
  void add_outputs(int32_t o, PipelineNetwork::Node& node) {
    std::vector<bool> sent(graph_.op(o).outputs.size(), false), kept = sent;
    for (const auto& reader : problem_.readers(o)) {
      const int32_t to = node_of_[reader.op];
      if (!is_ahead(reader.op)) kept[reader.output] = true;
      if (!is_ahead(reader.op) || to == node_of_[o]) continue;
      sent[reader.output] = true;
      edges_.emplace(node_of_[o], to);
    }
    for (size_t i = 0; i < sent.size(); ++i) {
      const size_t output = at(problem_.first_output(o)) + i;
      if (sent[i]) node.output_bytes += static_cast<double>(problem_.all_output_bytes()[output]);
      if (kept[i]) node.memory_bytes += problem_.held_bytes()[output];
    }
  }

  const Problem& problem_;
  const Graph& graph_;
  bool training_;
  PipelineNetwork network_;
  std::vector<int32_t> node_of_;  // [operator]
  std::set<std::pair<int32_t, int32_t>> edges_;
};

}  // namespace

LoadInstance load_instance(const PipelineNetwork& network, const PipelineMachine& machine) {
  LoadInstance instance;
  instance.accelerators = machine.devices;
  instance.cpus = machine.cpus;
  instance.memory_bytes = machine.memory_bytes > 0 ? machine.memory_bytes : int64_t{1} << 62;
  const double scale = network.bandwidth_bytes_per_s == machine.bandwidth_bytes_per_s
                           ? 1
                           : network.bandwidth_bytes_per_s / machine.bandwidth_bytes_per_s;
  for (const auto& node : network.nodes) {
    const double transfer =
        node.transfer >= 0 ? node.transfer * scale
                           : 2 * node.output_bytes / machine.bandwidth_bytes_per_s / network.unit_s;
    instance.nodes.push_back({node.time, node.cpu_time, transfer, node.memory_bytes, node.unit,
                              node.backward, node.supported});
  }
  instance.edges = network.edges;
  return instance;
}

PipedreamLayers pipedream_layers(const PipelineNetwork& network) {
  const auto order = layer_order(network);
  const auto folded = fold(network, order);
  std::vector<int32_t> number(order.groups.size(), -1);
  PipedreamLayers layers;
  for (size_t g = 0; g < order.groups.size(); ++g) {
    const auto& group = order.groups[g];
    if (std::none_of(group.begin(), group.end(),
                     [&](int32_t node) { return network.nodes[node].planned; }))
      continue;
    number[g] = layers.count();
    layers.members.push_back(group);
    layers.time_s.push_back(folded[g].time * network.unit_s);
    layers.parameter_bytes.push_back(folded[g].parameter_bytes);
    layers.output_bytes.push_back(folded[g].output_bytes);
  }
  if (layers.count() == 0) throw ArgumentError("PipeDream's optimiser: expected at least one layer "
                                               "to partition, got none");
  std::vector<bool> is_read(at(layers.count()), false);
  for (const auto& [from, to] : order.edges)
    if (number[from] >= 0 && number[to] >= 0) {
      layers.edges.emplace_back(number[from], number[to]);
      is_read[number[to]] = true;
    }
  // The source that comes first in the file, as in PipeDream.
  int32_t first = network.count();
  for (int32_t l = 0; l < layers.count(); ++l)
    if (!is_read[l] && layers.members[l][0] < first) {
      first = layers.members[l][0];
      layers.source = l;
    }
  return layers;
}

PiperProblem piper_problem(const PipelineNetwork& network, const PipelineMachine& machine,
                           std::vector<std::vector<int32_t>>& members) {
  PiperProblem problem;
  if (network.piper.layers.empty()) {
    problem = plain_problem(network, members);
    // Times are in the file's unit, so transfers must be, too.
    problem.bandwidth_bytes_per_s = machine.bandwidth_bytes_per_s * network.unit_s;
  } else {
    problem = network.piper;
    members.clear();
    for (int32_t n = 0; n < network.count(); ++n) members.push_back({n});
    problem.bandwidth_bytes_per_s = machine.bandwidth_bytes_per_s;
  }
  problem.devices = machine.devices;
  problem.memory_bytes =
      machine.memory_bytes > 0 ? static_cast<double>(machine.memory_bytes) : 1e30;
  problem.micro_batches = machine.micro_batches;
  return problem;
}

PipelineNetwork network_of(const Problem& problem) { return ProblemNetwork(problem).make(); }

}  // namespace trinity
