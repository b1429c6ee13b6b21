// Damaged and malicious models: one FileError that names file and place, or a graph.
#include <doctest/doctest.h>

#include <sstream>

#include "base/error.h"
#include "base/random.h"
#include "formats/onnx/onnx_net.h"

using namespace trinity;
using onnx::TensorProto;

namespace {

OnnxNet small() {
  OnnxNet net;
  net.input("x", {"batch", "3", "8", "8"}).weight("w", {4, 3, 3, 3}).integers("shape", {0, -1});
  net.node("Conv", {"x", "w"}, {"c"}, {{"strides", Dims{2, 2}}}).node("Relu", {"c"}, {"r"});
  net.node("Reshape", {"r", "shape"}, {"y"}).output("y").info("c", {"batch", "4", "3", "3"});
  return net;
}

/// True where the model was refused, by an error of the right kind that begins with the file.
bool refused(const std::string& bytes) {
  try {
    parse_onnx(bytes, "net.onnx", "net");
    return false;
  } catch (const FileError& error) {
    CHECK(std::string(error.what()).rfind("net.onnx: ", 0) == 0);
    CHECK(std::string(error.what()).size() < 600);
    return true;
  }
}

void check_refused(const OnnxNet& net, const char* text) {
  CHECK_THROWS_WITH_AS(net.read(), doctest::Contains(text), FileError);
  CHECK(refused(net.bytes()));
}

/// One node on x [1, 4, 8, 8].
OnnxNet with(const char* type, const std::vector<OnnxAttribute>& attributes,
             const std::vector<std::pair<std::string, Dims>>& integers = {}) {
  OnnxNet net;
  net.input("x", {"1", "4", "8", "8"}).weight("w", {4, 4, 3, 3});
  std::vector<std::string> inputs = {"x"};
  if (std::string(type).starts_with("Conv")) inputs.emplace_back("w");
  for (const auto& [name, numbers] : integers) {
    net.integers(name, numbers);
    inputs.push_back(name);
  }
  net.node(type, inputs, {"y"}, attributes).output("y");
  return net;
}

}  // namespace

TEST_CASE("a model cut off at any byte is refused, or a shorter model") {
  const auto bytes = small().bytes();
  REQUIRE_FALSE(refused(bytes));
  size_t count = 0;
  for (size_t length = 0; length < bytes.size(); ++length)
    count += refused(bytes.substr(0, length)) ? 1 : 0;
  CHECK(count > bytes.size() * 9 / 10);
  CHECK(refused("\x3a\xff\xff\xff\xff\x07"));      // a graph of 2^31 - 1 bytes
  CHECK(refused("\x3a\xff\xff\xff\xff\xff\x7f"));  // and of more
  CHECK_THROWS_WITH_AS(parse_onnx("", "e.onnx", "e"), doctest::Contains("contains no graph"),
                       FileError);
  CHECK_THROWS_WITH_AS(parse_onnx("not an ONNX model at all", "e.onnx", "e"),
                       doctest::Contains("not an ONNX model"), FileError);
}

TEST_CASE("a model with any byte changed, or with a stretch repeated, is refused or a graph") {
  const auto bytes = small().bytes();
  int count = 0;
  for (size_t at = 0; at < bytes.size(); ++at)
    for (const int change : {1, 0xFF}) {
      auto damaged = bytes;
      damaged[at] = static_cast<char>(damaged[at] ^ change);
      count += refused(damaged) ? 1 : 0;
    }
  CHECK(count > 50);
  RandomStream random(5, "damage");
  int repeated = 0;
  for (int i = 0; i < 500; ++i) {
    auto damaged = bytes;
    for (int changes = 0; changes < 3; ++changes) {
      const auto from = random.below(damaged.size()), to = random.below(damaged.size());
      damaged.insert(to, damaged.substr(from, random.below(20)));
    }
    repeated += refused(damaged) ? 1 : 0;
  }
  CHECK(repeated > 250);
  CHECK(repeated < 500);
}

TEST_CASE("a file that would grow a hundredfold in memory is refused before it does") {
  std::string nodes;
  for (int i = 0; i < (1 << 23); ++i) nodes += std::string("\x0a\x00", 2);  // empty nodes
  CHECK_THROWS_WITH_AS(
      parse_onnx(std::string("\x3a\x80\x80\x80\x08", 5) + nodes, "net.onnx", "net"),
      doctest::Contains("net.onnx: has too many parts"), FileError);
  OnnxNet net;
  net.input("x", {"2"});
  for (int i = 0; i < (1 << 19) + 1; ++i) net.graph().add_node();
  check_refused(net, "the graph has 524289 nodes, more than 524288");
}

