#include "strategy/tensor_pattern.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>

#include "base/error.h"
#include "base/index.h"
#include "base/words.h"
#include "graph/operator_spaces.h"
#include "graph/operator_types.h"

namespace trinity {
namespace {

using Role = DimensionRole;

/// The axis along which a tensor is split; none: it is whole.
using CutAxis = std::optional<int32_t>;

/// Follows cut axes through a forward graph.
class Pattern {
 public:
  explicit Pattern(const Graph& graph)
      : graph_(graph), known_(graph), axis_(graph.tensors().size()) {
    static const IterationSpace kNone;
    for (int32_t op = 0; op < graph.operator_count(); ++op)
      space_.push_back(graph.op(op).phase == Phase::forward ? known_.of(op).get() : &kNone);
    dimension_.assign(space_.size(), -1);
    vocabulary_.assign(space_.size(), false);
  }

  void run() {
    cut_embedding();
    for (int32_t op = 0; op < graph_.operator_count(); ++op)
      if (graph_.op(op).phase == Phase::forward && dimension_[op] < 0 && is_product(op))
        try_columns(op);
    for (int32_t op = 0; op < graph_.operator_count(); ++op)
      if (is_variable(graph_.op(op))) cut_variable(op);
  }

  /// The dimension that an operator is cut along; -1: none.
  int32_t dimension(int32_t op) const { return dimension_[op]; }
  /// A fused matmul whose output a Split divides (queries, keys and values in one); -1: there is
  /// none.
  int32_t joined() const { return joined_; }
  /// True if that is the vocabulary, which is padded.
  bool vocabulary(int32_t op) const { return vocabulary_[op]; }
  const IterationSpace& space(int32_t op) const { return *space_[op]; }

 private:
  bool is_source(int32_t tensor) const {
    const auto& op = graph_.op(graph_.tensor(tensor).producer);
    return op.inputs.empty();
  }
  bool has_weights(int32_t op) const {
    const auto& about = graph_.op(op);
    return !about.parameters.empty() ||
           std::any_of(about.inputs.begin(), about.inputs.end(), [&](int32_t input) {
             return is_variable(graph_.op(graph_.tensor(input).producer));
           });
  }
  bool is_product(int32_t op) const {
    const auto& type = graph_.op(op).type;
    return (type == "Gemm" || type == "MatMul" || type == "Einsum") && has_weights(op);
  }

  /// The outermost dimension along an axis of a tensor of an operator; -1: it is never cut.
  static int32_t along(const TensorAxes& axes, int32_t axis) {
    const auto& dimensions = axes[axis];
    return dimensions.empty() ? -1 : dimensions[0];
  }
  /// The axis of a tensor whose outermost dimension this is.
  static CutAxis axis_of(const TensorAxes& axes, int32_t dimension) {
    for (size_t a = 0; a < axes.size(); ++a)
      if (!axes[a].empty() && axes[a][0] == dimension) return static_cast<int32_t>(a);
    return {};
  }

  /// The rows of the vocabulary table, for all operators that look tokens up in it: the largest
  /// table whose rows equal the loss's classes, or the largest at all (tables of positions may be
  /// longer).
  void cut_embedding() {
    const int64_t classes = loss_classes();
    int32_t chosen = -1;
    std::pair<bool, int64_t> most{false, 0};
    for (int32_t op = 0; op < graph_.operator_count(); ++op) {
      const int32_t v =
          graph_.op(op).type == "Gather" && has_weights(op) ? space(op).find("v") : -1;
      if (v < 0) continue;
      const int64_t rows = space(op).dimensions[v].size;
      const std::pair<bool, int64_t> about{rows == classes, rows};
      if (about > most) most = about, chosen = op;
    }
    if (chosen < 0) return;
    cut_rows(chosen);
    for (int32_t op = 0; op < graph_.operator_count(); ++op)
      if (graph_.op(op).type == "Gather" && graph_.op(op).phase == Phase::forward &&
          table_of(op) >= 0 && table_of(op) == table_of(chosen))
        cut_rows(op);
  }

  void cut_rows(int32_t op) {
    dimension_[op] = space(op).find("v");
    vocabulary_[op] = true;
  }

  /// The variable whose rows are looked up; -1: the operator has weights of its own.
  int32_t table_of(int32_t op) const {
    for (const int32_t input : graph_.op(op).inputs)
      if (is_variable(graph_.op(graph_.tensor(input).producer))) return input;
    return -1;
  }

