// The importers of engine/formats.
#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "data/dataset.h"
#include "formats/json/graph_json.h"
#include "formats/onnx/onnx.h"
#include "fuzz/target.h"
#include "graph/training.h"

namespace trinity::fuzz {
namespace {

Session plain(void (*run)(std::string_view)) { return {run, {}}; }

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
      {"data", "data sets: CSV, gzip, CIFAR-10, safetensors, texts", begin_data},
  };
}

}  // namespace trinity::fuzz
