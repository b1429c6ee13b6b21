#include "graph/training.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "graph/meaning.h"
#include "graph/operator_types.h"

namespace trinity {
namespace {

/// State of one lowering: the builder, and the gradients made so far.
class Lowering {
 public:
  Lowering(const Graph& forward, const TrainingOptions& options)
      : forward_(forward),
        options_(options),
        builder_(forward),
        wanted_(forward.tensors().size(), false),
        arrived_(forward.tensors().size()),
        backward_(forward.operators().size(), -1) {}

  Graph run() {
    find_wanted();
    for (int32_t id = forward_.operator_count() - 1; id >= 0; --id) add_backward(id);
    add_backward_collectives();
    return builder_.build();
  }

 private:
  /// A tensor needs a gradient if weights precede it.
  void find_wanted() {
    for (const auto& op : forward_.operators()) {
      bool wants = op.trainable_bytes() > 0;
      for (const int32_t input : op.inputs) wants = wants || wanted_[input];
      for (const int32_t output : op.outputs) wanted_[output] = wants && forward_.tensor(output).gradient;
    }
  }

  /// The gradient of a collective is a collective of its members' backward operators.
  void add_backward_collectives() {
    for (Collective collective : forward_.collectives()) {
      std::vector<int32_t> members;
      for (const int32_t member : collective.members)
        if (const int32_t grad = backward_[member]; grad >= 0) members.push_back(grad);
      if (members.empty()) continue;
      collective.name += "/grad";
      collective.members = std::move(members);
      if (collective.kind == CollectiveKind::reduce_scatter)
        collective.kind = CollectiveKind::all_gather;
      else if (collective.kind == CollectiveKind::all_gather)
        collective.kind = CollectiveKind::reduce_scatter;
      // The gradient of a broadcast is a reduction to the first member, which takes the same time.
      builder_.add_collective(std::move(collective));
    }
  }

  void add_backward(int32_t id) {
    const auto& op = forward_.op(id);
    const bool wanted = std::any_of(op.outputs.begin(), op.outputs.end(),
                                    [&](int32_t output) { return wanted_[output]; });
    if (!wanted) return;
    std::vector<int32_t> gradients = output_gradients(id);
    const bool sink = boost::out_degree(static_cast<int32_t>(id), forward_.csr()) == 0;
    if (gradients.empty() && !sink) return;

    if (passes_gradient(op, gradients)) return;
    const auto& rule = operator_rule(op.type);
    Operator backward;
    backward.name = op.name + "/grad";
    backward.type = op.type.text() + "Grad";
    backward.phase = Phase::backward;
    backward.attributes = op.attributes;
    if (is_depthwise(op)) backward.attributes["depthwise"] = int64_t{1};
    backward.forward = id;
    backward.measured_time_s = op.measured_backward_time_s;
    backward.inputs = std::move(gradients);
    const bool member = op.collective >= 0;  // sums and copies need no forward tensor
    if (rule.saves_input && !member)
      for (const int32_t input : op.inputs) backward.inputs.push_back(input);
    if (keeps_mask(op))
      backward.inputs.push_back(op.outputs[1]);
    else if (((rule.saves_output || op.attributes.contains("log_sum_exp")) && !member) || sink)
      for (const int32_t output : op.outputs) backward.inputs.push_back(output);
    const bool weights = op.trainable_bytes() > 0;
    backward.flops = op.flops * rule.backward_factor * wanted_share(op);
    const int32_t grad = builder_.add_operator(std::move(backward));
    backward_[id] = grad;
    if (weights || options_.colocate == TrainingOptions::Colocate::forward)
      builder_.colocate(id, grad);
    add_input_gradients(op, grad);
    if (weights) add_update(id, grad);
    state_traffic(op, grad);
    state_products(op, grad);
  }

  static bool keeps_mask(const Operator& op) {
    return op.type == "Dropout" && op.outputs.size() == 2;
  }

