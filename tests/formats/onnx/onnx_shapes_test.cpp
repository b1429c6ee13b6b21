// Shapes of single operators against ONNX's definitions; examples worked by hand, and the same
// networks through ONNX's own shape inference.
#include "formats/onnx/onnx_net.h"  // defines what ONNX's headers want, so it comes first

#include <doctest/doctest.h>
#include <onnx/shape_inference/implementation.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "base/error.h"
#include "support/shared_data.h"

using namespace trinity;
using onnx::TensorProto;

namespace {

/// One node: inputs by shape (or, as integers in braces after the shapes, constant arguments).
struct Case {
  const char* type;
  std::vector<Dims> inputs;
  std::vector<Dims> integers;  ///< constant arguments, after the inputs
  std::vector<OnnxAttribute> attributes;
  std::vector<Dims> outputs;
};

OnnxNet net_of(const Case& c) {
  OnnxNet net(21);
  std::vector<std::string> inputs, outputs;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    inputs.push_back("x" + std::to_string(i));
    std::vector<std::string> dims;
    for (const int64_t extent : c.inputs[i]) dims.push_back(std::to_string(extent));
    net.input(inputs.back(), dims);
  }
  for (size_t i = 0; i < c.integers.size(); ++i) {
    const bool left_out = c.integers[i] == Dims{INT64_MIN};
    inputs.push_back(left_out ? "" : "c" + std::to_string(i));
    if (!left_out) net.integers(inputs.back(), c.integers[i]);
  }
  for (size_t i = 0; i < c.outputs.size(); ++i) outputs.push_back("y" + std::to_string(i));
  net.node(c.type, inputs, outputs, c.attributes);
  for (const auto& name : outputs) net.output(name);
  return net;
}

const Dims kLeftOut = {INT64_MIN};

void check(const std::vector<Case>& cases) {
  for (const auto& c : cases) {
    CAPTURE(c.type);
    const auto imported = net_of(c).read();
    for (size_t i = 0; i < c.outputs.size(); ++i) {
      CAPTURE(i);
      const auto& tensor =
          imported.graph.tensor(operator_named(imported.graph, "y0").outputs.at(i));
      CHECK(tensor.shape == c.outputs[i]);
      CHECK((tensor.bytes > 0 || !c.outputs[i].empty()));
    }
    CHECK_FALSE(mentions(imported.warnings, "do not fit"));
    CHECK_FALSE(mentions(imported.warnings, "nothing tells"));
  }
}

