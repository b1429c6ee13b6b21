#include "execute/operators.h"

#include <torch/csrc/autograd/engine.h>

#include <algorithm>

#include "base/error.h"
#include "base/index.h"
#include "execute/kernels/collectives.h"
#include "execute/kernels/numbers.h"
#include "graph/meaning.h"
#include "graph/operator_types.h"

namespace trinity {
namespace {

using torch::autograd::Edge;

/// Receives an input's gradient at the end of autograd's graph. In contrast to a leaf it does not
/// keep the input alive.
struct InputGradient : torch::autograd::Node {
  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override {
    return std::move(gradients);
  }
};

/// A node of autograd's graph in LibTorch's pointer type: std's in 1.13, its own in 2.13.
template <class Made, class Pointer = decltype(Edge::function)>
Pointer make_node() {
  if constexpr (std::is_same_v<Pointer, std::shared_ptr<torch::autograd::Node>>)
    return std::make_shared<Made>();
  else
    return c10::make_intrusive<Made>();
}

/// Makes results computed from `input` lead back to a new edge.
Edge begin_history(const at::Tensor& input) {
  auto node = make_node<InputGradient>();
  node->add_input_metadata(input);
  const Edge edge(std::move(node), 0);
  torch::autograd::impl::set_gradient_edge(input, edge);
  return edge;
}

/// Zeros with the shape of the tensor of an edge.
at::Tensor like(const Edge& edge) {
  return edge.function->input_metadata(edge.input_nr).zeros_like();
}

/// All tensors, flattened and concatenated.
at::Tensor bundle(const Operators::Tensors& parts) {
  if (parts.size() == 1) return parts[0].reshape({-1});
  Operators::Tensors flat;
  for (const auto& part : parts) flat.push_back(part.reshape({-1}));
  return at::cat(flat);
}

/// The classes of a part of split logits.
Classes classes_of(const Operator& loss, const at::Tensor& logits, const at::Tensor& labels) {
  const auto begin = list_attribute(loss, "input_begin");
  const int64_t first = begin.empty() ? 0 : has_classes_second(logits, labels) ? begin.at(1) : begin.back();
  return {first, integer_attribute(loss.attributes, "classes", first + logits.numel())};
}

}  // namespace

Operators::Operators(const Program& program, const Options& options)
    : program_(program),
      graph_(program.graph()),
      options_(options),
      weights_(program, {options.seed, options.real, 0.9, 0.9, 0.999, 1e-8,
                         options.stream ? 1 : options.micro_batches, options.stream}) {
  const auto count = at(graph_.operator_count());
  gradients_.resize(count);
  added_.resize(count);
  sent_.resize(count);
  data_.resize(count * at(options.micro_batches));
  ahead_.resize(data_.size());
  saved_.resize(data_.size());
  statistics_.resize(data_.size());
  losses_.resize(data_.size());
  wanted_.resize(count);
  for (int32_t op = 0; op < graph_.operator_count(); ++op) {
    const auto& of = graph_.op(op);
    if (program.is_input(op)) {
      auto& input = inputs_[op];
      input.whole = graph_.tensor(of.outputs.at(0));
      input.own = input.whole.shape;
      input.begin = list_attribute(of, "block_begin");
      const auto shape = list_attribute(of, "block_whole");
      if (!shape.empty()) input.whole.shape = shape;
    }
    if (program.duty(op) != Duty::gradient) continue;
    auto& wanted = wanted_[graph_.op(op).forward];
    wanted.resize(std::max(wanted.size(), graph_.op(graph_.op(op).forward).inputs.size()), false);
    for (const int64_t input : program.gradient(op).inputs) wanted[at(input)] = true;
  }
}

int64_t Operators::batch(int32_t op, int32_t micro_batch, int64_t step) const {
  const int64_t replica = integer_attribute(graph_.op(op).attributes, "replica", 0);
  const int64_t each = options_.micro_batches;
  return (step * program_.replicas() + replica) * each + micro_batch;
}

at::Tensor Operators::data(int32_t op, int32_t micro_batch, int64_t step,
                           const at::Tensor& spare) const {
  const auto& of = graph_.op(op);
  const auto& [whole, begin, own] = inputs_.at(op);
  const int64_t number = batch(op, micro_batch, step);
  at::Tensor drawn;
  if (options_.source) drawn = options_.source(of, whole, number, spare);
  if (!drawn.defined()) {
    const int64_t samples = whole.shape.empty() ? 1 : whole.shape[0];
    // Integers that index nothing are masks: 0 or 1.
    const int64_t least = integer_attribute(of.attributes, "index_bound", int64_t{1} << 40),
                  bound = least < int64_t{1} << 31 ? least : 2;
    const uint64_t key = seed_of(options_.seed, "data", text_attribute(of, kSource), 0);
    drawn = drawn_data(whole, key, number * samples, std::max<int64_t>(1, bound));
  }
  for (size_t d = 0; d < begin.size(); ++d)
    drawn = drawn.narrow(static_cast<int64_t>(d), begin[d], own[d]);
  return drawn.is_floating_point() ? drawn.to(options_.real).contiguous() : drawn.contiguous();
}

void Operators::make_data(int32_t op, int32_t micro_batch, const at::Device& device) {
  auto& ahead = ahead_[at_task(op, micro_batch)];
  const bool is_read = ahead.read.defined() && ahead.step == steps;
  auto made = is_read ? std::exchange(ahead.read, {}) : data(op, micro_batch, steps);
  if (is_read) ahead.spare = std::exchange(ahead.last, made);
  data_[at_task(op, micro_batch)] = made.to(device);
}

void Operators::read_ahead(int32_t op, int32_t micro_batch, int64_t step) {
  auto& ahead = ahead_[at_task(op, micro_batch)];
  ahead.step = step;
  ahead.read = data(op, micro_batch, step, std::exchange(ahead.spare, {}));
}

double Operators::loss(int32_t op, int32_t micro_batch, const Tensors& outputs) const {
  if (const int32_t of = program_.loss_of_total(op); of >= 0)
    return mean_loss(outputs.at(0)) * number_attribute(graph_.op(of), "mean_share", 1) *
           program_.loss_share(of);
  if (!program_.is_loss(op) || program_.is_part_of_loss(op)) return 0;
  if (graph_.op(op).type == "Add") return losses_[at_task(op, micro_batch)];
  return outputs.at(0).sum().item<double>() * program_.loss_share(op);
}

Operators::Tensors Operators::run(int32_t op, int32_t micro_batch, Tensors inputs) {
  switch (program_.duty(op)) {
    case Duty::data: return {std::exchange(data_[at_task(op, micro_batch)], {})};
    case Duty::forward:
    case Duty::replay: {
      auto outputs = forward(op, micro_batch, std::move(inputs));
      stand_in(op, outputs);
      return outputs;
    }
    case Duty::gradient: return backward(op, micro_batch, inputs);
    case Duty::move: {
      const at::NoGradGuard guard;
      const int64_t terms = integer_attribute(graph_.op(op).attributes, "terms", 0);
      if (terms > 0) return sums_of_terms(op, inputs, terms);
      inputs.resize(program_.arguments(op));
      return compute(op, micro_batch, std::move(inputs), {});
    }
    case Duty::update: return update(op, micro_batch, inputs);
    case Duty::send: return send(op);
    case Duty::fetch: return fetch(op, inputs);
    case Duty::reduce: return reduce(op, micro_batch, inputs);
    case Duty::gather: return gather(op, inputs);
  }
  return {};
}

/// The operator that it recomputes, or itself.
int32_t Operators::source_of(int32_t op) const {
  return program_.duty(op) == Duty::replay ? graph_.op(op).forward : op;
}

/// Start of an owner's weights in the outputs of a gather.
int32_t Operators::position(int32_t gather, int32_t owner, int64_t& begin) const {
  begin = 0;
  const auto& owners = program_.owners(gather);
  for (size_t i = 0; i < owners.size(); ++i) {
    if (owners[i] == owner) return static_cast<int32_t>(i);
    begin += weights_.elements(owners[i]);
  }
  return -1;
}

/// The weights that an operator runs with: its own, or gathered ones.
Operators::Tensors Operators::parameters(int32_t op, const Tensors& inputs) const {
  const int32_t of = source_of(op), from = program_.gathered_by(op);
  if (from < 0) return weights_.of(of);
  int64_t begin = 0;
  if (position(from, of, begin) < 0) return {};
  const auto& reads = graph_.op(op).inputs;
  size_t i = 0;
  while (graph_.tensor(reads[i]).producer != from) ++i;
  return weights_.unbundle(of, inputs[i].narrow(0, begin, weights_.elements(of)));
}

/// A kernel's outputs in the graph's shapes (a split may leave dimensions of 1, an operand that was
/// not kept may have been larger).
Operators::Tensors Operators::compute(int32_t op, int32_t micro_batch, Tensors inputs,
                                      Tensors parameters) const {
  const auto& of = graph_.op(op);
  KernelCall call{graph_.op(source_of(op)), std::move(inputs), std::move(parameters), {}, 0, 0,
                  options_.real};
  for (const int32_t output : of.outputs) call.outputs.push_back(graph_.tensor(output).shape);
  if (of.type == "Dropout") {
    call.seed = seed_of(options_.seed, "operator", text_attribute(call.op, kSource), 0);
    call.batch = batch(op, micro_batch, steps);
  }
  auto outputs = program_.kernel(op)(call);
  for (size_t i = 0; i < outputs.size() && i < of.outputs.size(); ++i) {
    const auto& shape = graph_.tensor(of.outputs[i]).shape.get();
    if (shape.empty() || outputs[i].sizes() == at::IntArrayRef(shape)) continue;
    const bool same_size = outputs[i].numel() == graph_.tensor(of.outputs[i]).elements();
    outputs[i] = same_size ? outputs[i].reshape(shape) : outputs[i].expand(shape).contiguous();
  }
  return outputs;
}

/// Adds outputs that the kernel omits, as empty tensors: such as the mask of a dropout, which
/// autograd keeps by itself.
void Operators::stand_in(int32_t op, Tensors& outputs) const {
  const auto& of = graph_.op(op);
  for (size_t i = outputs.size(); i < of.outputs.size(); ++i) {
    for (const int32_t reader : graph_.readers_of(of.outputs[i]))
      if (graph_.op(reader).phase == Phase::forward)
        throw Error("{} reads output {}, but the kernel writes only {}", graph_.op(reader).name, i + 1, outputs.size());
    outputs.push_back(at::empty({0}));
  }
}

/// Readers of the loss of a part of the classes receive the number, not the statistics.
void Operators::use_losses(int32_t op, Tensors& inputs) const {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const int32_t of = program_.loss_of_total(graph_.tensor(graph_.op(op).inputs[i]).producer);
    if (of < 0) continue;
    const double share = number_attribute(graph_.op(of), "mean_share", 1);
    inputs[i] = at::full({1}, mean_loss(inputs[i]) * share, inputs[i].options());
  }
}

