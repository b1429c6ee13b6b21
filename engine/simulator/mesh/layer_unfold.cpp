#include "base/index.h"
#include "simulator/mesh/layer_fold.h"

namespace trinity {

/// Visits the full mesh in order: add(reduced index, layer, stage) per item, outside() before items
/// outside layers, begin(zone, first layer, end) before runs of these layers. Layer and stage are
/// -1 if there is none; a join has its device as stage.
template <class Outside, class Begin, class Add>
void LayerFold::in_order(const LayerRuns& runs, const std::vector<Piece>& pieces,
                         const LayerRuns* sources, Outside outside, Begin begin, Add add) const {
  const auto repeat = [](const LayerRuns& of, int32_t zone, int32_t first, int32_t end,
                         auto like_of, auto put) {
    const auto& about = of.zones[at(zone)];
    for (int32_t k = first; k < end; ++k) {
      const int32_t layer = about.up ? k : end - 1 - (k - first);
      const int32_t like = of.begin(zone, like_of(layer));
      for (int32_t j = 0; j < about.length; ++j) put(like + j, layer);
    }
    return at(about.length) * at(of.layers);
  };
  const auto like_layer = [this](int32_t layer) {
    return layer == 0            ? 0
           : layer == inner() - 1 ? few_inner() - 1
                                  : kind_layer_[at(kind(layer))];
  };
  const auto layers = [&](int32_t zone, int32_t first, int32_t end) {
    begin(zone, first, end);
    return repeat(runs, zone, first, end, like_layer,
                  [&](int32_t like, int32_t layer) { add(like, layer, -1); });
  };
  size_t next = 0;
  for (size_t i = 0; i < runs.places.size();) {
    if (next < pieces.size() && at(pieces[next].begin) == i) {
      for (const auto& one : unfolded(pieces, next))
        if (one.zone < 0)
          add(one.item, -1, one.device);
        else
          layers(one.zone, one.first, one.end);
      i = at(pieces[next - 1].end);
    } else if (const int32_t zone = runs.places[i].zone; zone >= 0) {
      i += layers(zone, 0, inner());
    } else if (sources && sources->places[i].zone >= 0) {
      i += repeat(*sources, sources->places[i].zone, 0, sizes_.pipeline - 2,
                  [](int32_t) { return 0; },
                  [&](int32_t like, int32_t stage) { add(like, -1, stage + 1); });
    } else {
      outside(static_cast<int32_t>(i));
      add(static_cast<int32_t>(i), -1, -1);
      ++i;
    }
  }
}

/// Returns false if an operator to wait for has no token.
bool LayerFold::number_all() {
  find_places();
  outside_.resize(runs_->places.size());
  int32_t placed = 0;
  for (auto* list : {&like_, &layer_, &chunk_, &device_}) list->resize(count_all());
  for (auto* list : {&join_number_, &collective_join_})
    list->assign(at(joined_ * slots() * sizes_.pipeline), -1);
  in_order(
      *runs_, pieces_, source_runs_ ? &*source_runs_ : nullptr,
      [&](int32_t i) { outside_[at(i)] = placed; },
      [&](int32_t zone, int32_t first, int32_t end) {
        note_begins(runs_->zones, zone, first, end, placed, begins_);
      },
      [&](int32_t like, int32_t layer, int32_t stage) { place(placed++, like, layer, stage); });
  collective_outside_.resize(collective_runs_->places.size());
  const auto collectives = [this] { return static_cast<int32_t>(collective_like_.size()); };
  in_order(
      *collective_runs_, collective_pieces_, nullptr,
      [&](int32_t i) { collective_outside_[at(i)] = collectives(); },
      [&](int32_t zone, int32_t first, int32_t end) {
        note_begins(collective_runs_->zones, zone, first, end, collectives(), collective_begins_);
      },
      [&](int32_t like, int32_t, int32_t device) {
        if (device >= 0) collective_join_[join_of_collective(like, device)] = collectives();
        collective_like_.push_back(like);
      });
  for (int32_t chunk = 0; chunk < sizes_.chunks(); ++chunk)
    for (int32_t slot = 0; slot < slots(); ++slot) {
      senders_.push_back(sender(chunk, slot));
      if (senders_.back() >= 0 && !copies_.tells[at(like_[at(senders_.back())])]) return false;
    }
  return joins_fit();
}

/// Start of the runs of a zone for a range of layers: after what has been placed.
void LayerFold::note_begins(const std::vector<LayerRuns::Zone>& zones, int32_t zone, int32_t first,
                            int32_t end, int32_t placed, std::vector<int32_t>& begins) const {
  begins.resize(at(inner()) * zones.size());
  const auto& about = zones[at(zone)];
  for (int32_t layer = first; layer < end; ++layer)
    begins[at(zone * inner() + layer)] =
        placed + (about.up ? layer - first : end - 1 - layer) * about.length;
}

/// Index of a join's collective in collective_join_: that of its first member.
size_t LayerFold::join_of_collective(int32_t few_one, int32_t device) const {
  const auto& join = joins_[at(join_of_[at(few().collectives()[at(few_one)].members[0])])];
  return join_place(join.which, join.slot, device, sizes_.pipeline);
}

void LayerFold::unfold() {
  if (graph_) return;
  find_numbers();
  graph_ = std::make_unique<OrderGraph>(
      problem_, like_, collective_like_, collectives_of(), [this](int32_t op, auto add) {
        const int32_t like = like_[at(op)], layer = std::max(0, layer_[at(op)]);
        for (int32_t i = read_first_[at(like)]; i < read_first_[at(like) + 1]; ++i) {
          const auto& read = reads_[at(i)];
          const auto& found = found_[at(i)];
          if (read.zone == kJoined) {
            add(source_of(read, slot_[at(like)], device_[at(op)] / width_, layer));
            continue;
          }
          const int32_t from = read.zone == kSource
                                   ? source_number_[at(read.place)][at(device_[at(op)] / width_)]
                               : read.offset == kBefore || read.offset == kBehind
                                   ? number(read.zone, read.place, joined(layer, read.offset))
                               : found.begins == kFixed ? found.first
                                                  : found.first + begins_[at(found.begins + layer)];
          add(OrderGraph::Source{from, read.output});
        }
        if (join_of_[at(like)] >= 0)
          for (const auto& input : joined_inputs(op)) add(input);
        if (!waits(op)) return;
        const int32_t from = senders_[at_chunk(chunk_[at(op)], slot_[at(like)])];
        add(OrderGraph::Source{from, outputs(like_[at(from)])});
      },
      joined());
  find_groups();
  list_operators();
}

/// Number of operators of the full mesh.
size_t LayerFold::count_all() const {
  const auto repeated = [](const LayerRuns& runs, int32_t many) {
    size_t length = 0;
    for (const auto& zone : runs.zones) length += at(zone.length);
    return length * at(many - runs.layers);
  };
  const bool between = sizes_.few_pipeline < sizes_.pipeline;
  return runs_->places.size() + repeated(*runs_, inner()) +
         (between ? at(joined_ * slots() * (sizes_.pipeline - sizes_.few_pipeline)) : 0) +
         (source_runs_ ? repeated(*source_runs_, sizes_.pipeline - 2) : 0);
}

void LayerFold::find_places() {
  part_.reserve(slot_.size());
  for (const int32_t slot : slot_) part_.push_back(lanes_->parts()[at(slot / replicas_)]);
  for (int32_t chunk = 0; chunk < sizes_.chunks(); ++chunk)
    stage_of_chunk_.push_back(device_of_chunk(sizes_.schedule, sizes_.pipeline, chunk));
}

/// Finds where inputs of reduced operators are in the full mesh.
void LayerFold::find_numbers() {
  found_.reserve(reads_.size());
  may_wait_ = waits_;
  for (size_t op = 0; op < may_wait_.size(); ++op)
    if (const auto& place = runs_->places[op]; place.zone >= 0)
      may_wait_[op] = all_wait_[at(place.zone)][at(place.place)];
  for (size_t op = 0; op < runs_->places.size(); ++op)
    for (int32_t i = read_first_[op]; i < read_first_[op + 1]; ++i)
      found_.push_back(find_number(reads_[at(i)], runs_->places[op].zone >= 0));
}

LayerFold::Found LayerFold::find_number(const Read& read, bool in_layer) const {
  if (read.zone == kSource || read.zone == kJoined) return {-1, kFixed};
  if (read.zone < 0) return {outside_[at(read.place)], kFixed};
  if (!in_layer)
    return {number(read.zone, read.place, read.offset == 0 ? 0 : inner() - 1), kFixed};
  return {read.place, read.zone * inner() + read.offset};
}

/// [operator]: its collective, or -1.
std::vector<int32_t> LayerFold::collectives_of() const {
  std::vector<int32_t> collective(like_.size(), -1);
  for (size_t op = 0; op < like_.size(); ++op) {
    const int32_t few_one = few().op(like_[op]).collective;
    if (few_one < 0) continue;
    const auto& about = collective_runs_->places[at(few_one)];
    collective[op] =
        join_of_[at(like_[op])] >= 0
            ? collective_join_[join_of_collective(few_one, device_[op] / width_)]
        : about.zone < 0 ? collective_outside_[at(few_one)]
                         : collective_begins_[at(about.zone * inner() + layer_[op])] + about.place;
  }
  return collective;
}

bool LayerFold::waits(int32_t op) const {
  const int32_t like = like_[at(op)];
  return may_wait_[at(like)] && senders_[at_chunk(chunk_[at(op)], slot_[at(like)])] >= 0;
}

int32_t LayerFold::sender(int32_t chunk, int32_t slot) const {
  const int32_t few = sizes_.like(chunk), op = sender_[at_chunk(few, slot)];
  if (op < 0) return -1;
  const auto& place = runs_->places[at(op)];
  if (place.zone < 0) return outside_[op];
  return number(place.zone, place.place,
                place.layer + sizes_.first_layer(chunk) - sizes_.few_first_layer(few));
}

/// True if the sender of a virtual stage is in an end layer exactly if the reduced one is, and then
/// equals it.
bool LayerFold::stands(int32_t chunk, int32_t slot) const {
  const int32_t few = sizes_.like(chunk), op = sender_[at_chunk(few, slot)];
  if (op < 0) return true;
  const auto& place = runs_->places[at(op)];
  if (sizes_.by_device && place.zone < 0) return sizes_.many(few) == chunk;
  const int32_t first = sizes_.first_layer(chunk), few_first = sizes_.few_first_layer(few);
  if (place.zone >= 0) {
    const int32_t layer = place.layer + first - few_first;
    return layer >= 0 && layer < inner();
  }
  const bool front = label_[at(op)] < sizes_.few_layers / 2;
  return front ? first == few_first : sizes_.layers - first == sizes_.few_layers - few_first;
}

/// Sets what operator `number` represents. stage: of a source on an inner stage or of a join, else
/// -1.
void LayerFold::place(int32_t number, int32_t op, int32_t layer, int32_t stage) {
  const int32_t chunk = chunk_for(op, layer, stage), on = stage_of_chunk_[at(chunk)];
  if (!by_end_ && layer > 0 && layer + 1 < inner()) op = told_[at(op)];
  if (const int32_t join = join_of_[at(op)]; join >= 0)
    join_number_[join_place(joins_[at(join)].which, slot_[at(op)], on, sizes_.pipeline)] = number;
  if (const int32_t source = source_[at(op)]; source >= 0)
    source_number_[at(source)][at(on)] = number;
  chunk_[number] = chunk;
  device_[number] = on * width_ + part_[at(op)];
  like_[number] = op;
  layer_[number] = layer;
}

/// Virtual stage of the operator that a reduced operator represents.
int32_t LayerFold::chunk_for(int32_t op, int32_t layer, int32_t stage) const {
  if (layer >= 0) {
    const auto& about = runs_->places[at(op)];
    const auto& home = home_[at(about.zone)][at(about.place)];
    return home_chunk(home, layer, sizes_.pipeline,
                      [&](int32_t of) { return chunk(of, home.round); });
  }
  if (stage >= 0)
    return join_of_[at(op)] < 0 ? stage : many_chunk(copies_.lowered.stage[at(op)], stage);
  const int32_t few_chunk = copies_.lowered.stage[at(op)];
  if (!in_first_round(op)) return sizes_.many(few_chunk);
  return few_chunk == 0 ? 0 : sizes_.pipeline - sizes_.few_pipeline + few_chunk;
}

int32_t LayerFold::number(int32_t zone, int32_t place, int32_t layer) const {
  return begins_[at(zone * inner() + layer)] + place;
}

void LayerFold::find_groups() {
  for (int32_t c = 0; c < graph_->collectives(); ++c) {
    const int32_t few_group = few_group_[at(collective_like_[at(c)])];
    const int32_t device = device_[at(graph_->members(c)[0])], stage = device / width_;
    group_of_.push_back(few_group >= 0         ? lanes_->group(few_group, stage)
                        : few_group == kJoins ? lanes_->joined(stage, device % width_)
                                               : -1);
  }
}

/// Lists operators by virtual stage and type of work, and those that run once per device.
void LayerFold::list_operators() {
  lists_.resize(at_chunk(sizes_.chunks(), 0) * kWorks);
  updates_.resize(at(sizes_.pipeline * slots()));
  for (int32_t op = 0; op < graph_->operators(); ++op) {
    const Work work = work_[at(like_[at(op)])];
    const int32_t slot = slot_[at(like_[at(op)])];
    const auto list = [&](ChunkWork of) -> auto& {
      return lists_[at_chunk(chunk_[at(op)], slot) * kWorks + at(static_cast<int32_t>(of))];
    };
    if (work == kUpdate)
      updates_[at(device_[at(op)] / width_ * slots() + slot)].push_back(op);
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
  for (int32_t device = 0; device < sizes_.pipeline * slots(); ++device) {
    for (const auto& task : chunk_order(schedule, sizes_.pipeline, sizes_.rounds, micro_batches,
                                        device / slots())) {
      const size_t key = at_chunk(task.chunk, device % slots()) * kWorks +
                         at(static_cast<int32_t>(task.work));
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
