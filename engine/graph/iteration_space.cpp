#include "graph/iteration_space.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "base/words.h"
#include "graph/operator_types.h"

namespace trinity {
namespace {

using Role = DimensionRole;
using Shape = std::vector<int64_t>;

/// Types whose parts would need more than blocks of their inputs.
const std::set<std::string_view>& whole_types() {
  static const auto names = words_of("CumSum NonZero Scatter ScatterElements ScatterND GatherElements GatherND "
      "DepthToSpace SpaceToDepth Resize Upsample Tile OneHot Trilu ArgMax ArgMin ConvTranspose GRU RNN LSTMCell "
      "ReverseSequence LRN ConvInteger MatMulInteger ExpertDispatch ExpertCombine GroupNormalization");
  static const std::set<std::string_view> types(names.begin(), names.end());
  return types;
}

/// Builds the space of one operator.
class Space {
 public:
  Space(const Graph& graph, const Operator& op) : graph_(graph), op_(op) {}

  IterationSpace make() {
    const auto found = makers().find(op_.type);
    if (found != makers().end() && !op_.outputs.empty() && !op_.inputs.empty() && shapes_known())
      (this->*found->second)();
    else
      elementwise();
    fill_missing();
    return std::move(space_);
  }

 private:
  using Make = void (Space::*)();
  static const std::map<std::string_view, Make>& makers() {
    static const auto kMakers = by_word<Make>({
        {&Space::convolution, "Conv"},
        {&Space::pooling, "MaxPool AveragePool"},
        {&Space::linear, "Gemm"},
        {&Space::product, "MatMul"},
        {&Space::gather, "Gather"},
        {&Space::attention, "Attention"},
        {&Space::latent_key_value, "LatentKeyValue"},
        {&Space::expert_dispatch, "ExpertDispatch"},
        {&Space::expert_combine, "ExpertCombine"},
        {&Space::all_to_all, "AllToAll"},
        {&Space::top_k, "TopK"},
        {&Space::lstm, "LSTM"},
        {&Space::einsum, "Einsum"},
        {&Space::normalised, "Softmax LogSoftmax LayerNormalization RMSNormalization"},
        {&Space::batch_norm, "BatchNormalization"},
        {&Space::loss, "SoftmaxCrossEntropyLoss"},
        {&Space::global_pool, "GlobalAveragePool GlobalMaxPool"},
        {&Space::reduction, "ReduceMean ReduceSum ReduceMax ReduceL2"},
        {&Space::concat, "Concat"},
        {&Space::split, "Split"},
        {&Space::slice, "Slice Pad"},
        {&Space::elementwise, "Expand"},
        {&Space::transpose, "Transpose"},
        {&Space::reshape, "Reshape Flatten Squeeze Unsqueeze"},
    });
    return kMakers;
  }

  const Shape& in(size_t i) const { return graph_.tensor(op_.inputs[i]).shape; }
  const Shape& out(size_t i = 0) const { return graph_.tensor(op_.outputs[i]).shape; }

  bool shapes_known() const {
    const auto known = [&](int32_t t) { return !graph_.tensor(t).shape.empty(); };
    return known(op_.inputs[0]) && known(op_.outputs[0]);
  }

  int32_t add(std::string name, int64_t size, Role role = Role::rows, bool splits = true) {
    if (space_.find(name) >= 0) name = fmt::format("{}{}", name, space_.dimensions.size() + 1);
    space_.dimensions.push_back({std::move(name), size, role, splits});
    return static_cast<int32_t>(space_.dimensions.size()) - 1;
  }
  /// Adds a dimension per axis of a shape; returns its axes.
  TensorAxes add_axes(const Shape& shape, Role role = Role::rows) {
    TensorAxes axes;
    const auto names = axis_names(shape.size());
    for (size_t i = 0; i < shape.size(); ++i)
      axes.push_back(shape[i] > 1 ? std::vector{add(names[i], shape[i], role)}
                                  : std::vector<int32_t>{});
    return axes;
  }
  void set_role(const TensorAxes& axes, size_t axis, Role role) {
    for (const int32_t d : axes[axis]) space_.dimensions[d].role = role;
  }