/// Weight of a loss in a sum over all parts: 1 if it covers only its own rows; if it is equal in
/// all parts, it counts once.
double Operators::sum_of_losses(int32_t op, const Tensors& inputs) const {
  double sum = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto& from = graph_.op(graph_.tensor(graph_.op(op).inputs[i]).producer);
    const bool own_rows = number_attribute(from, "mean_share", 1) < 1;
    sum += inputs[i].sum().item<double>() *
           (own_rows ? number_attribute(from, "counts", 1) : program_.loss_share(op));
  }
  return sum;
}

Operators::Tensors Operators::forward(int32_t op, int32_t micro_batch, Tensors inputs) {
  const int32_t of = source_of(op);
  auto own = parameters(op, inputs);
  const int32_t from = program_.gathered_by(op);
  for (size_t i = 0; from >= 0 && i < program_.arguments(op); ++i) {
    const int32_t variable = graph_.tensor(graph_.op(op).inputs[i]).producer;
    int64_t begin = 0;
    if (!is_variable(graph_.op(variable)) || position(from, variable, begin) < 0) continue;
    const auto& reads = graph_.op(op).inputs;
    size_t gathered = 0;
    while (graph_.tensor(reads[gathered]).producer != from) ++gathered;
    inputs[i] = weights_
                    .unbundle(variable, inputs[gathered].narrow(0, begin,
                                                                weights_.elements(variable)))
                    .at(0)
                    .detach();
  }
  inputs.resize(program_.arguments(op));
  use_losses(op, inputs);
  if (program_.is_loss(op) && graph_.op(op).type == "Add")
    losses_[at_task(op, micro_batch)] = sum_of_losses(op, inputs);
  if (program_.is_part_of_loss(of)) {
    const at::NoGradGuard guard;
    return {loss_statistics(inputs[0], inputs[1], classes_of(graph_.op(of), inputs[0], inputs[1]))};
  }
  if (is_variable(graph_.op(of)) || !program_.keeps(op)) {
    const at::NoGradGuard guard;
    if (own.empty() && !graph_.op(of).parameters.empty()) return {at::empty({0})};  // a shard
    auto outputs = compute(op, micro_batch, std::move(inputs), std::move(own));
    for (auto& output : outputs) output = output.detach();
    return outputs;
  }
  Saved& keeps = saved_[at_task(of, micro_batch)];
  keeps = {};
  keeps.left = program_.gradient_parts(of);
  keeps.inputs.resize(inputs.size());
  const auto& arguments = graph_.op(op).inputs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].is_floating_point()) continue;
    const auto same = std::find(arguments.begin(), arguments.begin() + static_cast<std::ptrdiff_t>(i),
                                arguments[i]) -
                      arguments.begin();
    if (static_cast<size_t>(same) < i) {
      inputs[i] = inputs[at(same)];
      continue;
    }
    inputs[i] = inputs[i].detach();
    if (wants_gradient(of, i)) keeps.inputs[i] = begin_history(inputs[i]);
  }
  for (const auto& weight : own)
    if (weight.requires_grad())
      keeps.weights.push_back(torch::autograd::impl::gradient_edge(weight));
  const at::AutoGradMode enable(true);
  Tensors result;
  for (const auto& output : compute(op, micro_batch, std::move(inputs), std::move(own))) {
    keeps.outputs.push_back(torch::autograd::impl::gradient_edge(output));
    result.push_back(output.detach());
  }
  return result;
}

