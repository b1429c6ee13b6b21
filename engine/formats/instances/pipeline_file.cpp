#include "formats/instances/pipeline_file.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/index.h"
#include "formats/instances/dnn_partitioning.h"
#include "formats/instances/pipedream.h"
#include "formats/instances/piper.h"
#include "formats/json/json_reader.h"

namespace trinity {
namespace {

enum class Kind { dnn_partitioning, piper, profile, other };

Kind kind_of(const std::string& path, const std::string& text) {
  const auto extension = std::filesystem::path(path).extension().string();
  if (extension == ".txt") return Kind::profile;
  if (extension != ".json") return Kind::other;
  const JsonDocument document(text, path);
  const auto root = document.root();
  if (!root.is_object() || root.find("format")) return Kind::other;
  if (root.find("maxFPGAs") || root.find("maxSizePerFPGA")) return Kind::dnn_partitioning;
  if (root.find("maxMemoryPerDevice") || root.find("mbsInBatch") || root.find("maxDevices"))
    return Kind::piper;
  return Kind::other;
}

std::string stem(const std::string& path) {
  const auto name = std::filesystem::path(path).filename().string();
  return name.substr(0, name.find('.'));
}

/// Fills edges and units from a graph; operator o is node place[o].
void link(const Graph& graph, const std::vector<int32_t>& place, PipelineNetwork& network) {
  std::vector<int32_t> first(at(graph.unit_count()), -1);
  for (int32_t o = 0; o < graph.operator_count(); ++o) {
    const auto& op = graph.op(o);
    for (const int32_t tensor : op.inputs)
      network.edges.emplace_back(place[graph.tensor(tensor).producer], place[o]);
    if (first[op.unit] < 0) first[op.unit] = place[o];
    network.nodes[place[o]].unit = first[op.unit];
  }
  std::sort(network.edges.begin(), network.edges.end());
  network.edges.erase(std::unique(network.edges.begin(), network.edges.end()), network.edges.end());
}

PipelineNetwork from_dnn_partitioning(const DnnPartitioning& file) {
  PipelineNetwork network;
  network.format = "dnn-partitioning";
  network.unit = "ms";
  network.unit_s = 1e-3;
  network.numbered_ids = true;
  network.devices = file.max_accelerators;
  network.cpus = file.max_cpus;
  network.memory_bytes = file.accelerator_memory_bytes;
  network.bandwidth_bytes_per_s = kDnnPartitioningBytesPerSecond;
  network.nodes.resize(file.id.size());
  for (size_t o = 0; o < file.id.size(); ++o) {
    auto& node = network.nodes[file.file_position[o]];
    node.id = fmt::format("{}", file.id[o]);
    node.time = file.file_accelerator_time[o];
    node.cpu_time = file.file_cpu_time[o];
    node.transfer = file.file_transfer_time[o];
    node.memory_bytes = file.memory_bytes[o];
    node.parameter_bytes = static_cast<double>(file.memory_bytes[o]);
    node.backward = file.graph.op(static_cast<int32_t>(o)).phase == Phase::backward;
    node.supported = file.supported_on_accelerator[o];
  }
  link(file.graph, file.file_position, network);
  return network;
}

PipelineNetwork from_profile(const Graph& graph) {
  PipelineNetwork network;
  network.format = "PipeDream profile";
  network.nodes.resize(at(graph.operator_count()));
  std::vector<int32_t> place;
  for (const auto& op : graph.operators()) {
    const auto position = std::get<int64_t>(op.attributes.at("file_position"));
    place.push_back(static_cast<int32_t>(position) - 1);
    auto& node = network.nodes[place.back()];
    node.id = op.name;
    node.time = op.measured_time_s + op.measured_backward_time_s;
    node.expert = static_cast<int32_t>(integer_attribute(op.attributes, "stage", node.expert));
    const auto& description = std::get<std::string>(op.attributes.at("description"));
    const bool is_input = op.type == "Input" && op.inputs.empty();
    const auto o = static_cast<int32_t>(place.size()) - 1;
    const bool is_unread = boost::out_degree(o, graph.csr()) == 0;
    node.planned = !is_input && !(is_unread && description.rfind("__getitem__", 0) == 0);
    if (is_input) continue;
    node.parameter_bytes = static_cast<double>(op.parameter_bytes());
    for (const int32_t tensor : op.outputs)
      node.output_bytes += static_cast<double>(graph.tensor(tensor).bytes);
    node.memory_bytes = op.parameter_bytes() + static_cast<int64_t>(node.output_bytes);
  }
  link(graph, place, network);
  return network;
}

/// The configurations of a layer, with bytes by edge.
PiperProblem::Layer piper_layer(const PiperInstance& file, int32_t op,
                                const std::vector<int32_t>& operator_at,
                                const PiperProblem& problem) {
  const int32_t place = file.file_position[op];
  PiperProblem::Layer layer;
  layer.edges = problem.layers[place].edges;
  for (const auto& [degree, list] : file.configurations[op]) {
    if (list.empty()) continue;
    auto& made = layer.degrees.emplace_back();
    made.degree = degree;
    for (const auto& one : list) {
      PiperProblem::Configuration configuration;
      configuration.id = one.id;
      configuration.time = one.time_per_sample_s;
      configuration.parameter_bytes = static_cast<double>(one.parameter_bytes);
      configuration.bytes_per_batch = static_cast<double>(one.bytes_per_batch);
      configuration.fixed_bytes = static_cast<double>(one.fixed_bytes);
      for (const int32_t e : layer.edges) {
        const auto& edge = problem.edges[e];
        const bool enters = edge.to == place;
        const auto& sync = enters ? one.forward_sync_bytes : one.backward_sync_bytes;
        const int32_t other = operator_at[enters ? edge.from : edge.to];
        configuration.sync_bytes.push_back(static_cast<double>(sync.at(other)));
      }
      made.configurations.push_back(std::move(configuration));
    }
  }
  return layer;
}

PipelineNetwork from_piper(const PiperInstance& file) {
  PipelineNetwork network;
  network.format = "Piper";
  network.numbered_ids = true;
  network.devices = file.max_devices;
  network.memory_bytes = file.device_memory_bytes;
  network.bandwidth_bytes_per_s = file.bandwidth_bytes_per_s;
  network.micro_batches = file.micro_batches;
  network.nodes.resize(file.id.size());
  const auto& graph = file.graph;
  std::vector<int32_t> operator_at(file.id.size());
  for (int32_t o = 0; o < graph.operator_count(); ++o) operator_at[file.file_position[o]] = o;
  for (int32_t o = 0; o < graph.operator_count(); ++o) {
    auto& node = network.nodes[file.file_position[o]];
    node.id = fmt::format("{}", file.id[o]);
    const auto* plain = file.find(o, 1, "vanilla");
    const auto& chosen = plain ? *plain : file.configurations[o].at(1).front();
    node.time = chosen.time_per_sample_s;
    node.parameter_bytes = static_cast<double>(chosen.parameter_bytes);
    node.memory_bytes = chosen.bytes_per_batch + chosen.fixed_bytes;
    for (const int32_t tensor : graph.op(o).inputs) {
      const auto& read = graph.tensor(tensor);
      auto& source = network.nodes[file.file_position[read.producer]];
      source.output_bytes = std::max(source.output_bytes, static_cast<double>(read.bytes));
      network.piper.edges.push_back({file.file_position[read.producer], file.file_position[o],
                                     static_cast<double>(read.bytes)});
    }
  }
  link(graph, file.file_position, network);
  network.piper.layers.resize(file.id.size());
  network.piper.index();
  for (int32_t o = 0; o < graph.operator_count(); ++o)
    network.piper.layers[file.file_position[o]] = piper_layer(file, o, operator_at, network.piper);
  return network;
}

}  // namespace

std::optional<PipelineNetwork> read_pipeline_network(const std::string& path) {
  const auto text = read_file(path);
  PipelineNetwork network;
  switch (kind_of(path, text)) {
    case Kind::dnn_partitioning:
      network = from_dnn_partitioning(parse_dnn_partitioning(text, path, stem(path)));
      break;
    case Kind::piper:
      network = from_piper(parse_piper(text, path, stem(path)));
      break;
    case Kind::profile:
      network = from_profile(parse_pipedream(text, path, stem(path)));
      break;
    case Kind::other:
      return std::nullopt;
  }
  network.name = stem(path);
  return network;
}

std::vector<int32_t> read_pipeline_cut(const std::string& path, const std::string& instance_path) {
  const auto text = read_file(instance_path);
  if (kind_of(instance_path, text) != Kind::dnn_partitioning)
    throw FileError("{}: cuts can be read for dnn-partitioning instances only, got {}", path, instance_path);
  const auto instance = parse_dnn_partitioning(text, instance_path, stem(instance_path));
  const auto placement = read_dnn_cut(path, instance);
  std::vector<int32_t> device(placement.size());
  for (size_t o = 0; o < placement.size(); ++o) device[instance.file_position[o]] = placement[o];
  return device;
}

}  // namespace trinity