  /// Axes of `shape` if it broadcasts, from the right, to a tensor with these axes and extents.
  static TensorAxes broadcast(const Shape& shape, const Shape& to, const TensorAxes& axes) {
    TensorAxes result(shape.size());
    for (size_t i = 0; i < shape.size() && i < to.size(); ++i) {
      const size_t mine = shape.size() - 1 - i, theirs = to.size() - 1 - i;
      if (shape[mine] == to[theirs]) result[mine] = axes[theirs];
    }
    return result;
  }

  /// Axes without a description are not cut.
  void fill_missing() {
    space_.inputs.resize(op_.inputs.size());
    for (size_t i = 0; i < op_.inputs.size(); ++i) space_.inputs[i].resize(in(i).size());
    space_.outputs.resize(op_.outputs.size());
    for (size_t i = 0; i < op_.outputs.size(); ++i) space_.outputs[i].resize(out(i).size());
    space_.parameters.resize(op_.parameters.size());
    for (size_t i = 0; i < op_.parameters.size(); ++i)
      space_.parameters[i].resize(op_.parameters[i].shape.size());
  }

  /// Dimensions of an element-wise operator; none splits.
  void whole() {
    space_ = {};
    elementwise();
    for (auto& dimension : space_.dimensions) dimension.splits = false;
  }

  void elementwise() {
    if (op_.outputs.empty()) return;
    const TensorAxes axes = add_axes(out());
    const bool splits = !whole_types().contains(op_.type);
    for (auto& dimension : space_.dimensions) dimension.splits = splits;
    for (size_t i = 0; i < op_.inputs.size(); ++i)
      space_.inputs.push_back(broadcast(in(i), out(), axes));
    for (size_t i = 0; i < op_.outputs.size(); ++i)
      space_.outputs.push_back(broadcast(out(i), out(), axes));
    for (const auto& p : op_.parameters)
      space_.parameters.push_back(broadcast(p.shape, out(), axes));
  }

  void convolution() {
    if (out().size() != 4 || op_.parameters.empty() || op_.parameters[0].shape.size() != 4)
      return whole();
    const auto& weight = op_.parameters[0].shape;
    const int64_t groups = integer_attribute(op_.attributes, "group", 1);
    const int32_t b = add("b", out()[0]), c = add("c", weight[1], Role::reduced, groups == 1);
    const int32_t h = add("h", out()[2]), w = add("w", out()[3]);
    const int32_t r = add("r", weight[2], Role::reduced), s = add("s", weight[3], Role::reduced);
    const bool depthwise = is_depthwise(op_);
    const int32_t n = add("n", out()[1], Role::columns, groups == 1 || depthwise);
    space_.inputs = {{{b}, {depthwise ? n : c}, {h}, {w}}};
    space_.outputs = {{{b}, {n}, {h}, {w}}};
    space_.parameters = {{{n}, {c}, {r}, {s}}, {{n}}};
    space_.parameters.resize(op_.parameters.size());
  }

  void pooling() {
    space_.outputs = {add_axes(out())};
    space_.inputs = {space_.outputs[0]};
  }

  /// [..., K] times a weight [N, K] or [K, N], or a variable of that shape.
  void linear() {
    const bool variable = op_.inputs.size() > 1 && in(1).size() == 2;
    const bool owned = !op_.parameters.empty() && op_.parameters[0].shape.size() == 2;
    if ((!owned && !variable) || in(0).size() < 2) return whole();
    const auto names = axis_names(in(0).size());
    TensorAxes rows;
    for (size_t i = 0; i + 1 < in(0).size(); ++i) rows.push_back({add(names[i], in(0)[i])});
    const int32_t n = add("n", out().back(), Role::columns);
    const int32_t c = add("c", in(0).back(), Role::reduced);
    TensorAxes x = rows, y = rows;
    x.push_back({c});
    y.push_back({n});
    const Shape& weight = owned ? op_.parameters[0].shape.get() : in(1);
    const bool transposed = integer_attribute(op_.attributes, "transB", 0) != 0 ||
                            (weight[0] == out().back() && weight[0] != in(0).back());
    const TensorAxes matrix = transposed ? TensorAxes{{n}, {c}} : TensorAxes{{c}, {n}};
    space_.inputs = {x};
    if (!owned) space_.inputs.push_back(matrix);
    space_.outputs = {y};
    if (owned) space_.parameters.push_back(matrix);
    for (size_t i = space_.parameters.size(); i < op_.parameters.size(); ++i)
      space_.parameters.push_back({{n}});
  }