Operators::Tensors Operators::backward(int32_t op, int32_t micro_batch, const Tensors& inputs) {
  const int32_t forward = graph_.op(op).forward;
  if (program_.is_part_of_loss(forward)) return gradients_of_loss(op, micro_batch, inputs);
  const bool weights = program_.gradient(op).weights;
  if (is_variable(graph_.op(forward))) {  // passes its input on
    if (!program_.keeps_gradient(forward)) return {inputs[0].reshape({-1})};
    const auto like = weights_.of(forward).at(0).sizes();
    add_gradients(forward, {inputs[0].reshape(like)});
    return {at::empty({0})};
  }
  auto found = differentiate(op, micro_batch, inputs);
  if (!weights) return found;
  const auto own = found.begin() + static_cast<std::ptrdiff_t>(program_.gradient(op).inputs.size());
  Tensors gradients(own, found.end());
  found.erase(own, found.end());
  if (program_.keeps_gradient(forward)) {
    add_gradients(forward, std::move(gradients));
    found.push_back(at::empty({0}));
  } else {
    found.push_back(bundle(gradients));
  }
  return found;
}

/// Gradients of inputs, then of weights, by autograd of the forward operator alone.
Operators::Tensors Operators::differentiate(int32_t op, int32_t micro_batch,
                                            const Tensors& inputs) {
  const int32_t forward = graph_.op(op).forward;
  const Gradient& gradient = program_.gradient(op);
  Saved& keeps = saved_[at_task(forward, micro_batch)];
  std::vector<Edge> outputs, sources;
  for (const int64_t input : gradient.inputs) sources.push_back(keeps.inputs.at(at(input)));
  Tensors given;
  for (size_t i = 0; i < gradient.outputs.size(); ++i) {
    const auto output = at(gradient.outputs[i]);
    outputs.push_back(keeps.outputs.at(output));
    const auto& of = graph_.tensor(graph_.op(forward).outputs[output]);
    given.push_back(inputs[i].reshape(of.shape.get()));
  }
  if (outputs.empty()) {
    outputs.push_back(keeps.outputs.at(0));
    given.push_back(at::ones_like(like(outputs.back())));
  }
  if (gradient.weights) sources.insert(sources.end(), keeps.weights.begin(), keeps.weights.end());
  const bool last = --keeps.left == 0;
  auto found = torch::autograd::Engine::get_default_engine().execute(outputs, given, !last, false,
                                                                     false, sources);
  for (size_t i = 0; i < found.size(); ++i)
    if (!found[i].defined()) found[i] = like(sources[i]);
  if (last) keeps = {};
  return found;
}

