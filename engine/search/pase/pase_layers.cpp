#include "search/pase/pase_layers.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "base/words.h"
#include "graph/operator_types.h"

namespace trinity {
namespace {

LayerKind kind_of(std::string_view type) {
  using K = LayerKind;
  static const auto kinds = by_word<K>({
      {K::product, "Conv Gemm MatMul Einsum Gather"},
      {K::pooling, "MaxPool AveragePool"},
      {K::normalisation, "BatchNormalization LayerNormalization RMSNormalization"},
      {K::mean, "GlobalAveragePool GlobalMaxPool ReduceMean ReduceSum ReduceMax ReduceL2"},
      {K::softmax, "Softmax LogSoftmax"},
      {K::loss, "SoftmaxCrossEntropyLoss"},
      {K::lstm, "LSTM"},
      {K::movement, "Concat Split Slice Pad Expand Transpose Reshape Flatten Squeeze Unsqueeze"},
  });
  const auto found = kinds.find(type);
  return found == kinds.end() ? K::elementwise : found->second;
}

bool is_source(const Operator& op) {
  static const std::set<std::string_view> types = {"Input", "Constant", "ConstantOfShape",
                                                   "Shape", "Size",     "Range"};
  return types.contains(op.type) || is_variable(op);
}

bool is_reshape(const Operator& op) {
  return op.type == "Reshape" || op.type == "Flatten" || op.type == "Squeeze" ||
         op.type == "Unsqueeze";
}

std::vector<int64_t> without_ones(const std::vector<int64_t>& shape) {
  std::vector<int64_t> kept;
  std::copy_if(shape.begin(), shape.end(), std::back_inserter(kept),
               [](int64_t extent) { return extent != 1; });
  return kept;
}

/// The layer that writes a tensor, and which of its dimensions the tensor carries.
struct Carried {
  int32_t layer = -1;
  TensorAxes axes;
};

class Folding {
 public:
  explicit Folding(const Graph& graph) : graph_(graph), carried_(graph.tensors().size()) {
    result_.name = graph.name();
    result_.fingerprint = graph.fingerprint();
    readers_.assign(graph.tensors().size(), 0);
    for (const auto& op : graph.operators())
      if (op.phase == Phase::forward)
        for (const int32_t input : op.inputs) ++readers_[input];
  }

  PaseGraph run() {
    for (int32_t id = 0; id < graph_.operator_count(); ++id) {
      const auto& op = graph_.op(id);
      if (op.phase != Phase::forward || is_source(op)) continue;
      if (fold_view(id) || fold_pointwise(id) || fold_recurrent(id)) continue;
      if (op.type == "Flatten")
        add_flatten(id);
      else
        add_layer(id);
    }
    if (result_.layers.empty())
      throw ArgumentError("graph '{}' has no layers to split", graph_.name());
    return std::move(result_);
  }

 private:
  Carried& carried(int32_t tensor) { return carried_[tensor]; }
  PaseLayer& layer(int32_t id) { return result_.layers[id]; }
  const Tensor& tensor(int32_t id) const { return graph_.tensor(id); }

  void join(int32_t id, int32_t tensor_in, TensorAxes axes) {
    const int32_t into = carried(tensor_in).layer;
    layer(into).operators.push_back(id);
    layer(into).written.push_back(axes);
    carried(graph_.op(id).outputs[0]) = {into, std::move(axes)};
  }

  /// A reshape that only adds or drops axes of extent 1.
  bool fold_view(int32_t id) {
    const auto& op = graph_.op(id);
    if (op.inputs.empty() || op.outputs.size() != 1) return false;
    const auto &from = tensor(op.inputs[0]).shape, &to = tensor(op.outputs[0]).shape;
    const Carried before = carried(op.inputs[0]);
    if (before.layer < 0) return is_reshape(op);  // of an input
    if (op.type != "Identity" && (!is_reshape(op) || without_ones(from) != without_ones(to)))
      return false;
    TensorAxes axes(to.size());
    size_t i = 0;
    for (size_t j = 0; j < to.size(); ++j) {
      if (to[j] == 1) continue;
      while (i < from.size() && from[i] == 1) ++i;
      if (i < before.axes.size()) axes[j] = before.axes[i];
      ++i;
    }
    join(id, op.inputs[0], std::move(axes));
    return true;
  }

