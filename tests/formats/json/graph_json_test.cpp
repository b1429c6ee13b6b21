#include "formats/json/graph_json.h"

#include <doctest/doctest.h>

#include <cmath>

#include "base/error.h"
#include "graph/replicas.h"
#include "graph/training.h"
#include "support/build.h"
#include "support/damage.h"

using namespace trinity;

namespace {

/// A file around a list of operators.
std::string file(const std::string& operators, const std::string& more = "") {
  return R"({"format": "trinity.graph", "version": 1, "name": "g", "operators": [)" + operators +
         "]" + more + "}";
}

Graph parse(const std::string& text) { return parse_graph_json(text, "x.json"); }

std::string error_of(const std::string& text) {
  return test::message_of<FileError>([&] { parse(text); });
}

void check_same(const Operator& a, const Operator& b) {
  CHECK(a.name == b.name);
  CHECK(a.type == b.type);
  CHECK(a.phase == b.phase);
  CHECK(a.inputs == b.inputs);
  CHECK(a.outputs == b.outputs);
  CHECK(a.flops == b.flops);
  CHECK(a.traffic_bytes == b.traffic_bytes);
  CHECK(a.measured_time_s == b.measured_time_s);
  CHECK(a.measured_backward_time_s == b.measured_backward_time_s);
  CHECK(a.extra_parameter_bytes == b.extra_parameter_bytes);
  CHECK(a.persistent_bytes == b.persistent_bytes);
  CHECK(a.workspace_bytes == b.workspace_bytes);
  CHECK(a.forward == b.forward);
  CHECK(a.unit == b.unit);
  CHECK(a.collective == b.collective);
  REQUIRE(a.parameters.size() == b.parameters.size());
  for (size_t p = 0; p < a.parameters.size(); ++p) {
    CHECK(a.parameters[p].name == b.parameters[p].name);
    CHECK(a.parameters[p].shape == b.parameters[p].shape);
    CHECK(a.parameters[p].dtype == b.parameters[p].dtype);
    CHECK(a.parameters[p].trainable == b.parameters[p].trainable);
  }
}

/// Everything of a graph, field by field: what its fingerprint leaves out as well.
void check_same(const Graph& a, const Graph& b) {
  CHECK(a.name() == b.name());
  CHECK(a.fingerprint() == b.fingerprint());
  REQUIRE(a.operator_count() == b.operator_count());
  REQUIRE(a.tensors().size() == b.tensors().size());
  for (int32_t o = 0; o < a.operator_count(); ++o) check_same(a.op(o), b.op(o));
  for (size_t t = 0; t < a.tensors().size(); ++t) {
    CHECK(a.tensors()[t].name == b.tensors()[t].name);
    CHECK(a.tensors()[t].shape == b.tensors()[t].shape);
    CHECK(a.tensors()[t].dtype == b.tensors()[t].dtype);
    CHECK(a.tensors()[t].bytes == b.tensors()[t].bytes);
    CHECK(a.tensors()[t].gradient == b.tensors()[t].gradient);
  }
  REQUIRE(a.collectives().size() == b.collectives().size());
  for (size_t c = 0; c < a.collectives().size(); ++c) {
    CHECK(a.collectives()[c].name == b.collectives()[c].name);
    CHECK(a.collectives()[c].kind == b.collectives()[c].kind);
    CHECK(a.collectives()[c].algorithm == b.collectives()[c].algorithm);
    CHECK(a.collectives()[c].bytes == b.collectives()[c].bytes);
    CHECK(a.collectives()[c].members == b.collectives()[c].members);
  }
}

void check_round_trip(const Graph& graph) {
  const auto text = graph_to_json(graph);
  const auto again = parse(text);
  check_same(graph, again);
  CHECK(graph_to_json(again) == text);
}

/// A source with a tensor of known shape and two of unknown shape and one name.
int32_t add_source(GraphBuilder& builder) {
  const auto source = builder.add_operator({.name = "data\n1", .type = "Input"});
  builder.add_output(source, {.shape = {2, 3, 4}, .dtype = DType::uint8, .gradient = false});
  const Tensor unknown{.name = "twin", .bytes = (int64_t{1} << 50) - 1};
  builder.add_output(source, unknown);
  builder.add_output(source, unknown);
  return source;
}

/// An operator with every field at a value that is not its default.
Operator full_operator() {
  Operator op;
  op.name = "conv";
  op.type = "Conv";
  op.attributes = {{"whole", int64_t{9007199254740993}},
                   {"lowest", std::numeric_limits<int64_t>::min()},
                   {"fraction", 1.0},
                   {"tiny", 4.9e-324},
                   {"third", 1.0 / 3},
                   {"large", 1.7976931348623157e308},
                   {"minus_zero", -0.0},
                   {"inf", -std::numeric_limits<double>::infinity()},
                   {"text", std::string("10")},
                   {"bytes", std::string("\xff\x00z", 3)},
                   {"list", std::vector<int64_t>{-1, 0, 1}},
                   {"empty", std::vector<int64_t>{}}};
  op.parameters = {{"weight", {8, 3, 3, 3}, DType::bfloat16, true},
                   {"moving", {8}, DType::float32, false},
                   {"scalar", {}, DType::int64, false}};
  op.flops = 0.1;
  op.traffic_bytes = 1e300;
  op.measured_time_s = 1e-9 / 3;
  op.measured_backward_time_s = 0;
  op.extra_parameter_bytes = 3;
  op.persistent_bytes = 4;
  op.workspace_bytes = 5;
  return op;
}

Graph full_graph() {
  GraphBuilder builder("a \"full\" graph \u00e9");
  const auto tensors = builder.op(add_source(builder)).outputs;
  auto op = full_operator();
  op.inputs = {tensors[0], tensors[2], tensors[0]};
  const auto conv = builder.add_operator(op);
  const auto out = builder.add_output(conv, {.shape = {0, 5}});
  const auto grad =
      builder.add_operator({.name = "conv/grad", .type = "ConvGrad", .phase = Phase::backward,
                            .inputs = {out}, .flops = -0.0, .forward = conv});
  builder.colocate(conv, grad);
  for (const char* name : {"sum@0", "sum@1"})
    builder.add_operator({.name = name, .type = "AllReduce", .phase = Phase::update});
  builder.add_collective({"sum",
                          CollectiveKind::all_gather,
                          CollectiveAlgorithm::ring,
                          77,
                          {builder.find("sum@1"), builder.find("sum@0")}});
  return builder.build();
}

using Cases = std::vector<std::pair<std::string, std::string>>;

/// An operator with some fields, in a file.
std::string with(const std::string& fields) {
  return file(R"({"name": "a", "type": "Relu", )" + fields + "}");
}
const std::string kRelu = R"({"name": "a", "type": "Relu", "outputs": [{"bytes": 4}]})";

void check_errors(const Cases& cases) {
  for (const auto& [text, message] : cases) CHECK(error_of(text) == message);
}

}  // namespace

