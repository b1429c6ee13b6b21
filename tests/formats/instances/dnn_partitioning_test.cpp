#include "formats/instances/dnn_partitioning.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "formats/instances/pipeline_file.h"
#include "search/pipeline/max_load_cut.h"
#include "support/damage.h"
#include "support/shared_data.h"

using namespace trinity;

namespace {

const std::string kData = test::shared_data("dnn-partitioning");

/// Four nodes out of order: 7 -> 3 -> 5, 7 -> 5, and 5's gradient 9 of its colour class.
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

double sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

DnnPartitioning read(const std::string& path) {
  return parse_dnn_partitioning(read_file(path), path, "instance");
}

struct Row {
  const char* file;
  int nodes, edges, backward;
  double accelerator_ms, cpu_ms, memory_bytes;
  int accelerators, cpus;
};
// Nodes and edges of gnmt, inceptionv3 (/2), BERT-12 and resnet50 training also stand in
// manual/papers.md "Profiles that were published"; accelerator sums of throughput inputs in
// expected.json (one_accelerator). The other figures are sums over the files made by another
// program (Python's json).
const Row kPublished[] = {
    {"latency-inputs/LayerGraphs/bert24_inference", 32, 55, 0, 92.406, 924.06, 1824824592, 5, 8},
    {"latency-inputs/LayerGraphs/gnmt_inference", 96, 122, 0, 182.563, 1825.63, 2466507520, 6, 8},
    {"latency-inputs/LayerGraphs/resnet50_inference", 177, 193, 0, 201.45, 2014.5, 19410956452, 14,
     8},
    {"latency-inputs/OperatorGraphs/bert_l-12_inference", 783, 843, 0, 642.7799619587328,
     14783.939125050802, 9285684584, 8, 8},
    {"latency-inputs/OperatorGraphs/bert_l-3_inference", 235, 250, 0, 49.352568946342295,
     1135.1090857658728, 1512867688, 4, 8},
    {"latency-inputs/OperatorGraphs/resnet50_inference", 604, 619, 0, 325.13198946094656,
     7478.035757601774, 3513477024, 9, 8},
    {"throughput-inputs/LayerGraphs/bert24_inference", 32, 55, 0, 92.406, 924.06, 1824824592, 6, 1},
    {"throughput-inputs/LayerGraphs/bert24_training", 64, 110, 32, 217.813, 2178.13, 3649649184, 6,
     1},
    {"throughput-inputs/LayerGraphs/gnmt_training", 192, 244, 96, 520.453, 5204.53, 4933015040, 6,
     1},
    {"throughput-inputs/LayerGraphs/inceptionv3_inference", 326, 363, 0, 310.969, 3109.69,
     16795418824, 6, 1},
    {"throughput-inputs/LayerGraphs/resnet50_inference", 177, 193, 0, 201.45, 2014.5, 19410956452,
     6, 1},
    {"throughput-inputs/LayerGraphs/resnet50_training", 354, 386, 177, 462.381, 4623.81,
     38821912904, 6, 1},
    {"throughput-inputs/OperatorGraphs/bert_L-12_training", 2012, 2751, 1229, 1891.7423217532687,
     43510.073400325025, 23270902776, 6, 1},
    {"throughput-inputs/OperatorGraphs/bert_l-3_inference", 235, 250, 0, 49.352568946342295,
     1135.1090857658728, 1512867688, 3, 1},
    {"throughput-inputs/OperatorGraphs/bert_l-3_training", 600, 817, 365, 122.98722384592422,
     2828.7061484562414, 3298392568, 3, 1},
    {"throughput-inputs/OperatorGraphs/bert_l-6_inference", 418, 448, 0, 77.46150895689556,
     1781.6147060085964, 2230918504, 3, 1},
    {"throughput-inputs/OperatorGraphs/resnet50_training", 1243, 1806, 639, 684.890555764989,
     15752.482782594809, 7094182112, 6, 1},
};

}  // namespace

TEST_CASE("an instance is read into graph and columns") {
  const auto instance = parse_dnn_partitioning(kInstance, "x.json", "x");
  const auto& graph = instance.graph;
  CHECK(instance.max_accelerators == 2);
  CHECK(instance.max_cpus == 1);
  CHECK(instance.accelerator_memory_bytes == 1000);
  REQUIRE(instance.id == std::vector<int64_t>{7, 3, 5, 9});
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
  CHECK(instance.supported_on_accelerator == std::vector<bool>{true, false, true, true});
}

