#include "formats/instances/pipeline_file.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "search/pipeline/max_load_cut.h"
#include "support/damage.h"
#include "support/shared_data.h"

using namespace trinity;

namespace {

const std::string kData = test::shared_data("dnn-partitioning");

/// Four nodes out of order: 7 -> 3 -> 5, 7 -> 5, and 5's gradient 9 of its class.
const char* const kInstance = R"({
  "maxSizePerFPGA": 1000.0, "maxFPGAs": 2, "maxCPUs": 1, "comment": "ignored",
  "nodes": [
    {"id": 5, "supportedOnFpga": 1, "cpuLatency": 40.0, "fpgaLatency": 4, "isBackwardNode": 0,
     "colorClass": 2, "size": 10, "name": "MatMul12", "layerId": 3},
    {"id": 3, "supportedOnFpga": false, "cpuLatency": 20.0, "fpgaLatency": 2.0,
     "isBackwardNode": false},
    {"id": 9, "supportedOnFpga": true, "cpuLatency": 80.0, "fpgaLatency": 8.0,
     "isBackwardNode": true, "colorClass": 2, "size": 0.125, "name": "MatMul12_Grad/Transpose_0"},
    {"id": 7, "supportedOnFpga": true, "cpuLatency": 10.0, "fpgaLatency": 1.0,
     "isBackwardNode": 0, "colorClass": 1, "name": "MatMul12"}],
  "edges": [
    {"sourceId": 7, "destId": 3, "cost": 0.5, "size": 100},
    {"sourceId": 7, "destId": 5, "cost": 0.5, "size": 100},
    {"sourceId": 3, "destId": 5, "cost": 0.25},
    {"sourceId": 5, "destId": 9, "cost": 0.125, "size": 0.125}]})";

std::string error_of(const std::string& text) {
  return test::message_of<FileError>([&] { parse_dnn_partitioning(text, "x.json", "x"); });
}

using test::replaced;

}  // namespace

TEST_CASE("an instance is read into graph and network") {
  const auto instance = parse_dnn_partitioning(kInstance, "x.json", "x");
  const auto& graph = instance.graph;
  const auto& network = instance.network;
  CHECK(network.devices == 2);
  CHECK(network.cpus == 1);
  CHECK(network.memory_bytes == 1000);
  REQUIRE(instance.place == std::vector<int32_t>{3, 1, 0, 2});
  CHECK(graph.op(0).name == "MatMul12#7");
  CHECK(graph.op(1).name == "node3");
  CHECK(graph.op(2).name == "MatMul12");
  CHECK(graph.op(2).type == "MatMul");
  CHECK(graph.op(3).type == "Transpose");
  CHECK(graph.op(1).type == "Operator");
  CHECK(graph.op(3).phase == Phase::backward);
  CHECK(graph.op(3).forward == 2);
  CHECK(graph.op(3).unit == graph.op(2).unit);
  CHECK(graph.unit_count() == 3);
  CHECK(graph.edge_count() == 4);
  CHECK(graph.op(2).measured_time_s == doctest::Approx(4e-3));
  CHECK(std::get<double>(graph.op(2).attributes.at("cpu_time_s")) == doctest::Approx(40e-3));
  CHECK(std::get<double>(graph.op(2).attributes.at("transfer_time_s")) == doctest::Approx(125e-6));
  CHECK(std::get<int64_t>(graph.op(1).attributes.at("supported_on_accelerator")) == 0);
  CHECK(std::get<int64_t>(graph.op(2).attributes.at("layer")) == 3);
  CHECK(graph.op(2).persistent_bytes == 10);
  CHECK(graph.op(3).persistent_bytes == 1);
  CHECK(graph.op(2).parameter_bytes() == 0);
  REQUIRE(graph.op(0).outputs.size() == 1);  // two edges of one size: one tensor
  CHECK(graph.tensor(graph.op(0).outputs[0]).bytes == 100);
  // Without a size: 0.25 ms at 2 GiB/s, 536870.912 bytes, rounded up.
  CHECK(graph.tensor(graph.op(1).outputs[0]).bytes == 536871);
  for (size_t node = 0; node < 4; ++node) CHECK(network.nodes[node].supported == (node != 1));
}

TEST_CASE("a cut becomes a placement; gradients follow their colocation class") {
  const auto instance = parse_dnn_partitioning(kInstance, "x.json", "x");
  const auto cut = [&](const std::string& text) {
    return test::message_of<FileError>([&] { parse_dnn_cut(text, "s.json", instance); });
  };
  CHECK(parse_dnn_cut(R"({"fpgas": [{"load": -1, "nodes": [7]}, {"nodes": [5]}],
                            "cpus": [{"nodes": [3]}]})",
                      "s.json", instance) == std::vector<int32_t>{1, 2, 1, 0});
  CHECK(cut(R"({"fpgas": [{"nodes": [7, 3, 5, 8]}]})") ==
        "s.json: fpgas[0].nodes[3]: expected the id of a node of the instance, got 8");
  CHECK(cut(R"({"fpgas": [{"nodes": [7, 3, 7]}]})") ==
        "s.json: fpgas[0].nodes[2]: node 7 is repeated");
  CHECK(cut(R"({"fpgas": [{"nodes": [7, 5]}]})") == "s.json: node 3 is on no device");
  CHECK(cut(R"({"fpgas": [{"nodes": []}, {"nodes": []}, {"nodes": [7]}]})") ==
        "s.json: fpgas[2]: expected at most 2 lists, one per device of this kind");
  CHECK(cut(R"({"fpgas": [7]})") == "s.json: fpgas[0]: expected an object, got 7");
}