TEST_CASE("values: defined twice, not at all, in a cycle, without a name") {
  auto twice = small();
  twice.node("Relu", {"x"}, {"r"});
  check_refused(twice, "node 'r' writes value 'r', which is defined already");
  auto input = small();
  input.input("w", {"4"}).input("w", {"4"});
  check_refused(input, "input 'w' is listed twice");
  auto missing = small();
  missing.node("Relu", {"nothing"}, {"z"});
  check_refused(missing, "node 'z' (Relu): reads undefined value 'nothing'");
  auto output = small();
  output.output("lost");
  check_refused(output, "no node writes output 'lost'");
  OnnxNet circle;
  circle.input("x", {"2"}).node("Add", {"x", "c"}, {"a"}).node("Relu", {"a"}, {"b"});
  circle.node("Neg", {"b"}, {"c"}).output("c");
  check_refused(circle, "its nodes form a cycle: a -> b -> c -> a");
  OnnxNet itself;
  itself.input("x", {"2"}).node("Add", {"x", "a"}, {"a"});
  check_refused(itself, "cycle: a -> a");
  OnnxNet empty;
  empty.node("Relu", {}, {""});
  check_refused(empty, "has no outputs");
  OnnxNet nothing;
  nothing.graph().set_name("nothing");
  check_refused(nothing, "has no operators");
  OnnxNet binary;
  binary.input("x", {"2"}).node("Relu", {"x"}, {"\xff\xfe"});
  check_refused(binary, "not UTF-8");
  OnnxNet untyped;
  untyped.input("x", {"2"}).node("", {"x"}, {"y"});
  check_refused(untyped, "has no operator type");
}

TEST_CASE("nodes in any order are put in order") {
  OnnxNet net;
  net.input("x", {"2"}).node("Relu", {"a"}, {"b"}).node("Neg", {"x"}, {"a"}).output("b");
  const auto graph = net.read().graph;
  CHECK(graph.op(1).type == "Neg");
  CHECK(output_shape(graph, "b") == Dims{2});
}

TEST_CASE("dimensions: negative, too many, too large") {
  for (const char* extent : {"-1", "-9223372036854775808"}) {
    OnnxNet negative;
    negative.input("x", {extent}).node("Relu", {"x"}, {"y"});
    check_refused(negative, "input 'x' has a negative dimension");
    auto info = small();
    info.info("r", {extent, "4", "3", "3"});
    check_refused(info, "node 'r' (Relu): value 'r' has a negative dimension");
    auto weight = small();
    weight.weight("v", {std::stoll(extent)});
    check_refused(weight, "initializer 'v' has a negative dimension");
  }
  auto large = small();
  large.weight("v", {int64_t{1} << 40, 1 << 20});
  check_refused(large, "initializer 'v' has more than 2^50 bytes");
  auto zero = small();
  zero.weight("v", {0, INT64_MAX});
  check_refused(zero, "more than 2^50 bytes");
  OnnxNet rank;
  rank.input("x", std::vector<std::string>(1000, "1")).node("Relu", {"x"}, {"y"});
  check_refused(rank, "has 1000 dimensions");
  OnnxNet huge;
  huge.input("x", {"1099511627776"}).integers("s", {1 << 20}).node("Expand", {"x", "s"}, {"e"});
  huge.node("ConstantOfShape", {"big"}, {"c"}).integers("big", {int64_t{1} << 49, 1 << 30});
  check_refused(huge, "has more than 2^50 bytes");
}

TEST_CASE("what ends the shape inference is refused with the line that adds shapes") {
  check_refused(with("Conv", {{"strides", Dims{0, 0}}}),
                "net.onnx: shape inference: ended with signal 8");
  check_refused(with("MaxPool", {{"kernel_shape", Dims{2, 2}}, {"strides", Dims{0, 0}}}),
                "add shapes to the file: python -c \"import onnx");
}

TEST_CASE("a file of a later opset has to say its shapes") {
  for (const bool says : {false, true}) {
    OnnxNet net(18);
    net.input("x", {"2", "8"}).node("Relu", {"x"}, {"y"}).node("Abs", {"y"}, {"z"}).output("z");
    OnnxNet::set_type(*net.graph().mutable_output(0), "z", {"2", "8"}, TensorProto::FLOAT);
    if (says) net.info("y", {"2", "8"});
    if (says)
      CHECK(output_shape(net.read().graph, "y") == Dims{2, 8});
    else
      check_refused(net, "does not state the shape of value 'y' and has opset 18");
  }
}

