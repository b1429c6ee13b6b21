#include "formats/instances/pipeline_file.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <unordered_map>

#include "base/error.h"
#include "formats/json/json_reader.h"
#include "graph/operator_types.h"

namespace trinity {
namespace {

constexpr double kSecondsPerUnit = 1e-3;
constexpr double kSameCost = 1e-6;    // tolerance of the authors' planner
constexpr double kMaxBytes = 0x1p50;  // GraphBuilder's limit per tensor

/// true, false, 1 or 0.
bool truth(const JsonValue& value) {
  return value.is_integer() ? value.integer(0, 1) == 1 : value.boolean();
}

/// Some sizes are fractions (single bits are 0.125).
int64_t whole_bytes(double bytes) { return static_cast<int64_t>(std::ceil(bytes)); }

/// The operator type in a name like "MatMul64", "Conv_3" or "MatMul64_Grad/Transpose_0", if it has
/// a rule.
std::string type_of(std::string_view name) {
  if (const auto slash = name.rfind('/'); slash != std::string_view::npos)
    name.remove_prefix(slash + 1);
  const auto end = name.find_last_not_of("0123456789");
  name = name.substr(0, end == std::string_view::npos ? 0 : end + 1);
  if (name.ends_with('_')) name.remove_suffix(1);
  return has_operator_rule(name) ? std::string(name) : "Operator";
}

struct Edge {
  int32_t source, target;
  std::optional<double> size_bytes;
};

class Reader {
 public:
  Reader(std::string_view text, const std::string& source, const std::string& graph_name)
      : document_(text, source), builder_(graph_name) {}

  PipelineFile read() {
    const auto root = document_.root();
    network_.format = "dnn-partitioning";
    network_.unit = "ms";
    network_.unit_s = kSecondsPerUnit;
    network_.numbered_ids = true;
    network_.devices = static_cast<int32_t>(root.field("maxFPGAs").integer(0, 1 << 20));
    network_.cpus = static_cast<int32_t>(root.field("maxCPUs").integer(0, 1 << 20));
    network_.memory_bytes = static_cast<int64_t>(root.field("maxSizePerFPGA").number(0, 0x1p60));
    network_.bandwidth_bytes_per_s = kDnnPartitioningBytesPerSecond;
    for (const auto& node : root.field("nodes").elements()) read_node(node);
    for (const auto& edge : root.field("edges").elements()) read_edge(edge);
    add_tensors();
    link_backward();
    PipelineFile file;
    try {
      file.graph = builder_.build(&file.place);
    } catch (const Error& error) {
      root.fail(error.what());
    }
    file.network = std::move(network_);
    file.link();
    return file;
  }

 private:
  using Node = PipelineNetwork::Node;

  void read_node(const JsonValue& entry) {
    auto& node = network_.nodes.emplace_back();
    const auto id = entry.field("id");
    const int64_t number = id.integer(-kAnyNumber, kAnyNumber);
    node.id = fmt::format("{}", number);
    node.cpu_time = entry.field("cpuLatency").number(0);
    node.time = entry.field("fpgaLatency").number(0);
    node.supported = truth(entry.field("supportedOnFpga"));
    const auto size = entry.find("size");
    node.memory_bytes = size ? whole_bytes(size->number(0, kMaxBytes)) : 0;
    node.parameter_bytes = static_cast<double>(node.memory_bytes);
    if (!numbers_.emplace(number, builder_.operator_count()).second)
      id.fail("node {} is repeated", number);
    node.backward = truth(entry.field("isBackwardNode"));
    const int32_t added = builder_.add_operator(make_operator(entry, node, number));
    if (const auto colour = entry.find("colorClass")) {
      auto& members = classes_[colour->integer(-kAnyNumber, kAnyNumber)];
      if (!members.empty()) builder_.colocate(members[0], added);
      members.push_back(added);
    }
  }

  Operator make_operator(const JsonValue& entry, const Node& node, int64_t id) const {
    Operator op;
    const auto name = entry.find("name");
    if (name) {
      op.name = name->text();
      op.type = type_of(op.name);
      op.attributes["name"] = op.name;
    } else {
      op.type = "Operator";
    }
    if (op.name.empty()) op.name = fmt::format("node{}", id);
    while (builder_.find(op.name) >= 0) op.name += fmt::format("#{}", id);
    if (node.backward) op.phase = Phase::backward;
    op.measured_time_s = node.time * kSecondsPerUnit;
    op.persistent_bytes = node.memory_bytes;
    op.attributes["id"] = id;
    op.attributes["cpu_time_s"] = node.cpu_time * kSecondsPerUnit;
    op.attributes["supported_on_accelerator"] = int64_t{node.supported};
    if (const auto layer = entry.find("layerId"))
      op.attributes["layer"] = layer->integer(-kAnyNumber, kAnyNumber);
    return op;
  }

  int32_t node_number(const JsonValue& id) const {
    const auto found = numbers_.find(id.integer(-kAnyNumber, kAnyNumber));
    if (found == numbers_.end()) id.expected("the id of a node");
    return found->second;
  }

