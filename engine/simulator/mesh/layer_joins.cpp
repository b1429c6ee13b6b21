// Operators of a device that join outputs of several of its layers: buckets of gradients or of
// updated weights. On a reduced device such an operator has inputs per layer; in the full mesh it
// has correspondingly more.
#include <algorithm>
#include <map>
#include <set>

#include "base/index.h"
#include "simulator/mesh/layer_fold.h"

namespace trinity {

/// True for the token that operators waiting for a stage's last gradient read.
bool LayerFold::is_token(int32_t tensor) const {
  const int32_t from = few().tensor(tensor).producer;
  return copies_.tells[at(from)] && tensor == few().op(from).outputs.back();
}

/// Producer of a tensor before it was joined with others.
int32_t LayerFold::written_by(int32_t tensor) const {
  const int32_t from = few().tensor(tensor).producer;
  if (join_of_[at(from)] < 0) return from;
  return written_by(few().op(from).inputs[at(tensor - few().op(from).outputs.front())]);
}

bool LayerFold::joins_layers(int32_t op) const {
  const auto& about = few().op(op);
  if (work_[at(op)] != kMember || (about.type == "WeightGather" && about.phase != Phase::update))
    return false;
  std::set<int32_t> layers;
  for (const int32_t input : about.inputs) {
    const int32_t from = few().tensor(input).producer;
    if (is_token(input)) continue;
    if (few_stage(from) != few_stage(op) || slot_[at(from)] != slot_[at(op)]) return false;
    layers.insert(label_[at(written_by(input))]);
  }
  return layers.size() > 1 && std::any_of(layers.begin(), layers.end(), [this](int32_t layer) {
           return layer >= sizes_.ends && layer < sizes_.few_layers - sizes_.ends;
         });
}

/// Returns false if devices have different numbers of joins.
bool LayerFold::find_joins() {
  join_of_.assign(at(few().operator_count()), -1);
  if (!sizes_.joins) return true;
  std::map<std::pair<int32_t, int32_t>, int32_t> count;  // by device and slot
  for (int32_t op = 0; op < few().operator_count(); ++op) {
    if (!joins_layers(op)) continue;
    const int32_t device = few_stage(op), slot = slot_[at(op)];
    join_of_[at(op)] = static_cast<int32_t>(joins_.size());
    joins_.push_back({op, device, count[{device, slot}]++, slot});
    joined_ = std::max(joined_, joins_.back().which + 1);
  }
  if (joins_.empty()) return true;
  const bool fits = sizes_.few_pipeline == sizes_.pipeline || sizes_.few_pipeline == 3;
  few_join_.assign(at(joined_ * slots() * sizes_.few_pipeline), -1);
  if (!fits || joins_.size() != few_join_.size()) return false;
  for (size_t i = 0; i < joins_.size(); ++i) {
    const auto& join = joins_[i];
    few_join_[join_place(join.which, join.slot, join.device, sizes_.few_pipeline)] =
        static_cast<int32_t>(i);
  }
  return true;
}

/// Inner layers of a virtual stage: the first, and one past the last.
std::pair<int32_t, int32_t> LayerFold::few_inner_of(int32_t chunk) const {
  const int32_t first = sizes_.few_first_layer(chunk) - sizes_.ends;
  return {std::max(first, 0), std::min(first + sizes_.few_in_chunk(), few_inner())};
}
std::pair<int32_t, int32_t> LayerFold::inner_of(int32_t chunk) const {
  return {std::max(sizes_.first_layer(chunk) - sizes_.ends, 0),
          std::min(sizes_.first_layer(chunk + 1) - sizes_.ends, inner())};
}

/// A join's inputs: equal for all layers of a virtual stage.
bool LayerFold::find_parts(Join& join) {
  const auto& inputs = few().op(join.op).inputs;
  const auto end = static_cast<int32_t>(inputs.size());
  const auto layer_at = [&](int32_t i) {
    return i < end && !is_token(inputs[at(i)])
               ? runs_->places[at(written_by(inputs[at(i)]))].layer
               : -1;
  };
  int32_t i = 0;
  while (i < end && !is_token(inputs[at(i)])) {
    const int32_t first = layer_at(i);
    if (first < 0) {
      join.parts.push_back({i++, -1, 0, false});
      continue;
    }
    if (join.each.empty())
      for (int32_t k = i; layer_at(k) == first; ++k)
        join.each.push_back(joined_read(inputs[at(k)]));
    const auto each = static_cast<int32_t>(join.each.size());
    const int32_t chunk = few_chunk(first, 0);
    const auto [begin, behind] = few_inner_of(chunk);
    const int32_t layers = behind - begin;
    const bool up = layers > 1 && first == begin;
    for (int32_t k = 0; k < layers * each; ++k) {
      const int32_t layer = first + (up ? k / each : -k / each);
      if (layer_at(i + k) != layer || few_chunk(layer, 0) != chunk ||
          !(joined_read(inputs[at(i + k)]) == join.each[at(k % each)]))
        return false;
    }
    join.parts.push_back({i, chunk, layers, up});
    i += layers * each;
  }
  join.inputs = i;
  for (; i < end; ++i)
    if (!is_token(inputs[at(i)]) || !waits_behind(join, few().tensor(inputs[at(i)]).producer))
      return false;
  const size_t outputs = few().op(join.op).outputs.size();
  return outputs == 0 || (outputs == at(join.inputs) && !copies_.tells[at(join.op)]);
}

bool LayerFold::waits_behind(Join& join, int32_t sender) const {
  const int32_t chunk = copies_.lowered.stage[at(sender)];
  join.behind.push_back(chunk);
  return few_stage(sender) == join.device && sender_[at_chunk(chunk, join.slot)] == sender;
}

/// An input of a join relative to its layer.
LayerFold::Read LayerFold::joined_read(int32_t tensor) const {
  const int32_t from = few().tensor(tensor).producer;
  const int32_t output = tensor - few().op(from).outputs.front();
  if (join_of_[at(from)] >= 0) return read_of_join(joins_[at(join_of_[at(from)])], output);
  const auto& place = runs_->places[at(from)];
  return place.zone >= 0 ? Read{place.zone, place.place, 0, output} : Read{-1, from, 0, output};
}

/// An output of a join as read on its device: by its own layer, or by none.
LayerFold::Read LayerFold::read_of_join(const Join& join, int32_t output) const {
  for (const auto& part : join.parts)
    if (part.chunk >= 0 && output >= part.input &&
        output < part.input + part.layers * static_cast<int32_t>(join.each.size()))
      return {kJoined, join.which, 0,
              (output - part.input) % static_cast<int32_t>(join.each.size())};
  return {kJoined, join.which, kOutside, output};
}

/// Joins with equal number and slot must behave alike on all devices and cost nothing themselves.
bool LayerFold::find_all_parts() {
  bool up = false;
  for (auto& join : joins_) {
    if (!find_parts(join)) return false;
    for (const auto& part : join.parts) up = up || part.up;
  }
  for (auto& join : joins_) {
    for (auto& part : join.parts) {
      if (part.chunk >= 0 && part.layers > 1 && part.up != up) return false;
      part.up = up;
    }
    if (!same_join(join, like_join(join.which, join.slot, 0)) || !find_bytes(join))
      return false;
  }
  return true;
}

bool LayerFold::same_join(const Join& join, const Join& first) const {
  const int32_t op = join.op;
  const auto &a = few().op(op), &b = few().op(first.op);
  const auto &x = few().collectives()[at(a.collective)], &y = few().collectives()[at(b.collective)];
  if (a.type != b.type || join.each.empty() || join.each != first.each ||
      a.outputs.empty() != b.outputs.empty() || x.kind != y.kind || x.algorithm != y.algorithm ||
      x.members.size() != y.members.size() ||
      !same_group(few_group_[at(a.collective)], few_group_[at(b.collective)]) ||
      problem_.once(op) != problem_.once(first.op) || problem_.alias(op) >= 0 ||
      problem_.fixed_bytes(op) != 0 || problem_.workspace_bytes(op) != 0)
    return false;
  for (int32_t c = 0; c < problem_.cost_classes(); ++c)
    if (problem_.class_costs(c)[at(op)] != 0) return false;
  std::set<int32_t> chunks;
  for (const auto& part : join.parts)
    if (part.chunk >= 0 && (!chunks.insert(part.chunk).second || !same_outputs(join, part, first)))
      return false;
  return std::ssize(chunks) == sizes_.rounds;  // they contain all layers of the device
}

/// True if every layer's outputs have the size of the first layer's on another device.
bool LayerFold::same_outputs(const Join& join, const Join::Part& part, const Join& first) const {
  if (few().op(join.op).outputs.empty()) return true;
  const auto each = static_cast<int32_t>(join.each.size());
  const int32_t other = problem_.first_output(first.op) + first_layered(first).input;
  const int32_t own = problem_.first_output(join.op) + part.input;
  for (int32_t k = 0; k < part.layers * each; ++k)
    for (const auto& bytes : {problem_.all_output_bytes(), problem_.held_bytes()})
      if (bytes[at(own + k)] != bytes[at(other + k % each)]) return false;
  return true;
}

const LayerFold::Join::Part& LayerFold::first_layered(const Join& join) const {
  return *std::find_if(join.parts.begin(), join.parts.end(),
                       [](const auto& part) { return part.chunk >= 0; });
}

/// Bytes of a gradient when it was put in a bucket, before sharding.
int64_t LayerFold::whole_bytes(int32_t tensor) const {
  const int32_t from = few().tensor(tensor).producer;
  const int32_t output = tensor - few().op(from).outputs.front();
  const int64_t bytes = few().tensor(tensor).bytes;
  const auto& inputs = few().op(from).inputs;
  const bool joins = work_[at(from)] == kMember && at(output) < inputs.size();
  return joins ? std::max(bytes, whole_bytes(inputs[at(output)])) : bytes;
}

/// Finds how its collective's bytes depend on its inputs: their sum, or a shard of the unsharded
/// gradients, rounded up. Returns false if neither fits.
bool LayerFold::find_bytes(Join& join) const {
  const auto& inputs = few().op(join.op).inputs;
  const int32_t first = first_layered(join).input, each = static_cast<int32_t>(join.each.size());
  for (int32_t i = 0; i < join.inputs; ++i) {
    const bool layered = i >= first && i < first + each;
    const int64_t bytes = few().tensor(inputs[at(i)]).bytes, whole = whole_bytes(inputs[at(i)]);
    join.bytes += bytes;
    join.whole_bytes += whole;
    if (layered) join.layer_bytes += bytes, join.layer_whole_bytes += whole;
  }
  const int64_t all = bytes_of(join), whole = join.whole_bytes;
  join.adds = join.bytes == all;
  if (all == whole) {
    join.shares = 1;
  } else if (all < whole) {
    if (all < 2) return false;
    join.shares = (whole + all - 1) / all;  // minimum number of shards of that size
    if ((whole + join.shares - 1) / join.shares != all) join.shares = 0;
    if (join.shares > 0 && (whole + join.shares) / (join.shares + 1) == all) return false;
  }
  return join.adds || join.shares > 0 || find_gathered(join);
}

int64_t LayerFold::bytes_of(const Join& join) const {
  return few().collectives()[at(few().op(join.op).collective)].bytes;
}

/// Weights that it gathers from shards: per layer the same number as on a device without others.
bool LayerFold::find_gathered(Join& join) const {
  if (!few().op(join.op).outputs.empty() || sizes_.few_pipeline < 3) return false;
  const auto& between = like_join(join.which, join.slot, 1);
  const int64_t layers = between.inputs / std::ssize(between.each);
  if (layers == 0 || bytes_of(between) % layers != 0 ||
      between.inputs != layers * std::ssize(between.each) ||
      std::any_of(between.parts.begin(), between.parts.end(),
                  [](const auto& part) { return part.chunk < 0; }))
    return false;
  join.adds = true;
  join.layer_bytes = bytes_of(between) / layers;
  return true;
}

/// Checks that no bucket overflows with all layers (it would have closed earlier), that its size
/// has only one interpretation, and that the operators it waits for send.
bool LayerFold::joins_fit() const {
  for (int32_t device = 0; device < sizes_.pipeline; ++device)
    for (const auto& one : joins_) {
      if (one.device != like_device(device)) continue;
      const int64_t whole = one.whole_bytes + layers_more(one, device) * one.layer_whole_bytes;
      if (std::max(join_bytes(one, device), whole) > sizes_.bucket_bytes ||
          (one.adds && one.shares > 0 && join_bytes(one, device) != shared_bytes(one, device)))
        return false;
      for (const int32_t chunk : one.behind)
        if (senders_[at_chunk(many_chunk(chunk, device), one.slot)] < 0) return false;
    }
  return true;
}

/// Number of layers that a device has in addition to the reduced one.
int64_t LayerFold::layers_more(const Join& join, int32_t device) const {
  int64_t more = 0;
  for (const auto& part : join.parts) {
    if (part.chunk < 0) continue;
    const auto [begin, end] = inner_of(many_chunk(part.chunk, device));
    more += end - begin - part.layers;
  }
  return more;
}

int64_t LayerFold::join_bytes(const Join& join, int32_t device) const {
  return join.adds ? bytes_of(join) + layers_more(join, device) * join.layer_bytes
                   : shared_bytes(join, device);
}
int64_t LayerFold::shared_bytes(const Join& join, int32_t device) const {
  const int64_t whole = join.whole_bytes + layers_more(join, device) * join.layer_whole_bytes;
  return (whole + join.shares - 1) / join.shares;
}

/// In the full mesh: index of the output for a layer, or for none.
int32_t LayerFold::joined_output(const Join& join, int32_t device, int32_t layer,
                                 const Read& read) const {
  int32_t first = 0;
  for (const auto& part : join.parts) {
    if (part.chunk < 0) {
      if (read.offset == kOutside && part.input == read.output) return first;
      ++first;
      continue;
    }
    const auto [begin, end] = inner_of(many_chunk(part.chunk, device));
    const auto each = static_cast<int32_t>(join.each.size());
    if (read.offset != kOutside && layer >= begin && layer < end)
      return first + (part.up ? layer - begin : end - 1 - layer) * each + read.output;
    first += (end - begin) * each;
  }
  return -1;
}

/// Calls add(reduced input index, layer, input relative to it) for all inputs of a join in the full
/// mesh; layer -1: an input from outside.
template <class Add>
void LayerFold::each_joined(const Join& join, int32_t device, Add add) const {
  for (const auto& part : join.parts) {
    if (part.chunk < 0) {
      add(part.input, -1, joined_read(few().op(join.op).inputs[at(part.input)]));
      continue;
    }
    const auto [begin, end] = inner_of(many_chunk(part.chunk, device));
    for (int32_t k = 0; k < end - begin; ++k)
      for (size_t i = 0; i < join.each.size(); ++i)
        add(part.input + static_cast<int32_t>(i), part.up ? begin + k : end - 1 - k, join.each[i]);
  }
}

std::vector<OrderGraph::Source> LayerFold::joined_inputs(int32_t op) const {
  const auto& join = joins_[at(join_of_[at(like_[at(op)])])];
  const int32_t device = device_[at(op)] / width_;
  std::vector<OrderGraph::Source> inputs;
  each_joined(join, device, [&](int32_t, int32_t layer, const Read& read) {
    if (read.zone == kJoined)
      inputs.push_back(source_of(read, join.slot, device, layer));
    else
      inputs.push_back({layer < 0 ? outside_[at(read.place)] : number(read.zone, read.place, layer),
                        read.output});
  });
  for (const int32_t chunk : join.behind) {
    const int32_t from = senders_[at_chunk(many_chunk(chunk, device), join.slot)];
    inputs.push_back({from, outputs(like_[at(from)])});
  }
  return inputs;
}

/// An output of a join as read by a layer on its device.
OrderGraph::Source LayerFold::source_of(const Read& read, int32_t slot, int32_t device,
                                        int32_t layer) const {
  return {join_number_[join_place(read.place, slot, device, sizes_.pipeline)],
          joined_output(like_join(read.place, slot, like_device(device)), device, layer, read)};
}

/// Output sizes of joins, and bytes of collectives, that differ from the reduced ones.
OrderGraph::Joined LayerFold::joined() const {
  OrderGraph::Joined made;
  if (joins_.empty()) return made;
  for (const int32_t like : collective_like_)
    made.collective_bytes.push_back(few().collectives()[at(like)].bytes);
  for (int32_t device = 0; device < sizes_.pipeline; ++device)
    for (const auto& join : joins_) {
      if (join.device != like_device(device)) continue;
      const size_t place = join_place(join.which, join.slot, device, sizes_.pipeline);
      const int32_t c = collective_join_[place];
      if (c >= 0) made.collective_bytes[at(c)] = join_bytes(join, device);
      auto& outputs = made.outputs[join_number_[place]];
      if (!few().op(join.op).outputs.empty())
        each_joined(join, device,
                    [&](int32_t input, int32_t, const Read&) { outputs.push_back(input); });
    }
  return made;
}

/// True if no member of a collective is a join, or all are joins of one device and number.
bool LayerFold::join_alike(const std::vector<int32_t>& members) const {
  const int32_t join = join_of_[at(members[0])];
  return std::all_of(members.begin(), members.end(), [&](int32_t member) {
    const int32_t other = join_of_[at(member)];
    return (other < 0) == (join < 0) &&
           (join < 0 || (joins_[at(other)].which == joins_[at(join)].which &&
                         joins_[at(other)].device == joins_[at(join)].device));
  });
}

/// Arguments: per item its layer, its device, and whether it is a join.
bool LayerFold::find_runs(const std::vector<int32_t>& layers, const std::vector<int32_t>& devices,
                          const std::vector<bool>& joins, std::optional<LayerRuns>& runs,
                          std::vector<Piece>& pieces) const {
  const auto inner = inner_layers(layers, sizes_.ends);
  runs = joins_.empty() ? layer_runs(inner, few_inner()) : broken_layer_runs(inner, few_inner());
  if (!runs || joins_.empty()) return runs.has_value();
  auto found = pieces_of(*runs, devices, joins);
  if (found) pieces = std::move(*found);
  return found.has_value();
}

/// Pieces of a list whose zones are interrupted by joins. devices, joins: per item. None if inner
/// devices are not between the first and the last one.
std::optional<std::vector<LayerFold::Piece>> LayerFold::pieces_of(
    const LayerRuns& runs, const std::vector<int32_t>& devices,
    const std::vector<bool>& joins) const {
  std::vector<Piece> pieces;
  const auto count = static_cast<int32_t>(devices.size());
  for (int32_t i = 0; i < count;) {
    const auto& place = runs.places[at(i)];
    if (joins[at(i)]) {
      const int32_t device = sizes_.many_device(devices[at(i)]);
      pieces.push_back({i, i + 1, -1, 0, 0, device, device < 0, false});
    } else if (place.zone < 0 || runs.zones[at(place.zone)].whole) {
      ++i;
      continue;
    } else if (const auto piece = piece_at(runs, i)) {
      pieces.push_back(*piece);
    } else {
      return std::nullopt;
    }
    i = pieces.back().end;
  }
  const auto last = sizes_.few_pipeline - 1;
  for (size_t begin = 0, end = 0; begin < pieces.size(); begin = std::max(end, begin + 1)) {
    for (end = begin; end < pieces.size() && pieces[end].between &&
                      (end == begin || pieces[end].begin == pieces[end - 1].end);)
      ++end;
    if (begin == end) continue;
    if (pieces[begin].begin == 0 || pieces[end - 1].end == count) return std::nullopt;
    const int32_t before = devices[at(pieces[begin].begin - 1)],
                  behind = devices[at(pieces[end - 1].end)];
    if (std::minmax(before, behind) != std::minmax(0, last)) return std::nullopt;
    for (size_t i = begin; i < end; ++i) pieces[i].devices_up = before == 0;
  }
  return pieces;
}

/// Consecutive runs of a zone from an item on, in whole virtual stages.
std::optional<LayerFold::Piece> LayerFold::piece_at(const LayerRuns& runs, int32_t begin) const {
  const auto& place = runs.places[at(begin)];
  const auto& zone = runs.zones[at(place.zone)];
  const int32_t step = zone.up ? 1 : -1;
  int32_t layer = place.layer, end = begin + zone.length;
  while (layer + step >= 0 && layer + step < runs.layers &&
         runs.begin(place.zone, layer + step) == end) {
    layer += step;
    end += zone.length;
  }
  const auto [low, high] = std::minmax(place.layer, layer);
  const int32_t first = few_chunk(low, 0), final = few_chunk(high, 0);
  const auto stands = [this](int32_t chunk) { return sizes_.many_device(few_on(chunk)) >= 0; };
  const bool between = !stands(first) || !stands(final);
  if (place.place != 0 || few_inner_of(first).first != low ||
      few_inner_of(final).second != high + 1 || (between && first != final))
    return std::nullopt;
  return Piece{begin, end, place.zone, first, final, -1, between, false};
}

/// Expands pieces from one on, in the full order: each stands for itself or, with all following
/// inner pieces, for the inner devices one after the other. Advances `next`.
std::vector<LayerFold::Unfolded> LayerFold::unfolded(const std::vector<Piece>& pieces,
                                                     size_t& next) const {
  std::vector<Unfolded> all;
  const auto put = [&](const Piece& piece, int32_t device) {
    if (piece.zone < 0) {
      all.push_back({piece.begin, device, -1, 0, 0});
      return;
    }
    const auto chunk = [&](int32_t few) {
      return many_chunk(few, device >= 0 ? device : sizes_.many_device(few_on(few)));
    };
    all.push_back({-1, -1, piece.zone, inner_of(chunk(piece.chunk)).first,
                   inner_of(chunk(piece.last_chunk)).second});
  };
  const size_t first = next;
  while (next < pieces.size() && pieces[next].between &&
         (next == first || pieces[next].begin == pieces[next - 1].end))
    ++next;
  if (next == first) {
    put(pieces[next], pieces[next].device);
    ++next;
    return all;
  }
  for (int32_t k = 1; k + 1 < sizes_.pipeline; ++k)
    for (size_t i = first; i < next; ++i)
      put(pieces[i], pieces[i].devices_up ? k : sizes_.pipeline - 1 - k);
  return all;
}

}  // namespace trinity
