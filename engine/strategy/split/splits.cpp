#include "strategy/splits.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/error.h"
#include "graph/nameless.h"
#include "graph/operator_types.h"
#include "strategy/split/split_lowering.h"
#include "strategy/split_meaning.h"

namespace trinity {

Lowered SplitLowering::run() {
  const bool last = bucket_bytes_ > 0;  // updates wait for their buckets
  if (width_ > 0) {
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

void SplitLowering::add_whole(int32_t op) {
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

int32_t SplitLowering::add(Operator op, int32_t device, int32_t origin, int32_t part) {
  roles_.push_back({device, origin, origin, part});
  return builder_.add_operator(std::move(op));
}

int32_t SplitLowering::add_for(int32_t serves, Operator op, int32_t device, int32_t part) {
  roles_.push_back({device, -1, serves, part});
  return builder_.add_operator(std::move(op));
}

std::string SplitLowering::part_name(const std::string& name, int32_t part, size_t parts) {
  if (parts == 1) return name;
  return name_made_of(name, [&] { return name; }) + '@' + std::to_string(part);
}

int32_t SplitLowering::add_block(int32_t producer, int32_t original, const Block& block,
                                 size_t parts, const std::string& suffix, double share) {
  const Tensor& of = graph_.tensor(original);
  Tensor tensor{{}, producer, of.shape, of.dtype, of.bytes, of.gradient};
  if (suffix.empty() && parts == 1) tensor.name = of.name;
  take_lengths(block, tensor.shape);
  if (block.empty()) tensor.bytes = std::llround(static_cast<double>(tensor.bytes) * share);
  return builder_.add_output(producer, std::move(tensor));
}

void SplitLowering::add_source(int32_t op) {
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

void SplitLowering::start_parts(int32_t op, size_t parts) {
  parts_of_.add(op, parts);
  for (const int32_t output : graph_.op(op).outputs) held_.add(output, parts);
}

void SplitLowering::add_parts(int32_t op) {
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

Operator SplitLowering::part_of(int32_t op, int32_t part) const {
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

double SplitLowering::work_share(int32_t op, int32_t part) const {
  const auto& original = graph_.op(op);
  if (original.phase != Phase::backward || original.type != "Sum")
    return layout_.cut(op).share(part);
  const auto whole = static_cast<double>(graph_.tensor(original.outputs[0]).elements());
  return static_cast<double>(block_elements(layout_.written(op, 0, part))) / std::max(1.0, whole);
}

void SplitLowering::restate_traffic(int32_t op, int32_t part, Operator& made) const {
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

void SplitLowering::join_parts(int32_t op, size_t output) {
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

std::vector<int32_t> SplitLowering::coupled_dimensions(int32_t op) const {
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

int64_t SplitLowering::rows(int32_t op, int32_t part) const {
  const auto& cut = layout_.cut(op);
  int64_t count = 1;
  for (size_t d = 0; d + 1 < cut.factors().size(); ++d)
    if (cut.space().dimensions[d].role != DimensionRole::coupled) count *= cut.length(d, part);
  return count;
}

template <class Bytes>
void SplitLowering::join(int32_t op, size_t output, const std::vector<int32_t>& dimensions,
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

int32_t SplitLowering::add_member(int32_t op, std::string name, CollectiveKind kind, Phase phase,
                                  int32_t part) {
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

void SplitLowering::fill_bucket(int32_t op, size_t output, const std::vector<int32_t>& dimensions) {
  const auto [known, fresh] =
      reductions_.try_emplace({&layout_.devices(op), layout_.cut(op).groups(dimensions)});
  if (fresh) known->second = find_reduction(known->first.second, layout_.devices(op));
  const auto& [where, within, across] = known->second;
  if (!within.empty() && across_first_)
    put_in_bucket({op, output, {}, within}, across, {});
  else if (!within.empty())
    put_in_bucket({op, output, {}}, within, across);
  else
    put_in_bucket({op, output, {}}, across.empty() ? where : across, {});
}

SplitLowering::Reduction SplitLowering::find_reduction(const std::vector<int32_t>& group,
                                                       const std::vector<int32_t>& devices) const {
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
    found.within.emplace_back(number(runs, group[part], device / runs_), device);
    found.across.emplace_back(number(places, group[part], device % runs_), device);
  }
  // Parts of a run differ within a group, and so do runs.
  const bool several = runs_ > 1 && runs.size() > groups;
  if (!several || places.size() <= groups) found.within.clear();
  if (!several) found.across.clear();
  return found;
}

/// For each part of `where` the part of `other` on its device, if both form the same groups of the
/// same devices; else nothing.
std::vector<int32_t> SplitLowering::places_among(const Where& where, const Where& other) {
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

void SplitLowering::put_in_bucket(Gradient gradient, const Where& where, const Where& next) {
  // The first part is always made.
  const auto& made = builder_.tensor(held_[graph_.op(gradient.op).outputs[gradient.output]][0]);
  const int64_t bytes = made.bytes;
  const int32_t apart = apart_.empty() ? 0 : apart_[gradient.op];
  std::vector<int32_t> places;
  auto found = std::find_if(buckets_.rbegin(), buckets_.rend(), [&](const Bucket& bucket) {
    if (bucket.apart != apart || bucket.next.empty() != next.empty()) return false;
    places.clear();
    if (bucket.where == where && bucket.next == next) return true;
    places = places_among(bucket.where, where);
    return !places.empty() && (next.empty() || places == places_among(bucket.next, next));
  });
  if (found == buckets_.rend() || found->bytes + bytes > bucket_bytes_) {
    buckets_.push_back({{}, where, 0, apart, next});
    found = buckets_.rbegin();
  } else if (!places.empty()) {
    for (int32_t& place : places) place = gradient.part_at(at(place));
    gradient.parts = std::move(places);
  }
  found->gradients.push_back(std::move(gradient));
  found->bytes += bytes;
}

/// Collectives whose results are reduced again come first, and fill the others.
void SplitLowering::reduce_buckets() {
  if (across_first_) return reduce_across_first();
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

void SplitLowering::reduce_across_first() {
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

void SplitLowering::reduce(size_t k) {
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

const std::string& SplitLowering::producer_name(int32_t tensor) const {
  return graph_.op(graph_.tensor(tensor).producer).name;
}

void SplitLowering::colocate(std::span<const int32_t> unit) {
  std::map<int32_t, int32_t> first;  // by device
  for (const int32_t op : unit)
    for (const int32_t part : parts_of_[op]) {
      if (part < 0) continue;
      const int32_t device = roles_[part].device;
      const auto [found, fresh] = first.emplace(device, part);
      if (!fresh) builder_.colocate(found->second, part);
    }
}

Lowered SplitLowering::finish() {
  Lowered result;
  std::vector<int32_t> numbers;
  result.graph = builder_.build(&numbers);
  result.roles.reserve(numbers.size());
  for (const int32_t number : numbers) result.roles.push_back(roles_[number]);
  result.lanes = lanes_;
  return result;
}

namespace {

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

Lowered lower_splits(const Graph& graph, const Splits& splits, std::span<const int32_t> placement,
                     int32_t devices, const SplitOptions& options) {
  check_splits(splits, graph, devices);
  check_devices(graph, placement, devices);
  const SplitLayout layout(graph, splits, placement, devices, options);
  return SplitLowering(graph, layout, options).run();
}

std::optional<Lowered> lower_lanes(const Graph& graph, const Splits& splits,
                                   std::span<const int32_t> placement, int32_t devices,
                                   int32_t width, const SplitOptions& options) {
  check_devices(graph, placement, devices);
  if (!options.padded || splits.size() != at(graph.operator_count())) return std::nullopt;
  const SplitLayout layout(graph, splits, placement, devices, options);
  try {
    return SplitLowering(graph, layout, options, width).run();
  } catch (const SplitLowering::LanesDiffer&) {
    return std::nullopt;
  }
}

}  // namespace trinity
