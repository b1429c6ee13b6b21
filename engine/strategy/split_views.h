#pragma once

#include <algorithm>
#include <list>
#include <map>
#include <utility>
#include <vector>

#include "base/index.h"
#include "graph/operator_spaces.h"
#include "graph/operator_types.h"
#include "strategy/blocks.h"
#include "strategy/splits.h"

namespace trinity {

/// The blocks of a tensor that the parts of an operator read or write: by part, or one block if all
/// parts have the same.
using Blocks = std::vector<Block>;
inline const Block& block_of(const Blocks& blocks, int32_t part) {
  return blocks.size() == 1 ? blocks[0] : blocks[static_cast<size_t>(part)];
}

/// For every operator its cut, and the dimensions that its tensors carry.
class SplitViews {
 public:
  /// The operator whose split `op` follows: its forward operator, or itself.
  int32_t leader(int32_t op) const { return leader_[op]; }

  const OperatorCut& cut(int32_t op) const { return cuts_[cut_of_[op]]; }

  /// True if an operator is copied to every device that reads its output: a source that some split
  /// operator reads.
  bool is_source(int32_t op) const { return source_[op]; }

  /// The blocks of its k-th input that parts need.
  const Blocks& reads(int32_t op, size_t input) const { return *views_[op].reads[input]; }

  const Block& needed(int32_t op, size_t input, int32_t part) const {
    return block_of(reads(op, input), part);
  }

  const Block& written(int32_t op, size_t output, int32_t part) const {
    return block_of(*views_[op].writes[output], part);
  }

  const TensorAxes& output_axes(int32_t op, size_t output) const {
    return *views_[op].outputs[output];
  }

  /// True if output `output` of a backward operator is the gradient of its weights.
  bool is_weight_gradient(int32_t op, size_t output) const {
    return views_[op].weight_gradient == static_cast<int32_t>(output);
  }

  /// The dimension of its copies.
  std::vector<int32_t> copies_of(int32_t op) const {
    return {static_cast<int32_t>(cut(op).factors().size()) - 1};
  }

  bool reads_window(int32_t op) const {
    const auto& window = views_[op].window;
    return std::find(window.begin(), window.end(), true) != window.end();
  }

 protected:
  /// The dimensions that the tensors of an operator carry: axes of its leader's space, or blank
  /// ones.
  struct View {
    ShortList<const TensorAxes*, 4> inputs, outputs;
    std::vector<bool> window;  ///< per input: read through a moving window; empty: none is
    int32_t weight_gradient = -1;
    ShortList<const Blocks*, 4> reads = {}, writes = {};  ///< by input, by output

    bool reads_window(size_t input) const { return !window.empty() && window[input]; }
  };

  SplitViews(const Graph& graph, const Splits& splits, const SplitOptions& options)
      : graph_(graph), cuts_(at(graph.operator_count())), padded_(options.of_mesh()), spaces_(graph, true) {
    find_leaders(splits, options.of_mesh());
    cut_of_ = leader_;
    views_.reserve(at(graph.operator_count()));
  }

  static bool is_sum(const Operator& op) { return op.phase == Phase::backward && op.type == "Sum"; }

  /// The next operator; with a split if it leads.
  void view(int32_t op, const OperatorSplit& split) {
    const bool leads = leader(op) == op;
    if (leads) cuts_[op] = OperatorCut(spaces_.of(op), split.factors, split.copies, padded_);
    views_.push_back(leads ? forward_view(op) : backward_view(op));
    find_blocks(op);
  }

  /// Finds the blocks that the parts of an operator read and write.
  void find_blocks(int32_t op) {
    const auto &about = graph_.op(op), &forward = graph_.op(leader(op));
    const auto& cut = this->cut(op);
    auto& view = views_[op];
    view.reads.clear();
    view.writes.clear();
    for (size_t o = 0; o < about.outputs.size(); ++o)
      view.writes.push_back(blocks_of(cut, about.outputs[o], *view.outputs[o]));
    for (size_t k = 0; k < about.inputs.size(); ++k) {
      view.reads.push_back(blocks_of(cut, about.inputs[k], *view.inputs[k]));
      if (!view.reads_window(k) || cut.parts() == 1) continue;
      std::vector<Block> wide;
      for (int32_t part = 0; part < cut.parts(); ++part) {
        wide.push_back(block_of(*view.reads[k], part));
        widen(forward, op, part, wide.back());
      }
      view.reads[k] = one_of(std::move(wide));
    }
  }

  const Blocks* one_of(Blocks made) {
    const auto found = std::find(blocks_.begin(), blocks_.end(), made);
    return found != blocks_.end() ? &*found : &blocks_.emplace_back(std::move(made));
  }

  const Graph& graph_;
  std::vector<int32_t> cut_of_;    // the operator whose cut it has: its leader, or itself
  std::vector<OperatorCut> cuts_;  // by cut_of_
  std::vector<View> views_;
  bool padded_;

 private:
  void find_leaders(const Splits& splits, bool sources_at_readers) {
    for (int32_t id = 0; id < graph_.operator_count(); ++id) {
      const auto& op = graph_.op(id);
      const bool follows = op.phase != Phase::forward && op.forward >= 0;
      leader_.push_back(follows ? op.forward : id);
      source_.push_back(false);
      const bool split = !splits.empty() && splits[leader(id)].parts() > 1;
      if (!split && !sources_at_readers) continue;
      for (const int32_t input : op.inputs) {
        const auto& source = graph_.op(graph_.tensor(input).producer);
        if (source.type == "Input" || source.type == "Constant")
          source_[graph_.tensor(input).producer] =
              source.inputs.empty() && source.parameter_bytes() == 0 && source.outputs.size() == 1;
      }
    }
  }

