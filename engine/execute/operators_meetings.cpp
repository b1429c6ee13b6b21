// Weights between updates and synchronisations of replicas, and conditional operations.
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "base/index.h"
#include "execute/kernels/collectives.h"
#include "execute/operators.h"
#include "graph/meaning.h"

namespace trinity {

/// The forward operator whose updated weights a tensor between updates and synchronisation has.
int32_t Operators::updated_by(int32_t tensor) const {
  int32_t op = graph_.tensor(tensor).producer;
  while (program_.duty(op) == Duty::reduce || program_.duty(op) == Duty::send ||
         program_.duty(op) == Duty::gather) {
    const auto& outputs = graph_.op(op).outputs;
    const auto place = std::find(outputs.begin(), outputs.end(), tensor) - outputs.begin();
    tensor = graph_.op(op).inputs[at(place)];
    op = graph_.tensor(tensor).producer;
  }
  return graph_.op(op).forward;
}

void Operators::set_occasions(const std::vector<Occasion>& given) {
  const auto& names = program_.occasions();
  happens_.assign(names.size(), {});
  for (const auto& occasion : given) {
    const auto found = std::find(names.begin(), names.end(), occasion.name);
    if (found == names.end())
      throw ArgumentError("execute: graph {} has no conditional operation '{}', it has {}", graph_.name(),
                          occasion.name,
                          names.empty() ? std::string("none") : fmt::format("{}", fmt::join(names, ", ")));
    happens_[at(found - names.begin())] = occasion;
  }
}

const Occasion* Operators::occasion(int32_t op) const {
  const auto number = at(program_.occasion(op));
  const bool happens = program_.occasion(op) >= 0 && number < happens_.size() &&
                       !happens_[number].name.empty();
  return happens ? &happens_[number] : nullptr;
}

bool Operators::is_handed_on(int32_t tensor) const {
  return std::ranges::any_of(graph_.readers_of(tensor), [&](int32_t reader) {
    return program_.occasion(reader) >= 0 && program_.duty(reader) == Duty::reduce &&
           text_attribute(graph_.op(reader), "reduction") != "weights";
  });
}

bool Operators::is_idle(int32_t tensor) const {
  if (program_.is_idle(tensor, steps)) return true;
  if (program_.occasions().empty()) return false;
  return !graph_.readers(graph_.tensor(tensor).producer).empty() &&
         std::ranges::none_of(graph_.readers_of(tensor), [&](int32_t reader) { return runs(reader); });
}

/// A gradient counts for all members; an operator that would have merged weights passes its own on.
Operators::Tensors Operators::handed_on(
    int32_t op, const std::function<at::Tensor(int32_t tensor)>& own) const {
  const at::NoGradGuard guard;
  const auto& of = graph_.op(op);
  Tensors outputs;
  if (program_.occasion(op) < 0 || program_.duty(op) != Duty::reduce) return outputs;
  const auto members = static_cast<double>(members_of(op).size());
  for (size_t k = 0; k < of.outputs.size(); ++k) {
    if (program_.merges(op)) {
      if (is_idle(of.outputs[k])) return {};
      outputs.push_back(weights_.bundle(updated_by(of.inputs[k])));
    } else if (text_attribute(of, "reduction") != "weights") {
      outputs.push_back(own(of.inputs[k]) * members);
    }
  }
  return outputs;
}

Operators::Tensors Operators::send(int32_t op) const {
  Tensors sent;
  for (const int32_t input : graph_.op(op).inputs) {
    sent.push_back(weights_.bundle(updated_by(input)));
    if (occasion(op)->rounded) sent.back() = sent.back().to(at::kBFloat16);
  }
  return sent;
}

/// Coquelin et al. 2022, equation 1: merges own weights with received ones.
at::Tensor Operators::merged(int32_t op, size_t output, const Tensors& sent) const {
  const at::NoGradGuard guard;
  const double own = occasion(op)->own_weight;
  const auto weights = weights_.bundle(updated_by(graph_.op(op).inputs[output]));
  auto sum = sum_in_order(sent).to(weights.scalar_type());
  if (own > 0) sum.add_(weights, own);
  return sum.div_(own + static_cast<double>(sent.size()));
}

/// Stores the result of a synchronisation as the weights that the updates of its inputs have
/// written.
void Operators::take_weights(int32_t op, const Tensors& outputs) {
  const auto& inputs = graph_.op(op).inputs;
  for (size_t k = 0; k < outputs.size(); ++k) {
    weights_.assign(updated_by(inputs[k]), outputs[k]);
  }
}

}  // namespace trinity
