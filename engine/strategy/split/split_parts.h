#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "base/collective.h"
#include "base/index.h"
#include "base/stop.h"
#include "graph/graph.h"
#include "graph/meaning.h"
#include "graph/nameless.h"
#include "graph/operator_types.h"
#include "strategy/split_layout.h"
#include "strategy/split_meaning.h"
#include "strategy/splits.h"

// Internal to strategy/splits, each class the base of the next: parts and their sums (split_parts.h), pipeline groups
// (split_lanes.h), inputs of parts (split_gathers.h), sources, rings and the whole (splits.cpp).

namespace trinity {

/// Lists of numbers, each filled with -1 when its length is known; one array holds them all.
/// Not thread-safe.
class NumberLists {
 public:
  explicit NumberLists(size_t lists) : place_(lists) {}
  void add(int32_t list, size_t size) {
    place_[at(list)] = {numbers_.size(), size};
    numbers_.resize(numbers_.size() + size, -1);
  }
  /// Valid until the next add().
  std::span<int32_t> operator[](int32_t list) {
    return std::span(numbers_).subspan(place_[at(list)].first, place_[at(list)].second);
  }
  std::span<const int32_t> operator[](int32_t list) const {
    return std::span(numbers_).subspan(place_[at(list)].first, place_[at(list)].second);
  }
  void reserve(size_t numbers) { numbers_.reserve(numbers); }

 private:
  std::vector<int32_t> numbers_;
  std::vector<std::pair<size_t, size_t>> place_;  // [list]: its first number, its length
};

/// The parts of operators and the reductions of what they write. Used once, by one thread.
class SplitParts {
 public:
  /// Thrown if pipeline groups that are not made could differ from the others of their class.
  struct LanesDiffer {};

  /// of_classes: for lower_lanes(); throws LanesDiffer. The arguments must outlive it.
  SplitParts(const Graph& graph, const SplitLayout& layout, const SplitOptions& options, bool of_classes)
      : graph_(graph),
        layout_(layout),
        options_(options),
        of_classes_(of_classes),
        width_(options.width),
        tensor_(options.tensor),
        meaning_(has_meaning(graph)),
        builder_(graph.name()),
        parts_of_(at(graph.operator_count())),
        held_(graph.tensors().size()) {}

 protected:
  using Where = std::vector<std::pair<int32_t, int32_t>>;  // by part: group, device
  /// A partial gradient of a weight before its reduction: an operator's output.
  struct Gradient {
    int32_t op;
    size_t output;
    std::vector<int32_t> parts;  // by part of its bucket; empty: of the same numbers
    Where next = {};             // the second reduction, if groups are first: by its own part
    int32_t part_at(size_t place) const {
      return parts.empty() ? static_cast<int32_t>(place) : parts[place];
    }
  };
  /// Partial gradients of weights that are reduced together, on the same groups of devices.
  struct Bucket {
    std::vector<Gradient> gradients;
    Where where;  // of the first one's parts
    int64_t bytes = 0;
    int32_t apart = 0;
    Where next = {};  // the second reduction
  };

  /// True if the operators of a device are built.
  bool makes(int32_t device) const {
    return !of_classes_ || lanes_[at(device % width_)] == device % width_;
  }
  bool makes_part(int32_t op, size_t part) const {
    return makes(layout_.device(op, static_cast<int32_t>(part)));
  }

  /// Allocates the parts of an operator and of its outputs; none is made yet (-1).
  void start_parts(int32_t op, size_t parts) {
    parts_of_.add(op, parts);
    for (const int32_t output : graph_.op(op).outputs) held_.add(output, parts);
  }

  /// Checks that a part was made: -1 cannot be used.
  int32_t made(int32_t number) const {
    if (number < 0) throw LanesDiffer{};
    return number;
  }

