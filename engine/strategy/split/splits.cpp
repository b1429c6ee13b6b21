#include "strategy/splits.h"

#include "base/error.h"
#include "strategy/split/split_gathers.h"

namespace trinity {

namespace {

/// Builds the lowered graph from a layout: sources, parts, and attention in rings (attribute `ring`), whose steps it
/// writes out. Used once, by one thread.
class SplitLowering : SplitGathers {
 public:
  using SplitGathers::SplitGathers;
  using SplitParts::LanesDiffer;

  LoweredGraph run() {
    const bool last = options_.bucket_bytes > 0;  // updates wait for their buckets
    if (of_classes_) {
      find_lanes();
      builder_.reserve(at(graph_.operator_count()), graph_.tensors().size());
      parts_of_.reserve(at(graph_.operator_count()) * at(width_));
      held_.reserve(graph_.tensors().size() * at(width_));
    }
    for (int32_t op = 0; op < graph_.operator_count(); ++op)
      if (!last || graph_.op(op).phase != Phase::update) add_whole(op);
    reduce_buckets();
    for (int32_t op = 0; last && op < graph_.operator_count(); ++op)
      if (graph_.op(op).phase == Phase::update) add_whole(op);
    for (int32_t unit = 0; unit < graph_.unit_count(); ++unit) colocate(graph_.unit(unit));
    for (Collective collective : graph_.collectives()) {
      for (int32_t& member : collective.members) member = parts_of_[member][0];
      builder_.add_collective(std::move(collective));
    }
    return finish();
  }

 private:
  void add_whole(int32_t op) {
    poll_.step();
    if (builder_.operator_count() > static_cast<int32_t>(kMaxOperators))
      throw LimitError("graph '{}': splits make more operators than the maximum of {}", graph_.name(), kMaxOperators);
    if (layout_.is_source(op))
      add_source(op);
    else if (const auto ring = ring_of(op); !ring.empty())
      graph_.op(op).phase == Phase::forward ? attend(op, ring) : attend_back(op, ring);
    else
      add_parts(op);
  }

  void add_source(int32_t op) {
    const auto& original = graph_.op(op);
    const int32_t tensor = original.outputs[0];
    const auto& homes = layout_.homes(tensor);
    start_parts(op, homes.size());
    for (size_t k = 0; k < homes.size(); ++k) {
      if (!makes(homes[k].device)) continue;
      Operator copy = original;
      copy.name = part_name(original.name, static_cast<int32_t>(k), homes.size());
      if (meaning_) state_block(copy, homes[k].block, graph_.tensor(tensor).shape);
      const int32_t id = add(std::move(copy), homes[k].device, op, static_cast<int32_t>(k));
      parts_of_[op][k] = id;
      held_[tensor][k] = add_block(id, tensor, homes[k].block, homes.size(), "");
    }
  }

  void add_parts(int32_t op) {
    const int32_t parts = layout_.cut(op).parts();
    auto inputs = fetched(op);
    start_parts(op, at(parts));
    for (int32_t part = 0; part < parts; ++part) {
      if (!makes_part(op, at(part))) continue;
      Operator made = part_of(op, part);
      made.inputs = std::move(inputs[at(part)]);
      if (parts > 1) restate_traffic(op, part, made);
      const int32_t id = add(std::move(made), layout_.device(op, part), op, part);
      parts_of_[op][at(part)] = id;
      for (size_t o = 0; o < graph_.op(op).outputs.size(); ++o) {
        const double share = layout_.is_weight_gradient(op, o) ? layout_.weight_share(op, part)
                                                               : layout_.cut(op).share(part);
        const int32_t tensor = graph_.op(op).outputs[o];
        held_[tensor][at(part)] = add_block(id, tensor, layout_.written(op, o, part), at(parts), "",
                                            parts == 1 ? 1 : share);
      }
    }
    for (size_t o = 0; o < graph_.op(op).outputs.size() && parts > 1; ++o) join_parts(op, o);
  }