TEST_CASE("a graph with every field set comes back equal, field by field and byte by byte") {
  const auto graph = full_graph();
  check_round_trip(graph);
  const auto again = parse(graph_to_json(graph));
  const auto& attributes = again.op(1).attributes;
  CHECK(std::get<int64_t>(attributes.at("whole")) == 9007199254740993);
  CHECK(std::get<int64_t>(attributes.at("lowest")) == std::numeric_limits<int64_t>::min());
  CHECK(std::get<double>(attributes.at("fraction")) == 1.0);
  CHECK(std::get<double>(attributes.at("tiny")) == 4.9e-324);
  CHECK(std::signbit(std::get<double>(attributes.at("minus_zero"))));
  CHECK(std::get<std::string>(attributes.at("bytes")) == std::string("\xff\x00z", 3));
  CHECK(attributes == graph.op(1).attributes);
}

TEST_CASE("random graphs, lowered to training and replicated, come back equal") {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    RandomStream random(seed, "graph_json");
    const auto forward = test::random_graph(random, 3 + static_cast<int>(random.below(60)));
    check_round_trip(*forward);
    const auto training = lower_to_training(*forward, {});
    check_round_trip(training);
    check_round_trip(replicate(training, 3, {.bucket_bytes = 20000}).graph);
  }
}