  /// Passes the gradient on without an operator if nothing is computed, as frameworks do for a sum.
  bool passes_gradient(const Operator& op, const std::vector<int32_t>& gradients) {
    if (!operator_rule(op.type).passes || op.measured() || op.collective >= 0) return false;
    if (gradients.size() != 1 || op.outputs.size() != 1 || op.trainable_bytes() > 0) return false;
    const auto wanted = [&](int32_t input) { return wanted_[input]; };
    const int64_t bytes = gradient_of(op.outputs[0]).bytes;
    for (const int32_t input : op.inputs)
      if (wanted(input) && gradient_of(input).bytes != bytes) return false;
    for (const int32_t input : op.inputs)
      if (wanted(input)) arrived_[input].push_back(gradients[0]);
    return true;
  }

  /// A matmul has two operands: fraction of its backward matmuls that are needed.
  double wanted_share(const Operator& op) const {
    if (!operator_rule(op.type).matrix) return 1;
    int32_t wanted = op.trainable_bytes() > 0 ? 1 : 0;
    for (const int32_t input : op.inputs) wanted += wanted_[input] ? 1 : 0;
    return wanted < 2 ? 0.5 : 1;
  }

  /// Gradients of an operator's outputs, one tensor per output that has any: the sum of the
  /// readers' contributions, as an operator of its own unless the profile includes that step.
  std::vector<int32_t> output_gradients(int32_t id) {
    const auto& op = forward_.op(id);
    std::vector<int32_t> result;
    for (const int32_t output : op.outputs) {
      const auto& parts = arrived_[output];
      if (parts.size() < 2 || op.measured()) {
        result.insert(result.end(), parts.begin(), parts.end());
        continue;
      }
      Operator sum;
      sum.name = result.empty() ? op.name + "/grad_sum"
                                : fmt::format("{}/grad_sum{}", op.name, result.size());
      sum.type = "Sum";
      sum.phase = Phase::backward;
      sum.forward = id;
      sum.inputs = parts;
      sum.flops = static_cast<double>(forward_.tensor(output).elements()) *
                  static_cast<double>(parts.size() - 1);
      const int32_t added = builder_.add_operator(std::move(sum));
      result.push_back(builder_.add_output(added, gradient_of(output)));
      builder_.colocate(id, added);
    }
    return result;
  }

  Tensor gradient_of(int32_t forward_tensor) const {
    const auto& of = forward_.tensor(forward_tensor);
    Tensor gradient;
    gradient.shape = of.shape;
    gradient.dtype = of.dtype;
    gradient.bytes = of.bytes;
    if (of.dtype == DType::float8) {  // matmuls of float8 write 16-bit results
      gradient.dtype = DType::bfloat16;
      gradient.bytes = of.elements() * dtype_bytes(gradient.dtype);
    }
    if (options_.gradient && is_variable(forward_.op(of.producer))) {
      gradient.dtype = *options_.gradient;
      gradient.bytes = of.elements() * dtype_bytes(gradient.dtype);
    }
    return gradient;
  }

  void add_input_gradients(const Operator& op, int32_t grad) {
    std::vector<int32_t> done;
    for (const int32_t input : op.inputs) {
      if (!wanted_[input]) continue;
      if (std::find(done.begin(), done.end(), input) != done.end()) continue;
      done.push_back(input);
      arrived_[input].push_back(builder_.add_output(grad, gradient_of(input)));
    }
  }

  void add_update(int32_t id, int32_t grad) {
    const auto& op = forward_.op(id);
    Tensor gradient;
    gradient.bytes = options_.gradient ? op.parameter_count() * dtype_bytes(*options_.gradient)
                                       : op.trainable_bytes();
    gradient.name = op.name + "/weight_grad";
    const int32_t tensor = builder_.add_output(grad, std::move(gradient));
    const auto states = static_cast<int64_t>(options_.optimiser);
    const int64_t copy = master_bytes(op);
    const int64_t state = states * (copy > 0 ? copy : op.trainable_bytes());
    const auto bytes = static_cast<double>(op.trainable_bytes());
    Operator update;
    update.name = op.name + "/update";
    update.type = "Update";
    update.phase = Phase::update;
    update.forward = id;
    update.inputs = {tensor};
    update.flops =
        2.0 * static_cast<double>(states + 1) * static_cast<double>(op.parameter_count());
    update.traffic_bytes = 3 * bytes + 2 * static_cast<double>(state + copy);  // w, g, state; write
    update.persistent_bytes = state + copy;
    builder_.colocate(id, builder_.add_operator(std::move(update)));
  }

