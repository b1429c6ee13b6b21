// Graphs that the importer makes of models: parameters, shared weights, constants, functions, subgraphs.
#include <doctest/doctest.h>

#include "base/error.h"
#include "formats/onnx/onnx_net.h"
#include "graph/operator_types.h"

using namespace trinity;
using onnx::TensorProto;

namespace {

OnnxNet perceptron() {
  OnnxNet net;
  net.input("x", {"batch", "16"}).weight("w1", {16, 32}).weight("b1", {32}).weight("w2", {32, 4});
  net.node("Gemm", {"x", "w1", "b1"}, {"h"}).node("Relu", {"h"}, {"r"});
  net.node("MatMul", {"r", "w2"}, {"y"}).output("y");
  return net;
}

std::vector<std::string> types(const Graph& graph) {
  std::vector<std::string> result;
  for (const auto& op : graph.operators()) result.push_back(op.type);
  return result;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("initializers become parameters of their readers, nodes operators, in order") {
  const auto imported = perceptron().read({{{"batch", 8}}});
  const auto& graph = imported.graph;
  CHECK(imported.warnings.empty());
  CHECK(graph.name() == "net");
  CHECK(types(graph) == Names{"Input", "Gemm", "Relu", "MatMul"});
  const auto& input = graph.op(0);
  CHECK(input.name == "x");
  CHECK_FALSE(graph.tensor(input.outputs[0]).gradient);
  CHECK(graph.tensor(input.outputs[0]).shape == Dims{8, 16});
  const auto& gemm = operator_named(graph, "h");  // nodes without a name have their output's
  REQUIRE(gemm.parameters.size() == 2);
  CHECK(gemm.parameters[0].name == "w1");
  CHECK(gemm.parameters[0].shape == Dims{16, 32});
  CHECK(gemm.parameters[1].trainable);
  CHECK(gemm.flops == 2.0 * 8 * 16 * 32);
  CHECK(gemm.attributes.empty());
  CHECK(graph.tensor(gemm.outputs[0]).gradient);
  CHECK(graph.parameter_count() == 16 * 32 + 32 + 32 * 4);
  CHECK(output_shape(graph, "y") == Dims{8, 4});
}

TEST_CASE("open dimensions: names, expressions, one size for the rest; a warning says which") {
  OnnxNet net;
  net.input("x", {"batch", "3", "16*side", "16*side"}).input("t", {"batch", "", "tokens + 1"});
  net.node("Relu", {"x"}, {"y"}).node("Relu", {"t"}, {"z"}).output("y").output("z");
  const auto assumed = net.read();
  CHECK(output_shape(assumed.graph, "y") == Dims{1, 3, 16, 16});
  CHECK(output_shape(assumed.graph, "z") == Dims{1, 1, 2});
  REQUIRE(assumed.warnings.size() == 1);
  CHECK(assumed.warnings[0].find("'batch', 'side', 'tokens' and 1 without a name") !=
        std::string::npos);
  const auto given = net.read({{{"batch", 4}, {"side", 14}, {"tokens + 1", 5}}, 7});
  CHECK(output_shape(given.graph, "y") == Dims{4, 3, 224, 224});
  CHECK(output_shape(given.graph, "z") == Dims{4, 7, 5});
  CHECK_THROWS_WITH_AS(net.read({{{"bach", 4}}}),
                       doctest::Contains("no open dimension 'bach', did you mean 'batch'?"),
                       ArgumentError);
  CHECK_THROWS_WITH_AS(net.read({{{"batch", 0}}}), doctest::Contains("'batch' must be at least 1"),
                       ArgumentError);
  CHECK_THROWS_AS(net.read({{}, 0}), ArgumentError);
}

TEST_CASE("expressions of dimensions: PyTorch's notation") {
  const std::pair<const char*, int64_t> cases[] = {
      {"2*s0 + 1", 21},
      {"s0//3", 3},
      {"floor(s0/4 - 1/2) + 1", 3},
      {"Max(64, s0)", 64},
      {"Min(s0, 4, 7)", 4},
      {"((s0 - 1)//2) + 1", 5},
      {"s0**2", 100},
      {"s0 % 4", 2},
      {"Mod(s0, 4)", 2},
      {"FloorDiv(s0, 3)", 3},
      {"-s0 + 15", 5},
      {"ceiling(s0/4)", 3},
      {"s0 - 100", 1},
      {"any text, really", 1},
      {"s0*", 1},
      {"s0/4", 1},
  };
  for (const auto& [text, size] : cases) {
    CAPTURE(text);
    OnnxNet net;
    net.input("a", {"s0"}).input("x", {text}).node("Relu", {"x"}, {"y"}).output("y");
    CHECK(output_shape(net.read({{{"s0", 10}}}).graph, "y") == Dims{size});
  }
}

TEST_CASE("value_info comes first, inference completes it") {
  OnnxNet net;
  net.input("x", {"2", "8"}).node("Relu", {"x"}, {"y"}).node("Relu", {"y"}, {"z"});
  net.node("Unknown", {"z"}, {"u"}).node("Abs", {"u"}, {"v"}).output("v");
  net.info("y", {"2", "9"}).info("z", {"", "n"}).info("u", {"n", "5"}, TensorProto::FLOAT16);
  const auto imported = net.read();
  CHECK(output_shape(imported.graph, "y") == Dims{2, 9});
  CHECK(output_shape(imported.graph, "z") == Dims{2, 9});
  CHECK(output_shape(imported.graph, "v") == Dims{1, 5});
  CHECK(imported.graph.tensor(operator_named(imported.graph, "v").outputs[0]).dtype ==
        DType::float16);
}

TEST_CASE("BatchNormalization's statistics are not trainable; constants are no parameters") {
  OnnxNet net;
  net.input("x", {"1", "4", "8", "8"});
  for (const char* name : {"scale", "bias", "mean", "variance"}) net.weight(name, {4});
  net.weight("scalar", {})
      .weight("mask", {8}, TensorProto::BOOL)
      .weight("ids", {8}, TensorProto::INT64);
  net.node("BatchNormalization", {"x", "scale", "bias", "mean", "variance"}, {"n"});
  net.node("Mul", {"n", "scalar"}, {"m"}).node("Where", {"mask", "m", "scalar"}, {"w"});
  net.node("Gather", {"w", "ids"}, {"y"}, {{"axis", 3}}).output("y");
  const auto graph = net.read().graph;
  const auto& norm = operator_named(graph, "n");
  REQUIRE(norm.parameters.size() == 4);
  CHECK(norm.parameters[1].trainable);
  CHECK_FALSE(norm.parameters[2].trainable);
  CHECK_FALSE(norm.parameters[3].trainable);
  for (const char* name : {"m", "w", "y"}) CHECK(operator_named(graph, name).parameters.empty());
  CHECK(graph.operator_count() == 5);
  CHECK(operator_named(graph, "y").inputs.size() == 1);
}

TEST_CASE("parameter_inputs lists positions where parameters do not follow the inputs") {
  OnnxNet net;
  net.input("ids", {"2", "5"}, TensorProto::INT64).weight("table", {100, 8}).weight("scale", {8});
  net.weight("w", {1, 32, 8})
      .weight("r", {1, 32, 8})
      .weight("b", {1, 64})
      .weight("zero", {1, 5, 8});
  net.node("Gather", {"table", "ids"}, {"e"}).node("Mul", {"scale", "e"}, {"s"});
  net.node("LSTM", {"s", "w", "r", "b", "", "zero", "zero"}, {"y", "", "c"}, {{"hidden_size", 8}});
  net.output("y").output("c");
  const auto graph = net.read().graph;
  CHECK(types(graph) == Names{"Input", "Gather", "Mul", "LSTM"});
  for (const char* name : {"e", "s"}) {
    const auto& op = operator_named(graph, name);
    CHECK(std::get<Dims>(op.attributes.at("parameter_inputs")) == Dims{0});
    CHECK(op.parameters.size() == 1);
  }
  const auto& lstm = operator_named(graph, "y");
  CHECK_FALSE(lstm.attributes.contains("parameter_inputs"));
  CHECK(lstm.parameters.size() == 3);  // initial states are no weights
  CHECK(lstm.outputs.size() == 2);
  CHECK(output_shape(graph, "y") == Dims{2, 1, 5, 8});
  CHECK(output_shape(graph, "y", 1) == Dims{1, 5, 8});
  CHECK(lstm.flops == 2.0 * 10 * (256 + 256));
}

TEST_CASE("a matrix that two operators read is one Variable; through Identity, too") {
  OnnxNet net;
  net.input("ids", {"2", "5"}, TensorProto::INT64).weight("table", {100, 8});
  net.node("Identity", {"table"}, {"head"}).node("Gather", {"table", "ids"}, {"e"});
  net.node("Transpose", {"head"}, {"t"}).node("MatMul", {"e", "t"}, {"y"}).output("y");
  const auto graph = net.read().graph;
  CHECK(types(graph) == Names{"Input", "Variable", "Gather", "Transpose", "MatMul"});
  const auto& variable = operator_named(graph, "table");
  CHECK(variable.parameters.size() == 1);
  CHECK(graph.tensor(variable.outputs[0]).shape == Dims{100, 8});
  CHECK(graph.tensor(variable.outputs[0]).gradient);
  const auto& gather = operator_named(graph, "e");
  CHECK(gather.inputs == std::vector<int32_t>{variable.outputs[0], graph.op(0).outputs[0]});
  CHECK(operator_named(graph, "t").inputs == variable.outputs);
  CHECK(graph.parameter_count() == 800);
  CHECK(operator_named(graph, "y").flops == 2.0 * 10 * 8 * 100);
}

TEST_CASE("a shared convolution has its FLOP, and a weight on the way through other operators") {
  OnnxNet net;
  net.input("x", {"1", "4", "8", "8"})
      .weight("w", {4, 4, 3, 3})
      .weight("q", {6, 4, 1, 1}, TensorProto::INT8);
  net.weight("s", {6});
  net.node("Conv", {"x", "w"}, {"a"}, {{"pads", Dims{1, 1, 1, 1}}});
  net.node("Conv", {"a", "w"}, {"b"}, {{"pads", Dims{1, 1, 1, 1}}});
  net.node("DequantizeLinear", {"q", "s"}, {"d"}, {{"axis", 0}});
  net.node("Conv", {"b", "d"}, {"y"}).output("y");
  const auto graph = net.read().graph;
  CHECK(operator_named(graph, "a").flops == 2.0 * 64 * 4 * 36);
  CHECK(operator_named(graph, "b").flops == 2.0 * 64 * 4 * 36);
  CHECK(operator_named(graph, "y").flops == 2.0 * 64 * 6 * 4);
  const auto& quantised = operator_named(graph, "q");
  CHECK(is_variable(quantised));
  CHECK_FALSE(quantised.parameters[0].trainable);
  CHECK(quantised.parameters[0].dtype == DType::int8);
}

TEST_CASE("vectors that exporters merged are copied, or one Variable") {
  OnnxNet net;
  net.input("x", {"4", "8"}).weight("ones", {8});
  net.node("Add", {"x", "ones"}, {"a"}).node("Mul", {"a", "ones"}, {"b"}).output("b");
  const auto copied = net.read();
  CHECK(types(copied.graph) == Names{"Input", "Add", "Mul"});
  CHECK(copied.graph.parameter_count() == 16);
  CHECK(mentions(copied.warnings, "'ones' by 2"));
  OnnxOptions options;
  options.copy_shared_vectors = false;
  const auto shared = net.read(options);
  CHECK(types(shared.graph) == Names{"Input", "Variable", "Add", "Mul"});
  CHECK(shared.graph.parameter_count() == 8);
}

TEST_CASE("ConstantOfShape of an initializer is a weight, of a Constant it is not") {
  OnnxNet net(9, 3);
  net.input("x", {"1", "4"}).integers("shape", {4, 6}).input("shape", {"2"}, TensorProto::INT64);
  net.node("ConstantOfShape", {"shape"}, {"w"}).node("Gemm", {"x", "w"}, {"g"});
  net.node("Constant", {}, {"c"});
  auto& constant = *net.graph().mutable_node(2)->add_attribute();
  constant.set_name("value");
  constant.mutable_t()->set_data_type(TensorProto::INT64);
  constant.mutable_t()->add_dims(2);
  for (const int64_t extent : {1, 6}) constant.mutable_t()->add_int64_data(extent);
  net.node("ConstantOfShape", {"c"}, {"zero"}).node("Add", {"g", "zero"}, {"y"}).output("y");
  const auto graph = net.read().graph;
  CHECK(types(graph) == Names{"Input", "Gemm", "Add"});  // the listed initializer is no input
  CHECK(operator_named(graph, "g").parameters.size() == 1);
  CHECK(operator_named(graph, "y").parameters.empty());
}

TEST_CASE("weights in other files and sparse ones are shapes only") {
  OnnxNet net;
  net.input("x", {"2", "16"}).weight("w", {16, 8});
  auto& tensor = *net.graph().mutable_initializer(0);
  tensor.set_data_location(TensorProto::EXTERNAL);
  auto& place = *tensor.add_external_data();
  place.set_key("location");
  place.set_value("../../no/such/file");
  auto& sparse = *net.graph().add_sparse_initializer();
  sparse.mutable_values()->set_name("s");
  sparse.mutable_values()->set_data_type(TensorProto::FLOAT);
  for (const int64_t extent : {8, 4}) sparse.add_dims(extent);
  net.node("MatMul", {"x", "w"}, {"h"}).node("MatMul", {"h", "s"}, {"y"}).output("y");
  const auto imported = net.read();
  CHECK(imported.warnings.empty());
  CHECK(imported.graph.parameter_count() == 16 * 8 + 8 * 4);
  CHECK(output_shape(imported.graph, "y") == Dims{2, 4});
}

TEST_CASE("shape arithmetic is evaluated and leaves no operators") {
  OnnxNet net;
  net.input("x", {"2", "6", "4"})
      .integers("zero", {0})
      .integers("tail", {-1, 2})
      .integers("two", {2});
  net.node("Relu", {"x"}, {"r"}).node("Shape", {"r"}, {"s"}).node("Gather", {"s", "zero"}, {"n"});
  net.node("Mul", {"n", "two"}, {"m"}).node("Concat", {"m", "tail"}, {"t"}, {{"axis", 0}});
  net.node("Reshape", {"r", "t"}, {"y"}).output("y");
  const auto graph = net.read().graph;
  CHECK(types(graph) == Names{"Input", "Relu", "Reshape"});
  CHECK(output_shape(graph, "y") == Dims{4, 6, 2});
}

TEST_CASE("unknown operators are named once; nodes that reach no output vanish") {
  OnnxNet net;
  net.input("x", {"2", "4"}).node("Foo", {"x"}, {"a"}).node("Foo", {"a"}, {"b"});
  net.node("Relu", {"b"}, {"y"}).node("Neg", {"x"}, {"unused"}).output("y");
  net.node("Gelu", {"y"}, {"z"}).output("z");
  net.graph().mutable_node(1)->set_domain("com.example");
  net.graph().mutable_node(4)->set_domain("ai.onnx");
  const auto imported = net.read();
  CHECK(imported.unknown_types == Names{"Foo", "com.example.Foo"});
  int named = 0;
  for (const auto& warning : imported.warnings)
    named += warning.find("com.example.Foo") != std::string::npos ? 1 : 0;
  CHECK(named == 1);
  CHECK(mentions(imported.warnings, "were left out: 1 (the first: 'unused')"));
  CHECK(mentions(imported.warnings, "which count as empty: 4 (the first: 'a')"));
  CHECK(operator_named(imported.graph, "z").type == "Gelu");
  CHECK(imported.graph.find("unused") == -1);
}

TEST_CASE("a file cannot make operators of trinity's own types") {
  OnnxNet net;
  net.input("x", {"2"}).node("Variable", {"x"}, {"y"}).node("Input", {"y"}, {"z"}).output("z");
  CHECK(types(net.read().graph) == Names{"Input", "ai.onnx.Variable", "ai.onnx.Input"});
}

TEST_CASE("names of operators are made unique: the output's, then a number") {
  OnnxNet net;
  net.input("x", {"2"});
  for (const char* output : {"a", "b", "c"}) net.node("Relu", {"x"}, {output}).output(output);
  for (int i = 0; i < 3; ++i) net.graph().mutable_node(i)->set_name(i == 2 ? "b" : "same");
  const auto graph = net.read().graph;
  const Names expected = {"x", "same", "b", "c"};
  for (int32_t i = 0; i < 4; ++i) CHECK(graph.op(i).name == expected[i]);
}

TEST_CASE("functions of the model are replaced by their nodes, attributes handed down") {
  OnnxNet net;
  net.input("x", {"2", "3", "4"}).weight("w", {4, 8});
  auto& function = *net.model.add_functions();
  function.set_name("Layer");
  function.set_domain("local");
  for (const char* name : {"data", "weight"}) function.add_input(name);
  function.add_output("result");
  function.add_attribute("axes_order");
  OnnxNet::fill(*function.add_node(), "MatMul", {"data", "weight"}, {"product"});
  auto& turn = OnnxNet::fill(*function.add_node(), "Transpose", {"product"}, {"result"});
  auto& order = *turn.add_attribute();
  order.set_name("perm");
  order.set_ref_attr_name("axes_order");
  net.node("Layer", {"x", "w"}, {"y"}, {{"axes_order", Dims{0, 2, 1}}}).output("y");
  net.graph().mutable_node(0)->set_domain("local");
  net.graph().mutable_node(0)->set_name("first");
  const auto imported = net.read();
  const auto& graph = imported.graph;
  CHECK(types(graph) == Names{"Input", "MatMul", "Transpose"});
  CHECK(graph.op(1).name == "first/product");
  CHECK(graph.op(1).parameters.size() == 1);
  CHECK(output_shape(graph, "first/product") == Dims{2, 3, 8});
  CHECK(output_shape(graph, "y") == Dims{2, 8, 3});
  CHECK(imported.unknown_types.empty());
}

TEST_CASE("If is one operator that owns the weights its branches read and hold") {
  OnnxNet net;
  net.input("x", {"2", "4"}).input("flag", {}, TensorProto::BOOL).weight("w", {4, 4});
  net.node("Relu", {"x"}, {"r"}).node("If", {"flag"}, {"y"}).output("y");
  auto& node = *net.graph().mutable_node(1);
  for (const char* name : {"then_branch", "else_branch"}) {
    auto& attribute = *node.add_attribute();
    attribute.set_name(name);
    auto& inner = *attribute.mutable_g();
    auto& bias = *inner.add_initializer();
    bias.set_name("bias");
    bias.set_data_type(TensorProto::FLOAT);
    bias.add_dims(4);
    OnnxNet::fill(*inner.add_node(), "Gemm", {"r", "w", "bias"}, {"out"});
    OnnxNet::set_type(*inner.add_output(), "out", {"2", "4"}, TensorProto::FLOAT);
  }
  const auto imported = net.read();
  const auto& graph = imported.graph;
  const auto& op = operator_named(graph, "y");
  CHECK(op.inputs.size() == 2);  // the flag, and what the branches read
  CHECK(op.parameter_count() == 16 + 4 + 4);
  CHECK(output_shape(graph, "y") == Dims{2, 4});
  CHECK(mentions(imported.warnings, "(If, Loop, Scan): 1;"));
}

TEST_CASE("types of elements: bytes as in the file, odd ones with a warning") {
  OnnxNet net;
  const std::pair<int, DType> cases[] = {
      {TensorProto::FLOAT16, DType::float16}, {TensorProto::BFLOAT16, DType::bfloat16},
      {TensorProto::DOUBLE, DType::float64},  {TensorProto::INT64, DType::int64},
      {TensorProto::UINT8, DType::uint8},     {TensorProto::INT16, DType::int16},
      {TensorProto::BOOL, DType::boolean},    {17, DType::uint8},  // float8
  };
  for (const auto& [element, dtype] : cases) {
    const auto name = "x" + std::to_string(element);
    net.input(name, {"3"}, element).node("Neg", {name}, {"y" + std::to_string(element)});
    net.output("y" + std::to_string(element));
  }
  const auto imported = net.read();
  for (const auto& [element, dtype] : cases) {
    const auto& op = operator_named(imported.graph, "y" + std::to_string(element));
    const auto& tensor = imported.graph.tensor(op.outputs[0]);
    CHECK(tensor.dtype == dtype);
    CHECK(tensor.bytes == 3 * dtype_bytes(dtype));
    CHECK(tensor.gradient ==
          (dtype == DType::float16 || dtype == DType::bfloat16 || dtype == DType::float64));
  }
  CHECK(mentions(imported.warnings, "trinity does not have: 2 (the first: 'x17')"));
}
