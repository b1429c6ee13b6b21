#include "formats/instances/pipeline_file.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/index.h"
#include "formats/instances/pipedream.h"
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

PipelineNetwork from_profile(Graph graph) {
  PipelineFile file{std::move(graph), {}, {}};
  auto& [made, place, network] = file;
  network.format = "PipeDream profile";
  network.nodes.resize(at(made.operator_count()));
  for (const auto& op : made.operators()) {
    const auto position = std::get<int64_t>(op.attributes.at("file_position"));
    place.push_back(static_cast<int32_t>(position) - 1);
    auto& node = network.nodes[place.back()];
    node.id = op.name;
    node.time = op.measured_time_s + op.measured_backward_time_s;
    node.expert = static_cast<int32_t>(integer_attribute(op.attributes, "stage", node.expert));
    const auto& description = std::get<std::string>(op.attributes.at("description"));
    const bool is_input = op.type == "Input" && op.inputs.empty();
    const auto o = static_cast<int32_t>(place.size()) - 1;
    const bool is_unread = boost::out_degree(o, made.csr()) == 0;
    node.planned = !is_input && !(is_unread && description.rfind("__getitem__", 0) == 0);
    if (is_input) continue;
    node.parameter_bytes = static_cast<double>(op.parameter_bytes());
    for (const int32_t tensor : op.outputs)
      node.output_bytes += static_cast<double>(made.tensor(tensor).bytes);
    node.memory_bytes = op.parameter_bytes() + static_cast<int64_t>(node.output_bytes);
  }
  file.link();
  return std::move(network);
}

}  // namespace

void PipelineFile::link() {
  std::vector<int32_t> first(at(graph.unit_count()), -1);
  for (int32_t o = 0; o < graph.operator_count(); ++o) {
    const auto& op = graph.op(o);
    for (const int32_t tensor : op.inputs) network.edges.emplace_back(place[graph.tensor(tensor).producer], place[o]);
    if (first[op.unit] < 0) first[op.unit] = place[o];
    network.nodes[place[o]].unit = first[op.unit];
  }
  std::sort(network.edges.begin(), network.edges.end());
  network.edges.erase(std::unique(network.edges.begin(), network.edges.end()), network.edges.end());
}

std::optional<PipelineNetwork> read_pipeline_network(const std::string& path) {
  const auto text = read_file(path);
  PipelineNetwork network;
  switch (kind_of(path, text)) {
    case Kind::dnn_partitioning:
      network = parse_dnn_partitioning(text, path, stem(path)).network;
      break;
    case Kind::piper:
      network = parse_piper(text, path, stem(path)).network;
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
  return parse_dnn_cut(read_file(path), path, parse_dnn_partitioning(text, instance_path, stem(instance_path)));
}

}  // namespace trinity