  /// The number of classes of the last loss over classes; -1: there is none.
  int64_t loss_classes() const {
    for (int32_t op = graph_.operator_count() - 1; op >= 0; --op) {
      if (graph_.op(op).type != "SoftmaxCrossEntropyLoss" || space(op).inputs.empty()) continue;
      const auto& scores = space(op).inputs[0];
      const auto last = static_cast<int32_t>(scores.size()) - 1;
      const int32_t dimension = last < 0 ? -1 : along(scores, last);
      if (dimension >= 0) return space(op).dimensions[dimension].size;
    }
    return -1;
  }

  /// Cuts a variable as all of its readers do.
  void cut_variable(int32_t op) {
    CutAxis wanted;
    bool all = true;
    for (const int32_t reader : graph_.readers(op)) {
      if (graph_.op(reader).phase != Phase::forward) continue;
      const auto& inputs = graph_.op(reader).inputs;
      for (size_t k = 0; k < inputs.size(); ++k) {
        if (graph_.tensor(inputs[k]).producer != op) continue;
        const auto axis = axis_of(space(reader).inputs[k], dimension_[reader]);
        all = all && dimension_[reader] >= 0 && axis && (!wanted || axis == wanted);
        wanted = axis;
      }
    }
    if (!all || !wanted) return;
    dimension_[op] = along(space(op).outputs[0], *wanted);
    vocabulary_[op] = true;  // its readers have been checked
  }

  /// Cuts a matmul of a whole tensor by columns, with all operators that follow, or not at all.
  void try_columns(int32_t op) {
    const auto& dimensions = space(op).dimensions;
    for (size_t d = 0; d < dimensions.size(); ++d) {
      if (dimensions[d].role != Role::columns || !dimensions[d].splits) continue;
      trial_.clear();
      ended_ = loss_ = false;
      if (cut(op, static_cast<int32_t>(d)) && follow() && ended_) {
        for (const int32_t taken : trial_) vocabulary_[taken] = loss_;
        return;
      }
      for (const int32_t taken : trial_) undo(taken);
      return;
    }
  }

  /// Cuts an operator along a dimension; false if it is cut along another one. The keys' matmul
  /// ends at a tensor that was cut with the queries.
  bool cut(int32_t op, int32_t dimension) {
    if (dimension_[op] == dimension) return ended_ = true;
    if (dimension_[op] >= 0) return false;
    dimension_[op] = dimension;
    trial_.push_back(op);
    const auto& about = graph_.op(op);
    const auto role = space(op).dimensions[dimension].role;
    if (role == Role::reduced) return ended_ = true;
    for (size_t o = 0; o < about.outputs.size(); ++o)
      axis_[about.outputs[o]] = axis_of(space(op).outputs[o], dimension);
    return true;
  }

  void undo(int32_t op) {
    dimension_[op] = -1;
    for (const int32_t output : graph_.op(op).outputs) axis_[output].reset();
  }

  /// Cuts the readers of the tensors that the trial has cut, in the order of the graph.
  bool follow() {
    for (size_t i = 0; i < trial_.size(); ++i)
      for (const int32_t output : graph_.op(trial_[i]).outputs) {
        if (!axis_[output]) continue;
        for (const int32_t reader : graph_.readers_of(output))
          if (graph_.op(reader).phase == Phase::forward && !follow_into(reader, output)) return false;
      }
    return trial_ends_whole();
  }

  bool follow_into(int32_t reader, int32_t tensor) {
    const auto& space = *space_[reader];
    const auto& inputs = graph_.op(reader).inputs;
    for (size_t k = 0; k < inputs.size(); ++k) {
      if (inputs[k] != tensor) continue;
      const int32_t dimension = along(space.inputs[k], *axis_[tensor]);
      if (dimension < 0 || !space.dimensions[dimension].splits) {
        if (graph_.op(reader).type == "Split" && joined_ < 0) joined_ = trial_[0];
        return false;
      }
      const bool loss = graph_.op(reader).type == "SoftmaxCrossEntropyLoss";
      if (space.dimensions[dimension].role == Role::coupled && !loss) return false;
      if (loss) {
        dimension_[reader] = dimension;
        trial_.push_back(reader);
        ended_ = loss_ = true;
        continue;
      }
      if (!cut(reader, dimension)) return false;
    }
    return true;
  }

