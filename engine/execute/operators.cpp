#include "execute/operators.h"

#include <torch/csrc/autograd/engine.h>

#include <algorithm>

#include "base/error.h"
#include "execute/numbers.h"

namespace trinity {
namespace {

using torch::autograd::Edge;

/// Where an input's gradient leaves autograd's graph. It does not hold the input, as a leaf would.
struct InputGradient : torch::autograd::Node {
  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override {
    return std::move(gradients);
  }
};

/// A node of autograd's graph behind the pointer that LibTorch uses: std's in 1.13, its own
/// in 2.13.
template <class Made, class Pointer = decltype(Edge::function)>
Pointer make_node() {
  if constexpr (std::is_same_v<Pointer, std::shared_ptr<torch::autograd::Node>>)
    return std::make_shared<Made>();
  else
    return c10::make_intrusive<Made>();
}

/// Lets what is computed from `input` lead back to an edge of its own.
Edge begin_history(const at::Tensor& input) {
  auto node = make_node<InputGradient>();
  node->add_input_metadata(input);
  const Edge edge(std::move(node), 0);
  torch::autograd::impl::set_gradient_edge(input, edge);
  return edge;
}

/// Zeros like the tensor that belongs to an edge.
at::Tensor like(const Edge& edge) {
  return edge.function->input_metadata(edge.input_nr).zeros_like();
}

}  // namespace

Operators::Operators(const Program& program, const Options& options)
    : program_(program), graph_(program.graph()), options_(options) {
  const auto count = static_cast<size_t>(graph_.operator_count());
  weights_.resize(count);
  gradients_.resize(count);
  added_.resize(count);
  data_.resize(count * static_cast<size_t>(options.micro_batches));
  saved_.resize(data_.size());
}

void Operators::make_weights(int32_t op, const at::Device& device) {
  for (const auto& parameter : graph_.op(op).parameters) {
    auto weight = first_weight(parameter, options_.seed, graph_.op(op)).to(device);
    if (parameter.trainable) weight.requires_grad_();
    weights_[op].push_back(std::move(weight));
  }
}

Operators::Tensors Operators::data(int32_t op, int32_t micro_batch) const {
  Tensors outputs;
  const auto& of = graph_.op(op);
  for (const int32_t output : of.outputs) {
    const auto& tensor = graph_.tensor(output);
    const int64_t samples = tensor.shape.empty() ? 1 : tensor.shape[0];
    const int64_t batch = steps * options_.micro_batches + micro_batch;
    // Whole numbers that nothing is numbered by are masks: 0 or 1.
    const int64_t least = program_.index_bound(output),
                  bound = least < int64_t{1} << 31 ? least : 2;
    const uint64_t key =
        seed_of(options_.seed, "data", of.name, static_cast<int64_t>(outputs.size()));
    outputs.push_back(drawn_data(tensor, key, batch * samples, std::max<int64_t>(1, bound)));
  }
  return outputs;
}

void Operators::make_data(int32_t op, int32_t micro_batch, const at::Device& device) {
  auto drawn = data(op, micro_batch);
  for (auto& tensor : drawn) tensor = tensor.to(device);
  data_[at(op, micro_batch)] = std::move(drawn);
}

bool Operators::is_loss(int32_t op) const {
  return program_.backward(op) >= 0 && program_.gradient(program_.backward(op)).outputs.empty();
}

Operators::Tensors Operators::run(int32_t op, int32_t micro_batch, Tensors inputs) {
  const auto& of = graph_.op(op);
  if (of.phase == Phase::update) {
    update(op);
    return {};
  }
  if (program_.is_input(op)) return std::exchange(data_[at(op, micro_batch)], {});
  if (of.phase == Phase::forward) {
    auto outputs = forward(op, micro_batch, std::move(inputs));
    stand_in(op, outputs);
    return outputs;
  }
  return backward(op, micro_batch, inputs);
}

/// A kernel's outputs in the shapes that the graph gives them (a split may leave dimensions of 1,
/// an operand that was not kept may have been larger).
Operators::Tensors Operators::compute(int32_t op, int32_t micro_batch, Tensors inputs) const {
  const auto& of = graph_.op(op);
  KernelCall call{of, std::move(inputs), weights_[op], {}, 0};
  for (const int32_t output : of.outputs) call.outputs.push_back(graph_.tensor(output).shape);
  call.seed =
      seed_of(options_.seed, "operator", of.name, steps * options_.micro_batches + micro_batch);
  Tensors outputs = program_.kernel(op)(call);
  for (size_t i = 0; i < outputs.size() && i < of.outputs.size(); ++i) {
    const auto& shape = graph_.tensor(of.outputs[i]).shape;
    if (outputs[i].sizes() == at::IntArrayRef(shape)) continue;
    const bool same_size = outputs[i].numel() == graph_.tensor(of.outputs[i]).elements();
    outputs[i] = same_size ? outputs[i].reshape(shape) : outputs[i].expand(shape).contiguous();
  }
  return outputs;
}

/// Adds outputs that the kernel left out, as empty tensors: such as the mask of a dropout, which
/// its backward operator is said to read and autograd keeps by itself.
void Operators::stand_in(int32_t op, Tensors& outputs) const {
  const auto& of = graph_.op(op);
  for (size_t i = outputs.size(); i < of.outputs.size(); ++i) {
    const auto [edge, end] = boost::out_edges(op, graph_.csr());
    for (auto e = edge; e != end; ++e) {
      const auto reader = static_cast<int32_t>(boost::target(*e, graph_.csr()));
      if (graph_.csr()[*e].tensor == of.outputs[i] && graph_.op(reader).phase == Phase::forward)
        throw Error(fmt::format("{} reads its output {}, the kernel makes {}",
                                graph_.op(reader).name, i + 1, outputs.size()));
    }
    outputs.push_back(at::empty({0}));
  }
}

Operators::Tensors Operators::forward(int32_t op, int32_t micro_batch, Tensors inputs) {
  const int32_t backward = program_.backward(op);
  if (backward < 0) {
    const at::NoGradGuard guard;
    return compute(op, micro_batch, std::move(inputs));
  }
  Saved& keeps = saved_[at(op, micro_batch)];
  keeps = {};
  for (const int32_t tensor : program_.gradient(backward).inputs) {
    at::Tensor begin;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (graph_.op(op).inputs[i] != tensor) continue;
      if (!begin.defined()) keeps.inputs.push_back(begin_history(begin = inputs[i].detach()));
      inputs[i] = begin;
    }
  }
  const at::AutoGradMode enable(true);
  Tensors result;
  for (const auto& output : compute(op, micro_batch, std::move(inputs))) {
    keeps.outputs.push_back(torch::autograd::impl::gradient_edge(output));
    result.push_back(output.detach());
  }
  return result;
}