  void read_edge(const JsonValue& entry) {
    Edge edge{node_number(entry.field("sourceId")), node_number(entry.field("destId")), {}};
    if (edge.source == edge.target) entry.fail("an edge from a node to itself");
    const auto cost = entry.field("cost");
    auto& source = network_.nodes[edge.source];
    const double time = cost.number(0), cost_s = time * kSecondsPerUnit;
    if (source.transfer >= 0 && std::abs(source.transfer - time) > kSameCost)
      cost.expected(fmt::format("{}, as on other edges of its source", source.transfer));
    if (source.transfer < 0) source.transfer = time;
    if (const auto size = entry.find("size")) edge.size_bytes = size->number(0, kMaxBytes);
    if (!edge.size_bytes && cost_s * kDnnPartitioningBytesPerSecond > kMaxBytes)
      cost.expected("a time that corresponds to at most 2^50 bytes");
    edges_.push_back(edge);
  }

  /// One tensor per source and size; nodes without readers have none.
  void add_tensors() {
    std::map<std::pair<int32_t, int64_t>, int32_t> tensors;
    std::set<std::pair<int32_t, int32_t>> reads;  // tensor and reader
    for (const auto& edge : edges_) {
      const double time_s = network_.nodes[edge.source].transfer * kSecondsPerUnit;
      const int64_t bytes =
          whole_bytes(edge.size_bytes.value_or(time_s * kDnnPartitioningBytesPerSecond));
      auto [found, added] = tensors.try_emplace({edge.source, bytes}, 0);
      if (added) {
        Tensor tensor;
        tensor.bytes = bytes;
        found->second = builder_.add_output(edge.source, std::move(tensor));
      }
      if (reads.insert({found->second, edge.target}).second)
        builder_.read(edge.target, found->second);
    }
    for (int32_t o = 0; o < builder_.operator_count(); ++o) {
      auto& time = network_.nodes[o].transfer;
      time = std::max(time, 0.0);
      builder_.op(o).attributes["transfer_time_s"] = time * kSecondsPerUnit;
    }
  }

  /// Connects backward operators to the only forward operator of their class.
  void link_backward() {
    for (const auto& [colour, members] : classes_) {
      int32_t forward = -1, found = 0;
      for (const int32_t member : members)
        if (builder_.op(member).phase == Phase::forward) forward = member, ++found;
      if (found != 1) continue;
      for (const int32_t member : members)
        if (member != forward) builder_.op(member).forward = forward;
    }
  }

  JsonDocument document_;
  GraphBuilder builder_;
  PipelineNetwork network_;
  std::vector<Edge> edges_;
  std::unordered_map<int64_t, int32_t> numbers_;     // node id -> operator
  std::map<int64_t, std::vector<int32_t>> classes_;  // colocation class -> operators
};

/// Places the nodes of a cut's devices, numbered from `first`.
void place(const JsonValue& root, const char* key, int32_t first, int32_t devices,
           const std::unordered_map<int64_t, size_t>& numbers, std::vector<int32_t>& placement) {
  const auto list = root.find(key);
  if (!list) return;
  const auto groups = list->elements();
  for (size_t i = 0; i < groups.size(); ++i) {
    const auto nodes = groups[i].field("nodes").elements();
    if (nodes.empty()) continue;
    if (i >= static_cast<size_t>(devices))
      groups[i].fail("expected at most {} lists, one per device of this kind", devices);
    for (const auto& node : nodes) {
      const int64_t id = node.integer(-kAnyNumber, kAnyNumber);
      const auto found = numbers.find(id);
      if (found == numbers.end()) node.expected("the id of a node of the instance");
      auto& device = placement[found->second];
      if (device >= 0) node.fail("node {} is repeated", id);
      device = first + static_cast<int32_t>(i);
    }
  }
}

}  // namespace

PipelineFile parse_dnn_partitioning(std::string_view text, const std::string& source, const std::string& graph_name) {
  return Reader(text, source, graph_name).read();
}

std::vector<int32_t> parse_dnn_cut(std::string_view text, const std::string& source, const PipelineFile& instance) {
  const JsonDocument document(text, source);
  const auto root = document.root();
  const auto& network = instance.network;
  std::unordered_map<int64_t, size_t> numbers;
  for (size_t i = 0; i < network.nodes.size(); ++i) numbers.emplace(std::stoll(network.nodes[i].id), i);
  std::vector<int32_t> placement(network.nodes.size(), -1);
  place(root, "fpgas", 0, network.devices, numbers, placement);
  place(root, "cpus", network.devices, network.cpus, numbers, placement);
  const auto& graph = instance.graph;
  for (int32_t u = 0; u < graph.unit_count(); ++u) {
    int32_t device = -1;
    for (const int32_t op : graph.unit(u)) device = std::max(device, placement[instance.place[op]]);
    for (const int32_t op : graph.unit(u)) {
      auto& own = placement[instance.place[op]];
      if (own < 0) own = device;
      if (own < 0) root.fail("node {} is on no device", network.nodes[instance.place[op]].id);
    }
  }
  return placement;
}

}  // namespace trinity