TEST_CASE(
    "attribute that is not a number comes back, and a graph whose file is called in Latin-1") {
  GraphBuilder builder("caf\xe9");
  builder.add_operator({.name = "a", .attributes = {{"x", std::nan("")}}});
  const auto again = parse(graph_to_json(builder.build()));
  CHECK(std::isnan(std::get<double>(again.op(0).attributes.at("x"))));
  CHECK(again.name() == "caf\\xE9");
}

TEST_CASE("a file written by hand: operators in any order, the least said, defaults for the rest") {
  const auto graph = parse(file(R"(
    {"name": "loss", "type": "ReduceMean", "inputs": ["relu"], "outputs": [{"shape": []}]},
    {"name": "relu", "type": "Relu", "inputs": ["features"], "outputs": [{"shape": [1, 8, 2, 2]}],
     "unit": "tail"},
    {"name": "conv", "type": "Conv", "inputs": ["image"], "unit": "tail",
     "parameters": [{"name": "weight", "shape": [8, 3, 3, 3]}],
     "outputs": [{"name": "features", "shape": [1, 8, 2, 2]}]},
    {"name": "image", "type": "Input", "outputs": [{"shape": [1, 3, 4, 4], "gradient": false}]},
    {"name": "side", "type": "Relu", "inputs": [2], "outputs": [{"bytes": 1e3}], "flops": 7}
  )"));
  REQUIRE(graph.operator_count() == 5);
  CHECK(graph.op(0).name == "image");
  const auto& conv = graph.op(graph.find("conv"));
  CHECK(conv.flops == 2.0 * (1 * 8 * 2 * 2) * (3 * 3 * 3));
  CHECK(conv.traffic_bytes == 4 * (3 * 16 + 8 * 4 + 8 * 27));
  CHECK(conv.phase == Phase::forward);
  CHECK_FALSE(conv.measured());
  const auto& loss = graph.op(graph.find("loss"));
  CHECK(graph.tensor(loss.outputs[0]).bytes == 4);
  CHECK(graph.tensor(loss.outputs[0]).name == "loss:0");
  CHECK(graph.unit_count() == 4);
  CHECK(conv.unit == graph.op(graph.find("relu")).unit);
  // Tensor 2 is the second output of the file: relu's.
  const auto& side = graph.op(graph.find("side"));
  CHECK(graph.tensor(side.inputs[0]).name == "relu:0");
  CHECK(graph.tensor(side.outputs[0]).bytes == 1000);
  CHECK(side.flops == 7);
  check_round_trip(graph);
}

TEST_CASE("whatever is wrong gives one error that names field, expectation and what came") {
  const std::string head = R"({"format": "trinity.graph", "version": 1, )";
  check_errors({
      {"", "x.json:1:1: not valid JSON (it is empty)"},
      {"{\n \"format\": tru }",
       "x.json:2:15: not valid JSON (syntax error while parsing value - "
       "invalid literal; last read: '\"format\": tru ')"},
      {"[1]", "x.json: expected an object, got a list"},
      {"{}", "x.json: field 'format' is missing"},
      {R"({"format": "other"})", "x.json: format: expected 'trinity.graph', got 'other'"},
      {R"({"format": "trinity.graph", "version": 2})", "x.json: version: expected 1, got 2"},
      {R"({"format": "trinity.graph", "version": "1"})", "x.json: version: expected 1, got '1'"},
      {head + R"("operatrs": []})",
       "x.json: unknown field 'operatrs', did you mean 'operators'? "
       "(known: format, version, name, operators, collectives)"},
      {head + R"("name": 5, "operators": []})", "x.json: name: expected a string, got 5"},
      {head + R"("name": "g"})",
       "x.json: field 'operators' is missing; there are format, name, version"},
      {file(""), "x.json: graph 'g' has no operators"},
      {file(R"({"name": "a"})"), "x.json: operators[0]: field 'type' is missing; there are name"},
      {file(R"({"name": "", "type": "Relu"})"), "x.json: operators[0]: an operator needs a name"},
      {file(kRelu + "," + kRelu), "x.json: operators[1]: operator 'a' is already in graph 'g'"},
      {file(R"({"name": "a", "name": "b"})"),
       "x.json: operators[0].name: this field is repeated in its object"},
  });
}

TEST_CASE("wrong fields of operators, their tensors and weights name the place") {
  check_errors({
      {with(R"("phase": "backwards")"),
       "x.json: operators[0].phase: unknown phase 'backwards', did you mean 'backward'? (known: "
       "forward, backward, update)"},
      {with(R"("input": [])"),
       "x.json: operators[0]: unknown field 'input', did you mean 'inputs'? (known: name, type, "
       "phase, inputs, outputs, attributes, parameters, flops, unit, traffic_bytes, "
       "measured_time_s, measured_backward_time_s, forward, parameter_bytes, persistent_bytes, "
       "workspace_bytes)"},
      {with(R"("outputs": [{"shape": [1, "2"]}])"),
       "x.json: operators[0].outputs[0].shape[1]: expected a whole number from 0 to "
       "1125899906842624, got '2'"},
      {with(R"("outputs": [{"shape": 3}])"),
       "x.json: operators[0].outputs[0].shape: expected a list of whole numbers, got 3"},
      {with(R"("outputs": [{"shape": [-1]}])"),
       "x.json: operators[0].outputs[0].shape[0]: expected a whole number from 0 to "
       "1125899906842624, got -1"},
      {with(R"("outputs": [{"shape": [1.5]}])"),
       "x.json: operators[0].outputs[0].shape[0]: expected a whole number from 0 to "
       "1125899906842624, got 1.5"},
      {with(R"("outputs": [{"shape": [1048576, 1048576, 1048576]}])"),
       "x.json: operators[0].outputs[0]: tensor 'a:0' has more than 2^50 elements"},
      {with(R"("outputs": [{"shape": [3], "bytes": 13}])"),
       "x.json: operators[0].outputs[0].bytes: expected 12, the size of its shape in float32, got "
       "13"},
      {with(R"("outputs": [{"dtype": "float31"}])"),
       "x.json: operators[0].outputs[0].dtype: unknown dtype 'float31', did you mean 'float32'? "
       "(known: float32, float16, bfloat16, float64, int64, int32, int8, bool, uint8, int16, float8)"},
      {with(R"("outputs": [{"gradient": 1}])"),
       "x.json: operators[0].outputs[0].gradient: expected true or false, got 1"},
      {with(R"("outputs": [{"bytes": 18446744073709551615}])"),
       "x.json: operators[0].outputs[0].bytes: expected a whole number from 0 to "
       "1125899906842624, got 18446744073709551615"},
      {with(R"("parameters": [{"name": "w"}])"),
       "x.json: operators[0].parameters[0]: field 'shape' is missing; there are name"},
      {with(R"("parameters": [{"name": "w", "shape": [1125899906842624]}])"),
       "x.json: operators[0]: operator 'a': its weights have more than 2^50 bytes"},
      {with(R"("flops": "3")"), "x.json: operators[0].flops: expected a number, got '3'"},
      {with(R"("flops": -3)"),
       "x.json: operators[0].flops: expected a number of at least 0, got -3"},
      {with(R"("flops": 1e999)"), "x.json:1:113: not valid JSON (number overflow parsing '1e999')"},
  });
}

TEST_CASE("wrong attributes and references name the place") {
  check_errors({
      {with(R"("attributes": {"x": true})"),
       "x.json: operators[0].attributes.x: expected a number, a string or a list of whole numbers, "
       "got true"},
      {with(R"("attributes": {"x y": [1, 0.5]})"),
       "x.json: operators[0].attributes.'x y'[1]: expected a whole number from "
       "-9223372036854775808 to 9223372036854775807, got 0.5"},
      {with(R"("attributes": {"x": {"hex": "f"}})"),
       "x.json: operators[0].attributes.x.hex: expected pairs of hexadecimal digits, got 'f'"},
      {with(R"("attributes": {"x": {"float": "Inf"}})"),
       "x.json: operators[0].attributes.x.float: expected 'inf', '-inf' or 'nan', got 'Inf'"},
      {file(kRelu + R"(, {"name": "b", "type": "Relu", "inputs": ["a:1"]})"),
       "x.json: operators[1].inputs[0]: no tensor 'a:1', did you mean 'a:0'?"},
      {file(kRelu + R"(, {"name": "b", "type": "Relu", "inputs": [2]})"),
       "x.json: operators[1].inputs[0]: expected a whole number from 1 to 1, got 2"},
      {with(R"("outputs": [{"name": "t"}, {"name": "t"}], "inputs": ["t"])"),
       "x.json: operators[0].inputs[0]: several tensors are called 't'; name this one by its "
       "number"},
      {with(R"("outputs": [{"bytes": 4}], "inputs": ["a"])"),
       "x.json: graph 'g' has a cycle: a -> a"},
      {with(R"("forward": "aa")"),
       "x.json: operators[0].forward: no operator 'aa', did you mean 'a'?"},
      {with(R"("unit": 1.5)"),
       "x.json: operators[0].unit: expected a whole number from -9223372036854775808 to "
       "9223372036854775807, got 1.5"},
      {file(kRelu,
            R"(, "collectives": [{"name": "c", "kind": "sum", "bytes": 1, "members": ["a"]}])"),
       "x.json: collectives[0].kind: unknown collective 'sum' (known: all_reduce, reduce_scatter, "
       "all_gather, broadcast, all_to_all)"},
      {file(kRelu, R"(, "collectives": [{"name": "c", "kind": "all_reduce", "bytes": 1,
                 "members": []}])"),
       "x.json: collectives[0]: collective 'c' has no members"},
      {file(R"({"name": "a", "type": "Relu", "parameter_bytes": 1125899906842624},)"
            R"( {"name": "b", "type": "Conv", "inputs": ["a"]})"),
       "x.json: operators[1].inputs[0]: no tensor 'a'"},
  });
}