  /// The axes over which collectives join parts, as bits; -1: others, or no mesh.
  int32_t axes_of(const Where& where) const {
    std::vector<int32_t> group_of(at(width_), -1);  // [pipeline group]
    for (const auto& [group, device] : where) group_of[at(device % width_)] = group;
    const auto same = [&](int32_t a, int32_t b) { return group_of[at(a)] == group_of[at(b)]; };
    const bool whole = tensor_ > 0 && std::ssize(where) == width_;
    const bool over_tensor = whole && tensor_ > 1 && same(0, 1);
    const bool over_context = whole && width_ > tensor_ && same(0, tensor_);
    const int32_t axes = kOverTensor * over_tensor + kOverContext * over_context;
    const auto first = [&](int32_t lane) { return first_over(axes, tensor_, lane); };  // of its group
    bool fits = whole;
    for (int32_t lane = 0; lane < width_ && fits; ++lane) {
      fits = group_of[at(lane)] >= 0 && same(lane, first(lane));
      for (int32_t other = 0; first(lane) == lane && other < lane && fits; ++other)
        fits = first(other) != other || !same(lane, other);
    }
    if (!fits && of_classes_) throw LanesDiffer{};
    return fits ? axes : -1;
  }

  int32_t add(Operator op, int32_t device, int32_t origin, int32_t part) {
    roles_.push_back({device, origin, origin, part});
    return builder_.add_operator(std::move(op));
  }

  /// Adds an operator that is no part of another one, but made for it.
  int32_t add_for(int32_t serves, Operator op, int32_t device, int32_t part) {
    roles_.push_back({device, -1, serves, part});
    return builder_.add_operator(std::move(op));
  }

  static std::string part_name(const std::string& name, int32_t part, size_t parts) {
    if (parts == 1) return name;
    return name_made_of(name, [&] { return name; }) + '@' + std::to_string(part);
  }

  /// A tensor's block: the extents of its shape, or its share of the bytes where it has no shape.
  int32_t add_block(int32_t producer, int32_t original, const Block& block, size_t parts,
                    const std::string& suffix, double share = 1) {
    const Tensor& of = graph_.tensor(original);
    Tensor tensor{{}, producer, of.shape, of.dtype, of.bytes, of.gradient};
    if (suffix.empty() && parts == 1) tensor.name = of.name;
    take_lengths(block, tensor.shape);
    if (block.empty()) tensor.bytes = std::llround(static_cast<double>(tensor.bytes) * share);
    return builder_.add_output(producer, std::move(tensor));
  }

