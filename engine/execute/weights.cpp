#include "execute/weights.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/index.h"
#include "execute/kernels/numbers.h"
#include "graph/meaning.h"

namespace trinity {
namespace {

/// The block of a full tensor that begins at `begin`, which may reach beyond its end
/// (SplitOptions::tensor); all of it if `begin` is empty.
at::Tensor block_of(at::Tensor whole, const std::vector<int64_t>& begin, at::IntArrayRef shape) {
  for (size_t d = 0; d < begin.size(); ++d) {
    const auto axis = static_cast<int64_t>(d);
    const int64_t first = std::min(begin[d], whole.size(axis));
    whole = whole.narrow(axis, first, std::min(shape[d], whole.size(axis) - first));
  }
  return whole;
}

/// The same, padded with zeros.
at::Tensor padded_block_of(const at::Tensor& whole, const std::vector<int64_t>& begin,
                           at::IntArrayRef shape) {
  const auto block = block_of(whole, begin, shape);
  if (begin.empty() || block.sizes() == shape) return block;
  auto padded = at::zeros(shape, block.options());
  block_of(padded, std::vector<int64_t>(begin.size(), 0), block.sizes()).copy_(block);
  return padded;
}

int64_t replica_of(const Operator& op) { return integer_attribute(op.attributes, "replica", 0); }
int64_t share_of(const Operator& op) {
  return integer_attribute(op.attributes, "share", replica_of(op));
}
int64_t shares_of(const Operator& op) { return integer_attribute(op.attributes, "shares", 1); }

}  // namespace

Weights::Weights(const Program& program, const Options& options)
    : program_(program), graph_(program.graph()), options_(options) {
  const auto count = at(graph_.operator_count());
  weights_.resize(count);
  shares_.resize(count);
  states_.resize(count);
  updates_.assign(count, -1);
  for (int32_t op = 0; op < graph_.operator_count(); ++op)
    if (program.duty(op) == Duty::update && graph_.op(op).forward >= 0)
      updates_[graph_.op(op).forward] = op;
}

/// The shape of a weight's whole block.
const std::vector<int64_t> Weights::shape(int32_t op, size_t parameter) const {
  const auto stated = fmt::format("weight{}_shape", parameter);
  const auto& of = graph_.op(op);
  return of.attributes.contains(stated) ? list_attribute(of, stated)
                                        : of.parameters[parameter].shape.get();
}

int64_t Weights::elements(int32_t op) const {
  int64_t sum = 0;
  for (size_t i = 0; i < graph_.op(op).parameters.size(); ++i) {
    if (!graph_.op(op).parameters[i].trainable) continue;
    sum += c10::multiply_integers(shape(op, i));
  }
  return sum;
}

int64_t Weights::share_elements(int32_t op) const {
  const auto& of = graph_.op(op);
  const int64_t count = elements(op), share = share_of(of);
  return share_begin(count, shares_of(of), share + 1) - share_begin(count, shares_of(of), share);
}

/// A copy of the trainable weights, concatenated.
at::Tensor Weights::bundle(int32_t op) const {
  const at::NoGradGuard guard;
  if (has_share(op)) return shares_[op].clone();
  Tensors flat;
  for (const auto& weight : weights_[op])
    if (weight.requires_grad()) flat.push_back(weight.detach().reshape({-1}));
  return flat.size() == 1 ? flat[0].clone() : at::cat(flat);
}

void Weights::make(int32_t op, const at::Device& device) {
  const auto& of = graph_.op(op);
  if (of.phase != Phase::forward || of.parameters.empty()) return;
  auto& made = weights_[op];
  made.clear();
  shares_[op] = at::Tensor();
  for (size_t i = 0; i < of.parameters.size(); ++i) {
    Parameter whole = of.parameters[i];
    const auto block = shape(op, i), begin = list_attribute(of, fmt::format("weight{}_begin", i));
    whole.shape = begin.empty() ? block : list_attribute(of, fmt::format("weight{}_whole", i));
    auto drawn = first_weight(whole, options_.seed, of, i == 0);
    auto weight = padded_block_of(drawn, begin, block).to(device, options_.real).contiguous();
    if (whole.trainable) weight.requires_grad_();
    made.push_back(std::move(weight));
  }
  const int64_t shares = shares_of(of);
  if (shares == 1) return;
  const at::NoGradGuard guard;
  const int64_t count = elements(op), begin = share_begin(count, shares, share_of(of));
  const int64_t end = share_begin(count, shares, share_of(of) + 1);
  const auto whole = bundle(op);
  shares_[op] = whole.narrow(0, begin, end - begin).clone();
  made.clear();
}

Weights::Tensors Weights::unbundle(int32_t op, const at::Tensor& bundle) const {
  Tensors result;
  int64_t begin = 0;
  for (size_t i = 0; i < graph_.op(op).parameters.size(); ++i) {
    const auto shape_of = shape(op, i);
    const int64_t count = c10::multiply_integers(shape_of);
    auto weight = bundle.narrow(0, begin, count).view(shape_of).detach();
    weight.requires_grad_();
    result.push_back(std::move(weight));
    begin += count;
  }
  return result;
}

void Weights::assign(int32_t op, const at::Tensor& bundle) {
  const at::NoGradGuard guard;
  if (has_share(op)) shares_[op].copy_(bundle);
  int64_t begin = 0;
  for (auto& weight : weights_[op]) {
    if (!weight.requires_grad()) continue;
    weight.copy_(bundle.narrow(0, begin, weight.numel()).view(weight.sizes()));
    begin += weight.numel();
  }
}

std::string Weights::kind_of(int32_t op) const {
  const int32_t update = update_of(op);
  return update < 0 ? std::string() : text_attribute(graph_.op(update), "optimiser");
}

/// SGD: Robbins and Monro 1951. Momentum as in PyTorch: v = 0.9 v + g, w -= rate v. Adam: Kingma
/// and Ba 2015, algorithm 1.
void Weights::step(const Step& about, at::Tensor& weight, const at::Tensor& gradient,
                   State& state, size_t number) const {
  const double parts = about.parts, rate = about.learning_rate;
  if (about.kind == "sgd" || about.kind.empty()) {
    weight.sub_(gradient, rate / parts);
    return;
  }
  const auto mean = parts == 1 ? gradient : gradient / parts;
  for (auto* list : {&state.first, &state.second})
    while (list->size() <= number) list->emplace_back();
  auto& first = state.first[number];
  auto& second = state.second[number];
  if (!first.defined()) first = at::zeros_like(weight.detach());
  if (about.kind == "momentum") {
    first.mul_(options_.momentum).add_(mean);
    weight.sub_(first, rate);
    return;
  }
  if (!second.defined()) second = at::zeros_like(weight.detach());
  const double b1 = options_.beta1, b2 = options_.beta2;
  first.mul_(b1).add_(mean, 1 - b1);
  second.mul_(b2).addcmul_(mean, mean, 1 - b2);
  const auto scale = (second / (1 - std::pow(b2, about.number))).sqrt_().add_(options_.epsilon);
  weight.addcdiv_(first, scale, -rate / (1 - std::pow(b1, about.number)));
}

at::Tensor Weights::update(int32_t op, const Tensors& gradient, double learning_rate,
                           int64_t before) {
  const at::NoGradGuard guard;
  const int32_t forward = graph_.op(op).forward;
  auto& state = states_[forward];
  const int64_t replicas =
      integer_attribute(graph_.op(op).attributes, "mean_of", program_.replicas());
  const Step about{text_attribute(graph_.op(op), "optimiser"),
                   static_cast<double>(options_.micro_batches * replicas), learning_rate,
                   static_cast<double>(updates + before + 1)};
  if (has_share(forward)) {
    step(about, shares_[forward], gradient[0], state, 0);
    return {};
  }
  const int64_t shares = shares_of(graph_.op(op));
  if (shares > 1) {
    const int64_t count = elements(forward);
    const int64_t begin = share_begin(count, shares, share_of(graph_.op(op)));
    auto own = at::empty_like(gradient[0]);
    int64_t at_weight = 0;
    for (const auto& weight : weights_[forward]) {
      if (!weight.requires_grad()) continue;
      const int64_t first = std::max(begin, at_weight);
      const int64_t last = std::min(begin + own.numel(), at_weight + weight.numel());
      if (first < last)
        own.narrow(0, first - begin, last - first)
            .copy_(weight.detach().reshape({-1}).narrow(0, first - at_weight, last - first));
      at_weight += weight.numel();
    }
    step(about, own, gradient[0], state, 0);
    return own;
  }
  size_t number = 0;
  int64_t begin = 0;
  for (auto& weight : weights_[forward]) {
    if (!weight.requires_grad()) continue;
    const auto own = gradient.size() > 1 || gradient[0].sizes() == weight.sizes()
                         ? gradient[number]
                         : gradient[0].narrow(0, begin, weight.numel()).view(weight.sizes());
    if (options_.keeps_old) weight = weight.detach().clone();
    step(about, weight, own, state, number++);
    if (options_.keeps_old) weight.requires_grad_();
    begin += weight.numel();
  }
  return {};
}

/// Identifies a bundle of the full weights: its operator and the start of its blocks.
std::string Weights::key(int32_t op) const {
  std::string text = text_attribute(graph_.op(op), kSource);
  for (size_t i = 0; i < graph_.op(op).parameters.size(); ++i) {
    text += '|';
    for (const int64_t begin : list_attribute(graph_.op(op), fmt::format("weight{}_begin", i)))
      text += fmt::format("{},", begin);
  }
  return text;
}

std::vector<Weights::Piece> Weights::weight_pieces(int32_t op) const {
  const auto& of = graph_.op(op);
  if (has_share(op)) return {{share_begin(elements(op), shares_of(of), share_of(of)), shares_[op]}};
  return state_pieces(op, weights_[op]);
}

/// Tensors by trainable weight, or of a shard, as pieces of the bundle.
std::vector<Weights::Piece> Weights::state_pieces(int32_t op, const Tensors& states) const {
  const int32_t update = update_of(op);
  std::vector<Piece> pieces;
  if (states.size() == 1 && update >= 0 && shares_of(graph_.op(update)) > 1 &&
      states.data() != weights_[op].data()) {
    const auto& of = graph_.op(update);
    return {{share_begin(elements(op), shares_of(of), share_of(of)), states[0]}};
  }
  int64_t begin = 0;
  for (const auto& tensor : states) {
    if (states.data() == weights_[op].data() && !tensor.requires_grad()) continue;
    pieces.push_back({begin, tensor.detach().view({-1})});
    begin += tensor.numel();
  }
  return pieces;
}

void Weights::collect(const Select& select, const std::string& suffix,
                      std::vector<NamedTensor>& into) const {
  std::map<std::string, std::pair<int32_t, at::Tensor>> bundles;
  for (int32_t op = 0; op < graph_.operator_count(); ++op) {
    const auto found = share_ ? shared_pieces(select, op) : pieces(select, op);
    if (found.empty()) continue;
    auto& [owner, bundle] = bundles.try_emplace(key(op), op, at::Tensor()).first->second;
    if (!bundle.defined())
      bundle = at::zeros({elements(op)}, found[0].values.options().device(at::kCPU));
    for (const auto& piece : found)
      bundle.narrow(0, piece.begin, piece.values.numel()).copy_(piece.values);
  }
  std::map<std::string, at::Tensor> wholes;
  for (const auto& [name, entry] : bundles) {
    const auto& [op, bundle] = entry;
    const auto& of = graph_.op(op);
    int64_t begin = 0;
    for (size_t i = 0; i < of.parameters.size(); ++i) {
      if (!of.parameters[i].trainable) continue;
      const auto block = shape(op, i), at_whole = list_attribute(of, fmt::format("weight{}_begin", i));
      auto& whole =
          wholes[text_attribute(of, kSource) + "/" + of.parameters[i].name + suffix];
      if (!whole.defined())
        whole = at::zeros(at_whole.empty() ? block
                                           : list_attribute(of, fmt::format("weight{}_whole", i)),
                          bundle.options());
      const int64_t count = c10::multiply_integers(block);
      const auto own = block_of(whole, at_whole, block);
      own.copy_(block_of(bundle.narrow(0, begin, count).view(block),
                         std::vector<int64_t>(at_whole.size(), 0), own.sizes()));
      begin += count;
    }
  }
  for (auto& [name, whole] : wholes) into.push_back({name, whole});
}

/// An operator's bundle, assembled from values by name.
at::Tensor Weights::bundle_of(int32_t op, const std::string& suffix, const ByName& given) const {
  const auto& of = graph_.op(op);
  Tensors parts;
  for (size_t i = 0; i < of.parameters.size(); ++i) {
    if (!of.parameters[i].trainable) continue;
    const auto name = text_attribute(of, kSource) + "/" + of.parameters[i].name + suffix;
    const auto found = given.find(name);
    if (found == given.end())
      throw ArgumentError("weights: expected a weight '{}', got none", name);
    const auto block = shape(op, i), begin = list_attribute(of, fmt::format("weight{}_begin", i));
    const auto whole = begin.empty() ? block : list_attribute(of, fmt::format("weight{}_whole", i));
    if (found->second->sizes() != at::IntArrayRef(whole))
      throw ArgumentError("weights: '{}': expected the shape [{}], got [{}]", name, fmt::join(whole, ", "),
                          fmt::join(found->second->sizes(), ", "));
    parts.push_back(padded_block_of(*found->second, begin, block).reshape({-1}));
  }
  return at::cat(parts);
}

void Weights::spread(const Select& select, const std::string& suffix,
                     const std::vector<NamedTensor>& from) const {
  ByName given;
  for (const auto& entry : from) given[entry.name] = &entry.values;
  for (int32_t op = 0; op < graph_.operator_count(); ++op) {
    const auto there = pieces(select, op);
    if (there.empty()) continue;
    const auto bundle = bundle_of(op, suffix, given);
    for (const auto& piece : there) {
      auto values = piece.values;
      values.copy_(bundle.narrow(0, piece.begin, values.numel()));
    }
  }
}

bool Weights::includes(const Select& select, int32_t op) const {
  const auto& of = graph_.op(op);
  if (of.phase != Phase::forward || of.parameters.empty()) return false;
  const bool other = select.replica != kAll && replica_of(of) != select.replica;
  return !other && (select.kind.empty() || kind_of(op) == select.kind);
}

/// The pieces that this process owns.
std::vector<Weights::Piece> Weights::pieces(const Select& select, int32_t op) const {
  if (!includes(select, op)) return {};
  if (select.kind.empty()) return weight_pieces(op);
  return state_pieces(op, select.second ? states_[op].second : states_[op].first);
}

/// The pieces that all processes own, concatenated.
std::vector<Weights::Piece> Weights::shared_pieces(const Select& select, int32_t op) const {
  const bool is_state = !select.kind.empty();
  if (!includes(select, op) || (is_state && updates == 0 && !has_states_)) return {};
  Tensors own;
  for (const auto& piece : pieces(select, op)) own.push_back(piece.values.cpu());
  const auto& owner = is_state ? graph_.op(update_of(op)) : graph_.op(op);
  const int64_t shares = shares_of(owner), count = elements(op);
  const int64_t begin = shares > 1 ? share_begin(count, shares, share_of(owner)) : 0;
  const int64_t end = shares > 1 ? share_begin(count, shares, share_of(owner) + 1) : count;
  Piece all{begin, own.empty() ? at::zeros({end - begin}, options_.real) : at::cat(own)};
  share_(op, all.values);
  return {all};
}

std::vector<NamedTensor> Weights::mean_of_replicas() const {
  std::vector<NamedTensor> sum;
  for (int32_t replica = 0; replica < program_.replicas(); ++replica) {
    std::vector<NamedTensor> own;
    collect({"", false, replica}, "", own);
    if (sum.empty())
      sum = std::move(own);
    else
      for (size_t i = 0; i < sum.size(); ++i) sum[i].values.add_(own[i].values);
  }
  double holders = program_.replicas();  // owners per number: with shards one per inner group
  for (int32_t op = 0; op < graph_.operator_count(); ++op)
    if (has_share(op)) holders = program_.replicas() / static_cast<double>(shares_of(graph_.op(op)));
  for (auto& weight : sum) weight.values.div_(holders);
  return sum;
}

namespace {

struct StateName {
  const char *kind, *suffix;
  bool second;
};
constexpr StateName kStates[] = {{"", "", false},
                                 {"momentum", "#momentum", false},
                                 {"adam", "#adam_m", false},
                                 {"adam", "#adam_v", true}};

}  // namespace

std::vector<NamedTensor> Weights::named(bool with_states) const {
  const at::NoGradGuard guard;
  std::vector<NamedTensor> all;
  if (!with_states) {
    if (program_.replicas_differ()) return mean_of_replicas();
    collect({"", false, kAll}, "", all);
    return all;
  }
  const int32_t replicas = program_.replicas_differ() ? program_.replicas() : 1;
  for (int32_t replica = 0; replica < replicas; ++replica)
    for (const auto& [kind, suffix, second] : kStates)
      collect({kind, second, replicas > 1 ? replica : kAll},
              suffix + (replicas > 1 ? fmt::format("@{}", replica) : std::string()), all);
  return all;
}

void Weights::set_named(const std::vector<NamedTensor>& values, bool with_states) {
  const at::NoGradGuard guard;
  if (!with_states) return spread({}, "", values);
  make_states();
  const int32_t replicas = program_.replicas_differ() ? program_.replicas() : 1;
  for (int32_t replica = 0; replica < replicas; ++replica)
    for (const auto& [kind, suffix, second] : kStates)
      spread({kind, second, replicas > 1 ? replica : kAll},
             suffix + (replicas > 1 ? fmt::format("@{}", replica) : std::string()), values);
}

/// Initialises the optimiser state to zeros.
void Weights::make_states() {
  has_states_ = true;
  for (int32_t op = 0; op < graph_.operator_count(); ++op) {
    const auto kind = kind_of(op);
    if (kind.empty() || kind == "sgd" || (weights_[op].empty() && !has_share(op))) continue;
    State& state = states_[op];
    const auto& update = graph_.op(update_of(op));
    for (auto* list : {&state.first, &state.second}) {
      list->clear();
      if (list == &state.second && kind != "adam") continue;
      const int64_t shares = shares_of(update);
      const auto like = has_share(op) ? shares_[op] : weights_[op][0].detach();
      if (shares > 1) {
        const int64_t count = elements(op), share = share_of(update);
        list->push_back(at::zeros(
            {share_begin(count, shares, share + 1) - share_begin(count, shares, share)},
            like.options()));
        continue;
      }
      for (const auto& weight : weights_[op])
        if (weight.requires_grad()) list->push_back(at::zeros_like(weight.detach()));
    }
  }
}

}  // namespace trinity