  /// An operator of a ring on the device of a part, with an output of the given bytes.
  int32_t add_to_ring(int32_t op, const char* what, int32_t step, int32_t part, Operator made,
                      const TensorNumbers& inputs, std::vector<Tensor> outputs) {
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

  /// A tensor with the shape and dtype of another.
  Tensor like(int32_t other) const {
    Tensor tensor;
    tensor.shape = builder_.tensor(other).shape;
    tensor.dtype = builder_.tensor(other).dtype;
    tensor.bytes = builder_.tensor(other).bytes;
    return tensor;
  }

  /// Keys concatenated with values.
  Tensor side_by_side(int32_t keys, int32_t values) const {
    Tensor both = like(keys);
    both.shape.edit().back() += builder_.tensor(values).shape.back();
    return both;
  }

  /// The accumulators of an attention's part over the steps of a ring: weighted values, as large as
  /// its result, and of every row of scores the maximum and the sum of exponentials.
  std::vector<Tensor> sums_of(int32_t op, int32_t part) const {
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

  static Operator carrier(const char* type, double traffic_bytes) {
    Operator made;
    made.type = type;
    made.traffic_bytes = traffic_bytes;
    return made;
  }

  /// [step][part]: the part whose keys and values a part has in a step of a ring.
  static std::vector<std::vector<int32_t>> owners(const std::vector<int32_t>& ring, int32_t steps) {
    std::vector<std::vector<int32_t>> of(1);
    for (size_t part = 0; part < ring.size(); ++part) of[0].push_back(static_cast<int32_t>(part));
    for (int32_t step = 1; step < steps; ++step) {
      of.emplace_back();
      for (const int32_t before : ring) of.back().push_back(of[at(step - 1)][at(before)]);
    }
    return of;
  }

  /// Keys and values of a part in one tensor, after all of its inputs have arrived.
  int32_t pack(int32_t op, int32_t part, const TensorNumbers& inputs) {
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

  /// [step][part]: the keys and values that a part has in a step of the ring.
  std::vector<std::vector<int32_t>> pass_round(int32_t op, const std::vector<int32_t>& ring,
                                               const std::vector<TensorNumbers>& inputs) {
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

  /// Index of the keys among the inputs of an attention or its gradient; the values follow.
  int32_t keys_of(int32_t op) const {
    const auto& of = graph_.op(layout_.leader(op)).inputs;  // queries, keys, values
    const auto& inputs = graph_.op(op).inputs;
    const auto found = std::search(inputs.begin(), inputs.end(), of.begin(), of.end());
    return static_cast<int32_t>(found - inputs.begin()) + 1;
  }

  /// The work of an attention's part in one step of a ring (graph/meaning.h: first, next or last)
  /// with the keys and values of another part.
  Operator step_of(int32_t op, int32_t part, const char* step, int32_t owner) const {
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

  void finish_part(int32_t op, int32_t part, int32_t owner, TensorNumbers inputs) {
    Operator made = step_of(op, part, "last", owner);
    made.inputs = std::move(inputs);
    const int32_t id = add(std::move(made), layout_.device(op, part), op, part);
    parts_of_[op][at(part)] = id;
    for (size_t o = 0; o < graph_.op(op).outputs.size(); ++o)
      held_[graph_.op(op).outputs[o]][at(part)] =
          add_block(id, graph_.op(op).outputs[o], layout_.written(op, o, part), 2, "");
  }

  /// Ring attention: every part sees its own keys and values, then the keys and values of the part
  /// before it, of the one before that, and so on, accumulating (online softmax). Each step needs
  /// only tensors that have arrived by then, so that the next transfer overlaps with it.
  void attend(int32_t op, const std::vector<int32_t>& ring) {
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

  /// Its gradient: keys and values are sent round again, followed by the sums of their gradients,
  /// which end where these belong.
  void attend_back(int32_t op, const std::vector<int32_t>& ring) {
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

  StopPoll poll_;
};

void check_devices(const OperatorSplit& split, const std::string& owner, int32_t devices) {
  std::set<int32_t> seen;
  for (const int32_t device : split.devices) {
    if (device < 0 || device >= devices)
      throw ArgumentError("{}: expected devices from 1 to {}, got {}", owner, devices, device + 1);
    if (!seen.insert(device).second)
      throw ArgumentError("{}: device {} is listed twice", owner, device + 1);
  }
  const int64_t most = split.devices.empty() ? devices : static_cast<int64_t>(seen.size());
  if (split.parts() > most)
    throw ArgumentError("{}: expected at most one part per device ({}), got {}", owner, most, split.parts());
}

void check_factors(const OperatorSplit& split, const std::string& owner,
                   const IterationSpace& space) {
  if (split.factors.size() != space.dimensions.size())
    throw ArgumentError("{}: expected {} factors, one per dimension, got {}", owner, space.dimensions.size(),
                        split.factors.size());
  for (size_t d = 0; d < split.factors.size(); ++d) {
    const auto& dimension = space.dimensions[d];
    const int64_t most = dimension.splits ? dimension.size : 1;
    if (split.factors[d] < 1 || split.factors[d] > most)
      throw ArgumentError("{}: dimension '{}': expected a factor from 1 to {}, got {}", owner, dimension.name, most,
                          split.factors[d]);
  }
}

}  // namespace

int64_t OperatorSplit::parts() const {
  int64_t product = copies;
  for (const int32_t factor : factors) product = std::min<int64_t>(product * factor, 1 << 30);
  return product;
}

void check_splits(const Splits& splits, const Graph& graph, int32_t devices) {
  if (splits.empty()) return;
  if (splits.size() != static_cast<size_t>(graph.operator_count()))
    throw ArgumentError("splits: expected an entry for each of {} operators, got {}", graph.operator_count(),
                        splits.size());
  for (int32_t id = 0; id < graph.operator_count(); ++id) {
    const auto& split = splits[id];
    if (split == OperatorSplit{}) continue;
    const auto& op = graph.op(id);
    const auto owner = fmt::format("splits of operator '{}'", op.name);
    if (op.phase != Phase::forward && op.forward >= 0)
      throw ArgumentError("{}: a backward operator is split as its forward operator; use an entry for '{}'", owner,
                          graph.op(op.forward).name);
    if (split.copies < 1)
      throw ArgumentError("{}: expected at least 1 copy, got {}", owner, split.copies);
    if (!split.factors.empty()) check_factors(split, owner, iteration_space(graph, id));
    check_devices(split, owner, devices);
    const bool whole = (op.inputs.empty() && !is_variable(op)) || op.collective >= 0;
    if (whole && split.parts() > 1)
      throw ArgumentError("{}: sources and members of collectives cannot be split", owner);
  }
}

namespace {

void check_devices(const Graph& graph, std::span<const int32_t> placement, int32_t devices) {
  if (placement.size() != static_cast<size_t>(graph.operator_count()))
    throw ArgumentError("splits: expected the devices of {} operators, got {}", graph.operator_count(),
                        placement.size());
  for (const int32_t device : placement)
    if (device < 0 || device >= devices)
      throw ArgumentError("splits: expected devices from 1 to {}, got {}", devices, device + 1);
}

}  // namespace

LoweredGraph lower_splits(const Graph& graph, const Splits& splits, std::span<const int32_t> placement,
                          int32_t devices, const SplitOptions& options) {
  check_splits(splits, graph, devices);
  check_devices(graph, placement, devices);
  const SplitLayout layout(graph, splits, placement, devices, options);
  return SplitLowering(graph, layout, options, false).run();
}

std::optional<LoweredGraph> lower_lanes(const Graph& graph, const Splits& splits, std::span<const int32_t> placement,
                                        int32_t devices, const SplitOptions& options) {
  check_devices(graph, placement, devices);
  if (!options.of_mesh() || splits.size() != at(graph.operator_count())) return std::nullopt;
  const SplitLayout layout(graph, splits, placement, devices, options);
  try {
    return SplitLowering(graph, layout, options, true).run();
  } catch (const SplitLowering::LanesDiffer&) {
    return std::nullopt;
  }
}

}  // namespace trinity