  Operator part_of(int32_t op, int32_t part) const {
    const auto& original = graph_.op(op);
    const auto& cut = layout_.cut(op);
    Operator made = original;
    made.name = part_name(original.name, part, at(cut.parts()));
    made.inputs.clear();
    if (original.forward >= 0) {
      const auto forwards = parts_of_[original.forward];
      made.forward = this->made(forwards[std::min(at(part), forwards.size() - 1)]);
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
    for (size_t i = 0; i < original.parameters.size(); ++i) {
      const Block block =
          cut.block(original.parameters[i].shape, cut.space().parameters[i], part);
      if (has_lengths(block, original.parameters[i].shape)) continue;
      take_lengths(block, made.parameters.edit()[i].shape);
    }
    return made;
  }

  /// The work of a gradient accumulation is proportional to its block; other operators divide the
  /// whole.
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
    double own = whole > 0 ? whole * layout_.weight_share(op, part) : 0;
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

  /// Reduces partial sums; parts along a coupled dimension exchange their statistics.
  void join_parts(int32_t op, size_t output) {
    if (layout_.sums_later(op, output)) return;
    auto sums = layout_.summed(op, output);
    if (layout_.adds_parts(op)) sums = layout_.copies_of(op);
    if (!sums.empty()) {
      if (options_.bucket_bytes > 0 && layout_.is_weight_gradient(op, output))
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
    // The gradient of a loss needs only the values that the loss has exchanged.
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
    int64_t count = 1;
    for (size_t d = 0; d + 1 < cut.factors().size(); ++d)
      if (cut.space().dimensions[d].role != DimensionRole::coupled) count *= cut.length(d, part);
    return count;
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
    const auto name =
        name_of([&] { return fmt::format("{}/{}{}", original.name, what, output + 1); });
    std::map<int32_t, Collective> collectives;
    Where where;
    for (int32_t part = 0; part < layout_.cut(op).parts(); ++part)
      where.emplace_back(group[part], layout_.device(op, part));
    const int32_t axes = axes_of(where);
    for (int32_t part = 0; part < layout_.cut(op).parts(); ++part) {
      if (!makes(layout_.device(op, part))) continue;
      auto& collective = collectives[group[part]];
      if (collective.members.empty()) {
        collective.axes = axes;
        collective.name = name_of([&] { return fmt::format("{}.{}", name, group[part]); });
        collective.bytes = bytes(part);
        if (scatters) collective.kind = CollectiveKind::reduce_scatter;
      }
      int32_t& held = held_[tensor][part];
      const int32_t id = add_member(op, part_name(name, part, 2), collective.kind,
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

  /// A member of a collective next to a part of an operator.
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
    const auto [known, fresh] =
        reductions_.try_emplace({&layout_.devices(op), layout_.cut(op).groups(dimensions)});
    if (fresh) known->second = find_reduction(known->first.second, layout_.devices(op));
    const auto& [where, within, across] = known->second;
    if (!within.empty() && options_.across_first)
      put_in_bucket({op, output, {}, within}, across, {});
    else if (!within.empty())
      put_in_bucket({op, output, {}}, within, across);
    else
      put_in_bucket({op, output, {}}, across.empty() ? where : across, {});
  }

  /// The groups in which the parts of a weight's gradient are reduced: all together, or within
  /// inner groups and across them. `within` is empty unless both are needed, `across` if inner
  /// groups do not differ.
  struct Reduction {
    Where where, within, across;
  };

  /// group: [part]: parts with one number are reduced together; devices: [part].
  Reduction find_reduction(const std::vector<int32_t>& group, const std::vector<int32_t>& devices) const {
    Reduction found;
    using Numbers = std::map<std::pair<int32_t, int32_t>, int32_t>;
    Numbers runs, places;
    const auto number = [](Numbers& known, int32_t a, int32_t b) {
      return known.emplace(std::pair(a, b), static_cast<int32_t>(known.size())).first->second;
    };
    size_t groups = 0;
    for (size_t part = 0; part < group.size(); ++part) {
      const int32_t device = devices[part];
      groups = std::max(groups, at(group[part]) + 1);
      found.where.emplace_back(group[part], device);
      found.within.emplace_back(number(runs, group[part], device / options_.runs), device);
      found.across.emplace_back(number(places, group[part], device % options_.runs), device);
    }
    // Parts of a run differ within a group, and so do runs.
    const bool several = options_.runs > 1 && runs.size() > groups;
    if (!several || places.size() <= groups) found.within.clear();
    if (!several) found.across.clear();
    return found;
  }

  /// Reductions of an output by `where`, and of their results by `next`, if that is not empty.
  void put_in_bucket(Gradient gradient, const Where& where, const Where& next) {
    // The first part is always made.
    const auto& made = builder_.tensor(held_[graph_.op(gradient.op).outputs[gradient.output]][0]);
    const int64_t bytes = made.bytes;
    const int32_t apart = options_.apart.empty() ? 0 : options_.apart[gradient.op];
    std::vector<int32_t> places;
    auto found = std::find_if(buckets_.rbegin(), buckets_.rend(), [&](const Bucket& bucket) {
      if (bucket.apart != apart || bucket.next.empty() != next.empty()) return false;
      places.clear();
      if (bucket.where == where && bucket.next == next) return true;
      places = places_among(bucket.where, where);
      return !places.empty() && (next.empty() || places == places_among(bucket.next, next));
    });
    if (found == buckets_.rend() || found->bytes + bytes > options_.bucket_bytes) {
      buckets_.push_back({{}, where, 0, apart, next});
      found = buckets_.rbegin();
    } else if (!places.empty()) {
      for (int32_t& place : places) place = gradient.part_at(at(place));
      gradient.parts = std::move(places);
    }
    found->gradients.push_back(std::move(gradient));
    found->bytes += bytes;
  }

  /// For each part of `where` the part of `other` on its device, if both form the same groups of the
  /// same devices; else nothing.
  static std::vector<int32_t> places_among(const Where& where, const Where& other) {
    const auto first = [&](const auto& entry) { return entry.second == where[0].second; };
    if (where.size() != other.size() || std::none_of(other.begin(), other.end(), first)) return {};
    std::map<int32_t, size_t> on_device;
    for (size_t i = 0; i < other.size(); ++i) on_device.emplace(other[i].second, i);
    std::map<int32_t, int32_t> groups, back;
    std::vector<int32_t> places;
    for (const auto& [group, device] : where) {
      const auto found = on_device.find(device);
      if (found == on_device.end() || on_device.size() != other.size()) return {};
      const int32_t as = other[found->second].first;
      const bool fits = groups.emplace(group, as).first->second == as &&
                        back.emplace(as, group).first->second == group;
      if (!fits) return {};
      places.push_back(static_cast<int32_t>(found->second));
    }
    return places;
  }

  /// Collectives whose results are reduced again come first, and fill the others.
  void reduce_buckets() {
    if (options_.across_first) return reduce_across_first();
    const size_t count = buckets_.size();
    for (size_t k = 0; k < count; ++k) {
      if (buckets_[k].next.empty()) continue;
      reduce(k);
      const auto gradients = buckets_[k].gradients;
      const auto next = buckets_[k].next;
      for (const auto& gradient : gradients) put_in_bucket(gradient, next, {});
    }
    for (size_t k = 0; k < buckets_.size(); ++k)
      if (buckets_[k].next.empty()) reduce(k);
  }

  void reduce_across_first() {
    constexpr int32_t kReduced = -1;
    const size_t count = buckets_.size();
    for (size_t k = 0; k < count; ++k) {
      reduce(k);
      buckets_[k].apart = kReduced;
    }
    for (size_t k = 0; k < count; ++k)
      for (const auto& [op, output, parts, next] : std::vector(buckets_[k].gradients))
        if (!next.empty()) put_in_bucket({op, output, {}}, next, {});
    for (size_t k = count; k < buckets_.size(); ++k) reduce(k);
  }

  void reduce(size_t k) {
    const auto& bucket = buckets_[k];
    const auto name = fmt::format("shared_gradients{}", k);
    const auto& first = bucket.gradients[0];
    std::map<int32_t, Collective> collectives;
    const int32_t axes = axes_of(bucket.where);
    for (size_t part = 0; part < bucket.where.size(); ++part) {
      if (!makes(bucket.where[part].second)) continue;
      auto& collective = collectives[bucket.where[part].first];
      collective.axes = axes;
      collective.name = fmt::format("{}.{}", name, bucket.where[part].first);
      const int32_t id =
          add_member(first.op, part_name(name, static_cast<int32_t>(part), 2), collective.kind,
                     Phase::update, first.part_at(part));
      for (const auto& gradient : bucket.gradients) {
        const int32_t tensor = graph_.op(gradient.op).outputs[gradient.output];
        int32_t& held = held_[tensor][gradient.part_at(part)];
        builder_.read(id, held);
        if (collective.members.empty()) collective.bytes += builder_.tensor(held).bytes;
        held = builder_.add_output(id, Tensor(builder_.tensor(held)));
      }
      collective.members.push_back(id);
    }
    for (auto& [number, collective] : collectives) builder_.add_collective(std::move(collective));
  }

  const std::string& producer_name(int32_t tensor) const {
    return graph_.op(graph_.tensor(tensor).producer).name;
  }

  /// Parts with one number share a colocation unit if they share a device.
  void colocate(std::span<const int32_t> unit) {
    std::map<int32_t, int32_t> first;  // by device
    for (const int32_t op : unit)
      for (const int32_t part : parts_of_[op]) {
        if (part < 0) continue;
        const int32_t device = roles_[part].device;
        const auto [found, fresh] = first.emplace(device, part);
        if (!fresh) builder_.colocate(found->second, part);
      }
  }

  LoweredGraph finish() {
    LoweredGraph result;
    std::vector<int32_t> numbers;
    result.graph = builder_.build(&numbers);
    result.roles.reserve(numbers.size());
    for (const int32_t number : numbers) result.roles.push_back(roles_[number]);
    result.lanes = lanes_;
    return result;
  }

  const Graph& graph_;
  const SplitLayout& layout_;
  const SplitOptions& options_;
  bool of_classes_;  ///< whether one pipeline group per class is made
  int32_t width_, tensor_;
  std::vector<int32_t> lanes_;  // of_classes_: LoweredGraph::lanes
  bool meaning_;  ///< whether attributes state the meaning of parts (graph/meaning.h)
  GraphBuilder builder_;
  std::vector<Bucket> buckets_;
  NumberLists parts_of_;  // [operator][part]: operator of the builder
  NumberLists held_;      // [tensor][home]: tensor of the builder
  /// [devices of the parts, group of every part]
  std::map<std::pair<const std::vector<int32_t>*, std::vector<int32_t>>, Reduction> reductions_;
  std::vector<OperatorRole> roles_;  // per operator of the builder
};

}  // namespace trinity
