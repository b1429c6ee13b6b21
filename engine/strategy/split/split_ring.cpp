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

std::vector<std::vector<int32_t>> SplitLowering::owners(const std::vector<int32_t>& ring,
                                                        int32_t steps) {
  std::vector<std::vector<int32_t>> of(1);
  for (size_t part = 0; part < ring.size(); ++part) of[0].push_back(static_cast<int32_t>(part));
  for (int32_t step = 1; step < steps; ++step) {
    of.emplace_back();
    for (const int32_t before : ring) of.back().push_back(of[at(step - 1)][at(before)]);
  }
  return of;
}

int32_t SplitLowering::add_to_ring(int32_t op, const char* what, int32_t step, int32_t part,
                                   Operator made, const TensorNumbers& inputs,
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

Tensor SplitLowering::like(int32_t other) const {
  Tensor tensor;
  tensor.shape = builder_.tensor(other).shape;
  tensor.dtype = builder_.tensor(other).dtype;
  tensor.bytes = builder_.tensor(other).bytes;
  return tensor;
}

Tensor SplitLowering::side_by_side(int32_t keys, int32_t values) const {
  Tensor both = like(keys);
  both.shape.edit().back() += builder_.tensor(values).shape.back();
  return both;
}

std::vector<Tensor> SplitLowering::sums_of(int32_t op, int32_t part) const {
  const auto& whole = graph_.tensor(graph_.op(op).outputs[0]);
  const Block block = layout_.written(op, 0, part);
  const int64_t heads = integer_attribute(graph_.op(op).attributes, "q_num_heads", 1);
  Tensor weighted, rows;
  weighted.dtype = whole.dtype;
  for (const auto& range : block) weighted.shape.push_back(range.length());
  rows.dtype = DType::float32;
  rows.shape = {block[0].length(), heads * block[2].length() / whole.shape[2], block[1].length(), 2};
  return {weighted, rows};
}

Operator SplitLowering::carrier(const char* type, double traffic_bytes) {
  Operator made;
  made.type = type;
  made.traffic_bytes = traffic_bytes;
  return made;
}

int32_t SplitLowering::pack(int32_t op, int32_t part, const TensorNumbers& inputs) {
  const auto keys = at(keys_of(op));
  TensorNumbers read = {inputs[keys], inputs[keys + 1]};
  for (size_t i = 0; i < inputs.size(); ++i)
    if (i != keys && i != keys + 1) read.push_back(inputs[i]);
  const auto both = side_by_side(read[0], read[1]);
  const auto bytes = builder_.tensor(read[0]).bytes + builder_.tensor(read[1]).bytes;
  Operator made = carrier("Concat", 2 * static_cast<double>(bytes));
  if (meaning_) {
    made.attributes["axis"] = int64_t{2};
    made.attributes["arguments"] = int64_t{2};
  }
  return add_to_ring(op, "pack", 0, part, std::move(made), read, {both});
}

std::vector<std::vector<int32_t>> SplitLowering::pass_round(
    int32_t op, const std::vector<int32_t>& ring, const std::vector<TensorNumbers>& inputs) {
  std::vector<std::vector<int32_t>> held(1);
  for (size_t part = 0; part < ring.size(); ++part)
    held[0].push_back(
        makes_part(op, part) ? pack(op, static_cast<int32_t>(part), inputs[part]) : -1);
  for (int32_t step = 1; step < ring_length(op); ++step) {
    held.emplace_back();
    for (size_t part = 0; part < ring.size(); ++part) {
      held.back().push_back(-1);
      if (!makes_part(op, part)) continue;
      const int32_t from = made(held[at(step - 1)][at(ring[part])]);
      held.back().back() = add_to_ring(op, "ring", step, static_cast<int32_t>(part),
                                        carrier("Identity", 0), {from}, {like(from)});
    }
  }
  return held;
}

int32_t SplitLowering::keys_of(int32_t op) const {
  const auto& of = graph_.op(layout_.leader(op)).inputs;  // queries, keys, values
  const auto& inputs = graph_.op(op).inputs;
  const auto found = std::search(inputs.begin(), inputs.end(), of.begin(), of.end());
  return static_cast<int32_t>(found - inputs.begin()) + 1;
}

Operator SplitLowering::step_of(int32_t op, int32_t part, const char* step, int32_t owner) const {
  Operator made = part_of(op, part);
  const auto steps = static_cast<double>(ring_length(op));
  made.flops /= steps;
  made.traffic_bytes /= steps;
  if (made.measured()) made.measured_time_s /= steps;
  if (!meaning_) return made;
  const auto keys = at(keys_of(op));
  made.attributes.erase(kSource);
  made.attributes["ring_step"] = std::string(step);
  made.attributes["queries_begin"] = layout_.needed(op, keys - 1, part)[1].begin;
  made.attributes["keys_begin"] = layout_.needed(op, keys, owner)[1].begin;
  return made;
}

std::vector<TensorNumbers> SplitLowering::fetched(int32_t op) {
  std::vector<TensorNumbers> inputs(at(layout_.cut(op).parts()));
  for (size_t k = 0; k < graph_.op(op).inputs.size(); ++k)
    for (size_t part = 0; part < inputs.size(); ++part)
      if (makes_part(op, part)) inputs[part].push_back(fetch(op, k, static_cast<int32_t>(part)));
  return inputs;
}

void SplitLowering::finish_part(int32_t op, int32_t part, int32_t owner,
                                TensorNumbers inputs) {
  Operator made = step_of(op, part, "last", owner);
  made.inputs = std::move(inputs);
  const int32_t id = add(std::move(made), layout_.device(op, part), op, part);
  parts_of_[op][at(part)] = id;
  for (size_t o = 0; o < graph_.op(op).outputs.size(); ++o)
    held_[graph_.op(op).outputs[o]][at(part)] =
        add_block(id, graph_.op(op).outputs[o], layout_.written(op, o, part), 2, "");
}

void SplitLowering::attend(int32_t op, const std::vector<int32_t>& ring) {
  const auto inputs = fetched(op);
  const auto held = pass_round(op, ring, inputs);
  const int32_t steps = ring_length(op);
  const auto of = owners(ring, steps);
  start_parts(op, ring.size());
  for (size_t p = 0; p < ring.size(); ++p) {
    if (!makes_part(op, p)) continue;
    const auto part = static_cast<int32_t>(p);
    const int32_t queries = inputs[p][0];
    int32_t sums = -1;
    for (int32_t step = 0; step + 1 < steps; ++step) {
      auto read = inputs[p];
      if (step > 0) read = {queries, held[at(step)][p], sums, sums + 1};
      sums = add_to_ring(op, "step", step, part,
                         step_of(op, part, step == 0 ? "first" : "next", of[at(step)][p]), read,
                         sums_of(op, part));
    }
    finish_part(op, part, of.back()[p], {queries, held[at(steps - 1)][p], sums, sums + 1});
  }
}

void SplitLowering::attend_back(int32_t op, const std::vector<int32_t>& ring) {
  const auto inputs = fetched(op);
  const auto held = pass_round(op, ring, inputs);
  const int32_t steps = ring_length(op), keys = keys_of(op);
  const auto of = owners(ring, steps);
  std::vector<int32_t> sums(ring.size(), -1), queries(ring.size(), -1);
  const auto read_sums = [&](TensorNumbers& read, size_t part) {
    read.push_back(queries[part]);
    read.push_back(sums[at(ring[part])]);
  };
  for (int32_t step = 1; step < steps; ++step) {
    std::vector<int32_t> arrived(ring.size(), -1);
    for (size_t p = 0; p < ring.size(); ++p) {
      if (!makes_part(op, p)) continue;
      const auto part = static_cast<int32_t>(p);
      TensorNumbers read = inputs[p];
      read.erase(read.begin() + keys, read.begin() + keys + 2);
      read.push_back(held[at(step)][p]);
      if (step > 1) read_sums(read, p);
      arrived[p] = add_to_ring(op, "step", step, part,
                               step_of(op, part, step == 1 ? "first" : "next", of[at(step)][p]),
                               read, {like(held[at(step)][p]), like(inputs[p][at(keys - 1)])});
      queries[p] = arrived[p] + 1;
    }
    sums = std::move(arrived);
  }
  start_parts(op, ring.size());
  for (size_t p = 0; p < ring.size(); ++p) {
    if (!makes_part(op, p)) continue;
    TensorNumbers read = inputs[p];
    read_sums(read, p);
    finish_part(op, static_cast<int32_t>(p), static_cast<int32_t>(p), std::move(read));
  }
}

}  // namespace trinity