  /// Half-precision weights and their optimiser state are kept in float32 (mixed precision
  /// training, Micikevicius et al. 2018): bytes of that copy, or 0.
  static int64_t master_bytes(const Operator& op) {
    int64_t bytes = 0;
    for (const auto& parameter : op.parameters)
      if (parameter.trainable && dtype_bytes(parameter.dtype) == 2)
        bytes += parameter.elements() * dtype_bytes(DType::float32);
    return bytes;
  }

  /// A backward operator reads its forward operator's weights in addition to its inputs and
  /// outputs, unless the forward operator only gathered from them.
  void state_traffic(const Operator& forward, int32_t grad) {
    auto& op = builder_.op(grad);
    const bool gathers = operator_rule(forward.type).gathers;
    double bytes = gathers ? 0 : static_cast<double>(forward.parameter_bytes());
    for (const int32_t input : op.inputs)
      if (!gathers || !is_variable(builder_.op(builder_.tensor(input).producer)))
        bytes += static_cast<double>(builder_.tensor(input).bytes);
    for (const int32_t output : op.outputs)
      bytes += static_cast<double>(builder_.tensor(output).bytes);
    op.traffic_bytes = bytes;
  }

  /// With attribute `own_products` every input's gradient is a kernel that reads the result's gradient,
  /// and writes a product of its size, which others then sum or cast to the input's shape and dtype.
  void state_products(const Operator& op, int32_t grad) {
    if (integer_attribute(op.attributes, "own_products", 0) == 0) return;
    auto& backward = builder_.op(grad);
    const int64_t bytes = gradient_of(op.outputs[0]).bytes;
    int64_t traffic = -bytes;  // read once in state_traffic()
    for (const int32_t input : op.inputs) {
      if (!wanted_[input]) continue;
      traffic += bytes;
      if (gradient_of(input).bytes == bytes) continue;
      traffic += 2 * bytes;
      backward.workspace_bytes += bytes;
    }
    backward.traffic_bytes += static_cast<double>(traffic);
  }

  const Graph& forward_;
  const TrainingOptions& options_;
  GraphBuilder builder_;
  std::vector<bool> wanted_;                   // per forward tensor
  std::vector<std::vector<int32_t>> arrived_;  // per forward tensor: gradient tensors
  std::vector<int32_t> backward_;              // per forward operator: its backward one, or -1
};

}  // namespace

Graph lower_to_training(const Graph& forward, const TrainingOptions& options) {
  if (forward.has_backward())
    throw ArgumentError("graph '{}' already has backward operators", forward.name());
  return Lowering(forward, options).run();
}

namespace {

double step_time_s(const Operator& op) {
  if (op.measured_time_s < 0)
    throw ArgumentError("fold_backward: operator '{}' has no measured time; use the graph of a profile", op.name);
  return op.measured_time_s + std::max(0.0, op.measured_backward_time_s) +
         number_attribute(op, "loader_time_s", 0);
}

}  // namespace

Graph fold_backward(const Graph& forward) {
  if (forward.has_backward() || !forward.collectives().empty())
    throw ArgumentError("fold_backward: graph '{}' is a whole training step, expected a forward graph", forward.name());
  std::vector<int32_t> order(static_cast<size_t>(forward.operator_count()));
  std::iota(order.begin(), order.end(), 0);
  const auto position = [&](int32_t op) { return integer_attribute(forward.op(op).attributes, "file_position", op); };
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return position(a) < position(b); });
  GraphBuilder builder(forward);
  for (const int32_t o : order) {
    auto& op = builder.op(o);
    op.measured_time_s = step_time_s(op);
    op.measured_backward_time_s = -1;
    builder.put_before(0, o);
  }
  return builder.build();
}

}  // namespace trinity
