#include "strategy/splits.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/error.h"
#include "base/index.h"
#include "base/stop.h"
#include "graph/meaning.h"
#include "graph/operator_types.h"
#include "strategy/split_layout.h"
#include "strategy/split_meaning.h"

namespace trinity {
namespace {

/// Builds the lowered graph from a layout.
class SplitLowering {
 public:
  SplitLowering(const Graph& graph, const SplitLayout& layout, const SplitOptions& options)
      : graph_(graph),
        layout_(layout),
        bucket_bytes_(options.bucket_bytes),
        apart_(options.apart),
        meaning_(has_meaning(graph)),
        builder_(graph.name()),
        parts_of_(at(graph.operator_count())),
        held_(graph.tensors().size()) {}

  Lowered run() {
    const bool last = bucket_bytes_ > 0;  // updates wait for their buckets
    for (int32_t op = 0; op < graph_.operator_count(); ++op)
      if (!last || graph_.op(op).phase != Phase::update) add_whole(op);
    for (const auto& bucket : buckets_) reduce(bucket);
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
  struct Made {
    int32_t device, origin, part, serves;
  };
  /// Partial gradients of weights that are reduced together, on the same groups of devices.
  struct Bucket {
    std::vector<std::pair<int32_t, size_t>> gradients;  // operator, output
    std::vector<std::pair<int32_t, int32_t>> where;     // by part: group, device
    int64_t bytes = 0;
    int32_t apart = 0;
  };

  void add_whole(int32_t op) {
    poll_.step();
    if (builder_.operator_count() > static_cast<int32_t>(kMaxOperators))
      throw LimitError(fmt::format("the splits of graph '{}' make more than {} operators",
                                   graph_.name(), kMaxOperators));
    if (layout_.is_source(op))
      add_source(op);
    else if (const auto ring = ring_of(op); !ring.empty())
      graph_.op(op).phase == Phase::forward ? attend(op, ring) : attend_back(op, ring);
    else
      add_parts(op);
  }

  int32_t add(Operator op, int32_t device, int32_t origin, int32_t part) {
    made_.push_back({device, origin, part, origin});
    return builder_.add_operator(std::move(op));
  }
  /// What is no part of an operator, but made for one.
  int32_t add_for(int32_t serves, Operator op, int32_t device, int32_t part) {
    made_.push_back({device, -1, part, serves});
    return builder_.add_operator(std::move(op));
  }
  static std::string part_name(const std::string& name, int32_t part, size_t parts) {
    return parts == 1 ? name : fmt::format("{}@{}", name, part);
  }

  /// A tensor's block: the extents of its shape, or its share of the bytes where it has no shape.
  int32_t add_block(int32_t producer, int32_t original, const Block& block, size_t parts,
                    const std::string& suffix, double share = 1) {
    Tensor tensor = graph_.tensor(original);
    if (!suffix.empty() || parts > 1) tensor.name.clear();
    for (size_t i = 0; i < block.size(); ++i) tensor.shape[i] = block[i].length();
    if (block.empty()) tensor.bytes = std::llround(static_cast<double>(tensor.bytes) * share);
    return builder_.add_output(producer, std::move(tensor));
  }

  void add_source(int32_t op) {
    const auto& original = graph_.op(op);
    const int32_t tensor = original.outputs[0];
    const auto& homes = layout_.homes(tensor);
    for (size_t k = 0; k < homes.size(); ++k) {
      Operator copy = original;
      copy.name = part_name(original.name, static_cast<int32_t>(k), homes.size());
      if (meaning_) state_block(copy, homes[k].block, graph_.tensor(tensor).shape);
      const int32_t id = add(std::move(copy), homes[k].device, op, static_cast<int32_t>(k));
      parts_of_[op].push_back(id);
      held_[tensor].push_back(add_block(id, tensor, homes[k].block, homes.size(), ""));
    }
  }

  void add_parts(int32_t op) {
    const int32_t parts = layout_.cut(op).parts();
    for (int32_t part = 0; part < parts; ++part) {
      Operator made = part_of(op, part);
      for (size_t k = 0; k < graph_.op(op).inputs.size(); ++k)
        made.inputs.push_back(fetch(op, k, part));
      if (parts > 1) restate_traffic(op, part, made);
      const int32_t id = add(std::move(made), layout_.device(op, part), op, part);
      parts_of_[op].push_back(id);
      for (size_t o = 0; o < graph_.op(op).outputs.size(); ++o) {
        const double share = layout_.is_weight_gradient(op, o) ? layout_.weight_share(op, part)
                                                               : layout_.cut(op).share(part);
        held_[graph_.op(op).outputs[o]].push_back(add_block(id, graph_.op(op).outputs[o],
                                                            layout_.written(op, o, part), at(parts),
                                                            "", parts == 1 ? 1 : share));
      }
    }
    for (size_t o = 0; o < graph_.op(op).outputs.size() && parts > 1; ++o) join_parts(op, o);
  }

  /// For every part of an attention in a ring the part before it; empty where it is none.
  std::vector<int32_t> ring_of(int32_t op) const {
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
  int32_t ring_length(int32_t op) const {
    const auto& cut = layout_.cut(op);
    return cut.factors()[cut.space().find("s")];
  }

  /// An operator of a ring on the device of a part, with an output of so many bytes.
  int32_t add_to_ring(int32_t op, const char* what, int32_t step, int32_t part, Operator made,
                      const std::vector<int32_t>& inputs, std::vector<Tensor> outputs) {
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
  /// Bytes of elements like those of another tensor.
  Tensor like(int32_t other, int64_t bytes) const {
    Tensor tensor;
    tensor.dtype = builder_.tensor(other).dtype;
    tensor.bytes = bytes;
    return tensor;
  }
  static Operator carrier(const char* type, double traffic_bytes) {
    Operator made;
    made.type = type;
    made.traffic_bytes = traffic_bytes;
    return made;
  }

  /// Keys and values of every part in one tensor, when all that it reads has come, and what each
  /// part has of them after every step of the ring: by step and part.
  std::vector<std::vector<int32_t>> pass_round(int32_t op, const std::vector<int32_t>& ring,
                                               const std::vector<std::vector<int32_t>>& inputs) {
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
  /// Which input of an attention, or of its gradient, is its keys; its values follow.
  int32_t keys_of(int32_t op) const {
    const auto& forward = graph_.op(layout_.leader(op));
    const auto& inputs = graph_.op(op).inputs;
    const auto found = std::find(inputs.begin(), inputs.end(), forward.inputs[1]);
    return static_cast<int32_t>(found - inputs.begin());
  }

  /// What a part of an attention does in one step of a ring.
  Operator step_of(int32_t op, int32_t part) const {
    Operator made = part_of(op, part);
    const auto steps = static_cast<double>(ring_length(op));
    made.flops /= steps;
    made.traffic_bytes /= steps;
    if (made.measured()) made.measured_time_s /= steps;
    return made;
  }

  std::vector<std::vector<int32_t>> fetched(int32_t op) {
    std::vector<std::vector<int32_t>> inputs(at(layout_.cut(op).parts()));
    for (size_t part = 0; part < inputs.size(); ++part)
      for (size_t k = 0; k < graph_.op(op).inputs.size(); ++k)
        inputs[part].push_back(fetch(op, k, static_cast<int32_t>(part)));
    return inputs;
  }

  void finish_part(int32_t op, int32_t part, std::vector<int32_t> inputs) {
    Operator made = step_of(op, part);
    made.inputs = std::move(inputs);
    const int32_t id = add(std::move(made), layout_.device(op, part), op, part);
    parts_of_[op].push_back(id);
    for (size_t o = 0; o < graph_.op(op).outputs.size(); ++o)
      held_[graph_.op(op).outputs[o]].push_back(
          add_block(id, graph_.op(op).outputs[o], layout_.written(op, o, part), 2, ""));
  }

  /// Attention in a ring: every part sees its own keys and values, then those of the part before
  /// it, of the one before that, and so on, adding up (online softmax). Each step needs what has
  /// come by then, so that what comes next is under way meanwhile.
  void attend(int32_t op, const std::vector<int32_t>& ring) {
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

  /// Its gradient: keys and values go round again, and behind them the sums of their gradients,
  /// which end where these belong.
  void attend_back(int32_t op, const std::vector<int32_t>& ring) {
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

  Operator part_of(int32_t op, int32_t part) const {
    const auto& original = graph_.op(op);
    const auto& cut = layout_.cut(op);
    Operator made = original;
    made.name = part_name(original.name, part, at(cut.parts()));
    made.inputs.clear();
    if (original.forward >= 0) {
      const auto& forwards = parts_of_[original.forward];
      made.forward = forwards[std::min(at(part), forwards.size() - 1)];
    }
    if (cut.parts() == 1) return made;
    if (meaning_) state_part(graph_, layout_, op, part, coupled_dimensions(op), made);
    const bool update = original.phase == Phase::update;
    const double share = update ? layout_.weight_share(op, part) : work_share(op, part);
    made.flops *= share;
    if (made.measured()) made.measured_time_s *= share;
    if (made.traffic_bytes >= 0) made.traffic_bytes *= share;
    made.workspace_bytes = std::llround(static_cast<double>(made.workspace_bytes) * share);
    made.persistent_bytes = std::llround(static_cast<double>(made.persistent_bytes) * share);
    for (size_t i = 0; i < made.parameters.size(); ++i) {
      const Block block = cut.block(made.parameters[i].shape, cut.space().parameters[i], part);
      for (size_t a = 0; a < block.size(); ++a) made.parameters[i].shape[a] = block[a].length();
    }
    return made;
  }

  /// A sum of gradients is as much work as its block has elements; others share the whole.
  double work_share(int32_t op, int32_t part) const {
    const auto& original = graph_.op(op);
    if (original.phase != Phase::backward || original.type != "Sum")
      return layout_.cut(op).share(part);
    const auto whole = static_cast<double>(graph_.tensor(original.outputs[0]).elements());
    return static_cast<double>(block_elements(layout_.written(op, 0, part))) / std::max(1.0, whole);
  }

  /// Memory traffic by the rules that made the original's, from the blocks that a part touches;
  /// where those do not give the original's, its share stays.
  void restate_traffic(int32_t op, int32_t part, Operator& made) const {
    const auto& original = graph_.op(op);
    if (original.phase == Phase::update || original.measured()) return;
    const auto& forward = graph_.op(layout_.leader(op));
    const bool gathers = operator_rule(forward.type).gathers;
    if (gathers) return;
    double whole = static_cast<double>(forward.parameter_bytes());
    double own = whole * layout_.weight_share(op, part);
    const auto count = [&](int32_t tensor, const Block& block) {
      const auto& of = graph_.tensor(tensor);
      const double bytes = static_cast<double>(of.bytes);
      whole += bytes;
      own += block.empty() ? bytes * layout_.weight_share(op, part)
                           : bytes * static_cast<double>(block_elements(block)) /
                                 std::max<double>(1, static_cast<double>(of.elements()));
    };
    for (size_t k = 0; k < original.inputs.size(); ++k)
      count(original.inputs[k], layout_.needed(op, k, part));
    for (size_t o = 0; o < original.outputs.size(); ++o)
      count(original.outputs[o], layout_.written(op, o, part));
    if (original.traffic_bytes == whole) made.traffic_bytes = own;
  }

  /// Partial sums become sums; parts along a coupled dimension exchange their statistics.
  void join_parts(int32_t op, size_t output) {
    if (layout_.sums_later(op, output)) return;
    auto sums = layout_.summed(op, output);
    if (layout_.adds_parts(op)) sums = layout_.copies_of(op);
    if (!sums.empty()) {
      if (bucket_bytes_ > 0 && layout_.is_weight_gradient(op, output))
        return fill_bucket(op, output, sums);
      return join(op, output, sums, "sum", "", [&](int32_t part) {
        return builder_.tensor(held_[graph_.op(op).outputs[output]][part]).bytes;
      });
    }
    const auto coupled = coupled_dimensions(op);
    if (output != 0 || coupled.empty()) return;
    const bool loss = graph_.op(op).type == "SoftmaxCrossEntropyLoss";
    for (const char* what : loss ? std::vector{"maximum", "target", "total"} : std::vector{"sum"})
      join(op, output, coupled, what, loss ? what : "statistics", [&](int32_t part) {
        const DType dtype = graph_.tensor(graph_.op(op).outputs[0]).dtype;
        return rows(op, part) * (loss ? dtype_bytes(DType::float32) : 2 * dtype_bytes(dtype));
      });
  }

  std::vector<int32_t> coupled_dimensions(int32_t op) const {
    const auto& forward = graph_.op(layout_.leader(op));
    std::vector<int32_t> found;
    const auto phase = graph_.op(op).phase;
    if (forward.type == "BatchNormalization" || phase == Phase::update) return found;
    // What the loss has exchanged is all that its gradient needs.
    if (forward.type == "SoftmaxCrossEntropyLoss" && phase == Phase::backward) return found;
    const auto& cut = layout_.cut(op);
    for (size_t d = 0; d < cut.factors().size(); ++d)
      if (cut.factors()[d] > 1 && cut.space().dimensions[d].role == DimensionRole::coupled)
        found.push_back(static_cast<int32_t>(d));
    return found;
  }
  /// Rows of a part: a softmax has a sum and a maximum of each, a norm a mean and a variance.
  int64_t rows(int32_t op, int32_t part) const {
    const auto& cut = layout_.cut(op);
    double count = cut.share(part);
    for (size_t d = 0; d < cut.factors().size(); ++d) {
      const auto& dimension = cut.space().dimensions[d];
      count *= dimension.role == DimensionRole::coupled ? static_cast<double>(cut.factors()[d])
                                                        : static_cast<double>(dimension.size);
    }
    return std::llround(count);
  }

  /// All-reduces of an output between parts that differ along `dimensions` alone, or the
  /// reduce-scatters that the layout has found.
  template <class Bytes>
  void join(int32_t op, size_t output, const std::vector<int32_t>& dimensions,
            const std::string& what, const std::string& reduction, Bytes bytes) {
    const auto& original = graph_.op(op);
    const int32_t tensor = original.outputs[output];
    const bool weights = layout_.is_weight_gradient(op, output);
    const bool scatters = layout_.scatters(op, output);
    const auto group = layout_.cut(op).groups(dimensions);
    const auto name = fmt::format("{}/{}{}", original.name, what, output + 1);
    std::map<int32_t, Collective> collectives;
    for (int32_t part = 0; part < layout_.cut(op).parts(); ++part) {
      auto& collective = collectives[group[part]];
      if (collective.members.empty()) {
        collective.name = fmt::format("{}.{}", name, group[part]);
        collective.bytes = bytes(part);
        if (scatters) collective.kind = CollectiveKind::reduce_scatter;
      }
      int32_t& held = held_[tensor][part];
      const int32_t id = add_member(op, fmt::format("{}@{}", name, part), collective.kind,
                                    weights ? Phase::update : original.phase, part);
      builder_.read(id, held);
      if (meaning_) {
        const auto& made = builder_.op(parts_of_[op][part]);
        if (!reduction.empty())
          state_reduction(made, reduction, builder_.op(id));
        else if (scatters)
          state_range(builder_.op(id), layout_.homes(tensor)[part].block,
                      layout_.written(op, output, part));
      }
      if (scatters)
        held = add_block(id, tensor, layout_.homes(tensor)[part].block, 2, "piece");
      else
        held = builder_.add_output(id, Tensor(builder_.tensor(held)));
      collective.members.push_back(id);
    }
    for (auto& [number, collective] : collectives) builder_.add_collective(std::move(collective));
  }

  /// A member of a collective beside a part of an operator.
  int32_t add_member(int32_t op, std::string name, CollectiveKind kind, Phase phase, int32_t part) {
    Operator member;
    member.name = std::move(name);
    member.type = kind == CollectiveKind::all_reduce       ? "AllReduce"
                  : kind == CollectiveKind::reduce_scatter ? "ReduceScatter"
                                                           : "AllGather";
    member.phase = phase;
    member.traffic_bytes = 0;
    const int32_t id = add_for(op, std::move(member), layout_.device(op, part), part);
    if (kind != CollectiveKind::all_gather) builder_.colocate(id, parts_of_[op][part]);
    return id;
  }

  void fill_bucket(int32_t op, size_t output, const std::vector<int32_t>& dimensions) {
    const auto group = layout_.cut(op).groups(dimensions);
    std::vector<std::pair<int32_t, int32_t>> where;
    for (int32_t part = 0; part < layout_.cut(op).parts(); ++part)
      where.emplace_back(group[part], layout_.device(op, part));
    const int64_t bytes = builder_.tensor(held_[graph_.op(op).outputs[output]][0]).bytes;
    const int32_t apart = apart_.empty() ? 0 : apart_[op];
    auto found = std::find_if(buckets_.rbegin(), buckets_.rend(), [&](const Bucket& bucket) {
      return bucket.apart == apart && bucket.where == where;
    });
    if (found == buckets_.rend() || found->bytes + bytes > bucket_bytes_) {
      buckets_.push_back({{}, std::move(where), 0, apart});
      found = buckets_.rbegin();
    }
    found->gradients.emplace_back(op, output);
    found->bytes += bytes;
  }

  void reduce(const Bucket& bucket) {
    const auto name = fmt::format("shared_gradients{}", &bucket - buckets_.data());
    const int32_t first = bucket.gradients[0].first;
    std::map<int32_t, Collective> collectives;
    for (size_t part = 0; part < bucket.where.size(); ++part) {
      auto& collective = collectives[bucket.where[part].first];
      collective.name = fmt::format("{}.{}", name, bucket.where[part].first);
      const int32_t id = add_member(first, fmt::format("{}@{}", name, part), collective.kind,
                                    Phase::update, static_cast<int32_t>(part));
      for (const auto& [op, output] : bucket.gradients) {
        int32_t& held = held_[graph_.op(op).outputs[output]][part];
        builder_.read(id, held);
        if (collective.members.empty()) collective.bytes += builder_.tensor(held).bytes;
        held = builder_.add_output(id, Tensor(builder_.tensor(held)));
      }
      collective.members.push_back(id);
    }
    for (auto& [number, collective] : collectives) builder_.add_collective(std::move(collective));
  }

  /// The tensor from which a part reads its block of an input.
  int32_t fetch(int32_t op, size_t input, int32_t part) {
    const int32_t tensor = graph_.op(op).inputs[input];
    const int32_t device = layout_.device(op, part);
    const auto& homes = layout_.homes(tensor);
    const auto& held = held_[tensor];
    const Block block = layout_.needed(op, input, part);
    if (block.empty()) {  // no shape: parts of one operator match
      const auto same = std::min(at(part), homes.size() - 1);
      return held[same];
    }
    const size_t exact = holder(homes, device, block);
    if (exact < homes.size()) return held[exact];
    const auto gathered = std::make_tuple(tensor, device, block, gather_phase(op, tensor));
    if (const auto found = gathered_.find(gathered); found != gathered_.end()) return found->second;
    const auto key = std::make_tuple(tensor, device, block);
    if (const auto found = joined_.find(key); found != joined_.end()) return found->second;
    if (gather(op, input, block)) return gathered_.at(gathered);
    return joined_[key] = collect(op, tensor, device, block);
  }

  /// Whose readers share a gather of a tensor: those of one pass, of rows of experts both.
  Phase gather_phase(int32_t op, int32_t tensor) const {
    const auto& from = graph_.op(graph_.tensor(tensor).producer);
    const auto& before =
        from.type == "Cast" ? graph_.op(graph_.tensor(from.inputs[0]).producer) : from;
    const bool kept = before.type == "AllToAll" || before.type == "ExpertDispatch";
    return kept ? Phase::forward : graph_.op(op).phase;
  }

  /// The pieces of a block, by the groups of devices that hold all of them: the k-th copies of each
  /// (numbers of homes). None where these differ in number or do not make up the block.
  std::vector<std::vector<size_t>> holders(int32_t tensor, const Block& block) const {
    std::map<Block, std::vector<size_t>> pieces;
    const auto& homes = layout_.homes(tensor);
    for (size_t i = 0; i < homes.size(); ++i)
      if (!is_empty(homes[i].block) && overlap(homes[i].block, block) == homes[i].block)
        pieces[homes[i].block].push_back(i);
    int64_t covered = 0;
    std::vector<std::vector<size_t>> groups;
    for (const auto& [piece, copies] : pieces) {
      covered += block_elements(piece);
      groups.resize(std::max(groups.size(), copies.size()));
      if (copies.size() != groups.size()) return {};
      for (size_t k = 0; k < copies.size(); ++k) groups[k].push_back(copies[k]);
    }
    if (covered != block_elements(block)) return {};
    return groups;
  }

  /// All-gathers of a block, where every device that holds a piece of it reads it with this
  /// operator, or as many others do (those of the next stage), which get a piece each first; false
  /// where some do not.
  bool gather(int32_t op, size_t input, const Block& block) {
    const int32_t tensor = graph_.op(op).inputs[input];
    std::map<int32_t, int32_t> readers;  // part, by device
    for (int32_t part = 0; part < layout_.cut(op).parts(); ++part)
      if (layout_.needed(op, input, part) == block) readers[layout_.device(op, part)] = part;
    const auto groups = holders(tensor, block);
    std::set<int32_t> members;
    size_t count = 0;
    for (const auto& group : groups)
      for (const size_t home : group) {
        members.insert(layout_.homes(tensor)[home].device);
        ++count;
      }
    if (groups.empty() || groups[0].size() < 2 || count != members.size()) return false;
    if (readers.size() != members.size()) return false;
    std::map<int32_t, int32_t> taking;  // part, by the device that holds its piece
    const auto inside = std::count_if(readers.begin(), readers.end(), [&](const auto& reader) {
      return members.contains(reader.first);
    });
    if (inside == 0) {
      auto holder = members.begin();
      for (const auto& [device, part] : readers) taking[*holder++] = part;
    } else if (at(inside) == readers.size()) {
      taking = readers;
    } else {
      return false;
    }
    for (const auto& group : groups) add_gather(op, tensor, group, block, taking);
    return true;
  }

  /// What the gather of a forward tensor for a backward operator waits for, so that it is gathered
  /// no earlier than it is used: the first gradient that the operator reads; -1: nothing.
  int32_t gradient_for(int32_t op, int32_t tensor, int32_t part) {
    const auto phase = [&](int32_t of) { return graph_.op(graph_.tensor(of).producer).phase; };
    const auto& inputs = graph_.op(op).inputs;
    if (graph_.op(op).phase != Phase::backward || phase(tensor) != Phase::forward) return -1;
    for (size_t k = 0; k < inputs.size(); ++k)
      if (phase(inputs[k]) == Phase::backward) return fetch(op, k, part);
    return -1;
  }

  /// taking: the parts that read, by the device that holds their piece.
  void add_gather(int32_t op, int32_t tensor, const std::vector<size_t>& group, const Block& block,
                  const std::map<int32_t, int32_t>& taking) {
    Collective collective;
    collective.kind = CollectiveKind::all_gather;
    const auto name = fmt::format("{}/gather", producer_name(tensor));
    const int32_t before = gathers_[name]++;
    collective.name = before == 0 ? name : fmt::format("{}{}", name, before + 1);
    for (const size_t home : group) {
      const int32_t part = taking.at(layout_.homes(tensor)[home].device);
      const int32_t device = layout_.device(op, part);
      const int32_t gate = gradient_for(op, tensor, part);
      const int32_t id = add_member(op, fmt::format("{}@{}", collective.name, part),
                                    collective.kind, graph_.op(op).phase, part);
      builder_.read(id, held_[tensor][home]);
      if (gate >= 0) builder_.read(id, gate);
      if (meaning_)
        builder_.op(id).attributes["begins"] = begins(layout_.homes(tensor)[home].block, block);
      const int32_t whole = add_block(id, tensor, block, 2, "whole");
      gathered_[std::make_tuple(tensor, device, block, gather_phase(op, tensor))] = whole;
      collective.bytes = builder_.tensor(whole).bytes;
      collective.members.push_back(id);
    }
    builder_.add_collective(std::move(collective));
  }

  /// The home with exactly this block, on the device if there is one there; of others each device
  /// takes its turn.
  static size_t holder(const std::vector<Home>& homes, int32_t device, const Block& block) {
    std::vector<size_t> equal;
    for (size_t i = 0; i < homes.size(); ++i) {
      if (homes[i].block != block) continue;
      if (homes[i].device == device) return i;
      equal.push_back(i);
    }
    return equal.empty() ? homes.size() : equal[at(device) % equal.size()];
  }

  /// Pieces of all homes that cover the block, joined on the device where there are several.
  int32_t collect(int32_t op, int32_t tensor, int32_t device, const Block& block) {
    const auto& homes = layout_.homes(tensor);
    std::set<Block> seen;
    std::vector<int32_t> pieces;
    std::vector<int64_t> begin;
    for (const auto& home : homes) {
      const Block piece = overlap(home.block, block);
      if (is_empty(piece) || !seen.insert(home.block).second) continue;
      pieces.push_back(slice(tensor, holder(homes, device, home.block), piece));
      for (const int64_t first : begins(piece, block)) begin.push_back(first);
    }
    if (pieces.size() == 1) return pieces[0];
    Operator concat;
    concat.name = fmt::format("{}/block{}", producer_name(tensor), ++joins_);
    concat.type = "Concat";
    concat.phase = graph_.op(op).phase;
    concat.inputs = std::move(pieces);
    if (meaning_) concat.attributes["begins"] = std::move(begin);
    const int32_t id = add_for(op, std::move(concat), device, 0);
    return add_block(id, tensor, block, 2, "block");
  }

  int32_t slice(int32_t tensor, size_t home, const Block& piece) {
    if (layout_.homes(tensor)[home].block == piece) return held_[tensor][home];
    const auto key = std::make_tuple(tensor, static_cast<int32_t>(home), piece);
    if (const auto found = sliced_.find(key); found != sliced_.end()) return found->second;
    Operator slice;
    slice.name = fmt::format("{}/piece{}", producer_name(tensor), sliced_.size() + 1);
    slice.type = "Slice";
    slice.phase = graph_.op(graph_.tensor(tensor).producer).phase;
    slice.inputs = {held_[tensor][home]};
    if (meaning_) state_range(slice, piece, layout_.homes(tensor)[home].block);
    const int32_t id = add_for(graph_.tensor(tensor).producer, std::move(slice),
                               layout_.homes(tensor)[home].device, 0);
    return sliced_[key] = add_block(id, tensor, piece, 2, "piece");
  }

  const std::string& producer_name(int32_t tensor) const {
    return graph_.op(graph_.tensor(tensor).producer).name;
  }

  /// Parts of one number share a unit where they share a device.
  void colocate(std::span<const int32_t> unit) {
    std::map<int32_t, int32_t> first;  // by device
    for (const int32_t op : unit)
      for (const int32_t part : parts_of_[op]) {
        const int32_t device = made_[part].device;
        const auto [found, fresh] = first.emplace(device, part);
        if (!fresh) builder_.colocate(found->second, part);
      }
  }

  Lowered finish() {
    Lowered result;
    std::vector<int32_t> numbers;
    result.graph = builder_.build(&numbers);
    for (const int32_t number : numbers) {
      const Made& made = made_[number];
      result.placement.push_back(made.device);
      result.origin.push_back(made.origin);
      result.part.push_back(made.part);
      result.serves.push_back(made.serves);
    }
    return result;
  }

  const Graph& graph_;
  const SplitLayout& layout_;
  int64_t bucket_bytes_;
  std::span<const int32_t> apart_;
  bool meaning_;  ///< whether attributes say what parts mean (graph/meaning.h)
  GraphBuilder builder_;
  StopPoll poll_;
  std::vector<Bucket> buckets_;
  std::vector<std::vector<int32_t>> parts_of_;  // by operator, in the builder
  std::vector<std::vector<int32_t>> held_;      // by tensor and home, in the builder
  std::map<std::tuple<int32_t, int32_t, Block>, int32_t> joined_, sliced_;
  std::map<std::tuple<int32_t, int32_t, Block, Phase>, int32_t> gathered_;
  std::vector<Made> made_;  // per operator of the builder
  int64_t joins_ = 0;
  std::map<std::string, int32_t> gathers_;  // by name
};

void check_devices(const OperatorSplit& split, const std::string& owner, int32_t devices) {
  std::set<int32_t> seen;
  for (const int32_t device : split.devices) {
    if (device < 0 || device >= devices)
      throw ArgumentError(
          fmt::format("{}: there is no device {} (of {})", owner, device + 1, devices));
    if (!seen.insert(device).second)
      throw ArgumentError(fmt::format("{}: device {} is listed twice", owner, device + 1));
  }
  const int64_t most = split.devices.empty() ? devices : static_cast<int64_t>(seen.size());
  if (split.parts() > most)
    throw ArgumentError(fmt::format("{}: {} parts on {} devices", owner, split.parts(), most));
}

void check_factors(const OperatorSplit& split, const std::string& owner,
                   const IterationSpace& space) {
  if (split.factors.size() != space.dimensions.size())
    throw ArgumentError(fmt::format("{}: expected {} factors, one a dimension, got {}", owner,
                                    space.dimensions.size(), split.factors.size()));
  for (size_t d = 0; d < split.factors.size(); ++d) {
    const auto& dimension = space.dimensions[d];
    const int64_t most = dimension.splits ? dimension.size : 1;
    if (split.factors[d] < 1 || split.factors[d] > most)
      throw ArgumentError(fmt::format("{}: dimension '{}': expected a factor from 1 to {}, got {}",
                                      owner, dimension.name, most, split.factors[d]));
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
    throw ArgumentError(fmt::format("splits: expected an entry for each of {} operators, got {}",
                                    graph.operator_count(), splits.size()));
  for (int32_t id = 0; id < graph.operator_count(); ++id) {
    const auto& split = splits[id];
    if (split == OperatorSplit{}) continue;
    const auto& op = graph.op(id);
    const auto owner = fmt::format("splits of operator '{}'", op.name);
    if (op.phase != Phase::forward && op.forward >= 0)
      throw ArgumentError(fmt::format("{}: it follows '{}'", owner, graph.op(op.forward).name));
    if (split.copies < 1)
      throw ArgumentError(fmt::format("{}: expected at least 1 copy, got {}", owner, split.copies));
    if (!split.factors.empty()) check_factors(split, owner, iteration_space(graph, id));
    check_devices(split, owner, devices);
    const bool whole = (op.inputs.empty() && !is_variable(op)) || op.collective >= 0;
    if (whole && split.parts() > 1)
      throw ArgumentError(
          fmt::format("{}: sources and members of collectives do not split", owner));
  }
}

Lowered lower_splits(const Graph& graph, const Splits& splits, std::span<const int32_t> placement,
                     int32_t devices, const SplitOptions& options) {
  check_splits(splits, graph, devices);
  if (placement.size() != static_cast<size_t>(graph.operator_count()))
    throw ArgumentError(fmt::format("splits: expected the devices of {} operators, got {}",
                                    graph.operator_count(), placement.size()));
  for (const int32_t device : placement)
    if (device < 0 || device >= devices)
      throw ArgumentError(
          fmt::format("splits: there is no device {} (of {})", device + 1, devices));
  const SplitLayout layout(graph, splits, placement, devices, options);
  return SplitLowering(graph, layout, options).run();
}

}  // namespace trinity