/// After a gradient of the loss that is not the last, logits and labels follow.
Operators::Tensors Operators::gradients_of_loss(int32_t op, int32_t micro_batch,
                                                const Tensors& inputs) {
  const auto& forward = graph_.op(graph_.op(op).forward);
  const size_t given = program_.gradient(op).outputs.size();
  const auto &logits = inputs.at(given), &labels = inputs.at(given + 1);
  double scale = number_attribute(forward, "mean_share", 1);
  if (given > 0) scale *= inputs[0].item<double>();
  const auto statistics =
      std::exchange(statistics_[at_task(graph_.op(op).forward, micro_batch)], {});
  return {loss_gradient(logits, labels, statistics, classes_of(forward, logits, labels), scale)};
}

bool Operators::wants_gradient(int32_t forward, size_t argument) const {
  return wanted_[at(forward)].size() > argument && wanted_[at(forward)][argument];
}

/// Micro-batches accumulate in order of arrival, as in every framework. The first gradient may also
/// be another operator's value, so the first sum is not in place.
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

Operators::Tensors Operators::update(int32_t op, int32_t micro_batch, const Tensors& inputs) {
  const int32_t forward = graph_.op(op).forward;
  const int64_t before = options_.stream ? micro_batch : 0;
  at::Tensor share;
  if (program_.keeps_gradient(forward)) {
    weights_.update(op, gradients_[forward], learning_rate, before);
    gradients_[forward].clear();
    added_[forward] = 0;
  } else {
    share = weights_.update(op, {inputs.at(0)}, learning_rate, before);
  }
  if (graph_.op(op).outputs.empty()) return {};
  if (share.defined()) return {share};
  if (!program_.meets(op, steps)) return {at::empty({0})};
  return {weights_.bundle(forward)};
}