TEST_CASE("wrong instances give one error each") {
  const std::string text = kInstance;
  CHECK(error_of(replaced(text, "\"maxFPGAs\": 2", "\"maxFPGAs\": \"2\"")) ==
        "x.json: maxFPGAs: expected a whole number from 0 to 1048576, got '2'");
  CHECK(error_of(replaced(text, "\"id\": 3", "\"id\": 5")) ==
        "x.json: nodes[1].id: node 5 is repeated");
  CHECK(error_of(replaced(text, "\"cpuLatency\": 20.0", "\"cpuLatency\": -20")) ==
        "x.json: nodes[1].cpuLatency: expected a number of at least 0, got -20");
  CHECK(error_of(replaced(text, "\"fpgaLatency\": 2.0", "\"fpgaLatency\": null")) ==
        "x.json: nodes[1].fpgaLatency: expected a number, got null");
  CHECK(error_of(replaced(text, "\"fpgaLatency\": 2.0,", "")) ==
        "x.json: nodes[1]: field 'fpgaLatency' is missing; there are cpuLatency, id, "
        "isBackwardNode, supportedOnFpga");
  CHECK(error_of(replaced(text, "\"supportedOnFpga\": false", "\"supportedOnFpga\": 2")) ==
        "x.json: nodes[1].supportedOnFpga: expected a whole number from 0 to 1, got 2");
  CHECK(error_of(replaced(text, "\"destId\": 3", "\"destId\": 4")) ==
        "x.json: edges[0].destId: expected the id of a node, got 4");
  CHECK(error_of(replaced(text, "\"destId\": 3", "\"destId\": 7")) ==
        "x.json: edges[0]: an edge from a node to itself");
  CHECK(error_of(replaced(text, "\"destId\": 5, \"cost\": 0.5", "\"destId\": 5, \"cost\": 0.75")) ==
        "x.json: edges[1].cost: expected 0.5, as on other edges of its source, got 0.75");
  CHECK(error_of(replaced(text, "\"cost\": 0.25", "\"cost\": 1e300")) ==
        "x.json: edges[2].cost: expected a time that corresponds to at most 2^50 bytes, got "
        "1e+300");
  CHECK(error_of(
            replaced(text, "\"sourceId\": 7, \"destId\": 3", "\"sourceId\": 9, \"destId\": 7")) ==
        "x.json: graph 'x' has a cycle: MatMul12 -> MatMul12_Grad/Transpose_0 -> MatMul12#7 -> "
        "MatMul12");
}

TEST_CASE("every cut-off or damaged instance gives one error that names it, or a graph") {
  test::check_damaged(kInstance, [](const std::string& text) { return error_of(text); });
}

TEST_CASE("one accelerator and the experts' cuts have the published objective" * test::shared) {
  const auto expected = nlohmann::json::parse(read_file(kData + "/expected.json")).at("throughput");
  int single = 0, experts = 0;
  std::set<std::string> without;
  for (const auto& [name, figures] : expected.items()) {
    CAPTURE(name);
    const auto file = kData + "/throughput-inputs/" + name + ".json";
    const auto network = read_pipeline_network(file);
    REQUIRE(network);
    const auto instance =
        load_instance(*network, {network->devices, network->cpus, network->memory_bytes,
                                 network->bandwidth_bytes_per_s, 1});
    const auto objective_ms = [&](const std::vector<int32_t>& device) {
      const auto loads = max_load_loads_s(instance, device);
      return *std::max_element(loads.begin(), loads.end());
    };
    CHECK(objective_ms(std::vector<int32_t>(instance.nodes.size(), 0)) ==
          doctest::Approx(figures.at("one_accelerator").get<double>()).epsilon(1e-5));
    ++single;
    if (figures.value("human_expert", nlohmann::json()).is_null()) continue;
    const auto cut = kData + "/human-experts/" + name.substr(name.find('/') + 1) + "_expert.json";
    const auto training = name.substr(0, name.find("_training"));
    // The published cut of ResNet-50 is for inference; it applies to the training graph.
    const auto inference =
        kData + "/human-experts/" + training.substr(name.find('/') + 1) + "_inference_expert.json";
    const auto path = std::filesystem::exists(cut) ? cut : inference;
    if (!std::filesystem::exists(path)) {
      without.insert(name);
      continue;
    }
    CHECK(objective_ms(read_pipeline_cut(path, file)) ==
          doctest::Approx(figures.at("human_expert").get<double>()).epsilon(1e-5));
    ++experts;
  }
  CHECK(single == 11);
  CHECK(experts == 5);
  CHECK(without == std::set<std::string>{"LayerGraphs/inceptionv3_inference"});  // no cut there
}
