#include "formats/instances/piper.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "support/damage.h"
#include "support/shared_data.h"

using namespace trinity;

namespace {

const std::string kData = test::shared_data("piper");
constexpr double kGib = 1073741824.0;

const char* const kInstance = R"({
  "maxMemoryPerDevice": 1e9, "maxDevices": 4, "bandwidth": 1e6, "mbsInBatch": 8,
  "nodes": [
    {"id": 20, "name": "Layer", "TMPCs": {"1": [
      {"id": "activation recomp", "timePerSample": 3.0, "parameterSize": 100.0,
       "memoryUsageA": 1.0, "memoryUsageB": 300.0, "syncTimeFw": {"10": 0.0}, "syncTimeBw": {}},
      {"id": "vanilla", "timePerSample": 2.0, "parameterSize": 100.0,
       "memoryUsageA": 50.0, "memoryUsageB": 200.0, "syncTimeFw": {"10": 5.0}, "syncTimeBw": {}}]}},
    {"id": 10, "name": "Layer", "TMPCs": {"1": [
      {"id": "vanilla", "timePerSample": 1.0, "parameterSize": 40.0, "memoryUsageA": 0,
       "memoryUsageB": 80.0, "syncTimeFw": {}, "syncTimeBw": {"20": 7.0}}], "2": []}}],
  "edges": [{"sourceId": 10, "destId": 20, "communicationCost": 64.0}]})";

std::string error_of(const std::string& text) {
  return test::message_of<FileError>([&] { parse_piper(text, "x.json", "x"); });
}

using test::replaced;

PiperInstance read(const std::string& name) {
  const auto path = kData + "/" + name + ".json";
  return parse_piper(read_file(path), path, name);
}

/// One stage of a plan: its layers with their configurations, replicated d times.
struct Stage {
  std::vector<int32_t> layers;
  int d = 1, t = 1;
  std::string configuration;
};

/// Time per sample of the slowest stage, as Piper defines it: twice the bytes of every edge that
/// crosses the stage's border with the tensor-parallel group's part of it, over d; a parameter
/// server's 4 (d - 1) / d of the weights a batch; both over the bandwidth; the time over d.
double time_per_sample(const PiperInstance& instance, const std::vector<Stage>& stages, int batch,
                       double bandwidth) {
  const auto& graph = instance.graph;
  std::vector<size_t> stage_of(static_cast<size_t>(graph.operator_count()), stages.size());
  for (size_t s = 0; s < stages.size(); ++s)
    for (const int32_t layer : stages[s].layers) stage_of[layer] = s;
  std::vector<double> edge_bytes(stages.size(), 0);
  const auto configuration = [&](int32_t layer) {
    const auto& stage = stages[stage_of[layer]];
    const auto* found = instance.find(layer, stage.t, stage.configuration);
    REQUIRE(found);
    return found;
  };
  const auto& csr = graph.csr();
  for (auto [edge, last] = boost::edges(csr); edge != last; ++edge) {
    const auto from = static_cast<int32_t>(boost::source(*edge, csr));
    const auto to = static_cast<int32_t>(boost::target(*edge, csr));
    const size_t left = stage_of[from];
    const size_t right = stage_of[to];
    REQUIRE(left <= right);
    if (left == right) continue;
    const auto bytes = static_cast<double>(graph.tensor(csr[*edge].tensor).bytes);
    const auto& out = configuration(from)->backward_sync_bytes;
    const auto& in = configuration(to)->forward_sync_bytes;
    edge_bytes[left] += 2 * (bytes + static_cast<double>(out.at(to)));
    edge_bytes[right] += 2 * (bytes + static_cast<double>(in.at(from)));
  }
  double slowest = 0;
  for (size_t s = 0; s < stages.size(); ++s) {
    double time = 0, weights = 0;
    for (const int32_t layer : stages[s].layers) {
      time += configuration(layer)->time_per_sample_s;
      weights += static_cast<double>(configuration(layer)->parameter_bytes);
    }
    const double d = stages[s].d;
    const double bytes = edge_bytes[s] / d + 4 * (d - 1) * weights / d / batch;
    slowest = std::max(slowest, bytes / bandwidth + time / d);
  }
  return slowest;
}

/// Equal numbers of transformer layers a stage; what feeds them joins the first stage, what reads
/// them the last.
std::vector<Stage> equal_stages(const PiperInstance& instance, int count, int d, int t) {
  std::vector<Stage> stages(static_cast<size_t>(count), {{}, d, t, "activation recomp"});
  const auto& graph = instance.graph;
  int transformers = 0;
  for (const auto& op : graph.operators()) transformers += op.type == "ParallelTransformerLayer";
  REQUIRE(transformers % count == 0);
  int seen = 0;
  for (int32_t o = 0; o < graph.operator_count(); ++o) {
    if (graph.op(o).type == "ParallelTransformerLayer")
      stages[seen++ / (transformers / count)].layers.push_back(o);
    else
      (graph.op(o).type == "Pooler" ? stages.back() : stages.front()).layers.push_back(o);
  }
  return stages;
}

}  // namespace

