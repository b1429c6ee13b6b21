#include "formats/instances/pipeline_file.h"

#include <doctest/doctest.h>

#include "base/error.h"
#include "support/damage.h"

using namespace trinity;

namespace {

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

}  // namespace

TEST_CASE("an instance is read into graph and configurations") {
  const auto instance = parse_piper(kInstance, "x.json", "x");
  const auto& graph = instance.graph;
  const auto& network = instance.network;
  CHECK(network.devices == 4);
  CHECK(network.memory_bytes == 1'000'000'000);
  CHECK(network.bandwidth_bytes_per_s == 1e6);
  CHECK(network.micro_batches == 8);
  REQUIRE(instance.place == std::vector<int32_t>{1, 0});
  CHECK(graph.op(0).name == "Layer#10");
  CHECK(graph.op(1).name == "Layer");
  CHECK(graph.op(1).type == "Layer");
  CHECK(graph.op(1).measured_time_s == 2);
  CHECK(graph.op(1).measured_backward_time_s == 0);
  CHECK(std::get<int64_t>(graph.op(1).attributes.at("time_includes_backward")) == 1);
  CHECK(graph.op(1).parameter_bytes() == 100);
  REQUIRE(graph.op(1).inputs.size() == 1);
  CHECK(graph.tensor(graph.op(1).inputs[0]).bytes == 64);
  const auto& layers = network.piper.layers;
  REQUIRE(layers[0].degrees.size() == 1);
  const auto& recomputed = layers[0].degrees[0].configurations[0];
  CHECK(recomputed.id == "activation recomp");
  CHECK(recomputed.time == 3);
  CHECK(recomputed.bytes_per_batch == 1);
  CHECK(recomputed.fixed_bytes == 300);
  CHECK(layers[0].degrees[0].configurations[1].sync_bytes == std::vector<double>{5});
  REQUIRE(layers[1].degrees.size() == 1);  // without the entry of degree 2, which has none
  CHECK(layers[1].degrees[0].configurations[0].sync_bytes == std::vector<double>{7});
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