const std::vector<Case> kWindows = {
    {"Conv", {{2, 3, 32, 32}, {8, 3, 3, 3}}, {}, {}, {{2, 8, 30, 30}}},
    {"Conv",
     {{2, 4, 32, 31}, {8, 2, 3, 5}},
     {},
     {{"group", 2}, {"strides", Dims{2, 1}}, {"pads", Dims{1, 0, 1, 2}}, {"dilations", Dims{2, 1}}},
     {{2, 8, 15, 29}}},
    {"Conv",
     {{1, 3, 33, 33}, {8, 3, 3, 3}},
     {},
     {{"auto_pad", "SAME_UPPER"}, {"strides", Dims{2, 2}}},
     {{1, 8, 17, 17}}},
    {"Conv",
     {{1, 3, 33, 33}, {8, 3, 3, 3}},
     {},
     {{"auto_pad", "VALID"}, {"strides", Dims{2, 2}}},
     {{1, 8, 16, 16}}},
    {"Conv", {{1, 3, 20}, {8, 3, 4}}, {}, {}, {{1, 8, 17}}},
    {"ConvTranspose",
     {{1, 8, 7, 7}, {8, 4, 4, 4}},
     {},
     {{"strides", Dims{2, 2}}, {"pads", Dims{1, 1, 1, 1}}},
     {{1, 4, 14, 14}}},
    {"ConvTranspose",
     {{1, 8, 7, 7}, {8, 4, 3, 3}},
     {},
     {{"strides", Dims{2, 2}}, {"output_padding", Dims{1, 1}}},
     {{1, 4, 16, 16}}},
    {"ConvTranspose",
     {{1, 8, 7, 7}, {8, 2, 3, 3}},
     {},
     {{"group", 2}, {"output_shape", Dims{15, 14}}},
     {{1, 4, 15, 14}}},
    {"MaxPool",
     {{1, 4, 32, 32}},
     {},
     {{"kernel_shape", Dims{3, 3}}, {"strides", Dims{2, 2}}},
     {{1, 4, 15, 15}, {1, 4, 15, 15}}},
    {"MaxPool",
     {{1, 4, 32, 32}},
     {},
     {{"kernel_shape", Dims{3, 3}}, {"strides", Dims{2, 2}}, {"ceil_mode", 1}},
     {{1, 4, 16, 16}}},
    // Rounded up, a window would start in the padding on the right: left out.
    {"AveragePool",
     {{1, 1, 4, 4}},
     {},
     {{"kernel_shape", Dims{1, 1}},
      {"strides", Dims{3, 3}},
      {"pads", Dims{0, 0, 2, 2}},
      {"ceil_mode", 1}},
     {{1, 1, 2, 2}}},
    {"GlobalAveragePool", {{2, 5, 7, 9}}, {}, {}, {{2, 5, 1, 1}}},
    {"Resize", {{1, 3, 8, 8}}, {kLeftOut, kLeftOut, {1, 3, 16, 20}}, {}, {{1, 3, 16, 20}}},
    {"Resize",
     {{1, 3, 8, 16}},
     {kLeftOut, kLeftOut, {16, 16}},
     {{"axes", Dims{2, 3}}, {"keep_aspect_ratio_policy", "not_larger"}},
     {{1, 3, 8, 16}}},
    {"GridSample", {{2, 3, 8, 8}, {2, 5, 6, 2}}, {}, {}, {{2, 3, 5, 6}}},
    {"RoiAlign",
     {{1, 3, 8, 8}, {9, 4}, {9}},
     {},
     {{"output_height", 7}, {"output_width", 5}},
     {{9, 3, 7, 5}}},
    {"Col2Im", {{1, 8, 9}}, {{4, 4}, {2, 2}}, {}, {{1, 2, 4, 4}}},
};

const std::vector<Case> kProducts = {
    {"MatMul", {{5, 1, 2, 3}, {4, 3, 6}}, {}, {}, {{5, 4, 2, 6}}},
    {"MatMul", {{3}, {4, 3, 6}}, {}, {}, {{4, 6}}},
    {"MatMul", {{2, 3}, {3}}, {}, {}, {{2}}},
    {"MatMul", {{3}, {3}}, {}, {}, {{}}},
    {"Gemm", {{3, 2}, {5, 3}}, {}, {{"transA", 1}, {"transB", 1}}, {{2, 5}}},
    {"Einsum", {{2, 3, 4}, {2, 4, 5}}, {}, {{"equation", "bij, bjk -> bik"}}, {{2, 3, 5}}},
    {"Einsum", {{7, 2, 3}, {3, 4}}, {}, {{"equation", "...ij,jk"}}, {{7, 2, 4}}},
    {"Attention",
     {{2, 8, 10, 16}, {2, 4, 12, 16}, {2, 4, 12, 20}},
     {},
     {},
     {{2, 8, 10, 20}, {2, 4, 12, 16}, {2, 4, 12, 20}, {2, 8, 10, 12}}},
    {"Attention",
     {{2, 10, 128}, {2, 12, 64}, {2, 12, 64}},
     {},
     {{"q_num_heads", 8}, {"kv_num_heads", 4}},
     {{2, 10, 128}, {2, 4, 12, 16}}},
    {"LSTM",
     {{7, 2, 10}, {2, 64, 10}, {2, 64, 16}},
     {},
     {{"hidden_size", 16}, {"direction", "bidirectional"}},
     {{7, 2, 2, 16}, {2, 2, 16}, {2, 2, 16}}},
    {"GRU",
     {{2, 7, 10}, {1, 48, 10}, {1, 48, 16}},
     {},
     {{"layout", 1}},
     {{2, 7, 1, 16}, {2, 1, 16}}},
    {"LayerNormalization", {{2, 3, 4}, {4}}, {}, {}, {{2, 3, 4}, {2, 3, 1}, {2, 3, 1}}},
    {"SoftmaxCrossEntropyLoss", {{8, 10}, {8}}, {}, {}, {{}, {8, 10}}},
    {"SoftmaxCrossEntropyLoss", {{8, 10}, {8}}, {}, {{"reduction", "none"}}, {{8}}},
    {"RMSNormalization", {{2, 4}, {4}}, {}, {}, {{2, 4}}},
    {"Dropout", {{2, 4}}, {}, {}, {{2, 4}, {2, 4}}},
};