  /// True if all inputs of the trial's operators are split as the operators are, or have no such
  /// axis.
  bool trial_ends_whole() const {
    for (size_t i = 1; i < trial_.size(); ++i) {
      const int32_t op = trial_[i];
      const auto& inputs = graph_.op(op).inputs;
      for (size_t k = 0; k < inputs.size(); ++k) {
        if (is_source(inputs[k])) continue;
        const auto carried = axis_of(space(op).inputs[k], dimension_[op]);
        if (carried != axis_[inputs[k]]) {
          const bool pending = carried && !axis_[inputs[k]] && may_be_cut(inputs[k], carried);
          if (!pending) return false;
        }
      }
    }
    return true;
  }

  /// True if a whole tensor comes from a matmul that is cut next, through operators that can be cut
  /// along its axis: queries wait for their keys.
  bool may_be_cut(int32_t tensor, CutAxis axis) const {
    int32_t op = graph_.tensor(tensor).producer;
    while (!is_product(op)) {
      const auto& about = graph_.op(op);
      const auto output = std::find(about.outputs.begin(), about.outputs.end(), tensor);
      const int32_t cut = along(space(op).outputs[at(output - about.outputs.begin())], *axis);
      if (cut < 0 || about.type == "Add" || space(op).dimensions[cut].role == Role::coupled)
        return false;
      axis.reset();
      for (size_t k = 0; k < about.inputs.size() && !axis; ++k) {
        if (is_source(about.inputs[k])) continue;
        axis = axis_of(space(op).inputs[k], cut);
        tensor = about.inputs[k];
      }
      if (!axis) return false;
      op = graph_.tensor(tensor).producer;
    }
    return dimension_[op] < 0;
  }

  const Graph& graph_;
  OperatorSpaces known_;
  std::vector<const IterationSpace*> space_;  // per operator; of a forward one
  std::vector<CutAxis> axis_;       // per tensor
  std::vector<int32_t> dimension_;  // per operator
  std::vector<int32_t> trial_;      // operators that the current matmul has cut
  bool ended_ = false;              // in a matmul by rows, or the loss
  bool loss_ = false;
  int32_t joined_ = -1;
  std::vector<bool> vocabulary_;  // per operator
};

/// The dimension of an operator that is cut over tensor; -1: none.
int32_t cut_of(const Pattern& pattern, const TensorParts& parts, int32_t op) {
  const auto said = parts.said.find(op);
  if (said != parts.said.end()) return said->second;
  return parts.tensor > 1 ? pattern.dimension(op) : -1;
}

/// Checks that the parts of every operator are equal, except for the vocabulary, which is padded.
/// Names heads before other dimensions, and the nearest degrees that divide all split dimensions.
void check_even(const Graph& graph, const Pattern& pattern, const TensorParts& parts) {
  const auto is_heads = [&](int32_t op, const Dimension& dimension) {
    return dimension.name == "h" && !graph.op(op).type.starts_with("Conv");
  };
  int64_t common = 0;
  const Dimension* uneven = nullptr;
  int32_t of = -1;
  for (int32_t op = 0; op < graph.operator_count(); ++op) {
    const int32_t cut = graph.op(op).phase == Phase::forward ? cut_of(pattern, parts, op) : -1;
    if (cut < 0 || pattern.vocabulary(op)) continue;
    const auto& dimension = pattern.space(op).dimensions[at(cut)];
    common = std::gcd(common, dimension.size);
    if (dimension.size % parts.tensor == 0) continue;
    if (uneven && (is_heads(of, *uneven) || !is_heads(op, dimension))) continue;
    uneven = &dimension;
    of = op;
  }
  if (!uneven) return;
  const int64_t queries = integer_attribute(graph.op(of).attributes, "q_num_heads", 0);
  const bool grouped = integer_attribute(graph.op(of).attributes, "kv_num_heads", queries) < queries;
  throw ArgumentError("mesh: tensor = {}: operator '{}' has {}{}, which {} does not divide; nearest that do: {}",
                      parts.tensor, graph.op(of).name, uneven->size,
                      !is_heads(of, *uneven) ? fmt::format(" in dimension '{}'", uneven->name)
                      : grouped              ? " KV heads"
                                             : " heads",
                      parts.tensor, divisors_near(common, parts.tensor));
}

/// Checks that degrees above one split some operator.
void check_effect(const Graph& graph, const TensorParts& parts, bool cut, bool sequence) {
  if (parts.context > 1 && !sequence && parts.by_heads.empty())
    throw ArgumentError("mesh: context = {}: graph '{}' has no sequence (no table of embeddings) to split; use context "
                        "= 1", parts.context, graph.name());
  if (parts.tensor == 1) return;
  if (parts.sequence && !sequence)
    throw ArgumentError("sequence_parallel: graph '{}' has no sequence (no table of embeddings) to split; use false",
                        graph.name());
  if (!cut && !parts.sequence && parts.by_heads.empty())
    throw ArgumentError("mesh: tensor = {} splits no operator of graph '{}': expected matmuls with weights whose "
                        "results reach another such matmul or a loss over classes, a table of embeddings, or "
                        "operators that 'split' names; use tensor = 1", parts.tensor, graph.name());
}

/// Follows the axis of the sequence through a forward graph.
class SequenceAxis {
 public:
  SequenceAxis(const Graph& graph, const Pattern& pattern)
      : axis_(graph.tensors().size()), dimension_(at(graph.operator_count()), -1) {
    for (int32_t op = 0; op < graph.operator_count(); ++op)
      if (graph.op(op).phase == Phase::forward && !graph.op(op).inputs.empty())
        follow(graph, op, pattern.space(op));
  }

