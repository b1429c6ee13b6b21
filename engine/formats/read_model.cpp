#include "formats/read_model.h"

#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/late.h"
#include "formats/instances/doppler.h"
#include "formats/instances/pipedream.h"
#include "formats/instances/pipeline_file.h"
#include "formats/json/graph_json.h"
#include "formats/json/json_reader.h"

namespace trinity {
namespace {

Imported whole(Graph graph, const char* format) {
  Imported imported{std::move(graph), {}, {}, format, true};
  return imported;
}

/// Format of a JSON file, recognised by fields that only it has.
enum class JsonKind { graph, dnn_partitioning, piper };

JsonKind json_kind(const JsonDocument& document) {
  const auto root = document.root();
  if (root.is_object()) {
    if (root.find("format")) return JsonKind::graph;
    if (root.find("maxFPGAs") || root.find("maxSizePerFPGA")) return JsonKind::dnn_partitioning;
    if (root.find("maxMemoryPerDevice") || root.find("mbsInBatch")) return JsonKind::piper;
  }
  root.fail(
      "unknown JSON format: expected \"format\": \"trinity.graph\", a dnn-partitioning "
      "instance "
      "(maxFPGAs) or a Piper instance (maxMemoryPerDevice)");
}

Imported read_json(const std::string& path, const std::string& name) {
  const auto text = read_file(path);
  JsonKind kind;
  {
    const JsonDocument document(text, path);
    kind = json_kind(document);
  }
  switch (kind) {
    case JsonKind::graph: {
      Imported imported{parse_graph_json(text, path), {}, {}, "trinity graph", false};
      return imported;
    }
    case JsonKind::dnn_partitioning:
      return whole(parse_dnn_partitioning(text, path, name).graph, "dnn-partitioning instance");
    case JsonKind::piper:
      break;
  }
  return whole(parse_piper(text, path, name).graph, "Piper instance");
}

Imported read_text_model(const std::string& path, const std::string& name) {
  const auto text = read_file(path);
  if (is_doppler(text)) return whole(parse_doppler(text, path, name), "Doppler graph");
  Imported imported{parse_pipedream(text, path, name), {}, {}, "PipeDream profile", false};
  return imported;
}

}  // namespace

Imported read_model(const std::string& path, const OnnxOptions& options) {
  const std::filesystem::path file(path);
  const auto extension = file.extension().string();
  const auto base = file.filename().string();
  const auto name = base.substr(0, base.find('.'));
  if (extension == ".onnx") {
    static auto* const read = late<OnnxReader>(kOnnxPart, "trinity_read_onnx");
    std::optional<Imported> imported;
    read(path, options, imported);
    imported->format = "ONNX";
    return std::move(*imported);
  }
  if (extension == ".json") return read_json(path, name);
  if (extension == ".txt") return read_text_model(path, name);
  throw FileError("{}: expected the ending .onnx, .json (own, dnn-partitioning, Piper) or .txt (PipeDream, DAPPLE "
                  "profile, Doppler), got '{}'", path, extension);
}

}  // namespace trinity
