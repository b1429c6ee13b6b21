#include "formats/instances/dnn_partitioning.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <unordered_map>

#include "base/error.h"
#include "base/file.h"
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

  DnnPartitioning read() {
    const auto root = document_.root();
    DnnPartitioning instance;
    instance.max_accelerators = static_cast<int32_t>(root.field("maxFPGAs").integer(0, 1 << 20));
    instance.max_cpus = static_cast<int32_t>(root.field("maxCPUs").integer(0, 1 << 20));
    instance.accelerator_memory_bytes =
        static_cast<int64_t>(root.field("maxSizePerFPGA").number(0, 0x1p60));
    for (const auto& node : root.field("nodes").elements()) read_node(node);
    for (const auto& edge : root.field("edges").elements()) read_edge(edge);
    add_tensors();
    link_backward();
    try {
      instance.graph = builder_.build();
    } catch (const Error& error) {
      root.fail(error.what());
    }
    fill(instance);
    return instance;
  }

 private:
  struct Node {
    int64_t id;
    double cpu_time, accelerator_time, transfer_time = -1;  // in the file's unit
    double cpu_time_s, accelerator_time_s, transfer_time_s = -1;
    int64_t memory_bytes;
    bool supported;
  };

  void read_node(const JsonValue& entry) {
    Node node;
    const auto id = entry.field("id");
    node.id = id.integer(-kAnyNumber, kAnyNumber);
    node.cpu_time = entry.field("cpuLatency").number(0);
    node.accelerator_time = entry.field("fpgaLatency").number(0);
    node.cpu_time_s = node.cpu_time * kSecondsPerUnit;
    node.accelerator_time_s = node.accelerator_time * kSecondsPerUnit;
    node.supported = truth(entry.field("supportedOnFpga"));
    const auto size = entry.find("size");
    node.memory_bytes = size ? whole_bytes(size->number(0, kMaxBytes)) : 0;
    if (!numbers_.emplace(node.id, builder_.operator_count()).second)
      id.fail("node {} is repeated", node.id);
    const int32_t added = builder_.add_operator(make_operator(entry, node));
    if (const auto colour = entry.find("colorClass")) {
      auto& members = classes_[colour->integer(-kAnyNumber, kAnyNumber)];
      if (!members.empty()) builder_.colocate(members[0], added);
      members.push_back(added);
    }
    nodes_.push_back(node);
  }

  Operator make_operator(const JsonValue& entry, const Node& node) const {
    Operator op;
    const auto name = entry.find("name");
    if (name) {
      op.name = name->text();
      op.type = type_of(op.name);
      op.attributes["name"] = op.name;
    } else {
      op.type = "Operator";
    }
    if (op.name.empty()) op.name = fmt::format("node{}", node.id);
    while (builder_.find(op.name) >= 0) op.name += fmt::format("#{}", node.id);
    if (truth(entry.field("isBackwardNode"))) op.phase = Phase::backward;
    op.measured_time_s = node.accelerator_time_s;
    op.persistent_bytes = node.memory_bytes;
    op.attributes["id"] = node.id;
    op.attributes["cpu_time_s"] = node.cpu_time_s;
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
    auto& source = nodes_[edge.source];
    const double time = cost.number(0), cost_s = time * kSecondsPerUnit;
    if (source.transfer_time >= 0 && std::abs(source.transfer_time - time) > kSameCost)
      cost.expected(fmt::format("{}, as on other edges of its source", source.transfer_time));
    if (source.transfer_time < 0) {
      source.transfer_time = time;
      source.transfer_time_s = cost_s;
    }
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
      const double time_s = nodes_[edge.source].transfer_time_s;
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
      auto& time_s = nodes_[o].transfer_time_s;
      time_s = std::max(time_s, 0.0);
      builder_.op(o).attributes["transfer_time_s"] = time_s;
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

  /// Fills the columns in the order of the graph, which differs from the file's.
  void fill(DnnPartitioning& instance) const {
    for (const auto& op : instance.graph.operators()) {
      const auto id = std::get<int64_t>(op.attributes.at("id"));
      const auto& node = nodes_[numbers_.at(id)];
      instance.id.push_back(id);
      instance.cpu_time_s.push_back(node.cpu_time_s);
      instance.accelerator_time_s.push_back(node.accelerator_time_s);
      instance.transfer_time_s.push_back(node.transfer_time_s);
      instance.memory_bytes.push_back(node.memory_bytes);
      instance.supported_on_accelerator.push_back(node.supported);
      instance.file_cpu_time.push_back(node.cpu_time);
      instance.file_accelerator_time.push_back(node.accelerator_time);
      instance.file_transfer_time.push_back(std::max(node.transfer_time, 0.0));
      instance.file_position.push_back(numbers_.at(id));
    }
  }

  JsonDocument document_;
  GraphBuilder builder_;
  std::vector<Node> nodes_;
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

DnnPartitioning parse_dnn_partitioning(std::string_view text, const std::string& source,
                                       const std::string& graph_name) {
  return Reader(text, source, graph_name).read();
}

std::vector<int32_t> parse_dnn_cut(std::string_view text, const std::string& source,
                                   const DnnPartitioning& instance) {
  const JsonDocument document(text, source);
  const auto root = document.root();
  std::unordered_map<int64_t, size_t> numbers;
  for (size_t i = 0; i < instance.id.size(); ++i) numbers.emplace(instance.id[i], i);
  std::vector<int32_t> placement(instance.id.size(), -1);
  place(root, "fpgas", 0, instance.max_accelerators, numbers, placement);
  place(root, "cpus", instance.max_accelerators, instance.max_cpus, numbers, placement);
  const auto& graph = instance.graph;
  for (int32_t u = 0; u < graph.unit_count(); ++u) {
    int32_t device = -1;
    for (const int32_t op : graph.unit(u)) device = std::max(device, placement[op]);
    for (const int32_t op : graph.unit(u)) {
      auto& own = placement[op];
      if (own < 0) own = device;
      if (own < 0) root.fail("node {} is on no device", instance.id[op]);
    }
  }
  return placement;
}

std::vector<int32_t> read_dnn_cut(const std::string& path, const DnnPartitioning& instance) {
  return parse_dnn_cut(read_file(path), path, instance);
}

}  // namespace trinity