  /// An element-wise operator with one operand besides scalars, whose input has no other reader.
  bool fold_pointwise(int32_t id) {
    const auto& op = graph_.op(id);
    if (kind_of(op.type) != LayerKind::elementwise || op.outputs.size() != 1) return false;
    int32_t operand = -1;
    for (const int32_t input : op.inputs) {
      const bool number = carried(input).layer < 0 && tensor(input).elements() <= 1;
      if (number) continue;
      if (operand >= 0) return false;
      operand = input;
    }
    if (operand < 0 || carried(operand).layer < 0 || op.parameter_bytes() > 0) return false;
    if (readers_[operand] != 1 || tensor(operand).shape != tensor(op.outputs[0]).shape)
      return false;
    auto& into = layer(carried(operand).layer);
    if (into.kind == LayerKind::product || into.kind == LayerKind::elementwise ||
        into.kind == LayerKind::lstm)
      ++into.pointwise;
    join(id, operand, carried(operand).axes);
    return true;
  }

  /// An LSTM layer on an equal one.
  bool fold_recurrent(int32_t id) {
    const auto& op = graph_.op(id);
    if (op.type != "LSTM" || carried(op.inputs[0]).layer < 0) return false;
    auto& below = layer(carried(op.inputs[0]).layer);
    const IterationSpace space = iteration_space(graph_, id);
    if (below.kind != LayerKind::lstm || space.dimensions.size() != 4 || below.pointwise > 0 ||
        readers_[op.inputs[0]] != 1)
      return false;
    const int64_t hidden = below.dimensions[3].size;
    if (space.dimensions[2].size != hidden || space.dimensions[3].size != hidden) return false;
    ++below.dimensions[0].size;
    below.operators.push_back(id);
    below.written.push_back(shifted(space.outputs[0]));
    carry_recurrent(id, carried(op.inputs[0]).layer, space);
    return true;
  }

  /// Outputs of an LSTM carry the dimensions of its layer, which begin with l.
  void carry_recurrent(int32_t id, int32_t into, const IterationSpace& space) {
    const auto& op = graph_.op(id);
    for (size_t i = 0; i < op.outputs.size(); ++i)
      carried(op.outputs[i]) = {into, shifted(space.outputs[i])};
  }
  static TensorAxes shifted(TensorAxes axes) {
    for (auto& axis : axes)
      for (int32_t& dimension : axis) ++dimension;
    return axes;
  }

  int32_t add(PaseLayer added, const TensorNumbers& inputs,
              const std::vector<TensorAxes>& axes) {
    const auto id = static_cast<int32_t>(result_.layers.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Carried& source = carried(inputs[i]);
      if (source.layer < 0) continue;
      PaseEdge edge{source.layer, id, tensor(inputs[i]).shape, source.axes, axes[i]};
      const bool repeated =
          std::any_of(inputs.begin(), inputs.begin() + static_cast<long>(i),
                      [&](int32_t other) { return other == inputs[i]; }) &&
          std::find(result_.edges.begin(), result_.edges.end(), edge) != result_.edges.end();
      if (!repeated) result_.edges.push_back(std::move(edge));
    }
    inherit_names(id, added);
    result_.layers.push_back(std::move(added));
    return id;
  }

  /// Layers that move or map an Einsum's output inherit its letters.
  void inherit_names(int32_t id, PaseLayer& added) {
    lettered_.push_back(added.type == "Einsum");
    if (added.kind == LayerKind::product || added.kind == LayerKind::lstm) return;
    for (const auto& edge : result_.edges) {
      if (edge.to != id || !lettered_[edge.from]) continue;
      for (size_t i = 0; i < edge.shape.size(); ++i)
        if (edge.source[i].size() == 1 && edge.target[i].size() == 1)
          added.dimensions[edge.target[i][0]].name =
              layer(edge.from).dimensions[edge.source[i][0]].name;
      lettered_.back() = true;
      return;
    }
  }