TEST_CASE("a cut becomes a placement; gradients follow their colour class") {
  const auto instance = parse_dnn_partitioning(kInstance, "x.json", "x");
  const auto cut = [&](const std::string& text) {
    return test::message_of<FileError>([&] { parse_dnn_cut(text, "s.json", instance); });
  };
  CHECK(parse_dnn_cut(R"({"fpgas": [{"load": -1, "nodes": [7]}, {"nodes": [5]}],
                            "cpus": [{"nodes": [3]}]})",
                      "s.json", instance) == std::vector<int32_t>{0, 2, 1, 1});
  CHECK(cut(R"({"fpgas": [{"nodes": [7, 3, 5, 8]}]})") ==
        "s.json: fpgas[0].nodes[3]: expected the id of a node of the instance, got 8");
  CHECK(cut(R"({"fpgas": [{"nodes": [7, 3, 7]}]})") ==
        "s.json: fpgas[0].nodes[2]: node 7 stands twice");
  CHECK(cut(R"({"fpgas": [{"nodes": [7, 5]}]})") == "s.json: node 3 is on no device");
  CHECK(cut(R"({"fpgas": [{"nodes": []}, {"nodes": []}, {"nodes": [7]}]})") ==
        "s.json: fpgas[2]: the instance has 2 of these devices");
  CHECK(cut(R"({"fpgas": [7]})") == "s.json: fpgas[0]: expected an object, got 7");
}

TEST_CASE("wrong instances give one error each") {
  const std::string text = kInstance;
  CHECK(error_of(replaced(text, "\"maxFPGAs\": 2", "\"maxFPGAs\": \"2\"")) ==
        "x.json: maxFPGAs: expected a whole number from 0 to 1048576, got '2'");
  CHECK(error_of(replaced(text, "\"id\": 3", "\"id\": 5")) ==
        "x.json: nodes[1].id: node 5 stands twice");
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
        "x.json: edges[2].cost: expected a time that stands for at most 2^50 bytes, got 1e+300");
  CHECK(error_of(
            replaced(text, "\"sourceId\": 7, \"destId\": 3", "\"sourceId\": 9, \"destId\": 7")) ==
        "x.json: graph 'x' has a cycle: MatMul12 -> MatMul12_Grad/Transpose_0 -> MatMul12#7 -> "
        "MatMul12");
}

TEST_CASE("every cut-off or damaged instance gives one error that names it, or a graph") {
  test::check_damaged(kInstance, [](const std::string& text) { return error_of(text); });
}

TEST_CASE("every published instance: counts, sums and limits" * test::shared) {
  for (const auto& row : kPublished) {
    CAPTURE(row.file);
    const auto instance = read(kData + "/" + row.file + ".json");
    const auto& operators = instance.graph.operators();
    CHECK(instance.graph.operator_count() == row.nodes);
    CHECK(instance.graph.edge_count() == row.edges);
    CHECK(std::count_if(operators.begin(), operators.end(), [](const Operator& op) {
            return op.phase == Phase::backward;
          }) == row.backward);
    CHECK(1e3 * sum(instance.accelerator_time_s) ==
          doctest::Approx(row.accelerator_ms).epsilon(1e-12));
    CHECK(1e3 * sum(instance.cpu_time_s) == doctest::Approx(row.cpu_ms).epsilon(1e-12));
    double memory_bytes = 0;
    for (const auto& op : operators) memory_bytes += static_cast<double>(op.persistent_bytes);
    CHECK(std::abs(memory_bytes - row.memory_bytes) < row.nodes);  // each size rounded up
    CHECK(instance.max_accelerators == row.accelerators);
    CHECK(instance.max_cpus == row.cpus);
  }
}

TEST_CASE("sizes and costs of the published instances agree with the bandwidth they come from" *
          test::shared) {
  int64_t checked = 0;
  for (const auto* folder : {"/throughput-inputs/OperatorGraphs", "/latency-inputs/OperatorGraphs",
                             "/latency-inputs/LayerGraphs"}) {
    for (const auto& entry : std::filesystem::directory_iterator(kData + folder)) {
      const auto instance = read(entry.path());
      for (size_t i = 0; i < instance.id.size(); ++i)
        for (const int32_t output : instance.graph.operators()[i].outputs) {
          const double bytes = instance.transfer_time_s[i] * kDnnPartitioningBytesPerSecond;
          CHECK(std::abs(static_cast<double>(instance.graph.tensor(output).bytes) - bytes) <= 1);
          ++checked;
        }
    }
  }
  CHECK(checked > 5000);
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
    // The published cut of ResNet-50 is that of inference; it applies to the training graph.
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