  View forward_view(int32_t op) const {
    const auto& space = cuts_[op].space();
    View view;
    for (const auto& axes : space.inputs) view.inputs.push_back(&axes);
    for (const auto& axes : space.outputs) view.outputs.push_back(&axes);
    const auto& type = graph_.op(op).type;
    if (!view.inputs.empty() && (type == "Conv" || type.ends_with("Pool"))) {
      view.window.assign(view.inputs.size(), false);
      view.window[0] = true;
    }
    return view;
  }

  /// The training lowering gives a backward operator the gradients of outputs, then forward tensors;
  /// it writes the gradients of inputs in order, then the weights' gradient. Gradients are recognised
  /// by their shapes, which equal their tensors'.
  View backward_view(int32_t id) {
    const auto& op = graph_.op(id);
    const auto& forward = graph_.op(leader(id));
    const View& of = views_[leader(id)];
    View view;
    const auto shape = [&](int32_t tensor) -> const auto& { return graph_.tensor(tensor).shape; };
    size_t next_output = 0;
    for (const int32_t input : op.inputs) {
      const TensorAxes* axes = &blank(shape(input).size());
      bool window = false;
      for (size_t i = 0; i < forward.inputs.size(); ++i)
        if (forward.inputs[i] == input) axes = of.inputs[i], window = of.reads_window(i);
      for (size_t i = 0; i < forward.outputs.size(); ++i)
        if (forward.outputs[i] == input) axes = of.outputs[i];
      if (graph_.op(graph_.tensor(input).producer).phase != Phase::forward) {
        size_t i = is_sum(op) ? 0 : next_output;
        while (i < forward.outputs.size() && shape(forward.outputs[i]) != shape(input)) ++i;
        if (i < forward.outputs.size()) axes = of.outputs[i], next_output = i + 1;
      }
      if (window) view.window.resize(op.inputs.size(), false), view.window[view.inputs.size()] = true;
      view.inputs.push_back(axes);
    }
    size_t next_input = 0;
    for (size_t o = 0; o < op.outputs.size(); ++o) {
      const TensorAxes* axes = &blank(shape(op.outputs[o]).size());
      if (axes->empty() && forward.trainable_bytes() > 0 && o + 1 == op.outputs.size()) {
        view.weight_gradient = static_cast<int32_t>(o);
        axes = &weight_axes(forward);
      } else if (is_sum(op)) {
        axes = view.inputs.empty() ? axes : view.inputs[0];
      } else {
        size_t i = next_input;
        while (i < forward.inputs.size() && shape(forward.inputs[i]) != shape(op.outputs[o])) ++i;
        if (i < forward.inputs.size()) axes = of.inputs[i], next_input = i + 1;
      }
      view.outputs.push_back(axes);
    }
    return view;
  }

  const TensorAxes& weight_axes(const Operator& forward) {
    const auto& space = cut(static_cast<int32_t>(&forward - graph_.operators().data())).space();
    size_t largest = 0;
    for (size_t i = 1; i < forward.parameters.size(); ++i)
      if (forward.parameters[i].bytes() > forward.parameters[largest].bytes()) largest = i;
    return space.parameters.empty() ? blank(0) : space.parameters[largest];
  }

  /// `count` axes that are never cut.
  const TensorAxes& blank(size_t count) { return blank_.try_emplace(count, count).first->second; }

  const Blocks* blocks_of(const OperatorCut& cut, int32_t tensor, const TensorAxes& axes) {
    const auto& shape = graph_.tensor(tensor).shape.get();
    auto& known = blocks_of_[&axes];
    for (const auto& one : known)
      if (one.factors == cut.factors() && one.shape == shape) return one.blocks;
    std::vector<Block> list;
    for (int32_t part = 0; part < (cut.cuts(axes) ? cut.parts() : 1); ++part)
      list.push_back(cut.block(shape, axes, part));
    known.push_back({cut.factors(), shape, one_of(std::move(list))});
    return known.back().blocks;
  }

  /// Adds the rows and columns that a window reaches beyond a block of its image.
  void widen(const Operator& forward, int32_t op, int32_t part, Block& block) const {
    const auto kernel = integers_attribute(forward, "kernel_shape");
    const auto strides = integers_attribute(forward, "strides");
    const auto pads = integers_attribute(forward, "pads");
    if (kernel.size() != 2 || block.size() != 4 || forward.outputs.empty()) return;
    const auto& image = graph_.tensor(forward.inputs[0]).shape;
    const Block out =
        cut(op).block(graph_.tensor(forward.outputs[0]).shape, *views_[leader(op)].outputs[0], part);
    for (size_t i = 0; i < 2; ++i) {
      const int64_t stride = i < strides.size() ? strides[i] : 1, pad = i < pads.size() ? pads[i] : 0;
      auto& range = block[i + 2];
      if (range.length() == image[i + 2]) continue;
      range.begin = std::clamp<int64_t>(out[i + 2].begin * stride - pad, 0, image[i + 2] - 1);
      range.end = std::clamp<int64_t>((out[i + 2].end - 1) * stride - pad + kernel[i],
                                      range.begin + 1, image[i + 2]);
    }
  }

  OperatorSpaces spaces_;  // whose axes views point to
  std::map<size_t, TensorAxes> blank_;
  std::vector<int32_t> leader_;
  std::vector<bool> source_;
  struct CutBlocks {
    std::vector<int32_t> factors;
    std::vector<int64_t> shape;
    const Blocks* blocks;
  };
  std::map<const TensorAxes*, std::vector<CutBlocks>> blocks_of_;
  std::list<Blocks> blocks_;  // each once
};

}  // namespace trinity
