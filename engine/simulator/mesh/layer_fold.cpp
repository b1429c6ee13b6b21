#include "simulator/mesh/layer_fold.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "base/error.h"
#include "base/index.h"
#include "simulator/mesh/fewer_layers.h"
#include "graph/operator_types.h"
#include "graph/split_backward.h"

namespace trinity {
namespace {

constexpr int32_t kFewStages = 3, kFewLayers = 3;  // first, inner, last
// Sufficient if a stage's first and last layers behave alike: an operator of an inner layer reads
// from the previous layer as the last one does, or from the next as the first one does.
constexpr int32_t kEndLayers = 2;
constexpr int32_t kLeastStages = 5;  // three inner ones, if stages count as layers

}  // namespace

namespace {

/// Common part of the counting methods; none if the mesh does not consist of equal layers.
/// in_stages: layers per virtual stage.
std::optional<FoldSizes> mesh_sizes(const Parallelism& given, int32_t layers,
                                    std::vector<int32_t>& in_stages) {
  FoldSizes sizes;
  sizes.pipeline = given.mesh.pipeline;
  sizes.rounds = given.virtual_stages;
  sizes.schedule = schedule_of(given);
  if (sizes.schedule == PipelineSchedule::gpipe) sizes.schedule = PipelineSchedule::one_f_one_b;
  in_stages = given.stages;
  if (in_stages.empty() && layers % sizes.chunks() == 0)
    in_stages.assign(at(sizes.chunks()), layers / sizes.chunks());
  if (in_stages.size() != at(sizes.chunks()) || !given.operators.empty() ||
      *std::min_element(in_stages.begin(), in_stages.end()) < 1 ||
      std::accumulate(in_stages.begin(), in_stages.end(), int64_t{0}) != layers)
    return std::nullopt;
  return sizes;
}

/// True if the end layers and their neighbours, in whose stages their gradient sums run, are in
/// stages that map to one stage of the mesh.
bool ends_stand(const FoldSizes& sizes) {
  const int32_t in_chunk = sizes.few_in_chunk();
  for (int32_t layer = 0; layer <= sizes.ends; ++layer) {
    const int32_t last = sizes.few_layers - 1 - layer;
    if (sizes.many(layer / in_chunk) != sizes.chunk_of[at(layer)] ||
        sizes.many(last / in_chunk) != sizes.chunk_of[at(sizes.layers - 1 - layer)])
      return false;
  }
  return true;
}

/// least_in_chunk: number of layers per virtual stage to try first.
std::optional<FoldSizes> few_layers(const Parallelism& given, int32_t layers,
                                    int32_t least_in_chunk) {
  std::vector<int32_t> in_stages;
  auto sizes = mesh_sizes(given, layers, in_stages);
  if (!sizes) return std::nullopt;
  sizes->layers = layers;
  for (int32_t chunk = 0; chunk < sizes->chunks(); ++chunk)
    sizes->chunk_of.insert(sizes->chunk_of.end(), at(in_stages[at(chunk)]), chunk);
  // The recomputation of the second-last layer waits for other operators than that of earlier ones.
  sizes->ends = given.recompute == Recompute::none ? 1 : 2;
  sizes->joins = given.bucket_bytes > 0;
  sizes->bucket_bytes = given.bucket_bytes;
  const int32_t least = std::max(FewerLayers::kLeast, 2 * sizes->ends + 3);
  const int32_t in_chunk = *std::max_element(in_stages.begin(), in_stages.end());
  const auto take = [&](int32_t stages, int32_t layers_of_chunk) {
    sizes->few_pipeline = std::min(sizes->pipeline, stages);
    sizes->few_layers = sizes->few_chunks() * std::min(in_chunk, layers_of_chunk);
    return sizes->few_layers >= least;
  };
  // The recomputation of a stage's last layer waits for nothing: two inner layers are needed.
  const bool more = given.recompute == Recompute::full && take(kFewStages, kFewLayers + 1);
  const bool enough = more || take(kFewStages, least_in_chunk) || take(kFewStages, kFewLayers) ||
                      take(kFewStages, kFewLayers + 1) || take(kFewStages, least) ||
                      take(least, kFewLayers);
  if (!enough || sizes->few_layers >= layers || !ends_stand(*sizes)) return std::nullopt;
  sizes->few_stages.assign(at(sizes->few_chunks()), sizes->few_in_chunk());
  return sizes;
}

/// All layers of a virtual stage count as one.
std::optional<FoldSizes> few_stages(const Parallelism& given, int32_t layers) {
  std::vector<int32_t> in_stages;
  auto sizes = mesh_sizes(given, layers, in_stages);
  if (!sizes) return std::nullopt;
  sizes->layers = sizes->chunks();
  sizes->chunk_of.resize(in_stages.size());
  std::iota(sizes->chunk_of.begin(), sizes->chunk_of.end(), 0);
  sizes->few_pipeline = kFewStages;
  while (sizes->few_chunks() < kLeastStages) ++sizes->few_pipeline;
  sizes->few_layers = sizes->few_chunks();
  if (sizes->few_pipeline >= sizes->pipeline ||
      !std::equal(in_stages.begin() + 2, in_stages.end() - 1, in_stages.begin() + 1))
    return std::nullopt;
  sizes->few_stages.assign(at(sizes->few_chunks()), in_stages[1]);
  sizes->few_stages.front() = in_stages.front();
  sizes->few_stages.back() = in_stages.back();
  return sizes;
}

/// All layers of a device count as one.
std::optional<FoldSizes> few_devices(const Parallelism& given, int32_t layers) {
  std::vector<int32_t> in_stages;
  auto sizes = mesh_sizes(given, layers, in_stages);
  if (!sizes || sizes->rounds == 1 || sizes->pipeline <= kLeastStages) return std::nullopt;
  sizes->by_device = true;
  sizes->layers = sizes->pipeline;
  sizes->few_layers = sizes->few_pipeline = kLeastStages;
  for (int32_t few = 0; few < sizes->few_chunks(); ++few)
    sizes->few_stages.push_back(
        in_stages[at(sizes->many(few) >= 0 ? sizes->many(few)
                                           : few / kLeastStages * sizes->pipeline + 1)]);
  for (int32_t chunk = 0; chunk < sizes->chunks(); ++chunk)
    if (in_stages[at(chunk)] != sizes->few_stages[at(sizes->like(chunk))]) return std::nullopt;
  return sizes;
}

}  // namespace

std::vector<FoldSizes> fold_sizes(const Parallelism& given, int32_t layers) {
  // Gradients that the shards of a layer reduce share buckets with other layers of the device.
  const bool shares = given.sequence_parallel && given.mesh.tensor > 1 && given.bucket_bytes > 0;
  // A stage's last layer does not gather the next layer's weights, and recomputes without waiting.
  const bool ends_differ = given.shard == 3 || given.recompute != Recompute::none;
  std::vector<FoldSizes> found;
  const auto add = [&](std::optional<FoldSizes> sizes) {
    if (sizes) found.push_back(std::move(*sizes));
  };
  add(few_layers(given, layers, ends_differ ? kFewLayers : kEndLayers));
  const size_t ways = found.size();
  add(few_stages(given, layers));
  add(few_devices(given, layers));
  if (shares) std::reverse(found.begin() + static_cast<std::ptrdiff_t>(ways), found.end());
  return found;
}

Parallelism with_few_stages(const Parallelism& given, const FoldSizes& sizes) {
  Parallelism few = given;
  few.mesh.pipeline = sizes.few_pipeline;
  few.stages = sizes.few_stages;
  few.mesh.order.clear();
  few.mesh.devices.clear();
  few.micro_batches = 2 * sizes.few_pipeline;
  return few;
}

std::unique_ptr<LayerFold> LayerFold::make(const FoldSizes& sizes, const ReplicaLanes& few,
                                           const Mesh& mesh, const LoweredCopies& copies,
                                           const FoldRuns& runs, const Problem& problem) {
  std::unique_ptr<LayerFold> fold(
      new LayerFold(sizes, mesh.width(), copies, runs.replicas, problem));
  fold->lanes_ = LaneFold::make(few, mesh, sizes.few_pipeline, sizes.pipeline, runs.parts);
  if (!fold->lanes_ || !fold->find(few) || !fold->number_all()) return nullptr;
  return fold;
}

bool LayerFold::find(const ReplicaLanes& few) {
  find_slots();
  std::vector<int32_t> device;
  for (int32_t op = 0; op < this->few().operator_count(); ++op) {
    device.push_back(few_stage(op) * slots() + slot_[at(op)]);
    if (few_stage(op) != device_of_chunk(sizes_.schedule, sizes_.few_pipeline,
                                         copies_.lowered.stage[at(op)]))
      return false;
  }
  if (places_operators(this->few(), device, copies_.lowered.stage)) return false;
  try {  // an order that is refused for the mesh is refused for the reduced one
    pipeline_pieces(this->few(), device, sizes_.few_pipeline * slots(), copies_.lowered.stage,
                    2 * sizes_.few_pipeline, sizes_.schedule);
  } catch (const ScheduleError&) {
    return false;
  }
  for (const int32_t inner : copies_.collective) {
    const int32_t group = inner < 0 ? kAcross : few.group_of(inner);
    const bool joins = inner == LoweredCopies::kJoins || group >= few.first_joined();
    few_group_.push_back(joins ? kJoins : group);
  }
  find_work();
  find_labels();
  if (!find_joins() || !find_runs() || !find_sources() || !find_senders() || !find_all_parts() ||
      !find_reads() || !find_chunks() || !find_waits())
    return false;
  return all_alike(false) || (!sizes_.by_device && all_alike(true));
}

void LayerFold::find_slots() {
  slot_of_part_.assign(at(width_), -1);
  for (size_t i = 0; i < lanes_->parts().size(); ++i)
    slot_of_part_[at(lanes_->parts()[i])] = static_cast<int32_t>(i);
  for (const int32_t rank : copies_.lowered.rank)
    slot_.push_back(slot_of_part_[at(rank % width_)] * replicas_ + rank / width_ % replicas_);
}

void LayerFold::find_labels() {
  std::vector<int32_t> of_layer;  // [network layer]: layer index that it counts as
  for (int32_t chunk = 0; chunk < sizes_.few_chunks(); ++chunk)
    for (int32_t i = 0; i < sizes_.few_stages[at(chunk)]; ++i)
      of_layer.push_back(sizes_.by_device ? sizes_.few_first_layer(chunk)
                         : sizes_.chunk_of.size() == at(sizes_.chunks())
                             ? chunk
                             : static_cast<int32_t>(of_layer.size()));
  for (const int32_t layer : copies_.lowered.layer)
    label_.push_back(layer < 0                       ? -1
                     : at(layer) < of_layer.size() ? of_layer[at(layer)]
                                                     : sizes_.few_layers);
}

/// by_end: first and last layers of stages are classes of their own.
bool LayerFold::all_alike(bool by_end) {
  by_end_ = by_end;
  kind_layer_.assign(at(8 * sizes_.rounds), -1);
  for (int32_t layer = few_inner() - 2; layer > 0; --layer)
    kind_layer_[at(few_kind(layer))] = layer;
  for (int32_t layer = 0; layer < inner(); ++layer)
    if (kind_layer_[at(kind(layer))] < 0) return false;
  if (few_kind(0) != kind(0) || few_kind(few_inner() - 1) != kind(inner() - 1)) return false;
  for (int32_t op = 0; op < few().operator_count(); ++op) {
    const auto& place = runs_->places[at(op)];
    if (place.zone < 0) continue;
    const int32_t like = kind_layer_[at(few_kind(place.layer))];
    if (like < 0 || !alike(op, runs_->number(place.zone, like, place.place))) return false;
  }
  return true;
}

int32_t LayerFold::few_kind(int32_t layer) const {
  const int32_t in_chunk = sizes_.few_in_chunk();
  const int32_t in = (layer + sizes_.ends) % in_chunk, chunk = (layer + sizes_.ends) / in_chunk;
  return kind_of(in == 0, in == in_chunk - 1, sizes_.few_pipeline, chunk);
}

int32_t LayerFold::kind(int32_t layer) const {
  if (sizes_.by_device) return 0;
  const size_t of = at(layer + sizes_.ends);
  const auto& chunk = sizes_.chunk_of;
  const bool first = of == 0 || chunk[of - 1] != chunk[of];
  const bool last = of + 1 == chunk.size() || chunk[of + 1] != chunk[of];
  return kind_of(first, last, sizes_.pipeline, chunk[of]);
}

int32_t LayerFold::kind_of(bool first, bool last, int32_t devices, int32_t chunk) const {
  if (!by_end_ || (!first && !last)) return 0;
  const bool turns = (first && sizes_.one_device(devices, chunk - 1, chunk)) ||
                     (last && sizes_.one_device(devices, chunk, chunk + 1));
  return 8 * (chunk / devices) + 4 * turns + 2 * last + first;
}

/// Reduced layers: for the first layer of a virtual stage, the last one of the device's previous
/// virtual stage (kBefore); for the last layer, the first one of the next (kBehind).
int32_t LayerFold::few_joined(int32_t layer, int32_t way) const {
  if (sizes_.by_device) return -1;
  const int32_t in_chunk = sizes_.few_in_chunk(), of = layer + sizes_.ends;
  const int32_t in = of % in_chunk;
  const int32_t joined = sizes_.joined(sizes_.few_pipeline, of / in_chunk, way == kBefore ? -1 : 1);
  if (joined < 0 || in != (way == kBefore ? 0 : in_chunk - 1)) return -1;
  return joined * in_chunk + (way == kBefore ? in_chunk - 1 : 0) - sizes_.ends;
}

int32_t LayerFold::joined(int32_t layer, int32_t way) const {
  const int32_t chunk = sizes_.chunk_of[at(layer + sizes_.ends)];
  const int32_t joined = sizes_.joined(sizes_.pipeline, chunk, way == kBefore ? -1 : 1);
  return (way == kBefore ? sizes_.first_layer(joined + 1) - 1 : sizes_.first_layer(joined)) -
         sizes_.ends;
}

bool LayerFold::find_runs() {
  std::vector<int32_t> layers = label_, devices;
  std::vector<bool> joins;
  for (int32_t op = 0; op < few().operator_count(); ++op) {
    if (join_of_[at(op)] >= 0) layers[at(op)] = -1;
    devices.push_back(few_stage(op));
    joins.push_back(join_of_[at(op)] >= 0);
  }
  if (!find_runs(layers, devices, joins, runs_, pieces_)) return false;
  layers.clear(), devices.clear(), joins.clear();
  for (const auto& collective : few().collectives()) {
    const auto layer = layer_of(collective);
    if (!layer) return false;
    layers.push_back(*layer);
    devices.push_back(few_stage(collective.members[0]));
    joins.push_back(join_of_[at(collective.members[0])] >= 0);
  }
  return find_runs(layers, devices, joins, collective_runs_, collective_pieces_);
}

/// None for a collective between members of several layers, unless it belongs to no layer.
std::optional<int32_t> LayerFold::layer_of(const Collective& collective) const {
  const auto& members = collective.members;
  const int32_t layer = label_[at(members[0])];
  if (!join_alike(members)) return std::nullopt;
  if (join_of_[at(members[0])] >= 0) return -1;
  if (std::all_of(members.begin(), members.end(),
                  [&](int32_t member) { return label_[at(member)] == layer; }))
    return layer;
  if (std::all_of(members.begin(), members.end(),
                  [&](int32_t member) { return runs_->places[at(member)].zone < 0; }))
    return -1;
  return std::nullopt;
}

/// Sources exist on every device that reads them, also on inner devices of the pipeline.
bool LayerFold::find_sources() {
  source_.assign(at(few().operator_count()), -1);
  std::vector<int32_t> stages(at(few().operator_count()), -1);
  std::map<std::tuple<int32_t, int32_t, int32_t>, int32_t> known;  // origin, slot, which of them
  std::map<std::tuple<int32_t, int32_t, int32_t>, int32_t> seen;   // origin, slot, stage: number
  bool between = false;
  for (int32_t op = 0; op < few().operator_count(); ++op) {
    const int32_t origin = copies_.lowered.origin[at(op)], stage = few_stage(op);
    if (runs_->places[at(op)].zone >= 0 || !few().op(op).inputs.empty() ||
        is_variable(few().op(op)))
      continue;
    stages[at(op)] = stage;
    between = between || (stage > 0 && stage + 1 < sizes_.few_pipeline);
    const int32_t which = seen[{origin, slot_[at(op)], stage}]++;
    const auto [found, added] =
        known.emplace(std::tuple{origin, slot_[at(op)], which}, static_cast<int32_t>(known.size()));
    if (added) few_source_.emplace_back(at(sizes_.few_pipeline), -1);
    source_[at(op)] = found->second;
    if (stage > 0 && stage + 1 < sizes_.few_pipeline && !in_first_round(op)) return false;
    few_source_[at(found->second)][at(stage)] = op;
  }
  source_number_.assign(few_source_.size(), std::vector<int32_t>(at(sizes_.pipeline), -1));
  if (!between || sizes_.few_pipeline == sizes_.pipeline) return true;
  source_runs_ = layer_runs(inner_layers(stages), sizes_.few_pipeline - 2);
  return source_runs_.has_value();
}

void LayerFold::find_work() {
  std::vector<bool> weight;
  if (splits_backward(sizes_.schedule)) weight = find_weight_work(few());
  for (int32_t op = 0; op < few().operator_count(); ++op) {
    const auto& about = few().op(op);
    work_.push_back(about.collective >= 0             ? kMember
                    : runs_once(about)                ? kUpdate
                    : about.phase == Phase::forward   ? kForward
                    : weight.empty()                  ? kBackward
                    : weight[at(op)]                  ? kWeight
                                                      : kInput);
  }
}

LayerFold::Read LayerFold::read_of(int32_t reader, int32_t tensor) const {
  const int32_t from = few().tensor(tensor).producer;
  const int32_t output = tensor - few().op(from).outputs.front();
  const auto &place = runs_->places[at(from)], &to = runs_->places[at(reader)];
  const int32_t source = source_[at(from)];
  if (source >= 0 && few_stage(from) == few_stage(reader)) return {kSource, source, 0, output};
  if (join_of_[at(from)] >= 0) return read_of_join(joins_[at(join_of_[at(from)])], output);
  if (place.zone < 0) return {-1, from, 0, output};
  if (to.zone >= 0 && few().op(reader).collective >= 0 && few().op(reader).type == "WeightGather")
    for (const int32_t way : {kBefore, kBehind})
      if (few_joined(to.layer, way) == place.layer) return {place.zone, place.place, way, output};
  return {place.zone, place.place, to.zone < 0 ? place.layer : place.layer - to.layer, output};
}

/// Returns false if an operator outside the inner layers reads from one that is neither the first
/// nor the last of them, or if one of them reads from a layer that is not a neighbour.
bool LayerFold::find_reads() {
  waits_.assign(at(few().operator_count()), false);
  read_first_.push_back(0);
  for (int32_t op = 0; op < few().operator_count(); ++op) {
    const auto& place = runs_->places[at(op)];
    const bool outside = place.zone < 0;
    if (join_of_[at(op)] >= 0) {
      read_first_.push_back(static_cast<int32_t>(reads_.size()));
      continue;
    }
    for (const int32_t input : few().op(op).inputs) {
      const int32_t from = few().tensor(input).producer;
      if (is_token(input)) {
        if (sender_[at_chunk(copies_.lowered.stage[at(op)], slot_[at(op)])] != from) return false;
        waits_[at(op)] = true;
        continue;
      }
      const Read read = read_of(op, input);
      const bool near = outside ? read.zone < 0 || read.offset == 0 ||
                                      read.offset == few_inner() - 1
                                : (read.offset >= -1 && read.offset <= 1) ||
                                      (read.offset >= kBefore && read.zone >= 0);
      const bool elsewhere = read.zone == -1 && source_runs_ &&
                             source_runs_->places[at(read.place)].zone >= 0;
      if (!near || elsewhere) return false;
      if (read.zone == kJoined &&
          (few_stage(from) != few_stage(op) || slot_[at(from)] != slot_[at(op)] ||
           (read.offset == 0 && runs_->places[at(written_by(input))].layer != place.layer) ||
           (outside && read.offset != kOutside)))
        return false;
      reads_.push_back(read);
    }
    read_first_.push_back(static_cast<int32_t>(reads_.size()));
  }
  return true;
}

/// One operator per virtual stage and pipeline group, at one index of the first layers: the first
/// stage sends nothing, and the last one may begin with an end layer.
bool LayerFold::find_senders() {
  sender_.assign(at_chunk(sizes_.few_chunks(), 0), -1);
  told_.resize(at(few().operator_count()));
  std::iota(told_.begin(), told_.end(), 0);
  for (int32_t op = 0; op < few().operator_count(); ++op) {
    if (!copies_.tells[at(op)]) continue;
    auto& found = sender_[at_chunk(copies_.lowered.stage[at(op)], slot_[at(op)])];
    if (found >= 0) return false;
    found = op;
    const auto& place = runs_->places[at(op)];
    if (place.zone >= 0 && place.layer > 0 && place.layer + 1 < few_inner())
      for (int32_t layer = 0; layer < few_inner(); ++layer)
        told_[at(runs_->number(place.zone, layer, place.place))] = op;
  }
  for (int32_t slot = 0; slot < slots(); ++slot) {
    if (!same_senders(slot)) return false;
    for (int32_t chunk = 0; chunk < sizes_.chunks(); ++chunk)
      if (!stands(chunk, slot)) return false;
  }
  return true;
}

bool LayerFold::same_senders(int32_t slot) const {
  if (sizes_.by_device) return true;  // one per round is inner
  std::optional<LayerRuns::Place> between;
  for (int32_t chunk = 1; chunk + 1 < sizes_.few_chunks(); ++chunk) {
    const int32_t op = sender_[at_chunk(chunk, slot)];
    if ((op < 0) != (sender_[at_chunk(1, slot)] < 0)) return false;
    if (op < 0) continue;
    auto place = runs_->places[at(op)];
    if (place.zone < 0 && chunk == 1) continue;
    if (place.zone < 0) break;
    place.layer -= sizes_.few_first_layer(chunk);
    if (between && (place.zone != between->zone || place.layer != between->layer ||
                    place.place != between->place))
      return false;
    between = place;
  }
  return true;
}

/// In sending stages the operators at one index either all wait or none does.
bool LayerFold::find_waits() {
  for (const auto& zone : runs_->zones) all_wait_.emplace_back(at(zone.length), false);
  for (const bool set : {true, false})
    for (int32_t op = 0; op < few().operator_count(); ++op) {
      const auto& place = runs_->places[at(op)];
      if (place.zone < 0 || sender_[at_chunk(copies_.lowered.stage[at(op)], slot_[at(op)])] < 0)
        continue;
      auto all = all_wait_[at(place.zone)][at(place.place)];
      if (set)
        all = all || waits_[at(op)];
      else if (all != waits_[at(op)])
        return false;
    }
  return true;
}

/// Number of outputs without the token for waiting operators, which has no bytes.
int32_t LayerFold::outputs(int32_t op) const {
  return problem_.first_output(op + 1) - problem_.first_output(op) - copies_.tells[at(op)];
}

/// True if an operator equals another layer's operator at the same index.
bool LayerFold::alike(int32_t op, int32_t second) const {
  return same_costs(op, second) && same_reads(op, second) &&
         same_collective(few().op(op).collective, few().op(second).collective);
}

bool LayerFold::same_costs(int32_t op, int32_t second) const {
  const int32_t outputs = this->outputs(op);
  if (work_[op] != work_[second] || problem_.once(op) != problem_.once(second) ||
      problem_.fixed_bytes(op) != problem_.fixed_bytes(second) ||
      problem_.workspace_bytes(op) != problem_.workspace_bytes(second) ||
      (problem_.alias(op) < 0) != (problem_.alias(second) < 0) ||
      this->outputs(second) != outputs)
    return false;
  for (int32_t c = 0; c < problem_.cost_classes(); ++c)
    if (problem_.class_costs(c)[at(op)] != problem_.class_costs(c)[at(second)]) return false;
  for (int32_t output = 0; output < outputs; ++output) {
    const size_t a = at(problem_.first_output(op) + output),
                 b = at(problem_.first_output(second) + output);
    if (problem_.all_output_bytes()[a] != problem_.all_output_bytes()[b] ||
        problem_.held_bytes()[a] != problem_.held_bytes()[b])
      return false;
  }
  return true;
}

/// Buckets join outputs of one layer only (except joins, which cover all layers of a device). A
/// bucket then ends with a layer because the next layer's first gradient would overflow it, and
/// every layer begins like the previous one.
bool LayerFold::same_reads(int32_t op, int32_t second) const {
  const int32_t count = read_first_[at(op) + 1] - read_first_[op];
  if (read_first_[at(second) + 1] - read_first_[second] != count) return false;
  const int32_t layer = runs_->places[at(op)].layer;
  for (int32_t i = 0; i < count; ++i) {
    const Read &x = reads_[at(read_first_[op] + i)], &y = reads_[at(read_first_[second] + i)];
    if (work_[op] == kMember && count > 1 && (x.zone < 0 || x.offset != 0)) return false;
    if (x == y) continue;
    const bool beyond = (layer == 0 && y.offset == -1) ||
                        (layer == few_inner() - 1 && y.offset == 1);
    if (!beyond || x.zone >= 0) return false;
  }
  return true;
}

bool LayerFold::same_group(int32_t a, int32_t b) const {
  return a == b || (a >= 0 && b >= 0 && lanes_->alike(a, b));
}

bool LayerFold::same_collective(int32_t a, int32_t b) const {
  if (a < 0 || b < 0) return a == b;
  const auto &x = few().collectives()[at(a)], &y = few().collectives()[at(b)];
  const auto &p = collective_runs_->places[at(a)], &q = collective_runs_->places[at(b)];
  return p.zone >= 0 && p.zone == q.zone && p.place == q.place && x.kind == y.kind &&
         x.algorithm == y.algorithm && x.bytes == y.bytes &&
         x.members.size() == y.members.size() && copies_.among[at(a)] == copies_.among[at(b)] &&
         same_group(few_group_[at(a)], few_group_[at(b)]);
}

int32_t LayerFold::few_chunk(int32_t layer, int32_t round) const {
  const int32_t of = std::clamp(layer + sizes_.ends, 0, sizes_.few_layers - 1);
  return sizes_.by_device ? sizes_.chunk_on(sizes_.few_pipeline, round, of)
                          : of / sizes_.few_in_chunk();
}
int32_t LayerFold::chunk(int32_t layer, int32_t round) const {
  const int32_t of = std::clamp(layer + sizes_.ends, 0, sizes_.layers - 1);
  return sizes_.by_device ? sizes_.chunk_on(sizes_.pipeline, round, of) : sizes_.chunk_of[at(of)];
}

/// Operators run in their layer's stage or, if they sum inputs of several readers, in a
/// neighbouring stage. Operators outside layers are in the first or last stages.
bool LayerFold::find_chunks() {
  home_.resize(runs_->zones.size());
  for (size_t zone = 0; zone < home_.size(); ++zone)
    for (int32_t place = 0; place < runs_->zones[zone].length; ++place) {
      const auto found = home_of(static_cast<int32_t>(zone), place);
      // A sum for the previous layer runs in a layer's stage if all its terms are there. In a stage
      // of one layer among longer ones they are not, and the reduced model has no such stage.
      if (!found || (found->ahead != 0 && one_layer_alone())) return false;
      home_[zone].push_back(*found);
    }
  for (size_t op = 0; op < runs_->places.size(); ++op) {
    const int32_t stage = copies_.lowered.stage[op];
    if (source_runs_ && source_runs_->places[op].zone >= 0) {
      const auto& place = source_runs_->places[op];
      const int32_t like = source_runs_->number(place.zone, 0, place.place);
      if (!same_costs(static_cast<int32_t>(op), like)) return false;
    } else if (runs_->places[op].zone < 0 && join_of_[op] < 0 && sizes_.many(stage) < 0 &&
               !in_first_round(static_cast<int32_t>(op))) {
      return false;
    }
  }
  return true;
}

/// True if a virtual stage has one layer, although the reduced ones have several.
bool LayerFold::one_layer_alone() const {
  if (sizes_.few_in_chunk() == 1) return false;
  std::vector<int32_t> layers(at(sizes_.chunks()), 0);
  for (const int32_t chunk : sizes_.chunk_of) ++layers[at(chunk)];
  return std::find(layers.begin(), layers.end(), 1) != layers.end();
}

/// True for a source in the first virtual stage of its device.
bool LayerFold::in_first_round(int32_t op) const {
  return source_[at(op)] >= 0 && copies_.lowered.stage[at(op)] == few_stage(op);
}

std::optional<LayerFold::Home> LayerFold::home_of(int32_t zone, int32_t place) const {
  const int32_t stage = copies_.lowered.stage[at(runs_->number(zone, 0, place))];
  const int32_t round = sizes_.by_device ? stage / sizes_.few_pipeline : 0;
  for (const int32_t ahead : {0, 1, -1})
    for (const bool stays : {false, true}) {
      const Home home{ahead, round, stays};
      bool always = true;
      for (int32_t layer = 0; layer < few_inner() && always; ++layer)
        always = copies_.lowered.stage[at(runs_->number(zone, layer, place))] ==
                 home_chunk(home, layer, sizes_.few_pipeline,
                            [&](int32_t of) { return few_chunk(of, round); });
      if (always) return home;
    }
  return std::nullopt;
}

}  // namespace trinity
