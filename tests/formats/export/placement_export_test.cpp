#include "formats/export/placement_export.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "graph/training.h"
#include "support/build.h"

using namespace trinity;

namespace {

std::string path_of(const std::string& name) {
  return module_path({.name = name});
}

/// The network of tests/data/placement/apply.py, named as PyTorch's exporter names it: a stem, two
/// residual blocks in a Sequential, a head.
Graph network() {
  test::GraphMaker make("residual");
  const int image = make.op("image", 0);
  int last = make.output(image, 4096);
  const auto layer = [&](const std::string& name) {
    const int op = make.op(name, 1e-3);
    make.read(op, last);
    last = make.output(op, 4096);
    return op;
  };
  layer("/stem/Conv");
  for (const std::string block : {"/blocks/blocks.0", "/blocks/blocks.1"}) {
    const int shortcut = last;
    layer(block + "/conv1/Conv");
    layer(block + "/Relu");
    layer(block + "/conv2/Conv");
    make.read(layer(block + "/Add"), shortcut);
  }
  layer("/ReduceMean");
  layer("/head/Gemm");
  return make.build();
}

std::vector<int32_t> halves(const Graph& graph) {
  std::vector<int32_t> placement;
  for (const auto& op : graph.operators()) {
    const bool second = op.name.find("blocks.1") != std::string::npos ||
                        op.name.find("head") != std::string::npos ||
                        op.name.find("Mean") != std::string::npos;
    placement.push_back(second);
  }
  return placement;
}

nlohmann::json exported(const Strategy& strategy, const Graph& graph) {
  return nlohmann::json::parse(
      placement_to_json(strategy, graph, *test::uniform_cluster(2, 1e9, 0), {"cpu:0", "cpu:1"}));
}

}  // namespace

TEST_CASE("module paths come from an attribute or from the scope in PyTorch's ONNX names") {
  CHECK(path_of("/layer1/layer1.0/conv1/Conv") == "layer1.0.conv1");
  CHECK(path_of("/layer1/layer1.0/downsample/downsample.1/BatchNormalization") ==
        "layer1.0.downsample.1");
  CHECK(path_of("/features/features.12/Relu_1") == "features.12");
  CHECK(path_of("/model/layers.3/self_attn/q_proj/MatMul") == "model.layers.3.self_attn.q_proj");
  CHECK(path_of("/Add") == "");
  CHECK(path_of("node_conv2d_5") == "");
  CHECK(path_of("/") == "");
  CHECK(path_of("//") == "");
  const Operator op{.name = "node_conv2d_5",
                    .attributes = {{"module", std::string("layer1.0.conv1")}}};
  CHECK(module_path(op) == "layer1.0.conv1");
}

TEST_CASE("operators, modules and stages are what the PyTorch example reads, stages only of a pipeline") {
  const auto graph = network();
  Strategy strategy{halves(graph), {}};
  auto kept = nlohmann::json::parse(
      read_file(std::string(TRINITY_SOURCE_DIR) + "/tests/data/placement/placement.json"));
  kept.at("graph").erase("fingerprint");
  const auto written = [&] {
    auto json = exported(strategy, graph);
    json.at("graph").erase("fingerprint");
    return json;
  };
  strategy.schedule.name = "1f1b";
  strategy.schedule.micro_batches = 4;
  CHECK(written() == kept);
  strategy.schedule = {};
  for (const char* field : {"schedule", "stages"}) kept.erase(field);
  CHECK(written() == kept);
}

TEST_CASE("a module on two devices is reported, and stages that have it leave it out") {
  const auto graph = network();
  Strategy strategy{halves(graph), {}};
  strategy.placement[graph.find("/blocks/blocks.0/Add")] = 1;
  strategy.schedule.name = "gpipe";
  const auto json = exported(strategy, graph);
  CHECK(json.at("split_modules") == nlohmann::json{{"blocks.0", {"cpu:0", "cpu:1"}}});
  CHECK_FALSE(json.at("modules").contains("blocks.0"));
  CHECK(json.at("modules").contains("blocks.0.conv1"));
  for (const auto& stage : json.at("stages"))
    CHECK(std::find(stage.at("modules").begin(), stage.at("modules").end(), "blocks.0") ==
          stage.at("modules").end());
}

TEST_CASE("stages that a strategy states come in their order, several a device") {
  const auto graph = network();
  Strategy strategy{halves(graph), {}};
  strategy.schedule.name = "interleaved";
  for (const auto& op : graph.operators())
    strategy.schedule.stage.push_back(op.name == "/stem/Conv" || op.name == "image"   ? 0
                                      : op.name.find("blocks.0") != std::string::npos ? 2
                                      : op.name.find("blocks.1") != std::string::npos ? 1
                                                                                      : 3);
  const auto json = exported(strategy, graph);
  REQUIRE(json.at("stages").size() == 4);
  CHECK(json.at("stages")[0].at("modules") == nlohmann::json{"stem"});
  CHECK(json.at("stages")[2].at("device") == "cpu:0");
  CHECK(json.at("stages")[3].at("modules") == nlohmann::json{"head"});

  strategy.schedule.stage.back() = 0;  // the head, on device 1, with the stem
  CHECK_THROWS_WITH_AS(exported(strategy, graph),
                       "stage 1: operators 'image' and '/head/Gemm' are on two devices",
                       ArgumentError);
}

TEST_CASE("only forward operators are written, and wrong names of devices are refused") {
  const auto graph = lower_to_training(network(), {});
  const Strategy strategy{std::vector<int32_t>(static_cast<size_t>(graph.operator_count()), 0), {}};
  const auto json = exported(strategy, graph);
  CHECK(json.at("operators").size() == static_cast<size_t>(network().operator_count()));
  const auto cluster = test::uniform_cluster(2, 1e9, 0);
  CHECK(nlohmann::json::parse(placement_to_json(strategy, graph, *cluster))
            .at("operators")
            .at("/head/Gemm") == "d0");
  CHECK_THROWS_WITH_AS(placement_to_json(strategy, graph, *cluster, {"cuda:0"}),
                       "cluster 'uniform' has 2 devices, got 1 names", ArgumentError);
  CHECK_THROWS_WITH_AS(placement_to_json(strategy, graph, *cluster, {"cuda:0", "cuda:0"}),
                       "two devices are called 'cuda:0'", ArgumentError);
  CHECK_THROWS_AS(placement_to_json({{0}, {}}, graph, *cluster), ArgumentError);
}
