#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "graph/training.h"

namespace trinity::test {

/// Optional parts of a graph of layers.
struct LayeredOptions {
  bool mask = false;  ///< a source that all layers read
  /// A final matmul of odd width and its loss, which devices split unequally.
  bool head = false;
  bool experts = false;  ///< four experts instead of two matmuls: one branch of operators each
};

/// Layers of two matmuls each, as a training step. adapt: may change an operator before it is
/// added; residual: called per layer, whether its input is added to its output.
inline Graph layered_graph(int layers = 4, const std::function<void(Operator&)>& adapt = {},
                           const std::function<bool()>& residual = {},
                           const LayeredOptions& options = {}) {
  GraphBuilder builder("layered");
  const auto add = [&](const std::string& name, const char* type, std::vector<int32_t> inputs,
                       std::vector<int64_t> shape, std::vector<int64_t> weight = {}) {
    Operator op;
    op.name = name;
    op.type = type;
    op.inputs = std::move(inputs);
    op.flops = weight.empty() ? 1e3 : 1e9;
    if (!weight.empty()) {
      op.attributes["transB"] = int64_t{1};
      op.parameters.push_back({"weight", std::move(weight), DType::float32, true});
    }
    if (op.type == "Concat") op.attributes = {{"axis", int64_t{0}}, {"new_axis", int64_t{1}}};
    if (adapt) adapt(op);
    const int32_t id = builder.add_operator(std::move(op));
    Tensor tensor;
    tensor.shape = std::move(shape);
    tensor.gradient = std::string(type) != "Input";
    return builder.add_output(id, std::move(tensor));
  };
  const auto branches = [&](const std::string& name, int32_t x) {
    Operator split;
    split.name = name + "split";
    split.type = "Split";
    split.inputs = {add(name + "dispatch", "Gather", {x}, {4, 2, 16})};
    split.attributes = {{"axis", int64_t{0}}, {"keepdims", int64_t{0}}};
    const int32_t apart = builder.add_operator(std::move(split));
    Tensor part;
    part.gradient = true;
    part.shape = {2, 16};
    std::vector<int32_t> parts, results;
    for (int i = 0; i < 4; ++i) parts.push_back(builder.add_output(apart, part));
    for (const int32_t of : parts) {
      const auto expert = fmt::format("{}expert_{}/", name, results.size());
      const int32_t up = add(expert + "up", "Gemm", {of}, {2, 32}, {32, 16});
      results.push_back(add(expert + "down", "Gemm", {add(expert + "relu", "Relu", {up}, {2, 32})},
                            {2, 16}, {16, 32}));
    }
    return add(name + "combine", "Gather", {add(name + "stack", "Concat", results, {4, 2, 16})}, {8, 16});
  };
  int32_t x = add("x", "Input", {}, {8, 16});
  const int32_t mask = options.mask ? add("mask", "Input", {}, {8, 32}) : -1;
  for (int layer = 1; layer <= layers; ++layer) {
    const auto name = fmt::format("block_{}/", layer);
    int32_t y = options.experts ? branches(name, x) : add(name + "up", "Gemm", {x}, {8, 32}, {32, 16});
    if (!options.experts) {
      if (options.mask) y = add(name + "mask", "Mul", {y, mask}, {8, 32});
      y = add(name + "relu", "Relu", {y}, {8, 32});
      y = add(name + "down", "Gemm", {y}, {8, 16}, {16, 32});
    }
    x = residual && residual() ? add(name + "sum", "Add", {x, y}, {8, 16}) : y;
  }
  if (options.head) {
    x = add("head", "Gemm", {x}, {8, 33}, {33, 16});
    add("loss", "SoftmaxCrossEntropyLoss", {x, add("labels", "Input", {}, {8})}, {1});
  }
  TrainingOptions training;
  training.optimiser = TrainingOptions::Optimiser::adam;
  return lower_to_training(builder.build(), training);
}

/// Options of decoder_graph().
struct DecoderOptions {
  int64_t num_kv_heads = 8;   ///< KV heads for 8 query heads
  int64_t vocabulary = 64;
  bool tied = false;       ///< tied token embedding and logits
  bool mask = false;       ///< a source that all layers read
  int64_t experts = 0;     ///< of every layer after the first `dense` ones
  int dense = 0;
};

/// Layers of attention and two matmuls (per expert) over a sequence of 16, as a training step that
/// supports context parallelism. adapt: as above.
inline Graph decoder_graph(int layers, const std::function<void(Operator&)>& adapt,
                           const DecoderOptions& options = {}) {
  constexpr int64_t kBatch = 2, kSequence = 16, kHidden = 32;
  GraphBuilder builder("decoder");
  const auto add = [&](const std::string& name, const char* type, std::vector<int32_t> inputs,
                       std::vector<int64_t> shape, std::vector<int64_t> weight = {}) {
    Operator op;
    op.name = name;
    op.type = type;
    op.inputs = std::move(inputs);
    op.flops = weight.empty() ? 1e3 : 1e9;
    if (op.type == "Gemm") op.attributes["transB"] = int64_t{1};
    if (op.type == "Einsum") op.attributes["equation"] = std::string("eci,eio->eco");
    if (op.type == "Attention") {
      op.attributes["q_num_heads"] = int64_t{8};
      op.attributes["kv_num_heads"] = options.num_kv_heads;
    }
    if (!weight.empty()) op.parameters.push_back({"weight", weight, DType::float32, true});
    if (adapt) adapt(op);
    Tensor tensor;
    tensor.gradient = op.type != "Input";
    tensor.shape = std::move(shape);
    return builder.add_output(builder.add_operator(std::move(op)), std::move(tensor));
  };
  const auto product = [&](const std::string& name, int32_t x, int64_t from, int64_t to) {
    return add(name, "Gemm", {x}, {kBatch, kSequence, to}, {to, from});
  };
  const std::vector<int64_t> rows = {kBatch, kSequence, kHidden}, table = {options.vocabulary, kHidden};
  const int32_t tokens = add("tokens", "Input", {}, {kBatch, kSequence});
  const int32_t labels = add("labels", "Input", {}, {kBatch, kSequence});
  const int32_t mask = options.mask ? add("mask", "Input", {}, rows) : -1;
  const int32_t tied = options.tied ? add("embedding", "Variable", {}, table, table) : -1;
  int32_t x = options.tied ? add("embed", "Gather", {tied, tokens}, rows)
                           : add("embed", "Gather", {tokens}, rows, table);
  for (int layer = 1; layer <= layers; ++layer) {
    const auto name = fmt::format("block_{}/", layer);
    int32_t y = add(name + "norm", "LayerNormalization", {x}, rows, {kHidden});
    const int64_t keys = kHidden / 8 * options.num_kv_heads;
    y = add(name + "attention", "Attention",
            {product(name + "query", y, kHidden, kHidden), product(name + "key", y, kHidden, keys),
             product(name + "value", y, kHidden, keys)},
            rows);
    y = product(name + "output", y, kHidden, kHidden);
    if (options.mask) y = add(name + "mask", "Mul", {y, mask}, rows);
    x = add(name + "residual", "Add", {x, y}, rows);
    const bool one = options.experts == 0 || layer <= options.dense;
    const int64_t e = options.experts, each = one ? 0 : 2 * kBatch * kSequence / e;
    const auto of_all = [&](const char* part, int32_t of, int64_t from, int64_t to) {
      return one ? product(name + part, of, from, to)
                 : add(name + part, "Einsum", {of}, {e, each, to}, {e, from, to});
    };
    if (!one) y = product(name + "router", x, kHidden, e);
    y = one ? x : add(name + "dispatch", "ExpertDispatch", {x, y}, {e, each, kHidden});
    y = of_all("up", y, kHidden, 2 * kHidden);
    y = add(name + "gelu", "Gelu", {y},
            one ? std::vector<int64_t>{kBatch, kSequence, 2 * kHidden}
                : std::vector<int64_t>{e, each, 2 * kHidden});
    y = of_all("down", y, 2 * kHidden, kHidden);
    if (!one) y = add(name + "combine", "ExpertCombine", {y}, rows);
    x = add(name + "sum", "Add", {x, y}, rows);
  }
  const std::vector<int64_t> scores = {kBatch, kSequence, options.vocabulary};
  x = options.tied ? add("logits", "Gemm", {x, tied}, scores)
                   : product("logits", x, kHidden, options.vocabulary);
  add("loss", "SoftmaxCrossEntropyLoss", {x, labels}, {1});
  TrainingOptions training;
  training.optimiser = TrainingOptions::Optimiser::adam;
  return lower_to_training(builder.build(), training);
}

}  // namespace trinity::test