Operators::Tensors Operators::backward(int32_t op, int32_t micro_batch, const Tensors& inputs) {
  if (program_.is_sum(op)) {
    const at::NoGradGuard guard;
    return compute(op, micro_batch, inputs);
  }
  const int32_t forward = graph_.op(op).forward;
  const Gradient& gradient = program_.gradient(op);
  const Saved keeps = std::exchange(saved_[at(forward, micro_batch)], {});
  std::vector<torch::autograd::Edge> outputs, sources = keeps.inputs;
  Tensors given;
  for (size_t i = 0; i < gradient.outputs.size(); ++i) {
    const auto output = static_cast<size_t>(gradient.outputs[i]);
    outputs.push_back(keeps.outputs[output]);
    given.push_back(inputs[i].reshape(graph_.tensor(graph_.op(forward).outputs[output]).shape));
  }
  if (outputs.empty()) {
    outputs.push_back(keeps.outputs[0]);
    given.push_back(at::ones_like(like(outputs.back())));
  }
  for (const auto& weight : weights_[forward])
    if (weight.requires_grad()) sources.push_back(torch::autograd::impl::gradient_edge(weight));
  auto found = torch::autograd::Engine::get_default_engine().execute(outputs, given, false, false,
                                                                     false, sources);
  for (size_t i = 0; i < found.size(); ++i)
    if (!found[i].defined()) found[i] = like(sources[i]);
  const auto own = found.begin() + static_cast<std::ptrdiff_t>(keeps.inputs.size());
  add_gradients(forward, {own, found.end()});
  found.resize(keeps.inputs.size());
  // The weights' gradients stay where the update is; this stands for them.
  if (gradient.weights) found.push_back(at::empty({0}));
  return found;
}

/// Micro-batches add up in the order in which they come, as in every framework. The first gradient
/// may be another operator's value too, so that the first sum is not made in place.
void Operators::add_gradients(int32_t forward, Tensors gradients) {
  const at::NoGradGuard guard;
  auto& sums = gradients_[forward];
  const int32_t before = added_[forward]++;
  if (before == 0) sums.resize(gradients.size());
  for (size_t i = 0; i < sums.size(); ++i) {
    if (before == 0)
      sums[i] = std::move(gradients[i]);
    else
      sums[i] = before == 1 ? sums[i] + gradients[i] : sums[i].add_(gradients[i]);
  }
}

void Operators::update(int32_t op) {
  const at::NoGradGuard guard;
  const auto forward = static_cast<size_t>(graph_.op(op).forward);
  const double rate = options_.learning_rate / options_.micro_batches;
  size_t next = 0;
  for (auto& weight : weights_[forward])
    if (weight.requires_grad()) weight.sub_(gradients_[forward][next++], rate);
  gradients_[forward].clear();
  added_[forward] = 0;
}

}  // namespace trinity
