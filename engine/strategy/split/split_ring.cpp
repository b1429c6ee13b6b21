#include "strategy/split/split_lowering.h"

#include <algorithm>

// Attention in a ring (strategy/splits.h, attribute `ring`): its steps written out.

namespace trinity {

std::vector<int32_t> SplitLowering::ring_of(int32_t op) const {
  const auto& cut = layout_.cut(op);
  if (!is_ring(graph_.op(op))) return {};
  const int32_t s = cut.space().find("s"), length = s < 0 ? 1 : cut.factors()[s];
  if (length < 2) return {};
  const auto group = cut.groups({s});
  std::vector<int32_t> before(at(cut.parts()), -1);
  for (int32_t part = 0; part < cut.parts(); ++part)
    for (int32_t other = 0; other < cut.parts(); ++other)
      if (group[part] == group[other] &&
          (cut.coordinates(other)[s] + 1) % length == cut.coordinates(part)[s])
        before[part] = other;
  return before;
}

int32_t SplitLowering::ring_length(int32_t op) const {
  const auto& cut = layout_.cut(op);
  return cut.factors()[cut.space().find("s")];
}

int32_t SplitLowering::add_to_ring(int32_t op, const char* what, int32_t step, int32_t part,
                                   Operator made, const std::vector<int32_t>& inputs,
                                   std::vector<Tensor> outputs) {
  made.name = fmt::format("{}/{}{}@{}", graph_.op(op).name, what, step, part);
  made.phase = graph_.op(op).phase;
  made.inputs = inputs;
  const int32_t id = add_for(op, std::move(made), layout_.device(op, part), part);
  int32_t first = -1;
  for (auto& output : outputs) {
    output.name.clear();
    const int32_t tensor = builder_.add_output(id, std::move(output));
    first = first < 0 ? tensor : first;
  }
  return first;
}

Tensor SplitLowering::like(int32_t other, int64_t bytes) const {
  Tensor tensor;
  tensor.dtype = builder_.tensor(other).dtype;
  tensor.bytes = bytes;
  return tensor;
}

Operator SplitLowering::carrier(const char* type, double traffic_bytes) {
  Operator made;
  made.type = type;
  made.traffic_bytes = traffic_bytes;
  return made;
}

std::vector<std::vector<int32_t>> SplitLowering::pass_round(
    int32_t op, const std::vector<int32_t>& ring, const std::vector<std::vector<int32_t>>& inputs) {
  std::vector<std::vector<int32_t>> held(1);
  for (size_t part = 0; part < ring.size(); ++part) {
    const int32_t keys = inputs[part][at(keys_of(op))];
    const int32_t values = inputs[part][at(keys_of(op) + 1)];
    const int64_t bytes = builder_.tensor(keys).bytes + builder_.tensor(values).bytes;
    held[0].push_back(add_to_ring(op, "pack", 0, static_cast<int32_t>(part),
                                  carrier("Concat", 2 * static_cast<double>(bytes)), inputs[part],
                                  {like(keys, bytes)}));
  }
  for (int32_t step = 1; step < ring_length(op); ++step) {
    held.emplace_back();
    for (size_t part = 0; part < ring.size(); ++part) {
      const int32_t from = held[at(step - 1)][at(ring[part])];
      held.back().push_back(add_to_ring(op, "ring", step, static_cast<int32_t>(part),
                                        carrier("Identity", 0), {from},
                                        {like(from, builder_.tensor(from).bytes)}));
    }
  }
  return held;
}

int32_t SplitLowering::keys_of(int32_t op) const {
  const auto& forward = graph_.op(layout_.leader(op));
  const auto& inputs = graph_.op(op).inputs;
  const auto found = std::find(inputs.begin(), inputs.end(), forward.inputs[1]);
  return static_cast<int32_t>(found - inputs.begin());
}

Operator SplitLowering::step_of(int32_t op, int32_t part) const {
  Operator made = part_of(op, part);
  const auto steps = static_cast<double>(ring_length(op));
  made.flops /= steps;
  made.traffic_bytes /= steps;
  if (made.measured()) made.measured_time_s /= steps;
  return made;
}

std::vector<std::vector<int32_t>> SplitLowering::fetched(int32_t op) {
  std::vector<std::vector<int32_t>> inputs(at(layout_.cut(op).parts()));
  for (size_t part = 0; part < inputs.size(); ++part)
    for (size_t k = 0; k < graph_.op(op).inputs.size(); ++k)
      inputs[part].push_back(fetch(op, k, static_cast<int32_t>(part)));
  return inputs;
}

void SplitLowering::finish_part(int32_t op, int32_t part, std::vector<int32_t> inputs) {
  Operator made = step_of(op, part);
  made.inputs = std::move(inputs);
  const int32_t id = add(std::move(made), layout_.device(op, part), op, part);
  parts_of_[op].push_back(id);
  for (size_t o = 0; o < graph_.op(op).outputs.size(); ++o)
    held_[graph_.op(op).outputs[o]].push_back(
        add_block(id, graph_.op(op).outputs[o], layout_.written(op, o, part), 2, ""));
}

void SplitLowering::attend(int32_t op, const std::vector<int32_t>& ring) {
  const auto inputs = fetched(op);
  const auto held = pass_round(op, ring, inputs);
  const int32_t steps = ring_length(op);
  for (size_t p = 0; p < ring.size(); ++p) {
    const auto part = static_cast<int32_t>(p);
    int32_t sum = -1;
    for (int32_t step = 0; step + 1 < steps; ++step) {
      std::vector<int32_t> read = inputs[p];
      if (step > 0) read = {inputs[p][0], held[at(step)][p], sum};
      const int32_t queries = inputs[p][0];
      sum = add_to_ring(op, "step", step, part, step_of(op, part), read,
                        {like(queries, builder_.tensor(queries).bytes)});
    }
    finish_part(op, part, {inputs[p][0], held[at(steps - 1)][p], sum});
  }
}

void SplitLowering::attend_back(int32_t op, const std::vector<int32_t>& ring) {
  const auto inputs = fetched(op);
  const auto held = pass_round(op, ring, inputs);
  const int32_t steps = ring_length(op), keys = keys_of(op);
  std::vector<int32_t> sums(ring.size(), -1), queries(ring.size(), -1);
  for (int32_t step = 1; step < steps; ++step) {
    std::vector<int32_t> arrived(ring.size(), -1);
    for (size_t p = 0; p < ring.size(); ++p) {
      std::vector<int32_t> read = inputs[p];
      read.erase(read.begin() + keys, read.begin() + keys + 2);
      read.push_back(held[at(step)][p]);
      if (queries[p] >= 0) read.push_back(queries[p]);
      if (step > 1) read.push_back(sums[at(ring[p])]);
      const int32_t own = inputs[p][at(keys - 1)], others = held[at(step)][p];
      arrived[p] = add_to_ring(op, "step", step, static_cast<int32_t>(p),
                               step_of(op, static_cast<int32_t>(p)), read,
                               {like(others, builder_.tensor(others).bytes),
                                like(own, builder_.tensor(own).bytes)});
      queries[p] = arrived[p] + 1;
    }
    sums = std::move(arrived);
  }
  for (size_t p = 0; p < ring.size(); ++p) {
    std::vector<int32_t> read = inputs[p];
    read.push_back(queries[p]);
    read.push_back(sums[at(ring[p])]);
    finish_part(op, static_cast<int32_t>(p), std::move(read));
  }
}

}  // namespace trinity