TEST_CASE("shapes whose FLOP no number holds are refused") {
  std::string extents = "1125899906842624";
  std::string equation = "a";
  for (char letter = 'b'; letter <= 'z'; ++letter) {
    extents += ",1125899906842624";
    equation += letter;
  }
  // No tensor is so large, so the extents come from many small inputs of one huge extent each.
  std::string operators, inputs, letters;
  for (char letter = 'a'; letter <= 'z'; ++letter) {
    operators += fmt::format(
        R"({{"name": "{}", "type": "Input", "outputs": [{{"shape": [281474976710656]}}]}},)",
        letter);
    inputs += fmt::format(R"({}"{}")", letter == 'a' ? "" : ",", letter);
    letters += fmt::format("{}{}", letter == 'a' ? "" : ",", letter);
  }
  const auto error =
      error_of(file(operators + fmt::format(R"({{"name": "einsum", "type": "Einsum", "inputs": [{}],
               "attributes": {{"equation": "{}->"}}, "outputs": [{{"shape": []}}]}})",
                                            inputs, letters)));
  CHECK(error ==
        "x.json: operators[26]: its shapes give no finite number of floating-point operations");
}

TEST_CASE("nesting is limited, however deep the file goes") {
  const std::string deep(100000, '[');
  const auto error = error_of(R"({"format": )" + deep);
  CHECK(error.starts_with("x.json: format[0][0]"));
  CHECK(error.ends_with("nested more than 64 levels deep"));
  std::string objects;
  for (int i = 0; i < 100000; ++i) objects += R"({"a":)";
  CHECK(error_of(objects).ends_with("nested more than 64 levels deep"));
}

TEST_CASE("every cut-off or damaged file gives one error that names it, or a graph") {
  test::check_damaged(graph_to_json(full_graph()), error_of, 2);
}

TEST_CASE("a byte order mark is skipped") {
  const std::string marked = "\xEF\xBB\xBF" + file(R"({"name": "a", "type": "Relu"})");
  CHECK(parse(marked).operator_count() == 1);
}