/// Fetches weights updated on another device.
Operators::Tensors Operators::fetch(int32_t op, const Tensors& inputs) {
  weights_.assign(graph_.op(op).forward, inputs.at(0));
  return {};
}

Operators::Tensors Operators::sums_of_terms(int32_t op, const Tensors& inputs,
                                            int64_t terms) const {
  Tensors sums;
  for (size_t k = 0; k < graph_.op(op).outputs.size(); ++k) {
    const auto first = inputs.begin() + static_cast<std::ptrdiff_t>(k * at(terms));
    at::Tensor sum = first[0].clone();
    for (int64_t i = 1; i < terms; ++i) sum.add_(first[i]);
    sums.push_back(std::move(sum));
  }
  return sums;
}

Operators::Tensors Operators::reduce(int32_t op, int32_t micro_batch, const Tensors& inputs) {
  const auto& of = graph_.op(op);
  std::vector<const Operator*> members;
  for (const int32_t member : members_of(op)) members.push_back(&graph_.op(member));
  const size_t each = of.type == "Broadcast" ? 1 : members.size();
  Tensors outputs;
  for (size_t k = 0; k < of.outputs.size(); ++k) {
    const auto first = inputs.begin() + static_cast<std::ptrdiff_t>(k * each);
    const Tensors given(first, first + static_cast<std::ptrdiff_t>(each));
    outputs.push_back(program_.merges(op)
                          ? merged(op, k, given)
                          : combine(of, members, given, graph_.tensor(of.outputs[k]).shape));
  }
  if (text_attribute(of, "reduction") == "weights") take_weights(op, outputs);
  if (const int32_t loss = program_.loss_of_total(op); loss >= 0)
    statistics_[at_task(loss, micro_batch)] = outputs[0];
  return outputs;
}

int64_t Operators::share_elements(int32_t gather, size_t member) const {
  int64_t sum = 0;
  for (const int32_t owner : program_.owners(members_of(gather)[member]))
    sum += weights_.share_elements(owner);
  return sum;
}

at::Tensor Operators::shares_of(int32_t gather, size_t member) const {
  const at::NoGradGuard guard;
  Tensors shares;
  for (const int32_t owner : program_.owners(members_of(gather)[member]))
    shares.push_back(weights_.share(owner));
  return at::cat(shares);
}

const std::vector<int32_t>& Operators::members_of(int32_t op) const {
  return graph_.collectives()[at(graph_.op(op).collective)].members;
}

/// Assembles all weights of a unit from all shards; or updated ones, which replace the old.
Operators::Tensors Operators::gather(int32_t op, const Tensors& inputs) {
  const at::NoGradGuard guard;
  const auto& of = graph_.op(op);
  const auto& members = members_of(op);
  std::vector<size_t> by_share(members.size());
  for (size_t i = 0; i < members.size(); ++i)
    by_share[at(integer_attribute(graph_.op(members[i]).attributes, "share",
                                  static_cast<int64_t>(i)))] = i;
  if (of.phase == Phase::update) {
    for (size_t k = 0; k < of.inputs.size(); ++k) {
      Tensors shares;
      for (const size_t i : by_share) shares.push_back(inputs[k * members.size() + i]);
      const int32_t update = graph_.tensor(of.inputs[k]).producer;
      weights_.assign(graph_.op(update).forward, at::cat(shares));
    }
    // the synchronisation after it takes them itself
    return Tensors(of.outputs.size(), at::empty({0}));
  }
  const auto sent = std::exchange(sent_[op], {});
  std::vector<int64_t> begin(members.size(), 0);
  Tensors parts;
  for (size_t k = 0; k < program_.owners(op).size(); ++k) {
    const auto here = weights_.share(program_.owners(op)[k]).device();
    for (const size_t i : by_share) {
      const int32_t owner = program_.owners(members[i]).at(k);
      if (sent.empty() || !sent[i].defined()) {
        parts.push_back(weights_.share(owner).to(here));
        continue;
      }
      const int64_t count = weights_.share_elements(owner);
      parts.push_back(sent[i].narrow(0, begin[i], count).to(here));
      begin[i] += count;
    }
  }
  return {at::cat(parts)};
}

}  // namespace trinity