  /// The dimension of an operator that is the sequence; -1: it has none.
  int32_t of(int32_t op) const { return dimension_[op]; }

 private:
  void follow(const Graph& graph, int32_t op, const IterationSpace& space) {
    const auto& about = graph.op(op);
    int32_t& found = dimension_[op];
    for (size_t k = 0; k < about.inputs.size() && found < 0; ++k)
      if (const auto axis = axis_[about.inputs[k]]) found = first(space.inputs[k], *axis);
    const auto& shape =
        graph.tensor(about.outputs.empty() ? about.inputs[0] : about.outputs[0]).shape;
    if (found < 0 && about.type == "Gather" && shape.size() == 3 && !space.outputs.empty())
      found = first(space.outputs[0], 1);
    if (found >= 0 && !space.dimensions[found].splits) found = -1;
    if (found < 0) return;
    for (size_t o = 0; o < about.outputs.size(); ++o)
      for (size_t a = 0; a < space.outputs[o].size(); ++a)
        if (first(space.outputs[o], static_cast<int32_t>(a)) == found)
          axis_[about.outputs[o]] = static_cast<int32_t>(a);
  }
  static int32_t first(const TensorAxes& axes, int32_t axis) {
    return axes[at(axis)].empty() ? -1 : axes[at(axis)][0];
  }