const std::vector<Case> kMovement = {
    {"Reshape", {{2, 3, 4}}, {{0, -1}}, {}, {{2, 12}}},
    {"Flatten", {{2, 3, 4}}, {}, {{"axis", 2}}, {{6, 4}}},
    {"Flatten", {{2, 3, 4}}, {}, {{"axis", 3}}, {{24, 1}}},
    {"Squeeze", {{1, 3, 1}}, {{-1}}, {}, {{1, 3}}},
    {"Squeeze", {{1, 3, 1}}, {}, {}, {{3}}},
    {"Unsqueeze", {{3, 4}}, {{0, -1}}, {}, {{1, 3, 4, 1}}},
    {"Unsqueeze", {{3, 4}}, {}, {{"axes", Dims{1}}}, {{3, 1, 4}}},
    {"Transpose", {{2, 3, 4}}, {}, {}, {{4, 3, 2}}},
    {"Transpose", {{2, 3, 4}}, {}, {{"perm", Dims{0, 2, 1}}}, {{2, 4, 3}}},
    {"Concat", {{2, 3}, {2, 5}}, {}, {{"axis", -1}}, {{2, 8}}},
    {"Split", {{2, 10}}, {}, {{"axis", 1}, {"num_outputs", 3}}, {{2, 4}, {2, 4}, {2, 2}}},
    {"Split", {{6, 2}}, {{1, 5}}, {}, {{1, 2}, {5, 2}}},
    {"Slice", {{10, 20}}, {{1, -5}, {INT64_MAX, -1}, {0, 1}, {2, 1}}, {}, {{5, 4}}},
    {"Slice", {{10}}, {{-1}, {INT64_MIN + 1}, {0}, {-3}}, {}, {{4}}},
    {"Slice", {{10}}, {}, {{"starts", Dims{8}}, {"ends", Dims{3}}}, {{0}}},
    {"Expand", {{3, 1}}, {{2, 1, 4}}, {}, {{2, 3, 4}}},
    {"Tile", {{2, 3}}, {{2, 1}}, {}, {{4, 3}}},
    {"Pad", {{2, 3}}, {{1, 0, 2, 1}}, {}, {{5, 4}}},
    {"Pad", {{2, 3}}, {{1, 2}, kLeftOut, {1}}, {}, {{2, 6}}},
    {"DepthToSpace", {{1, 8, 2, 3}}, {}, {{"blocksize", 2}}, {{1, 2, 4, 6}}},
    {"SpaceToDepth", {{1, 2, 4, 6}}, {}, {{"blocksize", 2}}, {{1, 8, 2, 3}}},
};

