#include "graph/split_backward.h"

#include <algorithm>

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
      : of_weights_(graph.tensors().size(), false),
        made_of_weights_(trinity::made_of_weights(graph)),
        all_(made_of_weights_.size()),
        joined_(made_of_weights_.size()) {
    std::vector<int32_t> readers(of_weights_.size(), 0), last(of_weights_.size(), 0);
    for (int32_t op = graph.operator_count() - 1; op >= 0; --op) {
      const auto& about = graph.op(op);
      size_t weights = 0;
      for (const int32_t output : about.outputs) {
        of_weights_[output] = readers[output] > 0 && last[output] == readers[output];
        weights += of_weights_[output];
      }
      all_[op] = weights > 0 && weights == about.outputs.size();
      joined_[op] = weights > 0 && !all_[op] && about.phase == Phase::backward && about.collective < 0;
      const bool hands_on = this->hands_on(about, op);
      for (const int32_t input : about.inputs) {
        ++readers[input];
        last[input] += hands_on;
      }
    }
  }

  bool of_weights(int32_t tensor) const { return of_weights_[tensor]; }
  bool made_of_weights(int32_t op) const { return made_of_weights_[op]; }
  bool all(int32_t op) const { return all_[op]; }
  /// True if it writes both.
  bool joined(int32_t op) const { return joined_[op]; }

 private:
  bool hands_on(const Operator& about, int32_t op) const {
    if (about.phase == Phase::update) return true;
    if (about.phase != Phase::backward || !all(op)) return false;
    return carries(about) || (about.forward >= 0 && made_of_weights_[about.forward]);
  }

  std::vector<bool> of_weights_;                     // [tensor]
  std::vector<bool> made_of_weights_, all_, joined_;  // [operator]
};

/// True if the gradient of an operand depends only on the other operands.
bool is_linear(const Operator& op) {
  const auto flops = operator_rule(op.type).flops;
  return flops == OperatorRule::Flops::product || flops == OperatorRule::Flops::convolution ||
         flops == OperatorRule::Flops::transposed || flops == OperatorRule::Flops::einsum;
}

class BackwardCut {
 public:
  BackwardCut(Graph graph, const std::vector<bool>& at_once)
      : at_once_(at_once),
        gradients_(graph),
        write_gradients_(write_gradients(graph)),
        builder_(std::move(graph)),
        operators_(builder_.operator_count()) {
    int32_t operators = operators_;
    for (int32_t op = 0; op < operators_; ++op) operators += gradients_.joined(op);
    builder_.reserve(at(operators), at(builder_.tensor_count()));
  }

  /// W operators follow their B operators.
  DerivedGraph run() {
    for (int32_t op = 0; op < operators_; ++op)
      if (gradients_.joined(op)) cut(op, op + 1);
    return builder_.derive(origin_);
  }

  /// W operators follow the collective that reduces the outputs of their B operators; other
  /// operators stay whole.
  DerivedGraph run_behind_sums() {
    const auto summed = summed_up();
    std::vector<int32_t> waiting;
    bool passing = false;  // members of a collective were last
    const auto add_weights = [&](int32_t before) {
      for (const int32_t op : waiting) cut(op, before);
      waiting.clear();
    };
    for (int32_t op = 0; op < operators_; ++op) {
      const bool member = builder_.op(op).collective >= 0;
      if ((passing && !member) || reads_of(op, waiting)) add_weights(op);
      passing = member && builder_.op(op).phase == Phase::backward;
      if (summed[at(op)] && gradients_.joined(op)) waiting.push_back(op);
    }
    add_weights(operators_);
    return builder_.derive(origin_);
  }

 private:
  enum class Kind : uint8_t { whole, input, weight };

  /// Whether an operator reads a weight gradient of one of these.
  bool reads_of(int32_t op, const std::vector<int32_t>& waiting) const {
    const auto& inputs = builder_.op(op).inputs;
    return std::any_of(inputs.begin(), inputs.end(), [&](int32_t input) {
      return gradients_.of_weights(input) &&
             std::find(waiting.begin(), waiting.end(), builder_.tensor(input).producer) != waiting.end();
    });
  }