  /// [..., M, K] times [..., K, N], or times weights [K, N]. One matrix may serve the whole batch.
  void product() {
    if (op_.inputs.size() < 2) return linear();
    const size_t rank = out().size();
    if (rank < 2 || in(0).size() != rank || in(1).size() != rank) return whole();
    TensorAxes batch, of[2];
    for (size_t i = 0; i + 2 < rank; ++i) {
      batch.push_back({add(i == 0 ? "b" : fmt::format("g{}", i), out()[i], Role::batch)});
      for (const int32_t k : {0, 1})
        of[k].push_back(in(k)[i] == out()[i] ? batch.back() : std::vector<int32_t>{});
    }
    const int32_t m = add("m", out()[rank - 2]);
    const int32_t n = add("n", out()[rank - 1], Role::columns);
    const int32_t c = add("c", in(0)[rank - 1], Role::reduced);
    space_.inputs = {of[0], of[1]};
    space_.outputs = {batch};
    for (const int32_t d : {m, c}) space_.inputs[0].push_back({d});
    for (const int32_t d : {c, n}) space_.inputs[1].push_back({d});
    for (const int32_t d : {m, n}) space_.outputs[0].push_back({d});
  }

  /// Rows of a table by index: own weights, or a variable.
  void gather() {
    const bool owned = !op_.parameters.empty();
    if (integer_attribute(op_.attributes, "axis", 0) != 0 || op_.inputs.size() != (owned ? 1 : 2))
      return whole();
    const Shape& table = owned ? op_.parameters[0].shape.get() : in(0);
    const auto& numbers = in(owned ? 0 : 1);
    if (table.size() != 2) return whole();
    const auto names = axis_names(numbers.size() + 1);
    TensorAxes rows;
    for (size_t i = 0; i < numbers.size(); ++i) rows.push_back({add(names[i], numbers[i])});
    const int32_t d = add("d", table[1], Role::columns), v = add("v", table[0], Role::reduced);
    TensorAxes result = rows;
    result.push_back({d});
    space_.outputs = {result};
    if (owned) {
      space_.inputs = {rows};
      space_.parameters = {{{v}, {d}}};
    } else {
      space_.inputs = {{{v}, {d}}, rows};
    }
  }

  /// Queries [b, s, h], keys and values [b, t, h] with concatenated heads; every head sees all
  /// keys.
  void attention() {
    const int64_t heads = integer_attribute(op_.attributes, "q_num_heads", 0);
    const int64_t groups = integer_attribute(op_.attributes, "kv_num_heads", heads);
    if (heads < 1 || groups < 1 || op_.inputs.size() != 3 || out().size() != 3) return whole();
    const int32_t b = add("b", out()[0]), s = add("s", out()[1]), h = add("h", groups);
    const bool ring = is_ring(op_) && in(1).size() == 3 && in(1)[1] == out()[1];
    const TensorAxes seen = {{b}, ring ? std::vector{s} : std::vector<int32_t>{}, {h}};
    space_.inputs = {{{b}, {s}, {h}}, seen, seen};
    space_.outputs = {{{b}, {s}, {h}}, {{b}, {h}, {s}}};
    space_.outputs.resize(op_.outputs.size());
  }

  /// Concatenated heads [b, s, h ...] and shared parts [b, s, .], to keys and values.
  void latent_key_value() {
    const int64_t heads = integer_attribute(op_.attributes, "num_heads", 0);
    if (heads < 1 || op_.inputs.size() != 2 || op_.outputs.size() != 2 || out().size() != 3)
      return whole();
    const int32_t b = add("b", out()[0]), s = add("s", out()[1]), h = add("h", heads);
    space_.inputs = {{{b}, {s}, {h}}, {{b}, {s}, {}}};
    space_.outputs = {{{b}, {s}, {h}}, {{b}, {s}, {h}}};
  }

