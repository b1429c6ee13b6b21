// Files as networks to be cut: the order of the file, units, errors.
#include "formats/instances/pipeline_file.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "support/build.h"
#include "support/shared_data.h"

using namespace trinity;

namespace {

/// A file of its own for the time of a test.
struct Written {
  Written(const std::string& name, const std::string& text)
      : path((std::filesystem::temp_directory_path() / name).string()) {
    write_file(path, text);
  }
  ~Written() { std::filesystem::remove(path); }
  std::string path;
};

const char* const kInstance = R"({"maxSizePerFPGA": 100, "maxFPGAs": 2, "maxCPUs": 1, "nodes": [
  {"id": 7, "supportedOnFpga": 1, "cpuLatency": 30, "fpgaLatency": 0.3, "isBackwardNode": 1,
   "colorClass": 4, "size": 5},
  {"id": 3, "supportedOnFpga": false, "cpuLatency": 10, "fpgaLatency": 0.1, "isBackwardNode": 0,
   "colorClass": 4, "size": 6},
  {"id": 5, "supportedOnFpga": true, "cpuLatency": 20, "fpgaLatency": 0.7, "isBackwardNode": false}],
  "edges": [{"sourceId": 3, "destId": 5, "cost": 0.1}, {"sourceId": 5, "destId": 7, "cost": 0.2}]})";

}  // namespace

TEST_CASE("a dnn-partitioning instance keeps the order and the numbers of its file") {
  const Written file("trinity_pipeline_test.json", kInstance);
  const auto network = read_pipeline_network(file.path);
  REQUIRE(network);
  CHECK(network->unit == "ms");
  CHECK(network->devices == 2);
  CHECK(network->cpus == 1);
  REQUIRE(network->count() == 3);
  CHECK(network->nodes[0].id == "7");
  CHECK(network->nodes[0].time == 0.3);  // bit for bit, not 0.3e-3 * 1e3
  CHECK(network->nodes[0].backward);
  CHECK(network->nodes[0].unit == network->nodes[1].unit);
  CHECK(network->nodes[2].unit != network->nodes[1].unit);
  CHECK_FALSE(network->nodes[1].supported);
  CHECK(network->nodes[1].transfer == 0.1);
  CHECK(network->edges == std::vector<std::pair<int32_t, int32_t>>{{1, 2}, {2, 0}});
  // At half the bandwidth transfers take twice as long.
  const PipelineMachine slow{2, 1, 100, network->bandwidth_bytes_per_s / 2, 1};
  CHECK(load_instance(*network, slow).nodes[1].transfer_s == 0.2);
  // One layer holds 3 and its gradient 7.
  const auto layers = pipedream_layers(*network);
  REQUIRE(layers.count() == 2);
  CHECK(layers.members[0] == std::vector<int32_t>{0, 1});
  CHECK(layers.time_s[0] == doctest::Approx(0.4e-3));
  CHECK(layers.parameter_bytes[0] == 11);
}

TEST_CASE("a cut of the experts' is read in the order of the file") {
  const Written file("trinity_pipeline_test.json", kInstance);
  const Written cut("trinity_split_test.json",
                    R"({"cpus": [{"nodes": [3]}], "fpgas": [{"nodes": []}, {"nodes": [5]}]})");
  CHECK(read_pipeline_cut(cut.path, file.path) == std::vector<int32_t>{2, 2, 1});
  CHECK_THROWS_AS(read_pipeline_cut(cut.path, test::data("pipeline/none.json")), FileError);
}

TEST_CASE("files of other kinds are no networks; wrong ones name file and field") {
  const Written other("trinity_pipeline_other.json", R"({"format": "trinity.graph"})");
  CHECK_FALSE(read_pipeline_network(other.path));
  std::string text = kInstance;
  text.replace(text.find("\"cpuLatency\": 30"), 16, "\"cpuLatency\": -3");
  const Written wrong("trinity_pipeline_wrong.json", text);
  CHECK_THROWS_WITH_AS(read_pipeline_network(wrong.path),
                       doctest::Contains("trinity_pipeline_wrong.json: nodes[0].cpuLatency: "),
                       FileError);
  CHECK_THROWS_AS(read_pipeline_network("nowhere.txt"), FileError);
}

TEST_CASE("a profile's stages are the expert's; inputs cost nothing") {
  const std::string fields =
      "forward_compute_time=1, backward_compute_time=2, activation_size=8, parameter_size=4";
  const Written file("trinity_pipeline_test.txt", "b -- Relu -- " + fields +
                                                      " -- stage_id=1\na -- Input0 -- " + fields +
                                                      " -- stage_id=0\n\ta -- b\n");
  const auto network = read_pipeline_network(file.path);
  REQUIRE(network);
  CHECK(network->nodes[0].id == "b");
  CHECK(network->nodes[0].expert == 1);
  CHECK(network->nodes[1].expert == 0);
  CHECK(network->nodes[0].time == doctest::Approx(0.003));
  CHECK(network->nodes[0].memory_bytes == 12);
  CHECK(network->nodes[1].time == 0);
  CHECK(network->nodes[1].output_bytes == 0);
  CHECK(pipedream_layers(*network).count() == 1);
  const Written wrong("trinity_pipeline_test.txt", "b -- Relu -- " + fields + " -- stage_id=0.5\n");
  CHECK_THROWS_WITH_AS(read_pipeline_network(wrong.path),
                       doctest::Contains(":1: field 'stage_id': expected a whole number, got 0.5"),
                       FileError);
}

namespace {

/// The last configuration of the largest degree of every layer, as its file has it.
void check_piper(const std::string& path, size_t degrees, size_t layers, size_t edges) {
  const auto network = read_pipeline_network(path);
  REQUIRE(network);
  CHECK(network->piper.layers.size() == layers);
  CHECK(network->edges.size() == edges);
  CHECK(network->piper.edges.size() == edges);
  const auto json = nlohmann::json::parse(read_file(path));
  for (int32_t n = 0; n < network->count(); ++n) {
    const auto& layer = network->piper.layers[static_cast<size_t>(n)];
    const auto& node = json["nodes"][static_cast<size_t>(n)];
    CHECK(network->nodes[static_cast<size_t>(n)].id == node["id"].dump());
    REQUIRE(layer.degrees.size() == degrees);
    const auto& last = layer.degrees.back().configurations[1];
    const auto& written = node["TMPCs"][std::to_string(layer.degrees.back().degree)][1];
    CHECK(last.time == written["timePerSample"].get<double>());
    double sync = 0, expected = 0;
    for (const double bytes : last.sync_bytes) sync += bytes;
    for (const char* key : {"syncTimeFw", "syncTimeBw"})
      for (const auto& [other, bytes] : written[key].items()) expected += bytes.get<double>();
    CHECK(sync == expected);
  }
}

}  // namespace

TEST_CASE("a Piper instance keeps every configuration") {
  check_piper(test::data("pipeline/piper.json"), 2, 6, 7);
}