TEST_CASE("an instance is read into graph and configurations, in the graph's order") {
  const auto instance = parse_piper(kInstance, "x.json", "x");
  const auto& graph = instance.graph;
  CHECK(instance.max_devices == 4);
  CHECK(instance.device_memory_bytes == 1'000'000'000);
  CHECK(instance.bandwidth_bytes_per_s == 1e6);
  CHECK(instance.micro_batches == 8);
  REQUIRE(instance.id == std::vector<int64_t>{10, 20});
  CHECK(graph.op(0).name == "Layer#10");
  CHECK(graph.op(1).name == "Layer");
  CHECK(graph.op(1).type == "Layer");
  CHECK(graph.op(1).measured_time_s == 2);
  CHECK(graph.op(1).measured_backward_time_s == 0);
  CHECK(std::get<int64_t>(graph.op(1).attributes.at("time_includes_backward")) == 1);
  CHECK(graph.op(1).parameter_bytes() == 100);
  REQUIRE(graph.op(1).inputs.size() == 1);
  CHECK(graph.tensor(graph.op(1).inputs[0]).bytes == 64);
  const auto* recomputed = instance.find(1, 1, "activation recomp");
  REQUIRE(recomputed);
  CHECK(recomputed->time_per_sample_s == 3);
  CHECK(recomputed->bytes_per_batch == 1);
  CHECK(recomputed->fixed_bytes == 300);
  CHECK(instance.find(1, 1, "vanilla")->forward_sync_bytes == std::map<int32_t, int64_t>{{0, 5}});
  CHECK(instance.find(0, 1, "vanilla")->backward_sync_bytes == std::map<int32_t, int64_t>{{1, 7}});
  CHECK(instance.find(0, 1, "activation recomp") == nullptr);
  CHECK(instance.find(0, 3, "vanilla") == nullptr);
  CHECK(instance.configurations[0].at(2).empty());
}

TEST_CASE("wrong instances give one error each") {
  const std::string text = kInstance;
  CHECK(error_of(replaced(text, "\"bandwidth\": 1e6", "\"bandwidth\": 0")) ==
        "x.json: bandwidth: expected a number above 0, got 0");
  CHECK(error_of(replaced(text, "\"mbsInBatch\": 8,", "")) ==
        "x.json: field 'mbsInBatch' is missing; there are bandwidth, edges, maxDevices, "
        "maxMemoryPerDevice, nodes");
  CHECK(error_of(replaced(text, "\"mbsInBatch\": 8", "\"mbsInBatch\": 0")) ==
        "x.json: mbsInBatch: expected a whole number from 1 to 1073741824, got 0");
  CHECK(error_of(replaced(text, "\"id\": 10", "\"id\": 20")) ==
        "x.json: nodes[1].id: layer 20 is repeated");
  CHECK(error_of(replaced(text, "\"timePerSample\": 2.0", "\"timePerSample\": -2.0")) ==
        "x.json: nodes[0].TMPCs.1[1].timePerSample: expected a number of at least 0, got -2.0");
  CHECK(error_of(replaced(text, "\"id\": \"vanilla\"", "\"id\": \"activation recomp\"")) ==
        "x.json: nodes[0].TMPCs.1[1]: configuration 'activation recomp' is repeated");
  CHECK(error_of(replaced(text, "\"syncTimeFw\": {\"10\": 0.0}", "\"syncTimeFw\": {}")) ==
        "x.json: nodes[0].TMPCs.1[0].syncTimeFw: the edge with layer 10 is missing");
  CHECK(error_of(replaced(text, "\"syncTimeBw\": {}", "\"syncTimeBw\": {\"10\": 1}")) ==
        "x.json: nodes[0].TMPCs.1[0].syncTimeBw.10: no edge between these two layers");
  CHECK(error_of(replaced(text, "\"syncTimeBw\": {}", "\"syncTimeBw\": {\"x\": 1}")) ==
        "x.json: nodes[0].TMPCs.1[0].syncTimeBw: expected whole numbers as names of fields, got "
        "'x'");
  CHECK(error_of(replaced(text, "\"2\": []", "\"01\": []")) ==
        "x.json: nodes[1].TMPCs: expected whole numbers as names of fields, got '01'");
  CHECK(error_of(replaced(text, "\"1\": [\n      {\"id\": \"act", "\"3\": [{\"id\": \"act")) ==
        "x.json: nodes[0].TMPCs: expected a configuration for degree \"1\"");
  CHECK(error_of(replaced(text, "\"sourceId\": 10", "\"sourceId\": 11")) ==
        "x.json: edges[0].sourceId: expected the id of a layer, got 11");
  CHECK(error_of(replaced(text, "\"sourceId\": 10", "\"sourceId\": 20")) ==
        "x.json: edges[0]: an edge from a layer to itself");
  const std::string edge = "{\"sourceId\": 10, \"destId\": 20, \"communicationCost\": 64.0}";
  CHECK(error_of(replaced(text, edge, edge + "," + edge)) ==
        "x.json: edges[1]: this edge is repeated");
}

TEST_CASE("every cut-off or damaged instance gives one error that names it, or a graph") {
  test::check_damaged(kInstance, [](const std::string& text) { return error_of(text); });
}

TEST_CASE("equal splits have the published time per sample" * test::shared) {
  const auto expected = nlohmann::json::parse(read_file(kData + "/expected.json"));
  const auto instance = read("bert32a100");
  int rows = 0;
  // A row is d, t, stages, N, time: the figures fit no other order (the file's note has stages
  // first).
  for (const auto& row : expected.at("equi_partition_TPS").at("rows")) {
    const auto stages = equal_stages(instance, row[2], row[0], row[1]);
    CHECK(time_per_sample(instance, stages, row[3], 162.5 * kGib) ==
          doctest::Approx(row[4].get<double>()).epsilon(1e-5));
    ++rows;
  }
  CHECK(rows == 16);
}