  /// Tokens [b, s, h] to rows of experts [E, C, h]: a part along s dispatches its own tokens, and
  /// has its part of every expert's rows.
  void expert_dispatch() {
    if (in(0).size() != 3 || out().size() != 3) return whole();
    const int32_t s = add("s", in(0)[1]);
    space_.inputs.assign(op_.inputs.size(), {{}, {s}, {}});
    space_.outputs.assign(op_.outputs.size(), {{}, {s}, {}});
  }
  void expert_combine() {
    if (in(0).size() != 3 || out().size() != 3) return whole();
    const int32_t s = add("s", out()[1]);
    space_.inputs.assign(op_.inputs.size(), {{}, {s}, {}});
    space_.outputs = {{{}, {s}, {}}};
  }

  /// [E, C, ...] to [E / r, C r, ...] or back: parts along rows exchange with equal parts.
  void all_to_all() {
    if (in(0).size() < 2 || out().size() != in(0).size()) return whole();
    const auto names = axis_names(in(0).size());
    TensorAxes axes(in(0).size());
    for (size_t i = 1; i < axes.size(); ++i) {
      const int64_t size = std::min(in(0)[i], out()[i]);
      if (size > 1) axes[i] = {add(names[i], size)};
    }
    space_.inputs = {axes};
    space_.outputs = {axes};
  }

  /// The largest elements along an axis.
  void top_k() {
    const size_t axis = axis_of("axis", -1);
    const auto names = axis_names(in(0).size());
    TensorAxes axes(in(0).size());
    for (size_t i = 0; i < axes.size(); ++i)
      if (i != axis && in(0)[i] > 1) axes[i] = {add(names[i], in(0)[i])};
    space_.inputs.assign(op_.inputs.size(), {});
    space_.inputs[0] = axes;
    space_.outputs.assign(op_.outputs.size(), axes);
  }

  void lstm() {
    if (in(0).size() != 3 || out().size() != 4 ||
        integer_attribute(op_.attributes, "layout", 0) != 1)
      return whole();
    const int64_t hidden = integer_attribute(op_.attributes, "hidden_size", 1);
    const bool both = out()[2] == 2;  // number of directions
    const int32_t s = add("s", in(0)[1], Role::rows, false), b = add("b", in(0)[0]);
    const int32_t n = add("n", hidden, Role::columns, !both);
    const int32_t c = add("c", in(0)[2], Role::reduced, !both);
    space_.inputs = {{{b}, {s}, {c}}};
    space_.outputs = {{{b}, {s}, {}, {n}}, {{b}, {}, {n}}, {{b}, {}, {n}}};
    space_.outputs.resize(op_.outputs.size());
    space_.parameters = {{{}, {n}, {c}}, {{}, {n}, {c}}, {{}, {n}}};
    space_.parameters.resize(op_.parameters.size());
  }

  /// Letters of an equation without "...": output letters, then summed ones.
  void einsum() {
    const auto* text = find_attribute<std::string>(op_.attributes, "equation");
    std::vector<std::string> terms(1);
    for (const char letter : text ? *text : std::string()) {
      const bool named = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z');
      if (named) terms.back() += letter;
      if (letter == ',' || letter == '>') terms.emplace_back();
    }
    if (terms.size() != operand_shapes().size() + 1) return whole();
    const auto shapes = operand_shapes();
    std::map<char, int64_t> extents;
    for (size_t t = 0; t < shapes.size(); ++t) {
      if (terms[t].size() != shapes[t].size()) return whole();
      for (size_t i = 0; i < terms[t].size(); ++i) extents[terms[t][i]] = shapes[t][i];
    }
    einsum_dimensions(terms, extents);
    for (size_t t = 0; t < shapes.size(); ++t) {
      const TensorAxes axes = letters(terms[t]);
      (t < op_.inputs.size() ? space_.inputs : space_.parameters).push_back(axes);
    }
    space_.outputs = {letters(terms.back())};
  }
  std::vector<Shape> operand_shapes() const {
    std::vector<Shape> shapes;
    for (size_t i = 0; i < op_.inputs.size(); ++i) shapes.push_back(in(i));
    for (const auto& parameter : op_.parameters) shapes.push_back(parameter.shape);
    return shapes;
  }
  void einsum_dimensions(const std::vector<std::string>& terms,
                         const std::map<char, int64_t>& extents) {
    const auto holds = [](const std::string& term, char letter) {
      return term.find(letter) != std::string::npos;
    };
    const bool binary = terms.size() == 3;
    for (const char letter : terms.back()) {
      const auto size = extents.find(letter);
      const bool first = holds(terms[0], letter), second = binary && holds(terms[1], letter);
      const Role role = first && second ? Role::batch : second ? Role::columns : Role::rows;
      add(std::string(1, letter), size == extents.end() ? 1 : size->second, role);
    }
    for (const auto& [letter, size] : extents)
      if (!holds(terms.back(), letter)) add(std::string(1, letter), size, Role::reduced);
  }
  TensorAxes letters(const std::string& term) const {
    TensorAxes axes;
    for (const char letter : term) axes.push_back({space_.find(std::string(1, letter))});
    return axes;
  }

