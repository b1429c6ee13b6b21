#include "graph/operator_types.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "graph/training.h"

using namespace trinity;

namespace {

Tensor shaped(std::vector<int64_t> shape) {
  Tensor tensor;
  tensor.shape = std::move(shape);
  tensor.bytes = 4;
  for (const int64_t extent : tensor.shape) tensor.bytes *= extent;
  return tensor;
}

double flops(const Operator& op, const std::vector<Tensor>& inputs, const Tensor& output) {
  std::vector<const Tensor*> read;
  for (const auto& input : inputs) read.push_back(&input);
  const Tensor* written[] = {&output};
  return forward_flops(op, read, written);
}

Operator operator_of(const char* type, std::vector<std::vector<int64_t>> weights,
                     Attributes attributes = {}) {
  Operator op;
  op.name = op.type = type;
  op.attributes = std::move(attributes);
  for (auto& shape : weights)
    op.parameters.push_back({"w", std::move(shape), DType::float32, true});
  return op;
}

}  // namespace

TEST_CASE("FLOP of matmuls, whichever input is the weight") {
  const auto x = shaped({2, 5, 8}), y = shaped({2, 5, 6});
  const double expected = 2.0 * 2 * 5 * 6 * 8;
  CHECK(flops(operator_of("MatMul", {{8, 6}}), {x}, y) == expected);
  CHECK(flops(operator_of("Gemm", {{6, 8}, {6}}, {{"transB", int64_t{1}}}), {x}, y) == expected);
  CHECK(flops(operator_of("MatMul", {}), {x, shaped({2, 8, 6})}, y) == expected);
  CHECK(flops(operator_of("Gemm", {{6}}, {{"transB", int64_t{1}}}), {x, shaped({6, 8})}, y) ==
        expected);
  // Weight [6, 5] times x [2, 5, 8].
  CHECK(flops(operator_of("MatMul", {{6, 5}}), {x}, shaped({2, 6, 8})) == 2.0 * 2 * 6 * 8 * 5);
  CHECK(flops(operator_of("MatMul", {{8}}), {x}, shaped({2, 5})) == 2.0 * 2 * 5 * 8);
}

TEST_CASE("FLOP of convolutions: grouped and transposed") {
  const auto x = shaped({1, 8, 10, 10}), y = shaped({1, 16, 10, 10});
  CHECK(flops(operator_of("Conv", {{16, 8, 3, 3}}), {x}, y) == 2.0 * 1600 * 72);
  CHECK(flops(operator_of("Conv", {{16, 4, 3, 3}}, {{"group", int64_t{2}}}), {x}, y) ==
        2.0 * 1600 * 36);
  // Weights [input channels, output channels, 2, 2], stride 2.
  CHECK(flops(operator_of("ConvTranspose", {{8, 4, 2, 2}}), {x}, shaped({1, 4, 20, 20})) ==
        2.0 * 800 * 16);
}

TEST_CASE("FLOP of recurrent layers, attention and Einsum") {
  // ONNX: x [T, N, I], W [1, 4H, I], R [1, 4H, H], B [1, 8H]; the bias multiplies nothing.
  const auto x = shaped({7, 3, 10});
  auto lstm = operator_of("LSTM", {{1, 16, 10}, {1, 16, 4}});
  CHECK(flops(lstm, {x}, shaped({7, 1, 3, 4})) == 2.0 * 21 * 16 * 14);
  const std::vector<Tensor> cell = {shaped({3, 10}), shaped({3, 4}), shaped({3, 4}),
                                    shaped({14, 16}), shaped({16})};
  CHECK(flops(operator_of("LSTMCell", {}), cell, shaped({3, 4})) == 2.0 * 3 * 14 * 16);
  const auto q = shaped({2, 4, 5, 8}), k = shaped({2, 4, 9, 8});
  CHECK(flops(operator_of("Attention", {}), {q, k, k}, q) == 2.0 * 2 * (2 * 4 * 5 * 9 * 8));
  // Values of another width than queries and keys; a window of three keys.
  const auto v = shaped({2, 4, 9, 6}), y = shaped({2, 4, 5, 6});
  CHECK(flops(operator_of("Attention", {}), {q, k, v}, y) == 2.0 * 2 * 4 * 5 * 9 * (8 + 6));
  CHECK(flops(operator_of("Attention", {}, {{"window", int64_t{3}}}), {q, k, k}, q) ==
        2.0 * 2 * 4 * 5 * 3 * 16);
  CHECK(flops(operator_of("Attention", {}, {{"window", int64_t{30}}}), {q, k, k}, q) ==
        2.0 * 2 * 4 * 5 * 9 * 16);
  CHECK(flops(operator_of("Einsum", {}, {{"equation", std::string("bij,bjk->bik")}}),
              {shaped({2, 3, 4}), shaped({2, 4, 5})}, shaped({2, 3, 5})) == 2.0 * 2 * 3 * 4 * 5);
}

TEST_CASE("types with a rule are known, gradients with them") {
  CHECK(has_operator_rule("Conv"));
  CHECK(has_operator_rule("ConvGrad"));
  CHECK_FALSE(has_operator_rule("Frobnicate"));
  CHECK_FALSE(has_operator_rule("Grad"));
  const auto types = operator_types();
  CHECK(types.size() > 150);
  CHECK(std::set<std::string>(types.begin(), types.end()).size() == types.size());
}

TEST_CASE("statistics get no gradient, halves a float32 copy, sums no operator of their own") {
  GraphBuilder builder("net");
  const auto add = [&](const char* name, const char* type, std::vector<int32_t> inputs,
                       std::vector<Parameter> parameters = {}) {
    Operator op;
    op.name = name;
    op.type = type;
    op.inputs = std::move(inputs);
    op.parameters = std::move(parameters);
    Tensor out = shaped({4, 10});
    out.dtype = DType::float16;
    out.gradient = op.type != "Input";
    return builder.add_output(builder.add_operator(op), out);
  };
  const int32_t x = add("x", "Input", {});
  const int32_t a = add("a", "Gemm", {x}, {{"weight", {10, 10}, DType::float16, true}});
  const int32_t b =
      add("b", "BatchNormalization", {a},
          {{"scale", {10}, DType::float16, true}, {"mean", {10}, DType::float16, false}});
  const int32_t c = add("c", "Add", {a, b});
  add("d", "Relu", {c});
  TrainingOptions options;
  options.optimiser = TrainingOptions::Optimiser::adam;
  const auto graph = lower_to_training(builder.build(), options);
  CHECK(graph.find("c/grad") == -1);
  CHECK(graph.parameter_count() == 110);
  CHECK(graph.parameter_bytes() == 2 * 120);
  const auto& update = graph.op(graph.find("b/update"));
  CHECK(graph.tensor(update.inputs[0]).bytes == 20);
  CHECK(update.persistent_bytes == 3 * 40);  // float32 copy, and two moments
  // Both readers of a hand their gradient to its sum: d's, passed by c, and b's.
  const auto& sum = graph.op(graph.find("a/grad_sum"));
  REQUIRE(sum.inputs.size() == 2);
  std::vector<std::string> from;
  for (const int32_t input : sum.inputs)
    from.push_back(graph.op(graph.tensor(input).producer).name);
  std::sort(from.begin(), from.end());
  CHECK(from == std::vector<std::string>{"b/grad", "d/grad"});
}
