// The importers of engine/formats.
#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "data/dataset.h"
#include "formats/instances/doppler.h"
#include "formats/instances/pipedream.h"
#include "formats/instances/pipeline_file.h"
#include "formats/instances/selection_json.h"
#include "formats/json/graph_json.h"
#include "formats/onnx/onnx.h"
#include "formats/read_model.h"
#include "fuzz/target.h"
#include "graph/training.h"
#include "simulator/bounds.h"
#include "simulator/simulator.h"

namespace trinity::fuzz {
namespace {

Session plain(void (*run)(std::string_view)) { return {run, {}}; }

std::shared_ptr<const Cluster> two_devices() {
  ClusterSpec spec;
  spec.name = "two";
  DeviceType type;
  type.name = "any";
  type.peak_flops_per_s[DType::float32] = 1e12;
  type.memory_bandwidth_bytes_per_s = 1e12;
  type.memory_bytes = int64_t{1} << 40;
  spec.device_types.push_back(type);
  spec.devices = {{"d0", 0, 1.0, ""}, {"d1", 0, 1.0, ""}};
  spec.links.push_back({"d0", "d1", 1e9, 0});
  return std::make_shared<const Cluster>(spec);
}

/// A graph that is read must come back equal from its written text, and give the same text again.
void read_graph(std::string_view text) {
  const auto graph = parse_graph_json(text, "fuzz");
  const auto written = graph_to_json(graph);
  const auto again = parse_graph_json(written, "written");
  if (again.fingerprint() != graph.fingerprint()) throw Finding("another graph came back");
  if (graph_to_json(again) != written) throw Finding("another text came back");
}

void read_onnx_model(std::string_view bytes) {
  const auto imported = parse_onnx(bytes, "fuzz.onnx", "fuzz");
  lower_to_training(imported.graph, {});
}

void read_profile(std::string_view text) {
  lower_to_training(parse_pipedream(std::string(text), "fuzz", "fuzz"), {});
}

/// Simulates the graph that is read, all on one device and in turn.
void read_doppler_graph(std::string_view text) {
  const auto graph = std::make_shared<const Graph>(parse_doppler(std::string(text), "fuzz", "fuzz"));
  if (graph->operator_count() > 1000) return;
  const Problem problem(graph, two_devices(), SimulationRules::doppler());
  Simulator simulator(problem);
  Metrics metrics;
  std::vector<int32_t> placement(static_cast<size_t>(graph->operator_count()), 0);
  simulator.run(placement, metrics);
  int64_t work = 0;
  for (int32_t o = 0; o < problem.operators(); ++o) work += problem.cost_ns(0, o);
  if (metrics.step_time_ns != work) throw Finding("one device took other than its work");
  for (size_t o = 0; o < placement.size(); o += 2) placement[o] = 1;
  simulator.run(placement, metrics);
  if (metrics.step_time_ns < lower_bounds(problem).step_time_ns) throw Finding("below the bound");
}

/// An instance and, after a zero byte, a cut of it.
void read_instance(std::string_view text) {
  const auto zero = text.find('\0');
  const auto instance = parse_dnn_partitioning(text.substr(0, zero), "fuzz", "fuzz");
  if (zero == std::string_view::npos) return;
  parse_dnn_cut(text.substr(zero + 1), "cut", instance);
}

void read_piper_instance(std::string_view text) { parse_piper(text, "fuzz", "fuzz"); }

/// By its file name, as scripts read all of these: a model, a network to be cut.
void read_by_name(std::string_view text, const std::string& path) {
  write_text(path, text);
  try {
    read_model(path);
  } catch (const Error&) {
  }
  read_pipeline_network(path);
}

/// Runs `parse` on the input, or `read_by_name` where its length is a multiple of 4.
std::function<Session(const std::string&)> also_by_name(void (*parse)(std::string_view),
                                                        const char* file) {
  return [=](const std::string& folder) {
    const auto path = folder + '/' + file;
    return Session{[=](std::string_view text) {
                     if (text.size() % 4 == 0) return read_by_name(text, path);
                     parse(text);
                   },
                   {}};
  };
}

/// The corpus: models that PyTorch exported, tests/data/onnx.
Session begin_onnx(const std::string&) {
  Session session = plain(read_onnx_model);
  const std::string folder = std::string(TRINITY_SOURCE_DIR) + "/tests/data/onnx";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".onnx") continue;
    session.seeds.push_back(read_text(entry.path()));
  }
  std::sort(session.seeds.begin(), session.seeds.end());
  return session;
}

/// A text; compressed ones are read from a file.
Session begin_selection(const std::string& folder) {
  const auto path = folder + "/problem.json.gz";
  return {[path](std::string_view text) {
            if (!text.starts_with("\x1f\x8b"))
              return static_cast<void>(parse_selection(text, "fuzz"));
            write_text(path, text);
            read_selection(path);
          },
          {}};
}

/// Data to train on, by the name that the first byte chooses. What was read holds together.
Session begin_data(const std::string& folder) {
  return {[folder](std::string_view text) {
            static constexpr const char* kNames[] = {"/rows.csv", "/rows.csv.gz", "/batch.bin",
                                                     "/set.safetensors", "/ptb.train.txt", "/text"};
            if (text.empty()) return;
            const auto path = folder + kNames[static_cast<uint8_t>(text[0]) % std::size(kNames)];
            write_text(path, text.substr(1));
            DataOptions options;
            options.train_rows = text.size() % 3;
            const auto set = read_dataset(path, options);
            const auto samples = static_cast<size_t>(set.train + set.held_out);
            const auto numbers = samples * static_cast<size_t>(set.width);
            const bool fits = set.is_text ? set.symbols.size() >= samples
                                          : set.labels.size() == samples &&
                                                set.values.size() + set.bytes.size() == numbers;
            if (!fits) throw Finding("the data are not as large as they say");
          },
          {}};
}

}  // namespace

std::vector<Target> format_targets() {
  return {
      {"graph_json", "trinity's own graphs", [](const std::string&) { return plain(read_graph); }},
      {"onnx", "ONNX models", begin_onnx},
      {"pipedream", "profiles of PipeDream and DAPPLE", also_by_name(read_profile, "profile.txt")},
      {"doppler", "graphs of Doppler", also_by_name(read_doppler_graph, "graph.txt")},
      {"dnn_partitioning", "instances of dnn-partitioning, cuts",
       also_by_name(read_instance, "instance.json")},
      {"piper", "instances of Piper", also_by_name(read_piper_instance, "instance.json")},
      {"selection", "strategy-selection problems, also compressed", begin_selection},
      {"data", "data sets: CSV, gzip, CIFAR-10, safetensors, texts", begin_data},
  };
}

}  // namespace trinity::fuzz