  std::vector<CutAxis> axis_;       // per tensor
  std::vector<int32_t> dimension_;  // per operator
};

void check_sequence(const Operator& op, const Dimension& dimension, int32_t parts,
                    const TensorParts& given) {
  if (dimension.size % parts == 0) return;
  throw ArgumentError("{}: a sequence of {} (operator '{}') is not divided by {} (nearest that do: {})",
                      given.context > 1 ? "mesh: context" : "sequence_parallel", dimension.size, op.name, parts,
                      divisors_near(dimension.size, parts));
}

/// The split of one operator: over tensor along the dimension of the pattern, over context along
/// the sequence (over tensor, too, if nothing else is split and `sequence` is set), and copies on
/// the remaining devices.
OperatorSplit split_of(const Operator& op, const IterationSpace& space, int32_t cut, int32_t along,
                       const TensorParts& parts) {
  OperatorSplit split;
  split.factors.assign(space.dimensions.size(), 1);
  if (cut >= 0) split.factors[cut] = parts.tensor;
  const bool whole = cut < 0 && !(parts.sequence && along >= 0);
  split.copies = (whole ? parts.tensor : 1) * (along < 0 ? parts.context : 1);
  if (along >= 0 && along != cut) {
    const int32_t pieces = parts.context * (cut < 0 && parts.sequence ? parts.tensor : 1);
    if (pieces > 1) check_sequence(op, space.dimensions[along], pieces, parts);
    split.factors[along] = pieces;
  }
  if (split.factors == std::vector<int32_t>(space.dimensions.size(), 1)) split.factors.clear();
  return split;
}

/// The device of every part, from a first one on: tensor innermost, then context.
std::vector<int32_t> devices_in_order(const OperatorSplit& split, int32_t cut, int32_t along,
                                      const TensorParts& parts, int32_t first_device) {
  std::vector<int32_t> ordered;
  const auto parts_behind = [&](size_t first) {  // of one coordinate of the dimensions before
    return std::accumulate(split.factors.begin() + static_cast<std::ptrdiff_t>(first),
                           split.factors.end(), split.copies, std::multiplies<>());
  };
  const auto coordinate = [&](int32_t part, int32_t dimension) {
    return part / parts_behind(at(dimension) + 1) % split.factors[at(dimension)];
  };
  const bool along_cut = !split.factors.empty() && along >= 0 && along != cut;
  const bool cuts = !split.factors.empty() && cut >= 0;
  const bool shares = !cuts && along_cut && split.factors[along] > parts.context;
  const int32_t count = parts_behind(0);
  ordered.reserve(at(count));
  for (int32_t part = 0; part < count; ++part) {
    const int32_t copy = part % split.copies;
    const int32_t piece = along_cut ? coordinate(part, along) : 0;
    int32_t tensor = cuts     ? coordinate(part, cut)
                     : shares ? piece % parts.tensor
                              : copy % parts.tensor;
    int32_t context = shares ? piece / parts.tensor : along_cut ? piece : copy / parts.tensor;
    if (cuts && !along_cut) context = copy;
    ordered.push_back(first_device + context * parts.tensor + tensor);
  }
  return ordered;
}

/// The heads of the core of attention over tensor and context, tensor outermost: those that a device
/// has are among those that its parts of queries, keys and values have.
OperatorSplit split_by_heads(const Operator& op, const IterationSpace& space, int32_t heads,
                             const TensorParts& parts, int32_t first_device) {
  if (heads < 0)
    throw ArgumentError("cp_comm_type: all_to_all: operator '{}' has no heads to split; use all_gather", op.name);
  const auto& dimension = space.dimensions[heads];
  const int32_t pieces = parts.tensor * parts.context;
  if (dimension.size % pieces != 0)
    throw ArgumentError("cp_comm_type: all_to_all: operator '{}' has {} heads, which tensor {} x context {} does not "
                        "divide (nearest that do: {})", op.name, dimension.size, parts.tensor, parts.context,
                        divisors_near(dimension.size, pieces));
  OperatorSplit split;
  split.factors.assign(space.dimensions.size(), 1);
  split.factors[heads] = pieces;
  for (int32_t piece = 0; piece < pieces; ++piece)
    split.devices.push_back(first_device + piece % parts.context * parts.tensor +
                            piece / parts.context);
  split.in_order = true;
  return split;
}

[[noreturn]] void refuse_joined(const Graph& graph, int32_t op, int32_t parts) {
  throw ArgumentError("tensor = {}: operator '{}' is a fused matmul of several outputs (a Split follows it) and cannot "
                      "be divided over devices; use a network with fused = false", parts, graph.op(op).name);
}

}  // namespace

Splits tensor_splits(const Graph& graph, const TensorParts& parts,
                     std::span<const int32_t> first_device) {
  Splits splits(at(graph.operator_count()));
  Pattern pattern(graph);
  if (parts.tensor > 1 || !parts.by_heads.empty()) pattern.run();
  if (parts.tensor > 1 && pattern.joined() >= 0 && !parts.said.contains(pattern.joined()))
    refuse_joined(graph, pattern.joined(), parts.tensor);
  check_even(graph, pattern, parts);
  const SequenceAxis sequence(graph, pattern);
  const bool along = parts.context > 1 || (parts.sequence && parts.tensor > 1);
  bool any_cut = false, any_sequence = false;
  for (int32_t op = 0; op < graph.operator_count(); ++op) {
    const auto& about = graph.op(op);
    const bool follows = about.phase != Phase::forward && about.forward >= 0;
    const bool source = about.inputs.empty() && !is_variable(about);
    if (follows || source || about.collective >= 0) continue;
    const int32_t cut = cut_of(pattern, parts, op);
    if (!parts.by_heads.empty() && parts.by_heads[op]) {
      const auto& space = pattern.space(op);
      const int32_t heads = about.type == "Attention" ? space.find("h") : pattern.dimension(op);
      splits[op] = split_by_heads(about, space, heads, parts, first_device[op]);
      continue;
    }
    if (cut < 0 && is_variable(about)) {
      if (parts.context == 1) continue;  // its readers share one
      splits[op].copies = parts.tensor * parts.context;
      splits[op].devices.resize(at(splits[op].copies));
      std::iota(splits[op].devices.begin(), splits[op].devices.end(), first_device[op]);
      splits[op].in_order = true;
      continue;
    }
    const int32_t s = along && !is_variable(about) ? sequence.of(op) : -1;
    any_sequence = any_sequence || s >= 0;
    any_cut = any_cut || cut >= 0;
    splits[op] = split_of(about, pattern.space(op), cut, s, parts);
    splits[op].devices = devices_in_order(splits[op], cut, s, parts, first_device[op]);
    splits[op].in_order = true;
  }
  check_effect(graph, parts, any_cut, any_sequence);
  return splits;
}

}  // namespace trinity
