#include "formats/instances/pipeline_file.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <set>
#include <unordered_map>

#include "base/error.h"
#include "formats/json/json_reader.h"

namespace trinity {
namespace {

constexpr double kMaxTensorBytes = 0x1p50;  // GraphBuilder's limit per tensor
constexpr int64_t kMaxDegree = 1 << 20;
constexpr const char* kVanilla = "vanilla";

int64_t read_bytes(const JsonValue& value) {
  return static_cast<int64_t>(std::ceil(value.number(0, kMaxTensorBytes)));
}

/// A name gives the layer's type if it is a word, not if it is numbered ("node5").
std::string type_of(const std::string& name) {
  const auto letter = [](unsigned char c) { return std::isalpha(c) != 0; };
  return !name.empty() && std::all_of(name.begin(), name.end(), letter) ? name : "Operator";
}

/// Converts a field's name to an integer. `holder` is the object.
int64_t number_of_key(std::string_view key, const JsonValue& holder, int64_t low) {
  int64_t number = 0;
  const char* const end = key.data() + key.size();
  const auto [stop, error] = std::from_chars(key.data(), end, number);
  if (error != std::errc() || stop != end || number < low || fmt::format("{}", number) != key)
    holder.fail("expected whole numbers as names of fields, got {}", in_quotes(key));
  return number;
}

class PiperReader {
 public:
  PiperReader(std::string_view text, const std::string& source, const std::string& graph_name)
      : document_(text, source), builder_(graph_name) {}

  PipelineFile read() {
    const auto root = document_.root();
    PipelineFile file;
    auto& network = file.network;
    network.format = "Piper";
    network.numbered_ids = true;
    network.devices = static_cast<int32_t>(root.field("maxDevices").integer(1, kMaxDegree));
    network.memory_bytes = static_cast<int64_t>(root.field("maxMemoryPerDevice").number(0, 0x1p60));
    const auto bandwidth = root.field("bandwidth");
    network.bandwidth_bytes_per_s = bandwidth.number(0);
    if (network.bandwidth_bytes_per_s == 0) bandwidth.expected("a number above 0");
    network.micro_batches = root.field("mbsInBatch").integer(1, int64_t{1} << 30);
    const auto nodes = root.field("nodes").elements();
    for (const auto& node : nodes) read_node(node);
    for (const auto& edge : root.field("edges").elements()) read_edge(edge);
    for (const auto& node : nodes) network.nodes.push_back(read_configurations(node));
    try {
      file.graph = builder_.build(&file.place);
    } catch (const Error& error) {
      root.fail(error.what());
    }
    file.link();
    add_edges(file);
    return file;
  }

 private:
  /// A configuration with the bytes that its group exchanges for the edge from (forward) or to (backward) a layer.
  struct Configuration : PiperProblem::Configuration {
    std::map<int32_t, int64_t> forward, backward;
  };
  using Degrees = std::map<int32_t, std::vector<Configuration>>;

  void read_node(const JsonValue& entry) {
    const auto id = entry.field("id");
    const int64_t number = id.integer(-kAnyNumber, kAnyNumber);
    if (!numbers_.emplace(number, builder_.operator_count()).second)
      id.fail("layer {} is repeated", number);
    Operator op;
    if (const auto name = entry.find("name")) {
      op.name = name->text();
      op.attributes["name"] = op.name;
    }
    op.type = type_of(op.name);
    if (op.name.empty()) op.name = fmt::format("layer{}", number);
    while (builder_.find(op.name) >= 0) op.name += fmt::format("#{}", number);
    op.attributes["id"] = number;
    op.attributes["time_includes_backward"] = int64_t{1};
    builder_.add_operator(std::move(op));
    edges_in_.emplace_back();
    edges_out_.emplace_back();
  }

  int32_t layer_number(const JsonValue& id) const {
    const auto found = numbers_.find(id.integer(-kAnyNumber, kAnyNumber));
    if (found == numbers_.end()) id.expected("the id of a layer");
    return found->second;
  }

  void read_edge(const JsonValue& entry) {
    const int32_t source = layer_number(entry.field("sourceId"));
    const int32_t target = layer_number(entry.field("destId"));
    if (source == target) entry.fail("an edge from a layer to itself");
    if (!edges_out_[source].insert(target).second) entry.fail("this edge is repeated");
    edges_in_[target].insert(source);
    const int64_t bytes = read_bytes(entry.field("communicationCost"));
    const auto [tensor, added] = tensors_.try_emplace({source, bytes}, 0);
    if (added) {
      Tensor output;
      output.bytes = bytes;
      tensor->second = builder_.add_output(source, std::move(output));
    }
    builder_.read(target, tensor->second);
  }

