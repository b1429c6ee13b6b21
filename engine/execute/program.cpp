#include "execute/program.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "base/index.h"
#include "graph/meaning.h"
#include "graph/operator_types.h"

namespace trinity {
Program::Program(std::shared_ptr<const Graph> graph) : graph_(std::move(graph)) {
  for (const auto& op : graph_->operators()) {
    if (op.type == "VariableV2")
      throw ArgumentError("graph {}: graphs of TensorFlow operations can be simulated but not executed; use the "
                          "network built of layers", graph_->name());
    if (op.phase == Phase::forward && op.measured())
      throw ArgumentError("graph {}: operator {} has only a measured time and cannot be executed", graph_->name(),
                          op.name);
  }
  if (!has_meaning(*graph_)) graph_ = std::make_shared<const Graph>(state_meaning(*graph_));
  find_duties();
  find_kernels();
  find_readers();
  find_losses();
  find_gathers();
  find_meetings();
  find_occasions();
  check_splits();
}

Duty Program::duty_of(const Operator& op) const {
  if (op.collective >= 0) return op.type == "WeightGather" ? Duty::gather : Duty::reduce;
  if (op.type == "Input") return Duty::data;
  if (!has_meaning(op)) return Duty::move;
  if (op.type == "WeightCopy") return Duty::fetch;
  if (op.type == "Send") return Duty::send;
  if (op.attributes.contains("turn"))
    throw ArgumentError("graph {}: {}: an asynchronous parameter server can be simulated but not executed; use "
                        "asynchronous = false", graph_->name(), op.name);
  if (op.phase == Phase::update) return Duty::update;
  if (op.phase == Phase::forward) return Duty::forward;
  if (integer_attribute(op.attributes, "replay", 0) != 0)
    return has_meaning(graph_->op(op.forward)) ? Duty::replay : Duty::move;
  return op.type == "Sum" ? Duty::move : Duty::gradient;
}

void Program::find_duties() {
  const auto count = at(graph_->operator_count());
  gradients_.resize(count);
  parts_.assign(count, 0);
  replays_.assign(count, false);
  gathered_by_.assign(count, -1);
  owners_.resize(count);
  for (int32_t id = 0; id < graph_->operator_count(); ++id) {
    const auto& op = graph_->op(id);
    duty_.push_back(duty_of(op));
    replicas_ = std::max(replicas_, static_cast<int32_t>(
                                        integer_attribute(op.attributes, "replicas", 1)));
    if (duty_[id] != Duty::gradient) continue;
    gradients_[id] = {list_attribute(op, "gradient_outputs"), list_attribute(op, "gradient_inputs"),
                      integer_attribute(op.attributes, "gradient_weights", 0) != 0};
    ++parts_[op.forward];
    if (reads_replays(op)) replays_[op.forward] = true;
    if (op.unit != graph_->op(op.forward).unit)
      throw ArgumentError("graph {}: operator {} and its backward operator must share a colocation unit to be executed "
                          "(colocate = 'forward')", graph_->name(), graph_->op(op.forward).name);
  }
}

/// True if a backward operator reads a recomputed tensor. Otherwise it needs only what the forward
/// run keeps, and may run before the recomputation.
bool Program::reads_replays(const Operator& op) const {
  return std::any_of(op.inputs.begin(), op.inputs.end(), [&](int32_t input) {
    const auto& from = graph_->op(graph_->tensor(input).producer);
    return integer_attribute(from.attributes, "replay", 0) != 0;
  });
}

void Program::find_kernels() {
  std::set<std::string> unknown;
  for (int32_t id = 0; id < graph_->operator_count(); ++id) {
    const auto& op = graph_->op(id);
    const bool runs =
        duty_[id] == Duty::forward || duty_[id] == Duty::replay || duty_[id] == Duty::move;
    kernels_.push_back(runs ? find_kernel(op.type) : nullptr);
    if (runs && !kernels_.back()) unknown.insert(op.type);
  }
  if (!unknown.empty())
    throw ArgumentError("graph {}: no kernel for operator type{} {}", graph_->name(), unknown.size() > 1 ? "s" : "",
                        fmt::join(unknown, ", "));
}

void Program::find_readers() {
  const auto tensors = graph_->tensors().size();
  std::vector<int32_t> backward(tensors, 0), update(tensors, 0), own(tensors, 0);
  for (int32_t id = 0; id < graph_->operator_count(); ++id) {
    const auto& op = graph_->op(id);
    for (const int32_t input : op.inputs) {
      ++(op.phase == Phase::update ? update : backward)[input];
      const auto& from = graph_->op(graph_->tensor(input).producer);
      own[input] += duty_[id] == Duty::update && from.forward == op.forward &&
                    !op.attributes.contains("shares");
    }
  }
  adds_up_.assign(tensors, false);
  keeps_gradient_.assign(at(graph_->operator_count()), false);
  for (size_t t = 0; t < tensors; ++t) {
    const int32_t from = graph_->tensor(static_cast<int32_t>(t)).producer;
    if (graph_->op(from).phase != Phase::backward || update[t] == 0) continue;
    if (backward[t] > 0)
      throw ArgumentError("graph {}: tensor {} of operator {} is read both in every micro-batch and once per step, "
                          "expected one of them", graph_->name(), t + 1, graph_->op(from).name);
    const bool stays = duty_[from] == Duty::gradient && own[t] == 1 && update[t] == 1;
    if (stays)
      keeps_gradient_[graph_->op(from).forward] = true;
    else
      adds_up_[t] = true;
  }
}

void Program::find_losses() {
  const auto count = at(graph_->operator_count());
  is_loss_.assign(count, false);
  is_part_of_loss_.assign(count, false);
  for (int32_t id = 0; id < graph_->operator_count(); ++id) {
    const auto& op = graph_->op(id);
    if (duty_[id] == Duty::gradient && gradients_[id].outputs.empty()) is_loss_[op.forward] = true;
    if (duty_[id] != Duty::reduce || text_attribute(op, "reduction") != "maximum") continue;
    is_part_of_loss_[graph_->tensor(op.inputs[0]).producer] = true;
  }
  std::map<std::pair<std::string, int64_t>, double> copies;  // by source and replica
  const auto key = [&](int32_t id) {
    const auto& op = graph_->op(id);
    return std::pair(text_attribute(op, kSource), integer_attribute(op.attributes, "replica", 0));
  };
  for (int32_t id = 0; id < graph_->operator_count(); ++id)
    if (is_loss_[id]) ++copies[key(id)];
  for (int32_t id = 0; id < graph_->operator_count(); ++id)
    loss_share_.push_back(
        is_loss_[id] ? number_attribute(graph_->op(id), "counts", 1 / copies[key(id)]) : 0);
}

int32_t Program::loss_of_total(int32_t op) const {
  if (duty_[op] != Duty::reduce || text_attribute(graph_->op(op), "reduction") != "total") return -1;
  while (duty_[op] == Duty::reduce) op = graph_->tensor(graph_->op(op).inputs[0]).producer;
  return op;
}

void Program::find_gathers() {
  for (int32_t id = 0; id < graph_->operator_count(); ++id) {
    const auto& op = graph_->op(id);
    for (const int32_t input : op.inputs) {
      const int32_t from = graph_->tensor(input).producer;
      if (duty_[from] != Duty::gather) continue;
      gathered_by_[id] = from;
      auto& owners = owners_[from];
      const int32_t forward = op.phase == Phase::forward ? id : op.forward;
      if (forward >= 0 && !graph_->op(forward).parameters.empty()) owners.push_back(forward);
      for (const int32_t other : op.inputs) {
        const int32_t variable = graph_->tensor(other).producer;
        if (is_variable(graph_->op(variable))) owners.push_back(variable);
      }
    }
  }
  for (auto& owners : owners_) {
    std::sort(owners.begin(), owners.end(), [&](int32_t a, int32_t b) {
      return text_attribute(graph_->op(a), kSource) < text_attribute(graph_->op(b), kSource);
    });
    owners.erase(std::unique(owners.begin(), owners.end()), owners.end());
  }
}

void Program::find_meetings() {
  for (const auto& op : graph_->operators()) {
    every_.push_back(integer_attribute(op.attributes, "every", 1));
    differ_ = differ_ || op.attributes.contains("mean_of");
  }
  read_every_.assign(graph_->tensors().size(), 0);
  for (int32_t id = 0; id < graph_->operator_count(); ++id)
    for (const int32_t input : graph_->op(id).inputs) {
      const int64_t every = duty_[id] == Duty::reduce ? every_[id] : 1;
      read_every_[input] = read_every_[input] == 0 || read_every_[input] == every ? every : 1;
    }
  for (auto& every : read_every_) every = std::max<int64_t>(1, every);
}

void Program::find_occasions() {
  for (int32_t id = 0; id < graph_->operator_count(); ++id) {
    const auto& op = graph_->op(id);
    const auto name = text_attribute(op, "occasion");
    const auto found = std::find(occasions_.begin(), occasions_.end(), name);
    occasion_.push_back(name.empty() ? -1 : static_cast<int32_t>(found - occasions_.begin()));
    if (!name.empty() && found == occasions_.end()) occasions_.push_back(name);
    const bool reads = duty_[id] == Duty::reduce && !op.inputs.empty();
    merges_.push_back(reads && duty_[graph_->tensor(op.inputs[0]).producer] == Duty::send &&
                      op.type == "AllReduce");
  }
}

/// Softmaxes and norms with split rows exchange statistics, which the kernels do not support.
void Program::check_splits() const {
  for (int32_t id = 0; id < graph_->operator_count(); ++id) {
    const auto& op = graph_->op(id);
    if (duty_[id] != Duty::reduce || text_attribute(op, "reduction") != "statistics") continue;
    throw ArgumentError("graph {}: {}: a softmax or norm that is split along the dimension that it normalises can be "
                        "simulated but not executed", graph_->name(), op.name);
  }
}

bool Program::keeps(int32_t op) const {
  if (duty_[op] == Duty::replay) return replays_[graph_->op(op).forward];
  return duty_[op] == Duty::forward && parts_[op] > 0 && !replays_[op];
}

size_t Program::arguments(int32_t op) const {
  const auto& about = graph_->op(op);
  const int64_t stated = integer_attribute(about.attributes, "arguments", -1);
  if (stated >= 0) return at(stated);
  const bool again = duty_[op] == Duty::replay ||
                     (duty_[op] == Duty::move && !has_meaning(about) && about.forward >= 0 &&
                      about.type == graph_->op(about.forward).type);
  const int32_t of = again ? about.forward : op;
  const auto& inputs = graph_->op(of).inputs;
  return inputs.size() - (gathered_by_[of] >= 0 ? 1 : 0);
}

}  // namespace trinity
