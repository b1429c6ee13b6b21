#include "simulator/memory_owners.h"

#include <algorithm>

#include "graph/operator_types.h"
#include "graph/recompute.h"
#include "graph/split_backward.h"
#include "simulator/memory.h"

namespace trinity {

const char* memory_owner_name(MemoryOwner owner) {
  constexpr const char* kNames[kMemoryOwners] = {
      "weights", "optimizer", "gradients", "activations", "activation_gradients",
      "delayed", "received",  "gathered",  "workspace"};
  return kNames[static_cast<size_t>(owner)];
}

/// Positions in which a tensor is read on a device; -1: not at all.
struct SlotMemory::Uses {
  int32_t first = -1;  ///< the first
  int32_t last = -1;   ///< the last but for weight parts, for which their input parts count
  bool delayed = false;  ///< whether weight parts are among the readers

  void add(int32_t at) {
    first = first < 0 ? at : std::min(first, at);
    last = std::max(last, at);
  }
};

int32_t SlotMemory::last_position(int32_t task) const {
  const bool member =
      members_ && problem_.graph().op(task % problem_.operators()).collective >= 0;
  return member ? member_[task].last : record_->position[task];
}

/// Of an output of an operator and of its views there.
void SlotMemory::add_uses(int32_t micro, int32_t op, int32_t output, int32_t device,
                          Uses& uses) const {
  const auto& graph = problem_.graph();
  for (const auto& reader : problem_.readers(op)) {
    if (reader.output != output || placement_[reader.op] != device) continue;
    const bool once = accumulating_ && problem_.once(reader.op);
    const int32_t run = once ? record_->micro_batches - 1 : micro;
    int32_t by = reader.op;
    if (is_weight_part(graph.op(by))) {
      uses.delayed = true;
      const int32_t input = input_part_[graph.op(by).forward];
      if (input >= 0 && placement_[input] == device) by = input;
    }
    uses.add(last_position(run * problem_.operators() + by));
    if (problem_.alias(reader.op) == problem_.first_output(op) + output)
      add_uses(run, reader.op, 0, device, uses);
  }
}

/// What an operator's output is for, whoever waits for it.
MemoryOwner SlotMemory::kind_of(int32_t op, int32_t output) const {
  const auto& graph = problem_.graph();
  const auto& about = graph.op(op);
  const bool gathers = about.collective >= 0 &&
                       graph.collectives()[about.collective].kind == CollectiveKind::all_gather;
  if (about.type == "WeightGather" || (about.phase == Phase::update && gathers))
    return MemoryOwner::gathered;
  if (about.phase == Phase::update) return MemoryOwner::gradients;
  if (about.phase == Phase::forward || is_recomputed(about)) return MemoryOwner::activations;
  for (const auto& reader : problem_.readers(op))
    if (reader.output == output && graph.op(reader.op).phase == Phase::update)
      return MemoryOwner::gradients;
  return MemoryOwner::activation_gradients;
}

MemoryOwner SlotMemory::owner_of(const HeldTensor& tensor, int32_t device, int32_t peak) const {
  if (tensor.output < 0) return MemoryOwner::workspace;
  const int32_t micro = tensor.task / problem_.operators();
  const int32_t op = tensor.task - micro * problem_.operators();
  const MemoryOwner kind = kind_of(op, tensor.output);
  Uses uses;
  add_uses(micro, op, tensor.output, device, uses);
  if (tensor.copy && peak < uses.first) return MemoryOwner::received;
  const bool waits = kind == MemoryOwner::activations || kind == MemoryOwner::activation_gradients;
  if (waits && uses.delayed && peak > uses.last) return MemoryOwner::delayed;
  return kind;
}

void SlotMemory::own(std::vector<OwnedBytes>& owners) const {
  const auto& first_position = record_->first_position;
  owners.assign(peak_.size(), {});
  const auto add = [&](size_t device, MemoryOwner owner, int64_t bytes) {
    owners[device][static_cast<size_t>(owner)] += bytes;
  };
  for (int32_t o = 0; o < problem_.operators(); ++o) {
    const auto device = static_cast<size_t>(placement_[o]);
    const auto versions = record_->weight_versions;
    const int64_t parameters = problem_.graph().op(o).parameter_bytes();
    add(device, MemoryOwner::weights, versions.empty() ? parameters : versions[device] * parameters);
    add(device, MemoryOwner::optimizer, problem_.fixed_bytes(o) - parameters);
  }
  for (const HeldTensor& tensor : held_) {
    const auto behind = std::upper_bound(first_position.begin(), first_position.end(), tensor.first);
    const auto device = static_cast<int32_t>(behind - first_position.begin()) - 1;
    const int32_t peak = peak_[device];
    if (tensor.first <= peak && peak <= tensor.last)
      add(static_cast<size_t>(device), owner_of(tensor, device, peak), tensor.bytes);
  }
}

}  // namespace trinity