  void add_layer(int32_t id) {
    const auto& op = graph_.op(id);
    IterationSpace space = iteration_space(graph_, id);
    PaseLayer added;
    added.name = op.name;
    added.type = op.type;
    added.kind = kind_of(op.type);
    added.operators = {id};
    added.written = {space.outputs.empty() ? TensorAxes{} : space.outputs[0]};
    if (!op.inputs.empty()) added.input_shape = tensor(op.inputs[0]).shape;
    set_window(op, added);
    const bool stack = added.kind == LayerKind::lstm && space.dimensions.size() == 4;
    if (added.kind == LayerKind::lstm && !stack) added.kind = LayerKind::elementwise;
    if (stack) {
      added.recurrent_inputs = space.dimensions[3].size;
      added.dimensions = {{"l", 1, DimensionRole::batch, true}};
      for (auto& axes : space.inputs) axes = shifted(std::move(axes));
      added.written = {shifted(space.outputs[0])};
    }
    added.dimensions.insert(added.dimensions.end(), space.dimensions.begin(),
                            space.dimensions.end());
    const int32_t into = this->add(std::move(added), op.inputs, space.inputs);
    if (stack) return carry_recurrent(id, into, space);
    for (size_t i = 0; i < op.outputs.size(); ++i)
      carried(op.outputs[i]) = {into, space.outputs[i]};
  }

  static void set_window(const Operator& op, PaseLayer& added) {
    auto kernel = integers_attribute(op, "kernel_shape");
    if (kernel.size() == 2) added.window = {kernel[0], kernel[1]};
  }

  /// [b, c, h, w] to one axis, then to [b, c h w].
  void add_flatten(int32_t id) {
    const auto& op = graph_.op(id);
    const auto &from = tensor(op.inputs[0]), &to = tensor(op.outputs[0]);
    const auto each = [](size_t count) {
      TensorAxes axes;
      for (size_t i = 0; i < count; ++i) axes.push_back({static_cast<int32_t>(i)});
      return axes;
    };
    const auto movement = [&](const char* type, const std::vector<int64_t>& shape) {
      PaseLayer added;
      added.name = fmt::format("{}/{}", op.name, type);
      added.type = type;
      added.kind = LayerKind::movement;
      added.contiguous = true;
      added.operators = {id};
      const auto names = axis_names(shape.size());
      for (size_t i = 0; i < shape.size(); ++i) added.dimensions.push_back({names[i], shape[i]});
      added.written = {each(shape.size())};
      return added;
    };
    const auto together = [](size_t count) {
      TensorAxes axes(1);
      for (size_t i = 0; i < count; ++i) axes[0].push_back(static_cast<int32_t>(i));
      return axes;
    };
    const int32_t ravel =
        add(movement("Ravel", from.shape), {op.inputs[0]}, {each(from.shape.size())});
    const int32_t unravel = add(movement("Unravel", to.shape), {}, {});
    result_.edges.push_back({ravel,
                             unravel,
                             {from.elements()},
                             together(from.shape.size()),
                             together(to.shape.size())});
    carried(op.outputs[0]) = {unravel, each(to.shape.size())};
  }

  const Graph& graph_;
  std::vector<Carried> carried_;  // [tensor]
  std::vector<int32_t> readers_;  // [tensor]: forward operators that read it
  std::vector<bool> lettered_;    // [layer]: named after an Einsum's letters
  PaseGraph result_;
};

}  // namespace

std::string PaseLayer::dimension_names() const {
  std::string text;
  for (const auto& dimension : dimensions) text += (text.empty() ? "" : " ") + dimension.name;
  return text;
}

PaseGraph pase_layers(const Graph& graph) { return Folding(graph).run(); }

}  // namespace trinity