const std::vector<Case> kSelection = {
    {"Gather", {{5, 6, 7}, {2, 3}}, {}, {{"axis", 1}}, {{5, 2, 3, 7}}},
    {"GatherND", {{5, 6, 7}, {4, 2}}, {}, {}, {{4, 7}}},
    {"GatherND", {{5, 6, 7}, {5, 1}}, {}, {{"batch_dims", 1}}, {{5, 7}}},
    {"GatherElements", {{5, 6}, {5, 2}}, {}, {{"axis", 1}}, {{5, 2}}},
    {"ReduceMean", {{2, 3, 4}}, {{-1}}, {}, {{2, 3, 1}}},
    {"ReduceMean", {{2, 3, 4}}, {}, {{"axes", Dims{0, 2}}, {"keepdims", 0}}, {{3}}},
    {"ReduceSum", {{2, 3, 4}}, {}, {{"keepdims", 0}}, {{}}},
    {"ReduceSum", {{2, 3, 4}}, {}, {{"noop_with_empty_axes", 1}}, {{2, 3, 4}}},
    {"ArgMax", {{2, 3, 4}}, {}, {{"axis", -1}, {"keepdims", 0}}, {{2, 3}}},
    {"TopK", {{2, 9}}, {{4}}, {}, {{2, 4}, {2, 4}}},
    {"OneHot", {{2, 3}}, {{5}, {0, 1}}, {}, {{2, 3, 5}}},
    {"Add", {{2, 1, 4}, {3, 1}}, {}, {}, {{2, 3, 4}}},
    {"Sum", {{4}, {3, 1}, {1}}, {}, {}, {{3, 4}}},
    {"Where", {{4, 1}, {3}, {1}}, {}, {}, {{4, 3}}},
    {"Softmax", {{2, 3}}, {}, {}, {{2, 3}}},
    {"NonMaxSuppression", {{1, 9, 4}, {1, 2, 9}}, {}, {}, {{1, 3}}},
};

}  // namespace

TEST_CASE("shapes: windows") { check(kWindows); }

TEST_CASE("shapes: products, layers") { check(kProducts); }

TEST_CASE("shapes: movement") { check(kMovement); }

TEST_CASE("shapes: selection, element-wise") { check(kSelection); }

namespace {

/// How many shapes ONNX's own inference knows of these files; all are ours.
size_t compare_shapes(const std::vector<std::string>& files) {
  size_t compared = 0;
  for (const auto& file : files) {
    CAPTURE(file);
    onnx::ModelProto model;
    std::ifstream stream(file, std::ios::binary);
    REQUIRE(model.ParseFromIstream(&stream));
    model.mutable_graph()->clear_value_info();
    const auto graph = parse_onnx(model.SerializeAsString(), file, "net").graph;
    for (auto& import : *model.mutable_opset_import())
      import.set_version(std::min<int64_t>(import.version(), 17));
    onnx::shape_inference::InferShapes(model);
    std::map<std::string, Dims> known;
    for (const auto& value : model.graph().value_info()) {
      Dims dims;
      bool complete = value.type().tensor_type().has_shape();
      for (const auto& dim : value.type().tensor_type().shape().dim()) {
        complete = complete && dim.has_dim_value();
        dims.push_back(dim.dim_value());
      }
      if (complete) known[value.name()] = dims;
    }
    for (const auto& tensor : graph.tensors()) {
      const auto found = known.find(tensor.name);
      if (found == known.end()) continue;
      CAPTURE(tensor.name);
      CHECK(tensor.shape == found->second);
      ++compared;
    }
  }
  return compared;
}

}  // namespace

TEST_CASE("ONNX's own inference makes the same shapes of exports") {
  std::vector<std::string> files;
  for (const char* name : {"densenet", "mobilenet_v3", "lstm", "t5", "vit"})
    files.push_back(test::data("onnx/" + std::string(name) + ".onnx"));
  CHECK(compare_shapes(files) > 300);
}

TEST_CASE("ONNX's own inference makes the same shapes of the light models" * test::shared) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(test::shared_data("onnx-light")))
    if (entry.path().extension() == ".onnx") files.push_back(entry.path().string());
  CHECK(compare_shapes(files) > 50);
}
