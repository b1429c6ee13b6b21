#include "formats/onnx/onnx.h"

#include <doctest/doctest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "graph/operator_types.h"
#include "graph/training.h"
#include "support/shared_data.h"

using namespace trinity;

namespace {

const std::string kLight = test::shared_data("onnx-light");
const std::string kExports = std::string(TRINITY_SOURCE_DIR) + "/tests/data/onnx";

nlohmann::json read_json(const std::string& path) {
  std::ifstream file(path);
  return nlohmann::json::parse(file);
}

struct Counts {
  int64_t trainable = 0, fixed = 0, shapeless = 0;
  double product_macs = 0;  // of convolutions, matmuls, recurrence, attention
  std::map<std::string, int64_t> types;
};

Counts count(const Graph& graph) {
  Counts counts;
  for (const auto& op : graph.operators()) {
    ++counts.types[op.type];
    for (const auto& parameter : op.parameters)
      (parameter.trainable ? counts.trainable : counts.fixed) += parameter.elements();
    if (operator_rule(op.type).matrix) counts.product_macs += op.flops / 2;
    for (const int32_t output : op.outputs)
      counts.shapeless += graph.tensor(output).bytes == 0 ? 1 : 0;
  }
  return counts;
}

/// Difference of the importer's parameters from PyTorch's, and its reason in the exporter.
struct Export {
  const char* file;
  int64_t more;        ///< elements
  const char* reason;  ///< beside BatchNorm folded into convolutions
};
constexpr Export kFiles[] = {
    {"resnet_torchscript", 0, ""},
    {"densenet", 0, ""},
    {"mobilenet_v3", 0, ""},
    {"unet", 0, ""},
    {"lstm", 0, ""},
    {"gru_torchscript", 9600, "the tied table is stored twice, once transposed"},
    {"bert", 0, ""},
    {"gpt2_external", 0, ""},
    {"llama", 12, "rotary frequencies, a buffer, look like any factor"},
    {"t5", 928, "tables of relative positions, [32, 4], are stored for every pair of positions"},
    {"vit", 96, "the class token is stored for both images of the batch"},
    {"mixtral", 0, ""},
    {"branches", 0, ""},
};
const OnnxOptions kSizes = {{{"batch", 2}, {"sequence", 8}, {"side", 8}}};

OnnxOptions sizes_for(const nlohmann::json& facts) {
  OnnxOptions options;
  const auto text = facts.at("inputs").dump();
  for (const auto& [name, size] : kSizes.dimensions)
    if (text.find(name + "\"") != std::string::npos) options.dimensions[name] = size;
  return options;
}

}  // namespace

TEST_CASE("ONNX's light models: operators, edges, parameters, statistics, matmuls as expected" *
          test::shared) {
  const auto all = read_json(kLight + "/expected.json");
  CHECK(all.size() == 6);
  for (const auto& [name, expected] : all.items()) {
    CAPTURE(name);
    const auto imported = read_onnx(kLight + "/light_" + name + ".onnx");
    const auto& graph = imported.graph;
    const auto counts = count(graph);
    CHECK(imported.warnings.empty());
    CHECK(graph.name() == "light_" + name);
    const int64_t variables = counts.types.count("Variable") ? counts.types.at("Variable") : 0;
    CHECK(variables == (name == "inception_v1" ? 1 : 0));  // a Reshape of a weight
    CHECK(counts.types.at("Input") == 1);
    CHECK(graph.operator_count() - 1 - variables == expected["compute_nodes"]);
    CHECK(graph.edge_count() - 1 - variables == expected["edges_between_compute"]);
    for (const auto& [type, number] : expected["ops"].items())
      CHECK(counts.types.at(type) == number.get<int64_t>());
    const int64_t parameters = expected["params_constofshape"].get<int64_t>() +
                               expected["params_initializer"].get<int64_t>();
    CHECK(counts.trainable + counts.fixed == parameters);
    CHECK(counts.fixed == (name == "resnet50" ? 53120 : 0));
    CHECK(counts.product_macs == expected["conv_gemm_macs"].get<double>());
    CHECK(counts.shapeless == expected["missing_shapes"].get<int64_t>());
    const auto& input = expected["input"];
    CHECK(graph.tensor(graph.op(graph.find(input[0].get<std::string>())).outputs[0]).shape ==
          input[1].get<std::vector<int64_t>>());
  }
}

TEST_CASE("exports of today's PyTorch: its parameter counts and its multiply-adds") {
  const auto all = read_json(kExports + "/facts.json");
  for (const auto& [file, more, reason] : kFiles) {
    CAPTURE(file);
    const auto& facts = all.at(file);
    const auto imported = read_onnx(kExports + "/" + file + ".onnx", sizes_for(facts));
    const auto counts = count(imported.graph);
    CHECK(counts.shapeless == 0);
    // A folded BatchNorm leaves one vector, the convolution's bias, of two.
    int64_t buffers = facts.at("float_buffers").get<int64_t>();
    if (std::string(file) == "llama" || std::string(file) == "mixtral") buffers = 0;
    CHECK(counts.trainable ==
          facts.at("parameters").get<int64_t>() - (buffers - counts.fixed) / 2 + more);
    if (std::string(file) == "branches") {
      CHECK(counts.product_macs < facts.at("macs").get<double>());  // some are in the If
      CHECK(imported.unknown_types == std::vector<std::string>{"If"});
    } else {
      CHECK(counts.product_macs == facts.at("macs").get<double>());
      CHECK(imported.unknown_types.empty());
    }
  }
}

TEST_CASE("every export can be trained, and its FLOP are what the cost rules say") {
  for (const auto& [file, more, reason] : kFiles) {
    CAPTURE(file);
    const auto graph = read_onnx(kExports + "/" + file + ".onnx").graph;
    for (const auto& op : graph.operators()) {
      if (op.parameters.empty() || op.attributes.contains("parameter_inputs")) continue;
      // Where its matrices come from other operators, only the importer sees them.
      if (op.type == "LSTM" && op.parameters[0].shape.size() < 3) continue;
      std::vector<const Tensor*> inputs, outputs;
      for (const int32_t id : op.inputs) inputs.push_back(&graph.tensor(id));
      for (const int32_t id : op.outputs) outputs.push_back(&graph.tensor(id));
      CAPTURE(op.name);
      CHECK(op.flops == forward_flops(op, inputs, outputs));
    }
    const auto training = lower_to_training(graph, {});
    CHECK(training.has_backward());
    CHECK(training.parameter_count() == graph.parameter_count());
  }
}

TEST_CASE("a file is named in every error") {
  CHECK_THROWS_WITH_AS(read_onnx("missing.onnx"), doctest::Contains("missing.onnx: cannot read"),
                       FileError);
  CHECK_THROWS_WITH_AS(read_onnx(kExports), doctest::Contains("not a file"), FileError);
  CHECK_THROWS_WITH_AS(read_onnx(kExports + "/facts.json"), doctest::Contains("facts.json: "),
                       FileError);
}
