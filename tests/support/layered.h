#pragma once

#include "base/error.h"
#include "support/layer_maker.h"

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
  LayerMaker make("layered", [&](Operator& op) {
    if (!op.parameters.empty()) op.attributes["transB"] = int64_t{1};
    if (adapt) adapt(op);
  });
  const auto branches = [&](const std::string& name, int32_t x) {
    const int32_t rows = make.add(name + "dispatch", "Gather", {x}, {4, 2, 16});
    std::vector<int32_t> results;
    for (const int32_t of : make.split(name + "split", rows, 4, {2, 16})) {
      const auto expert = fmt::format("{}expert_{}/", name, results.size());
      const int32_t up = make.add(expert + "up", "Gemm", {of}, {2, 32}, {32, 16});
      const int32_t relu = make.add(expert + "relu", "Relu", {up}, {2, 32});
      results.push_back(make.add(expert + "down", "Gemm", {relu}, {2, 16}, {16, 32}));
    }
    const int32_t all = make.add(name + "stack", "Concat", results, {4, 2, 16}, {},
                                 {{"axis", int64_t{0}}, {"new_axis", int64_t{1}}});
    return make.add(name + "combine", "Gather", {all}, {8, 16});
  };
  int32_t x = make.add("x", "Input", {}, {8, 16});
  const int32_t mask = options.mask ? make.add("mask", "Input", {}, {8, 32}) : -1;
  for (int layer = 1; layer <= layers; ++layer) {
    const auto name = fmt::format("block_{}/", layer);
    int32_t y = options.experts ? branches(name, x)
                                : make.add(name + "up", "Gemm", {x}, {8, 32}, {32, 16});
    if (!options.experts) {
      if (options.mask) y = make.add(name + "mask", "Mul", {y, mask}, {8, 32});
      y = make.add(name + "relu", "Relu", {y}, {8, 32});
      y = make.add(name + "down", "Gemm", {y}, {8, 16}, {16, 32});
    }
    x = residual && residual() ? make.add(name + "sum", "Add", {x, y}, {8, 16}) : y;
  }
  if (options.head) {
    x = make.add("head", "Gemm", {x}, {8, 33}, {33, 16});
    make.add("loss", "SoftmaxCrossEntropyLoss", {x, make.add("labels", "Input", {}, {8})}, {1});
  }
  return make.train(TrainingOptions::Optimiser::adam);
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
  LayerMaker make("decoder", [&](Operator& op) {
    if (op.type == "Gemm") op.attributes["transB"] = int64_t{1};
    if (op.type == "Einsum") {
      op.attributes["equation"] = std::string("eci,eio->eco");
      op.attributes["experts"] = options.experts;
      op.attributes["experts_per_token"] = int64_t{2};
    }
    if (op.type == "Attention") {
      op.attributes["q_num_heads"] = int64_t{8};
      op.attributes["kv_num_heads"] = options.num_kv_heads;
    }
    if (adapt) adapt(op);
  });
  const auto product = [&](const std::string& name, int32_t x, int64_t from, int64_t to) {
    return make.add(name, "Gemm", {x}, {kBatch, kSequence, to}, {to, from});
  };
  const std::vector<int64_t> rows = {kBatch, kSequence, kHidden}, table = {options.vocabulary, kHidden};
  const int32_t tokens = make.add("tokens", "Input", {}, {kBatch, kSequence});
  const int32_t labels = make.add("labels", "Input", {}, {kBatch, kSequence});
  const int32_t mask = options.mask ? make.add("mask", "Input", {}, rows) : -1;
  const int32_t tied = options.tied ? make.add("embedding", "Variable", {}, table, table) : -1;
  int32_t x = options.tied ? make.add("embed", "Gather", {tied, tokens}, rows)
                           : make.add("embed", "Gather", {tokens}, rows, table);
  for (int layer = 1; layer <= layers; ++layer) {
    const auto name = fmt::format("block_{}/", layer);
    int32_t y = make.add(name + "norm", "LayerNormalization", {x}, rows, {kHidden});
    const int64_t keys = kHidden / 8 * options.num_kv_heads;
    y = make.add(name + "attention", "Attention",
            {product(name + "query", y, kHidden, kHidden), product(name + "key", y, kHidden, keys),
             product(name + "value", y, kHidden, keys)},
            rows);
    y = product(name + "output", y, kHidden, kHidden);
    if (options.mask) y = make.add(name + "mask", "Mul", {y, mask}, rows);
    x = make.add(name + "residual", "Add", {x, y}, rows);
    const bool one = options.experts == 0 || layer <= options.dense;
    const int64_t e = options.experts, each = one ? 0 : 2 * kBatch * kSequence / e;
    const auto of_all = [&](const char* part, int32_t of, int64_t from, int64_t to) {
      return one ? product(name + part, of, from, to)
                 : make.add(name + part, "Einsum", {of}, {e, each, to}, {e, from, to});
    };
    if (!one) y = product(name + "router", x, kHidden, e);
    y = one ? x : make.add(name + "dispatch", "ExpertDispatch", {x, y}, {e, each, kHidden});
    y = of_all("up", y, kHidden, 2 * kHidden);
    y = make.add(name + "gelu", "Gelu", {y},
            one ? std::vector<int64_t>{kBatch, kSequence, 2 * kHidden}
                : std::vector<int64_t>{e, each, 2 * kHidden});
    y = of_all("down", y, 2 * kHidden, kHidden);
    if (!one) y = make.add(name + "combine", "ExpertCombine", {y}, rows);
    x = make.add(name + "sum", "Add", {x, y}, rows);
  }
  const std::vector<int64_t> scores = {kBatch, kSequence, options.vocabulary};
  x = options.tied ? make.add("logits", "Gemm", {x, tied}, scores)
                   : product("logits", x, kHidden, options.vocabulary);
  make.add("loss", "SoftmaxCrossEntropyLoss", {x, labels}, {1});
  return make.train(TrainingOptions::Optimiser::adam);
}

}  // namespace trinity::test
