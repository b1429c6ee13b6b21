#include "graph/split_backward.h"

#include <algorithm>
#include <string>

#include "base/index.h"
#include "graph/meaning.h"
#include "graph/operator_types.h"

namespace trinity {
namespace {

/// True if an operator only passes its first input on.
bool carries(const Operator& op) {
  return op.collective >= 0 || op.type == "Sum" || op.type == "Slice" || op.type == "Concat";
}

/// [operator]: its outputs are gradients. True for backward operators except recomputed ones and
/// those that pass on outputs of these or of forward operators.
std::vector<bool> write_gradients(const Graph& graph) {
  std::vector<bool> found(at(graph.operator_count()), false);
  for (int32_t op = 0; op < graph.operator_count(); ++op) {
    const auto& about = graph.op(op);
    if (about.phase != Phase::backward) continue;
    if (carries(about) && !about.inputs.empty())
      found[op] = found[graph.tensor(about.inputs[0]).producer];
    else
      found[op] = about.forward < 0 || about.type != graph.op(about.forward).type;
  }
  return found;
}

/// [operator]: its outputs depend on weights alone.
std::vector<bool> made_of_weights(const Graph& graph) {
  std::vector<bool> made(at(graph.operator_count()), false);
  for (int32_t op = 0; op < graph.operator_count(); ++op) {
    const auto& about = graph.op(op);
    made[op] = is_variable(about) ||
               (about.phase == Phase::forward && !about.inputs.empty() &&
                std::all_of(about.inputs.begin(), about.inputs.end(),
                            [&](int32_t input) { return made[graph.tensor(input).producer]; }));
  }
  return made;
}

/// Distinguishes weight gradients from input gradients.
class Gradients {
 public:
  explicit Gradients(const Graph& graph)
      : graph_(graph),
        of_weights_(graph.tensors().size(), false),
        made_of_weights_(trinity::made_of_weights(graph)) {
    std::vector<int32_t> readers(of_weights_.size(), 0), last(of_weights_.size(), 0);
    for (int32_t op = graph.operator_count() - 1; op >= 0; --op) {
      for (const int32_t output : graph.op(op).outputs)
        of_weights_[output] = readers[output] > 0 && last[output] == readers[output];
      const bool hands_on = this->hands_on(op);
      for (const int32_t input : graph.op(op).inputs) {
        ++readers[input];
        last[input] += hands_on;
      }
    }
  }

  bool of_weights(int32_t tensor) const { return of_weights_[tensor]; }
  bool made_of_weights(int32_t op) const { return made_of_weights_[op]; }

  bool all(int32_t op) const {
    const auto& outputs = graph_.op(op).outputs;
    const auto is_weight = [this](int32_t tensor) { return of_weights(tensor); };
    return !outputs.empty() && std::all_of(outputs.begin(), outputs.end(), is_weight);
  }
  /// True if it writes both.
  bool joined(int32_t op) const {
    const auto& about = graph_.op(op);
    const auto is_weight = [this](int32_t tensor) { return of_weights(tensor); };
    return about.phase == Phase::backward && about.collective < 0 && !all(op) &&
           std::any_of(about.outputs.begin(), about.outputs.end(), is_weight);
  }

 private:
  bool hands_on(int32_t op) const {
    const auto& about = graph_.op(op);
    if (about.phase == Phase::update) return true;
    if (about.phase != Phase::backward || !all(op)) return false;
    return carries(about) || (about.forward >= 0 && made_of_weights_[about.forward]);
  }

  const Graph& graph_;
  std::vector<bool> of_weights_;       // [tensor]
  std::vector<bool> made_of_weights_;  // [operator]
};

/// True if the gradient of an operand depends only on the other operands.
bool is_linear(const Operator& op) {
  const auto flops = operator_rule(op.type).flops;
  return flops == OperatorRule::Flops::product || flops == OperatorRule::Flops::convolution ||
         flops == OperatorRule::Flops::transposed || flops == OperatorRule::Flops::einsum;
}

class BackwardCut {
 public:
  BackwardCut(const Graph& graph, const std::vector<bool>& at_once)
      : graph_(graph),
        at_once_(at_once),
        gradients_(graph),
        write_gradients_(write_gradients(graph)),
        builder_(graph.name()),
        id_(at(graph.operator_count()), -1),
        tensor_(graph.tensors().size(), -1) {
    int32_t operators = graph.operator_count();
    for (int32_t op = 0; op < graph.operator_count(); ++op) operators += gradients_.joined(op);
    builder_.reserve(at(operators), graph.tensors().size());
  }