  size_t axis_of(const char* attribute, int64_t fallback) const {
    const int64_t rank = static_cast<int64_t>(in(0).size());
    int64_t axis = integer_attribute(op_.attributes, attribute, fallback);
    if (axis < 0) axis += rank;
    return static_cast<size_t>(std::clamp<int64_t>(axis, 0, rank - 1));
  }

  void normalised() {
    elementwise();
    if (!space_.outputs.empty()) set_role(space_.outputs[0], axis_of("axis", -1), Role::coupled);
  }

  void batch_norm() {
    if (out().size() < 2) return whole();
    const TensorAxes axes = add_axes(out());
    set_role(axes, 0, Role::coupled);
    space_.inputs = {axes};
    space_.outputs = {axes};
    for (size_t i = 0; i < op_.parameters.size(); ++i) space_.parameters.push_back({axes[1]});
  }

  /// Logits [..., classes] and labels [...] to a scalar.
  void loss() {
    const TensorAxes axes = add_axes(in(0));
    for (size_t i = 0; i + 1 < axes.size(); ++i) set_role(axes, i, Role::reduced);
    set_role(axes, axes.size() - 1, Role::coupled);
    space_.inputs = {axes, TensorAxes(axes.begin(), axes.end() - 1)};
    space_.inputs.resize(op_.inputs.size());
  }

  void global_pool() {
    const TensorAxes axes = add_axes(in(0));
    TensorAxes kept = axes;
    for (size_t i = 2; i < axes.size(); ++i) {
      set_role(axes, i, Role::reduced);
      kept[i].clear();
    }
    space_.inputs = {axes};
    space_.outputs = {kept};
  }

  void reduction() {
    const TensorAxes axes = add_axes(in(0));
    space_.inputs = {axes};
    std::set<int64_t> summed;
    for (const int64_t axis : integers_attribute(op_, "axes"))
      summed.insert(axis < 0 ? axis + static_cast<int64_t>(axes.size()) : axis);
    const bool keep = integer_attribute(op_.attributes, "keepdims", 1) != 0;
    TensorAxes result;
    for (size_t i = 0; i < axes.size(); ++i) {
      const bool gone = summed.empty() || summed.contains(static_cast<int64_t>(i));
      if (gone) set_role(axes, i, Role::reduced);
      if (!gone) result.push_back(axes[i]);
      if (gone && keep) result.emplace_back();
    }
    if (result.size() != out().size()) return whole();
    space_.outputs = {result};
  }

  /// Axes of a tensor of which one does not split; `fresh`: the other names do not count it.
  TensorAxes add_joined(const Shape& shape, size_t axis, bool fresh) {
    auto names = axis_names(shape.size() - (fresh ? 1 : 0));
    if (fresh) names.insert(names.begin() + static_cast<std::ptrdiff_t>(axis), "stack");
    TensorAxes axes(shape.size());
    for (size_t i = 0; i < shape.size(); ++i) {
      if (shape[i] <= 1) continue;
      const int32_t d = add(names[i], i == axis ? 1 : shape[i], Role::rows, i != axis);
      if (i != axis) axes[i] = {d};
    }
    return axes;
  }

  /// Concatenates along an existing axis or (new_axis) along a new one.
  void concat() {
    const bool fresh = integer_attribute(op_.attributes, "new_axis", 0) != 0;
    const auto last = static_cast<int64_t>(out().size()) - 1;
    const auto axis = static_cast<size_t>(
        std::clamp<int64_t>(integer_attribute(op_.attributes, "axis", 0), 0, last));
    TensorAxes axes = add_joined(out(), axis, fresh);
    space_.outputs = {axes};
    if (fresh) axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(axis));
    space_.inputs.assign(op_.inputs.size(), axes);
  }

