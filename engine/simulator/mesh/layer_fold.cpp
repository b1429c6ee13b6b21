#include "simulator/mesh/layer_fold.h"

#include <algorithm>

#include "base/error.h"
#include "base/index.h"
#include "simulator/mesh/fewer_layers.h"
#include "graph/split_backward.h"

namespace trinity {
namespace {

constexpr int32_t kFewStages = 3, kFewLayers = 3;  // a first, one between others, a last

}  // namespace

std::optional<FoldSizes> fold_sizes(const Parallelism& given, int32_t layers) {
  FoldSizes sizes;
  sizes.layers = layers;
  sizes.pipeline = given.mesh.pipeline;
  sizes.rounds = given.virtual_stages;
  sizes.schedule = schedule_of(given);
  if (sizes.schedule == PipelineSchedule::gpipe) sizes.schedule = PipelineSchedule::one_f_one_b;
  auto in_chunks = given.stages;
  if (in_chunks.empty() && layers % sizes.chunks() == 0)
    in_chunks.assign(at(sizes.chunks()), layers / sizes.chunks());
  if (in_chunks.size() != at(sizes.chunks()) || !given.operators.empty()) return std::nullopt;
  for (int32_t chunk = 0; chunk < sizes.chunks(); ++chunk) {
    if (in_chunks[at(chunk)] < 1) return std::nullopt;
    sizes.chunk_of.insert(sizes.chunk_of.end(), at(in_chunks[at(chunk)]), chunk);
  }
  if (sizes.chunk_of.size() != at(layers)) return std::nullopt;
  // What the last layer but one repeats waits for other operators than what those before it do.
  sizes.ends = given.recompute == Recompute::none ? 1 : 2;
  const int32_t least = std::max(FewerLayers::kLeast, 2 * sizes.ends + 3);
  const int32_t in_chunk = *std::max_element(in_chunks.begin(), in_chunks.end());
  const auto take = [&](int32_t stages, int32_t layers_of_chunk) {
    sizes.few_pipeline = std::min(sizes.pipeline, stages);
    sizes.few_layers = sizes.few_chunks() * std::min(in_chunk, layers_of_chunk);
    return sizes.few_layers >= least;
  };
  // What a stage's last layer repeats waits for nothing: two layers stand between the ends.
  const bool more = given.recompute == Recompute::full && take(kFewStages, kFewLayers + 1);
  const bool enough = more || take(kFewStages, kFewLayers) || take(kFewStages, kFewLayers + 1) ||
                      take(kFewStages, least) || take(least, kFewLayers);
  if (!enough || sizes.few_layers >= layers) return std::nullopt;
  return sizes;
}

Parallelism with_few_stages(const Parallelism& given, const FoldSizes& sizes) {
  Parallelism few = given;
  few.mesh.pipeline = sizes.few_pipeline;
  few.stages.clear();
  few.mesh.order.clear();
  few.mesh.devices.clear();
  few.micro_batches = 2 * sizes.few_pipeline;
  return few;
}

std::unique_ptr<LayerFold> LayerFold::make(const FoldSizes& sizes, const ReplicaLanes& few,
                                           int32_t width, const LoweredCopies& copies,
                                           const Problem& problem) {
  std::unique_ptr<LayerFold> fold(new LayerFold(sizes, copies, problem));
  if (!fold->find(width) || !fold->find_lanes(few, width)) return nullptr;
  fold->unfold();
  fold->find_groups();
  fold->list_operators();
  return fold;
}

bool LayerFold::find(int32_t width) {
  std::vector<int32_t> stage;
  for (size_t op = 0; op < copies_.lowered.rank.size(); ++op) {
    stage.push_back(copies_.lowered.rank[op] / width);
    if (stage.back() != device_of_chunk(sizes_.schedule, sizes_.few_pipeline,
                                        copies_.lowered.stage[op]))
      return false;
  }
  try {  // what the order of the whole mesh would be refused for, that of the few stages is
    pipeline_pieces(few(), stage, sizes_.few_pipeline, copies_.lowered.stage,
                    2 * sizes_.few_pipeline, sizes_.schedule);
  } catch (const ScheduleError&) {
    return false;
  }
  find_work();
  if (!find_runs() || !find_senders() || !find_reads() || !find_chunks() || !find_waits())
    return false;
  return all_alike(false) || all_alike(true);
}

/// by_end: of layers that are the first or the last of their stages, those of one kind.
bool LayerFold::all_alike(bool by_end) {
  by_end_ = by_end;
  kind_layer_.fill(-1);
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
  const int32_t in = (layer + sizes_.ends) % in_chunk;
  return by_end_ ? (in == 0) + 2 * (in == in_chunk - 1) : 0;
}

int32_t LayerFold::kind(int32_t layer) const {
  const size_t of = at(layer + sizes_.ends);
  const auto& chunk = sizes_.chunk_of;
  const bool first = of == 0 || chunk[of - 1] != chunk[of];
  const bool last = of + 1 == chunk.size() || chunk[of + 1] != chunk[of];
  return by_end_ ? first + 2 * last : 0;
}

bool LayerFold::find_runs() {
  runs_ = layer_runs(inner_layers(copies_.lowered.layer, sizes_.ends), few_inner());
  if (!runs_) return false;
  std::vector<int32_t> layer;
  for (const auto& collective : few().collectives()) {
    layer.push_back(copies_.lowered.layer[collective.members[0]]);
    if (collective.members.size() == 1) continue;
    for (const int32_t member : collective.members)
      if (runs_->places[at(member)].zone >= 0) return false;
    layer.back() = -1;
  }
  collective_runs_ = layer_runs(inner_layers(layer, sizes_.ends), few_inner());
  return collective_runs_.has_value();
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
  if (place.zone < 0) return {-1, from, 0, output};
  return {place.zone, place.place, to.zone < 0 ? place.layer : place.layer - to.layer, output};
}

/// False where something that is of none of the layers between reads of another one than the first
/// or the last of these, or one of them of one that is no neighbour.
bool LayerFold::find_reads() {
  waits_.assign(at(few().operator_count()), false);
  read_first_.push_back(0);
  for (int32_t op = 0; op < few().operator_count(); ++op) {
    const bool outside = runs_->places[at(op)].zone < 0;
    for (const int32_t input : few().op(op).inputs) {
      const int32_t from = few().tensor(input).producer;
      if (copies_.tells[at(from)] && input == few().op(from).outputs.back()) {
        if (sender_[at(copies_.lowered.stage[at(op)])] != from) return false;
        waits_[at(op)] = true;
        continue;
      }
      const Read read = read_of(op, input);
      const bool near = outside ? read.zone < 0 || read.offset == 0 ||
                                      read.offset == few_inner() - 1
                                : read.offset >= -1 && read.offset <= 1;
      if (!near) return false;
      reads_.push_back(read);
    }
    read_first_.push_back(static_cast<int32_t>(reads_.size()));
  }
  return true;
}

/// One operator of a virtual stage, which stands at one place of its first layers: the first stage
/// sends nothing, the last one may begin with a layer that stands for itself.
bool LayerFold::find_senders() {
  sender_.assign(at(sizes_.few_chunks()), -1);
  for (int32_t op = 0; op < few().operator_count(); ++op) {
    if (!copies_.tells[at(op)]) continue;
    auto& found = sender_[at(copies_.lowered.stage[at(op)])];
    if (found >= 0) return false;
    found = op;
  }
  std::optional<LayerRuns::Place> between;
  for (int32_t chunk = 1; chunk + 1 < sizes_.few_chunks(); ++chunk) {
    if ((sender_[at(chunk)] < 0) != (sender_[1] < 0)) return false;
    if (sender_[at(chunk)] < 0) continue;
    auto place = runs_->places[at(sender_[at(chunk)])];
    if (place.zone < 0) break;
    place.layer -= sizes_.few_first_layer(chunk);
    if (between && (place.zone != between->zone || place.layer != between->layer ||
                    place.place != between->place))
      return false;
    between = place;
  }
  for (int32_t chunk = 0; chunk < sizes_.chunks(); ++chunk)
    if (!stands(chunk)) return false;
  return true;
}

/// In stages that send something those of one place wait or do not.
bool LayerFold::find_waits() {
  for (const auto& zone : runs_->zones) all_wait_.emplace_back(at(zone.length), false);
  for (const bool set : {true, false})
    for (int32_t op = 0; op < few().operator_count(); ++op) {
      const auto& place = runs_->places[at(op)];
      if (place.zone < 0 || sender_[at(copies_.lowered.stage[at(op)])] < 0) continue;
      auto all = all_wait_[at(place.zone)][at(place.place)];
      if (set)
        all = all || waits_[at(op)];
      else if (all != waits_[at(op)])
        return false;
    }
  return true;
}

/// Without the token for what waits, which has no bytes.
int32_t LayerFold::outputs(int32_t op) const {
  return problem_.first_output(op + 1) - problem_.first_output(op) - copies_.tells[at(op)];
}

/// Whether an operator is like another layer's of its place.
bool LayerFold::alike(int32_t op, int32_t second) const {
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
  return same_reads(op, second) &&
         same_collective(few().op(op).collective, few().op(second).collective);
}

/// Buckets, which join what several operators write, join none of two layers: then one that ends
/// with a layer does so because the next layer's would be too much, and the next layer begins as
/// the one before did.
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

bool LayerFold::same_collective(int32_t a, int32_t b) const {
  if (a < 0 || b < 0) return a == b;
  const auto &x = few().collectives()[at(a)], &y = few().collectives()[at(b)];
  const auto &p = collective_runs_->places[at(a)], &q = collective_runs_->places[at(b)];
  return p.zone >= 0 && p.zone == q.zone && p.place == q.place && x.kind == y.kind &&
         x.algorithm == y.algorithm && x.bytes == y.bytes &&
         (copies_.collective[at(a)] < 0) == (copies_.collective[at(b)] < 0);
}

int32_t LayerFold::few_chunk(int32_t layer) const {
  return std::clamp(layer + sizes_.ends, 0, sizes_.few_layers - 1) / sizes_.few_in_chunk();
}
int32_t LayerFold::chunk(int32_t layer) const {
  return sizes_.chunk_of[at(std::clamp(layer + sizes_.ends, 0, sizes_.layers - 1))];
}

/// Operators run in their layer's stage or, as sums of what several read, in a neighbour's. What is
/// of no layer is in the first stage or the last.
bool LayerFold::find_chunks() {
  ahead_.resize(runs_->zones.size());
  for (size_t zone = 0; zone < ahead_.size(); ++zone)
    for (int32_t place = 0; place < runs_->zones[zone].length; ++place) {
      const auto found = ahead_of(static_cast<int32_t>(zone), place);
      if (!found) return false;
      ahead_[zone].push_back(*found);
    }
  const bool all = sizes_.chunks() == sizes_.few_chunks();
  for (size_t op = 0; op < runs_->places.size(); ++op) {
    const int32_t stage = copies_.lowered.stage[op];
    if (runs_->places[op].zone < 0 && !all && stage != 0 && stage != sizes_.few_chunks() - 1)
      return false;
  }
  return true;
}

std::optional<int32_t> LayerFold::ahead_of(int32_t zone, int32_t place) const {
  for (const int32_t ahead : {0, 1, -1}) {
    bool always = true;
    for (int32_t layer = 0; layer < few_inner() && always; ++layer)
      always = copies_.lowered.stage[at(runs_->number(zone, layer, place))] ==
               few_chunk(layer + ahead);
    if (always) return ahead;
  }
  return std::nullopt;
}

/// The first and the last stage alone stand for themselves where there are fewer.
int32_t LayerFold::many_stage(int32_t few) const {
  if (sizes_.few_pipeline == sizes_.pipeline || few == 0) return few;
  return few == sizes_.few_pipeline - 1 ? sizes_.pipeline - 1 : -1;
}

/// Of the groups within a stage all stages have one or none.
bool LayerFold::find_lanes(const ReplicaLanes& few, int32_t width) {
  if (few.lanes().size() != at(width) || !find_sends(few, width)) return false;
  exchanges_ = few.exchanges();
  for (const int32_t inner : copies_.collective)
    few_group_.push_back(inner < 0 ? -1 : few.group_of(inner));
  int32_t inside = 0;  // stages with a group
  for (const auto& devices : few.groups()) {
    const bool one = devices.front() / width == devices.back() / width;
    inside += one;
    ends_group_.push_back(-1);
    if (one && devices.size() != at(width)) return false;
    if (one) continue;
    auto& group = groups_.emplace_back();
    for (const int32_t device : devices) {
      const int32_t stage = many_stage(device / width);
      if (stage < 0) return false;
      group.push_back(stage * width + device % width);
    }
    ends_group_.back() = static_cast<int32_t>(groups_.size()) - 1;
  }
  if (inside != 0 && inside != sizes_.few_pipeline) return false;
  for (int32_t stage = 0; stage < sizes_.pipeline && inside > 0; ++stage) {
    stage_group_.push_back(static_cast<int32_t>(groups_.size()));
    for (int32_t part = 0; part < width; ++part)
      (part == 0 ? groups_.emplace_back() : groups_.back()).push_back(stage * width + part);
  }
  return true;
}

/// Neighbours send to each other everywhere or nowhere, others from end to end.
bool LayerFold::find_sends(const ReplicaLanes& few, int32_t width) {
  const int32_t p = sizes_.few_pipeline;
  std::vector<bool> sends(at(p * p), false);
  for (const auto& lane : few.lanes()) {
    if (lane.devices.size() != at(p)) return false;
    for (const auto& [from, to] : lane.sends) sends[at(from / width * p + to / width)] = true;
  }
  if (p == sizes_.pipeline) {
    for (int32_t from = 0; from < p; ++from)
      for (int32_t to = 0; to < p; ++to)
        if (sends[at(from * p + to)]) sends_.emplace_back(from, to);
    return true;
  }
  const bool up = sends[1], down = sends[at(p)];
  const int32_t last = sizes_.pipeline - 1;
  for (int32_t stage = 0; stage + 1 < p; ++stage)
    if (sends[at(stage * p + stage + 1)] != up || sends[at((stage + 1) * p + stage)] != down)
      return false;
  for (int32_t stage = 0; stage < last; ++stage) {
    if (up) sends_.emplace_back(stage, stage + 1);
    if (down) sends_.emplace_back(stage + 1, stage);
  }
  if (sends[at(p - 1)]) sends_.emplace_back(0, last);
  if (sends[at((p - 1) * p)]) sends_.emplace_back(last, 0);
  return true;
}

void LayerFold::unfold() {
  const int32_t layers = inner();
  // Calls add(number among the few, layer) in the order of all.
  const auto in_order = [&](const LayerRuns& runs, auto begin_outside, auto begin_zone, auto add) {
    for (size_t i = 0; i < runs.places.size();) {
      const int32_t zone = runs.places[i].zone;
      if (zone < 0) {
        begin_outside(static_cast<int32_t>(i));
        add(static_cast<int32_t>(i), -1);
        ++i;
        continue;
      }
      begin_zone();
      const auto& about = runs.zones[at(zone)];
      for (int32_t k = 0; k < layers; ++k) {
        const int32_t layer = about.up ? k : layers - 1 - k;
        const int32_t like = layer == 0 ? 0 : layer == layers - 1 ? few_inner() - 1
                                                         : kind_layer_[at(kind(layer))];
        for (int32_t j = 0; j < about.length; ++j) add(runs.number(zone, like, j), layer);
      }
      i += at(about.length) * at(few_inner());
    }
  };
  outside_.resize(runs_->places.size());
  const size_t most = runs_->places.size() / at(sizes_.few_layers) * at(layers);
  like_.reserve(most), layer_.reserve(most);
  in_order(
      *runs_, [&](int32_t i) { outside_[i] = static_cast<int32_t>(like_.size()); },
      [&] { zone_begin_.push_back(static_cast<int32_t>(like_.size())); },
      [&](int32_t like, int32_t layer) { place(like, layer); });
  collective_outside_.resize(collective_runs_->places.size());
  const auto collectives = [this] { return static_cast<int32_t>(collective_like_.size()); };
  in_order(
      *collective_runs_, [&](int32_t i) { collective_outside_[i] = collectives(); },
      [&] { collective_begin_.push_back(collectives()); },
      [&](int32_t like, int32_t) { collective_like_.push_back(like); });
  std::vector<int32_t> collective(like_.size(), -1);
  for (size_t op = 0; op < like_.size(); ++op) {
    const int32_t few_one = few().op(like_[op]).collective;
    if (few_one < 0) continue;
    const auto& about = collective_runs_->places[at(few_one)];
    if (about.zone < 0) {
      collective[op] = collective_outside_[few_one];
      continue;
    }
    const auto& zone = collective_runs_->zones[at(about.zone)];
    collective[op] = collective_begin_[about.zone] + about.place +
                     (zone.up ? layer_[op] : layers - 1 - layer_[op]) * zone.length;
  }
  for (int32_t chunk = 0; chunk < sizes_.chunks(); ++chunk) senders_.push_back(sender(chunk));
  graph_ = std::make_unique<OrderGraph>(
      problem_, like_, collective_like_, std::move(collective), [this](int32_t op, auto add) {
        const int32_t like = like_[op];
        for (int32_t i = read_first_[like]; i < read_first_[at(like) + 1]; ++i)
          add(OrderGraph::Source{number(reads_[i], layer_[op]), reads_[i].output});
        if (!waits(op)) return;
        const int32_t from = senders_[chunk_[op]];
        add(OrderGraph::Source{from, outputs(like_[from])});
      });
}

bool LayerFold::waits(int32_t op) const {
  const auto& place = runs_->places[at(like_[op])];
  return senders_[chunk_[op]] >= 0 &&
         (place.zone < 0 ? waits_[at(like_[op])] : all_wait_[at(place.zone)][at(place.place)]);
}

int32_t LayerFold::sender(int32_t chunk) const {
  const int32_t few = sizes_.like(chunk), op = sender_[at(few)];
  if (op < 0) return -1;
  const auto& place = runs_->places[at(op)];
  if (place.zone < 0) return outside_[op];
  return number({place.zone, place.place, 0, 0},
                place.layer + sizes_.first_layer(chunk) - sizes_.few_first_layer(few));
}

/// Whether the sender of a virtual stage is of a layer that stands for itself, and the few's is the
/// same, or neither is.
bool LayerFold::stands(int32_t chunk) const {
  const int32_t few = sizes_.like(chunk), op = sender_[at(few)];
  if (op < 0) return true;
  const auto& place = runs_->places[at(op)];
  const int32_t first = sizes_.first_layer(chunk), few_first = sizes_.few_first_layer(few);
  if (place.zone >= 0) {
    const int32_t layer = place.layer + first - few_first;
    return layer >= 0 && layer < inner();
  }
  const bool front = copies_.lowered.layer[at(op)] < sizes_.few_layers / 2;
  return front ? first == few_first : sizes_.layers - first == sizes_.few_layers - few_first;
}

/// Adds an operator that is like one of the few.
void LayerFold::place(int32_t op, int32_t layer) {
  like_.push_back(op);
  layer_.push_back(layer);
  const auto& about = runs_->places[at(op)];
  const int32_t few_stage = copies_.lowered.stage[at(op)];
  if (layer >= 0)
    chunk_.push_back(chunk(layer + ahead_[at(about.zone)][at(about.place)]));
  else if (sizes_.chunks() == sizes_.few_chunks() || few_stage == 0)
    chunk_.push_back(few_stage);
  else
    chunk_.push_back(sizes_.chunks() - 1);
  device_.push_back(device_of_chunk(sizes_.schedule, sizes_.pipeline, chunk_.back()));
}

int32_t LayerFold::number(const Read& read, int32_t layer) const {
  if (read.zone < 0) return outside_[read.place];
  const int32_t of = layer >= 0        ? layer + read.offset
                     : read.offset == 0 ? 0
                                        : inner() - 1;
  const auto& zone = runs_->zones[at(read.zone)];
  return zone_begin_[read.zone] + read.place +
         (zone.up ? of : inner() - 1 - of) * zone.length;
}

void LayerFold::find_groups() {
  for (int32_t c = 0; c < graph_->collectives(); ++c) {
    const int32_t few_group = few_group_[at(collective_like_[c])];
    const int32_t stage = device_[at(graph_->members(c)[0])];
    group_of_.push_back(few_group < 0                    ? -1
                        : ends_group_[at(few_group)] >= 0 ? ends_group_[at(few_group)]
                                                         : stage_group_[at(stage)]);
  }
}

/// What runs of every chunk, by kind of work, and once on every device.
void LayerFold::list_operators() {
  lists_.resize(at(sizes_.chunks()) * kWorks);
  updates_.resize(at(sizes_.pipeline));
  for (int32_t op = 0; op < graph_->operators(); ++op) {
    const Work work = work_[like_[op]];
    const auto list = [&](ChunkWork of) -> auto& {
      return lists_[at(chunk_[op]) * kWorks + at(static_cast<int32_t>(of))];
    };
    if (work == kUpdate)
      updates_[at(device_[op])].push_back(op);
    else if (work == kForward)
      list(ChunkWork::forward).push_back(op);
    else if (work != kMember)
      list(ChunkWork::backward).push_back(op);
    if (work == kInput || work == kWeight)
      list(work == kInput ? ChunkWork::input : ChunkWork::weight).push_back(op);
  }
}

OrderPieces LayerFold::pieces(PipelineSchedule schedule, int32_t micro_batches) const {
  OrderPieces result;
  result.micro_batches = micro_batches;
  result.list_first.push_back(0);
  result.piece_first.push_back(0);
  result.operators.reserve(like_.size());
  std::vector<int32_t> number(lists_.size(), -1);
  const auto add = [&](const std::vector<int32_t>& list) {
    result.operators.insert(result.operators.end(), list.begin(), list.end());
    result.list_first.push_back(static_cast<int32_t>(result.operators.size()));
    return result.lists() - 1;
  };
  for (int32_t device = 0; device < sizes_.pipeline; ++device) {
    for (const auto& task :
         chunk_order(schedule, sizes_.pipeline, sizes_.rounds, micro_batches, device)) {
      const size_t key = at(task.chunk) * kWorks + at(static_cast<int32_t>(task.work));
      if (lists_[key].empty()) continue;
      if (number[key] < 0) number[key] = add(lists_[key]);
      result.pieces.push_back({number[key], task.micro_batch});
    }
    if (const auto& list = updates_[at(device)]; !list.empty())
      result.pieces.push_back({add(list), micro_batches - 1});
    result.piece_first.push_back(static_cast<int32_t>(result.pieces.size()));
  }
  return result;
}

}  // namespace trinity