  PipelineNetwork::Node read_configurations(const JsonValue& entry) {
    const auto op = static_cast<int32_t>(configurations_.size());
    auto& degrees = configurations_.emplace_back();
    const auto table = entry.field("TMPCs");
    for (const auto& [key, list] : table.fields()) {
      const int64_t degree = number_of_key(key, table, 1);
      if (degree > kMaxDegree)
        table.fail("degree {} is larger than {}", degree, kMaxDegree);
      auto& configurations = degrees[static_cast<int32_t>(degree)];
      std::set<std::string> ids;
      for (const auto& one : list.elements()) {
        configurations.push_back(read_configuration(one, op));
        if (!ids.insert(configurations.back().id).second)
          one.fail("configuration {} is repeated", in_quotes(configurations.back().id));
      }
    }
    const auto plain = degrees.find(1);
    if (plain == degrees.end() || plain->second.empty())
      table.fail("expected a configuration for degree \"1\"");
    return take_costs(op, plain->second);
  }

  /// Costs of a layer in graph and network: "vanilla" of degree 1, or its first configuration.
  PipelineNetwork::Node take_costs(int32_t op, const std::vector<Configuration>& plain) {
    const Configuration* chosen = &plain[0];
    for (const auto& configuration : plain)
      if (configuration.id == kVanilla) chosen = &configuration;
    auto& layer = builder_.op(op);
    layer.measured_time_s = chosen->time;
    layer.measured_backward_time_s = 0;
    layer.extra_parameter_bytes = static_cast<int64_t>(chosen->parameter_bytes);
    PipelineNetwork::Node node;
    node.id = fmt::format("{}", layer_id(op));
    node.time = chosen->time;
    node.parameter_bytes = chosen->parameter_bytes;
    node.memory_bytes = static_cast<int64_t>(chosen->bytes_per_batch + chosen->fixed_bytes);
    return node;
  }

  Configuration read_configuration(const JsonValue& entry, int32_t op) const {
    const auto i = static_cast<size_t>(op);
    const auto bytes = [&](const char* key) { return static_cast<double>(read_bytes(entry.field(key))); };
    Configuration made;
    made.id = entry.field("id").text();
    const auto time = entry.field("timePerSample");
    made.time = time.number(0);
    if (!std::isfinite(made.time)) time.expected("a time of finite seconds");
    made.parameter_bytes = bytes("parameterSize");
    made.bytes_per_batch = bytes("memoryUsageA");
    made.fixed_bytes = bytes("memoryUsageB");
    made.forward = read_sync(entry.field("syncTimeFw"), edges_in_[i]);
    made.backward = read_sync(entry.field("syncTimeBw"), edges_out_[i]);
    return made;
  }

  /// Bytes by layer number; the keys must be exactly the other ends of a layer's edges.
  std::map<int32_t, int64_t> read_sync(const JsonValue& object,
                                       const std::set<int32_t>& ends) const {
    std::map<int32_t, int64_t> sync;
    for (const auto& [key, bytes] : object.fields()) {
      const auto found = numbers_.find(number_of_key(key, object, -kAnyNumber));
      if (found == numbers_.end() || !ends.contains(found->second))
        bytes.fail("no edge between these two layers");
      sync.emplace(found->second, read_bytes(bytes));
    }
    for (const int32_t end : ends)
      if (!sync.contains(end))
        object.fail("the edge with layer {} is missing", layer_id(end));
    return sync;
  }

  int64_t layer_id(int32_t op) const {
    return std::get<int64_t>(builder_.op(op).attributes.at("id"));
  }

  /// Fills the planner's problem, edges in the order of the graph.
  void add_edges(PipelineFile& file) const {
    auto& network = file.network;
    auto& problem = network.piper;
    for (int32_t o = 0; o < file.graph.operator_count(); ++o)
      for (const int32_t tensor : file.graph.op(o).inputs) {
        const auto& read = file.graph.tensor(tensor);
        const auto bytes = static_cast<double>(read.bytes);
        problem.edges.push_back({file.place[read.producer], file.place[o], bytes});
        auto& source = network.nodes[file.place[read.producer]];
        source.output_bytes = std::max(source.output_bytes, bytes);
      }
    problem.layers.resize(network.nodes.size());
    problem.index();
    for (int32_t l = 0; l < network.count(); ++l)
      for (const auto& [degree, list] : configurations_[l])
        if (!list.empty()) problem.layers[l].degrees.push_back({degree, with_sync(problem, l, list)});
  }

  static std::vector<PiperProblem::Configuration> with_sync(const PiperProblem& problem, int32_t layer,
                                                            const std::vector<Configuration>& list) {
    std::vector<PiperProblem::Configuration> made(list.begin(), list.end());
    for (size_t i = 0; i < list.size(); ++i)
      for (const int32_t e : problem.layers[layer].edges) {
        const auto& [from, to, bytes] = problem.edges[e];
        const int64_t sync = to == layer ? list[i].forward.at(from) : list[i].backward.at(to);
        made[i].sync_bytes.push_back(static_cast<double>(sync));
      }
    return made;
  }

  JsonDocument document_;
  GraphBuilder builder_;
  std::unordered_map<int64_t, int32_t> numbers_;            // layer id -> operator
  std::vector<std::set<int32_t>> edges_in_, edges_out_;     // per operator: the other ends
  std::map<std::pair<int32_t, int64_t>, int32_t> tensors_;  // by source and bytes
  std::vector<Degrees> configurations_;
};

}  // namespace

PipelineFile parse_piper(std::string_view text, const std::string& source, const std::string& graph_name) {
  return PiperReader(text, source, graph_name).read();
}

}  // namespace trinity