TEST_CASE("shapes of the file that lie about shape arithmetic are survived") {
  const std::vector<std::string> lies[] = {{"100"}, {"0"}, {"2", "50"}, {}, {"3"}};
  int count = 0, all = 0;
  for (const auto& lie : lies) {
    for (const char* type : {"Shape", "Size", "Range", "Gather", "Slice", "Concat", "Expand",
                             "Cast", "Add", "ReduceProd", "NonZero", "Split", "Squeeze", "Where"}) {
      CAPTURE(type);
      OnnxNet net;
      net.input("x", {"4", "6"}).integers("a", {1, 2, 3}).integers("b", {2}).integers("c", {1});
      const bool whole = std::string(type) == "Shape" || std::string(type) == "Size";
      net.node(type,
               whole ? std::vector<std::string>{"x"} : std::vector<std::string>{"a", "b", "c"},
               {"s", "t"});
      net.info("s", lie, TensorProto::INT64).info("t", lie, TensorProto::INT64);
      net.node("Reshape", {"x", "s"}, {"y"}).node("Expand", {"y", "t"}, {"z"}).output("z");
      count += refused(net.bytes()) ? 1 : 0;
      ++all;
    }
  }
  CHECK(count < all / 2);  // most are read
}

TEST_CASE("nodes whose arguments are missing or of no use have no shape, nothing worse") {
  std::istringstream types(
      "Conv ConvTranspose MaxPool Gemm MatMul Einsum Attention LSTM Reshape Flatten Squeeze "
      "Unsqueeze Transpose Concat Split Slice Expand Tile Pad Resize Upsample Gather GatherND "
      "ReduceMean ArgMax TopK OneHot Shape Size Range ConstantOfShape NonZero Compress Unique "
      "RandomNormal BatchNormalization LayerNormalization SoftmaxCrossEntropyLoss Where Cast "
      "Add Dropout Identity If Loop Scan DynamicQuantizeLinear RoiAlign Constant GridSample "
      "AffineGrid Col2Im Det QLinearConv QLinearMatMul Trilu");
  int count = 0, all = 0;
  for (std::string type; types >> type;) {
    CAPTURE(type);
    for (const std::vector<std::string>& inputs :
         std::vector<std::vector<std::string>>{{},
                                               {""},
                                               {"scalar"},
                                               {"scalar", "scalar", "scalar", "scalar"},
                                               {"", "x", "x"},
                                               {"x", "empty", "empty", "empty"},
                                               {"text", "text", "text"},
                                               {"unknown", "unknown"}}) {
      OnnxNet net;
      net.input("x", {"2", "3"}).input("scalar", {}).input("text", {"2"}, TensorProto::STRING);
      net.graph().add_input()->set_name("unknown");
      net.integers("empty", {}).node(type, inputs, {"y", "z"}).node("Abs", {"x"}, {"end"});
      net.output("y").output("end");
      count += refused(net.bytes()) ? 1 : 0;
      ++all;
    }
  }
  CHECK(count < all / 4);  // most are read
}

TEST_CASE("depth and growth: subgraphs and functions nest only so far") {
  // Protobuf itself refuses; made from the inside out, for its own writer would exhaust the stack.
  std::string graph;
  const auto wrap = [](char tag, const std::string& bytes) {
    std::string length;
    for (size_t rest = bytes.size(); rest > 0 || length.empty(); rest >>= 7)
      length.push_back(static_cast<char>((rest & 0x7F) | (rest > 0x7F ? 0x80 : 0)));
    return tag + length + bytes;
  };
  for (int i = 0; i < 3000; ++i) {
    const auto attribute = wrap(0x0A, "then_branch") + wrap(0x32, graph);  // name, g
    graph = wrap(0x0A, wrap(0x12, "y") + wrap(0x22, "If") + wrap(0x2A, attribute));
  }
  CHECK_THROWS_WITH_AS(parse_onnx(wrap(0x3A, graph), "net.onnx", "net"),
                       doctest::Contains("nested too deeply"), FileError);
  for (const bool twice : {false, true}) {  // 40 deep, or 2^25 nodes
    OnnxNet net;
    net.input("x", {"2"}).node("f0", {"x"}, {"y"}).output("y");
    for (int i = 0; i < (twice ? 25 : 40); ++i) {
      const auto next = "f" + std::to_string(i + 1);
      auto& function = *net.model.add_functions();
      function.set_name("f" + std::to_string(i));
      function.add_input("a");
      function.add_output("b");
      if (twice) OnnxNet::fill(*function.add_node(), next, {"a"}, {"m"});
      OnnxNet::fill(*function.add_node(), next, {twice ? "m" : "a"}, {"b"});
    }
    check_refused(net, twice ? "functions expand to more than" : "nest deeper than 32");
  }
}