  /// W operators follow their B operators.
  DerivedGraph run() {
    for (int32_t op = 0; op < graph_.operator_count(); ++op) add(op);
    return join();
  }

  /// W operators follow the collective that reduces the outputs of their B operators; other
  /// operators stay whole.
  DerivedGraph run_behind_sums() {
    const auto summed = summed_up();
    std::vector<int32_t> waiting;
    bool passing = false;  // members of a collective were added last
    for (int32_t op = 0; op < graph_.operator_count(); ++op) {
      const bool member = graph_.op(op).collective >= 0;
      if ((passing && !member) || reads_missing(op)) add_weights(waiting);
      passing = member && graph_.op(op).phase == Phase::backward;
      if (!summed[at(op)] || !gradients_.joined(op)) {
        id_[op] = add_part(op, Kind::whole);
        continue;
      }
      id_[op] = add_part(op, Kind::input);
      waiting.push_back(op);
    }
    add_weights(waiting);
    return join();
  }

 private:
  DerivedGraph join() {
    builder_.colocate_as(graph_, id_);
    builder_.add_collectives_of(graph_, id_);
    return finish();
  }

  enum class Kind : uint8_t { whole, input, weight };

  void add_weights(std::vector<int32_t>& waiting) {
    for (const int32_t op : waiting) builder_.colocate(id_[op], add_part(op, Kind::weight));
    waiting.clear();
  }

  bool reads_missing(int32_t op) const {
    const auto& inputs = graph_.op(op).inputs;
    return std::any_of(inputs.begin(), inputs.end(),
                       [&](int32_t input) { return tensor_[input] < 0; });
  }

  /// [operator]: true for backward operators whose output a backward collective reads, directly or
  /// through a sum.
  std::vector<bool> summed_up() const {
    std::vector<bool> found(at(graph_.operator_count()), false);
    const auto mark = [&](int32_t op, const auto& self) -> void {
      for (const int32_t input : graph_.op(op).inputs) {
        const int32_t from = graph_.tensor(input).producer;
        if (graph_.op(from).phase != Phase::backward || found[at(from)]) continue;
        found[at(from)] = true;
        if (graph_.op(from).type == "Sum") self(from, self);
      }
    };
    for (int32_t op = 0; op < graph_.operator_count(); ++op)
      if (graph_.op(op).collective >= 0 && graph_.op(op).phase == Phase::backward) mark(op, mark);
    return found;
  }

  void add(int32_t op) {
    if (!gradients_.joined(op)) {
      id_[op] = add_part(op, Kind::whole);
      return;
    }
    id_[op] = add_part(op, Kind::input);
    builder_.colocate(id_[op], add_part(op, Kind::weight));
  }

  int32_t add_part(int32_t op, Kind kind) {
    Operator part = graph_.op(op);
    if (part.forward >= 0) part.forward = id_[part.forward];
    const auto inputs = kind == Kind::whole ? part.inputs : read_by(op, kind);
    part.inputs.clear();
    for (const int32_t input : inputs) part.inputs.push_back(tensor_[input]);
    if (kind == Kind::weight) {
      part.name += "/weight";
      part.attributes["weight_part"] = int64_t{1};
      if (!at_once_.empty() && at_once_[at(op)]) part.attributes["at_once"] = int64_t{1};
    }
    if (kind != Kind::whole) {
      part.flops /= 2;
      if (part.measured()) part.measured_time_s /= 2;
      part.traffic_bytes = traffic(op, kind, inputs);
      if (has_meaning(part)) restrict(part, op, kind);
    }
    const int32_t id = builder_.add_operator(std::move(part));
    origin_.push_back(op);
    for (const int32_t output : graph_.op(op).outputs)
      if (writes(kind, output)) tensor_[output] = builder_.add_output(id, graph_.tensor(output));
    return id;
  }