  void split() {
    const bool dropped = integer_attribute(op_.attributes, "keepdims", 1) == 0;
    const size_t axis = axis_of("axis", 0);
    TensorAxes axes = add_joined(in(0), axis, dropped);
    space_.inputs = {axes};
    if (dropped) axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(axis));
    space_.outputs.assign(op_.outputs.size(), axes);
  }

  /// Axes of unchanged extent can be cut.
  void slice() {
    if (in(0).size() != out().size()) return whole();
    TensorAxes axes = add_axes(out());
    for (size_t i = 0; i < axes.size(); ++i) {
      if (in(0)[i] == out()[i]) continue;
      for (const int32_t d : axes[i]) space_.dimensions[d].splits = false;
      axes[i].clear();
    }
    space_.inputs = {axes};
    space_.outputs = {axes};
  }

  void transpose() {
    const auto order = integers_attribute(op_, "perm");
    const TensorAxes axes = add_axes(in(0));
    TensorAxes turned;
    for (const int64_t axis : order)
      if (axis >= 0 && static_cast<size_t>(axis) < axes.size())
        turned.push_back(axes[static_cast<size_t>(axis)]);
    if (turned.size() != out().size()) return whole();
    space_.inputs = {axes};
    space_.outputs = {turned};
  }

  /// Runs of axes whose sizes multiply to the same on both sides. The outermost axis of a run with
  /// more than one element is cut, into at most the common number of blocks of both sides.
  void reshape() {
    const Shape &from = in(0), &to = out();
    TensorAxes x(from.size()), y(to.size());
    size_t i = 0, j = 0;
    while (i < from.size() && j < to.size()) {
      size_t p = i, q = j;
      int64_t left = from[p++], right = to[q++];
      while (left != right && (left < right ? p < from.size() : q < to.size()))
        left < right ? left *= from[p++] : right *= to[q++];
      if (left != right) break;
      while (i + 1 < p && from[i] == 1) ++i;
      while (j + 1 < q && to[j] == 1) ++j;
      if (from[i] > 1 && to[j] > 1) {
        const bool narrow = from[i] <= to[j];
        const int64_t size = narrow ? from[i] : to[j], other = narrow ? to[j] : from[i];
        const auto names = axis_names(narrow ? from.size() : to.size());
        x[i] = y[j] = {add(names[narrow ? i : j], size, Role::rows, other % size == 0)};
      }
      i = p;
      j = q;
    }
    space_.inputs = {x};
    space_.outputs = {y};
  }

  const Graph& graph_;
  const Operator& op_;
  IterationSpace space_;
};

}  // namespace

bool is_ring(const Operator& op) {
  return (op.type == "Attention" || op.type == "AttentionGrad") &&
         integer_attribute(op.attributes, "ring", 0) != 0;
}

int32_t IterationSpace::find(std::string_view name) const {
  for (size_t i = 0; i < dimensions.size(); ++i)
    if (dimensions[i].name == name) return static_cast<int32_t>(i);
  return -1;
}

bool IterationSpace::carries(const TensorAxes& axes, int32_t dimension) {
  return std::any_of(axes.begin(), axes.end(), [&](const auto& axis) {
    return std::find(axis.begin(), axis.end(), dimension) != axis.end();
  });
}

std::vector<std::string> axis_names(size_t count) {
  switch (count) {
    case 1:
      return {"b"};
    case 2:
      return {"b", "n"};
    case 3:
      return {"b", "s", "d"};
    case 4:
      return {"b", "c", "h", "w"};
    default:
      break;
  }
  std::vector<std::string> names = {"b"};
  for (size_t i = 1; i < count; ++i) names.push_back(fmt::format("d{}", i));
  return names;
}

std::vector<int64_t> integers_attribute(const Operator& op, const std::string& name) {
  if (const auto* one = find_attribute<int64_t>(op.attributes, name)) return {*one};
  const auto* list = find_attribute<std::vector<int64_t>>(op.attributes, name);
  return list ? *list : std::vector<int64_t>{};
}

IterationSpace iteration_space(const Graph& graph, int32_t op) {
  return Space(graph, graph.op(op)).make();
}

}  // namespace trinity