  /// [operator]: true for backward operators whose output a backward collective reads, directly or
  /// through a sum.
  std::vector<bool> summed_up() const {
    std::vector<bool> found(at(operators_), false);
    const auto mark = [&](int32_t op, const auto& self) -> void {
      for (const int32_t input : builder_.op(op).inputs) {
        const int32_t from = builder_.tensor(input).producer;
        if (builder_.op(from).phase != Phase::backward || found[at(from)]) continue;
        found[at(from)] = true;
        if (builder_.op(from).type == "Sum") self(from, self);
      }
    };
    for (int32_t op = 0; op < operators_; ++op)
      if (builder_.op(op).collective >= 0 && builder_.op(op).phase == Phase::backward) mark(op, mark);
    return found;
  }

  /// Makes B of an operator and puts its W there.
  void cut(int32_t op, int32_t before) {
    const auto outputs = builder_.op(op).outputs;
    Operator weight = part(op, Kind::weight);
    builder_.op(op) = part(op, Kind::input);
    const int32_t id = builder_.add_operator(std::move(weight));
    origin_.push_back(op);
    builder_.put_before(before, id);
    builder_.colocate(op, id);
    for (const int32_t output : outputs)
      if (gradients_.of_weights(output)) builder_.move_output(output, id);
  }

  Operator part(int32_t op, Kind kind) const {
    Operator part = builder_.op(op);
    part.inputs = read_by(op, kind);
    if (kind == Kind::weight) {
      part.name += "/weight";
      part.attributes["weight_part"] = int64_t{1};
      if (!at_once_.empty() && at_once_[at(op)]) part.attributes["at_once"] = int64_t{1};
    }
    part.flops /= 2;
    if (part.measured()) part.measured_time_s /= 2;
    part.traffic_bytes = traffic(op, kind, part.inputs);
    if (has_meaning(part)) restrict(part, op, kind);
    return part;
  }

  /// Restricts the gradient attributes to a part's.
  void restrict(Operator& part, int32_t op, Kind kind) const {
    const auto& outputs = builder_.op(op).outputs;
    const auto* found = find_attribute<std::vector<int64_t>>(part.attributes, "gradient_inputs");
    if (!found) return;
    const auto& inputs = *found;
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
    const auto& about = builder_.op(op);
    if (!is_linear(about)) return about.inputs;
    TensorNumbers read;
    for (const int32_t input : about.inputs) {
      const int32_t from = producer(input);
      const bool gradient = write_gradients_[from];
      const bool weights = gradients_.made_of_weights(from);
      if (gradient || weights == (kind == Kind::input)) read.push_back(input);
    }
    return read;
  }

  /// The operator of the graph that wrote it.
  int32_t producer(int32_t tensor) const {
    const int32_t from = builder_.tensor(tensor).producer;
    return from < operators_ ? from : origin_[from - operators_];
  }

  /// Traffic of a part: the operator's, scaled by the bytes that the part reads and writes.
  double traffic(int32_t op, Kind kind, const TensorNumbers& inputs) const {
    const double whole = moved(op, Kind::whole, builder_.op(op).inputs);
    const double share = whole > 0 ? moved(op, kind, inputs) / whole : 0.5;
    return builder_.op(op).traffic_bytes * share;
  }

  double moved(int32_t op, Kind kind, const TensorNumbers& inputs) const {
    const auto& about = builder_.op(op);
    double bytes = 0;
    const bool weights = kind != Kind::weight || !is_linear(about);
    if (about.forward >= 0 && weights)
      bytes += static_cast<double>(builder_.op(about.forward).parameter_bytes());
    for (const int32_t input : inputs) bytes += static_cast<double>(builder_.tensor(input).bytes);
    for (const int32_t output : about.outputs)
      if (writes(kind, output)) bytes += static_cast<double>(builder_.tensor(output).bytes);
    return bytes;
  }

  const std::vector<bool>& at_once_;
  Gradients gradients_;
  std::vector<bool> write_gradients_;  // [operator of the graph]
  GraphBuilder builder_;
  int32_t operators_;            // of the graph
  std::vector<int32_t> origin_;  // [W operator]
};

}  // namespace

DerivedGraph overlap_sums(Graph graph) { return BackwardCut(std::move(graph), {}).run_behind_sums(); }

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

DerivedGraph split_backward(Graph graph, const std::vector<bool>& at_once) {
  return BackwardCut(std::move(graph), at_once).run();
}

}  // namespace trinity