  /// Restricts the gradient attributes to a part's.
  void restrict(Operator& part, int32_t op, Kind kind) const {
    const auto& outputs = graph_.op(op).outputs;
    const auto found = part.attributes.find("gradient_inputs");
    if (found == part.attributes.end()) return;
    const auto& inputs = std::get<std::vector<int64_t>>(found->second);
    const size_t own = inputs.size();
    std::vector<int64_t> kept;
    for (size_t i = 0; i < own; ++i)
      if (writes(kind, outputs[i])) kept.push_back(inputs[i]);
    part.attributes["gradient_inputs"] = std::move(kept);
    const bool weights = outputs.size() > own && writes(kind, outputs.back());
    part.attributes["gradient_weights"] = int64_t{weights};
  }

  bool writes(Kind kind, int32_t output) const {
    return kind == Kind::whole || gradients_.of_weights(output) == (kind == Kind::weight);
  }

  /// Inputs of a part: for a linear operator only the operands that are weights, or only the
  /// others.
  TensorNumbers read_by(int32_t op, Kind kind) const {
    const auto& about = graph_.op(op);
    if (!is_linear(about)) return about.inputs;
    TensorNumbers read;
    for (const int32_t input : about.inputs) {
      const int32_t from = graph_.tensor(input).producer;
      const bool gradient = write_gradients_[from];
      const bool weights = gradients_.made_of_weights(from);
      if (gradient || weights == (kind == Kind::input)) read.push_back(input);
    }
    return read;
  }

  /// Traffic of a part: the operator's, scaled by the bytes that the part reads and writes.
  double traffic(int32_t op, Kind kind, const TensorNumbers& inputs) const {
    const double whole = moved(op, Kind::whole, graph_.op(op).inputs);
    const double share = whole > 0 ? moved(op, kind, inputs) / whole : 0.5;
    return graph_.op(op).traffic_bytes * share;
  }

  double moved(int32_t op, Kind kind, const TensorNumbers& inputs) const {
    const auto& about = graph_.op(op);
    double bytes = 0;
    const bool weights = kind != Kind::weight || !is_linear(about);
    if (about.forward >= 0 && weights)
      bytes += static_cast<double>(graph_.op(about.forward).parameter_bytes());
    for (const int32_t input : inputs) bytes += static_cast<double>(graph_.tensor(input).bytes);
    for (const int32_t output : about.outputs)
      if (writes(kind, output)) bytes += static_cast<double>(graph_.tensor(output).bytes);
    return bytes;
  }

  DerivedGraph finish() {
    DerivedGraph result;
    std::vector<int32_t> numbers;
    result.graph = builder_.build(&numbers);
    for (const int32_t number : numbers) result.origin.push_back(origin_[number]);
    return result;
  }

  const Graph& graph_;
  const std::vector<bool>& at_once_;
  Gradients gradients_;
  std::vector<bool> write_gradients_;  // [operator]
  GraphBuilder builder_;
  std::vector<int32_t> id_;      // in the builder, per operator: the whole or the B part
  std::vector<int32_t> tensor_;  // in the builder, per tensor
  std::vector<int32_t> origin_;  // per operator of the builder
};

}  // namespace

DerivedGraph overlap_sums(const Graph& graph) { return BackwardCut(graph, {}).run_behind_sums(); }

bool is_weight_part(const Operator& op) {
  return op.phase == Phase::backward && integer_attribute(op.attributes, "weight_part", 0) != 0;
}

std::vector<int32_t> input_parts(const Graph& graph) {
  std::vector<int32_t> found(static_cast<size_t>(graph.operator_count()), -1);
  for (int32_t op = 0; op < graph.operator_count(); ++op) {
    const auto& about = graph.op(op);
    if (about.phase == Phase::backward && about.forward >= 0 && !is_weight_part(about) &&
        about.type == graph.op(about.forward).type.text() + "Grad")
      found[about.forward] = op;
  }
  return found;
}

std::vector<bool> find_weight_work(const Graph& graph) {
  const Gradients gradients(graph);
  std::vector<bool> found;
  for (int32_t op = 0; op < graph.operator_count(); ++op)
    found.push_back(graph.op(op).phase == Phase::backward && gradients.all(op) &&
                    integer_attribute(graph.op(op).attributes, "at_once", 0) == 0);
  return found;
}

int32_t find_joined_backward(const Graph& graph) {
  const Gradients gradients(graph);
  for (int32_t op = 0; op < graph.operator_count(); ++op)
    if (gradients.joined(op)) return op;
  return -1;
}

DerivedGraph split_backward(const Graph& graph, const std::vector<bool>& at_once) {
  return BackwardCut(graph, at_once).run();
}

}  // namespace trinity
