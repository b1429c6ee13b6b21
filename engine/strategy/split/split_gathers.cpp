#include "strategy/split/split_lowering.h"

#include <algorithm>
#include <set>

#include "graph/nameless.h"

#include "strategy/split_meaning.h"

// The blocks that parts read: their devices, all-gathers, slices and joins.

namespace trinity {

int32_t SplitLowering::fetch(int32_t op, size_t input, int32_t part) {
  const int32_t tensor = graph_.op(op).inputs[input];
  const int32_t device = layout_.device(op, part);
  const auto& homes = layout_.homes(tensor);
  const auto held = held_[tensor];
  const Block& block = layout_.needed(op, input, part);
  if (block.empty()) {  // no shape: parts of one operator match
    const auto same = std::min(at(part), homes.size() - 1);
    return made(held[same]);
  }
  const size_t exact = holder(homes, device, block);
  if (exact < homes.size()) {
    check_own(homes[exact], device);
    return made(held[exact]);
  }
  const auto gathered = std::make_tuple(tensor, device, block, gather_phase(op, tensor));
  if (const auto found = gathered_.find(gathered); found != gathered_.end()) return found->second;
  const auto key = std::make_tuple(tensor, device, block);
  if (const auto found = joined_.find(key); found != joined_.end()) return found->second;
  if (const auto found = exchanged_.find(key); found != exchanged_.end()) return found->second;
  if (gather(op, input, block)) return gathered_.at(gathered);
  if (exchanges_ && exchange(op, input, block)) return exchanged_.at(key);
  return joined_[key] = collect(op, tensor, device, block);
}

Phase SplitLowering::gather_phase(int32_t op, int32_t tensor) const {
  const auto& from = graph_.op(graph_.tensor(tensor).producer);
  const auto& before =
      from.type == "Cast" ? graph_.op(graph_.tensor(from.inputs[0]).producer) : from;
  const bool kept = before.type == "AllToAll" || before.type == "ExpertDispatch";
  return kept ? Phase::forward : graph_.op(op).phase;
}

std::vector<std::vector<size_t>> SplitLowering::holders(int32_t tensor, const Block& block) const {
  std::vector<std::pair<Block, size_t>> pieces;
  const auto& homes = layout_.homes(tensor);
  const Block whole = whole_block(graph_.tensor(tensor).shape);
  pieces.reserve(homes.size());
  for (size_t i = 0; i < homes.size(); ++i) {
    const Block held = overlap(homes[i].block, whole);
    if (!is_empty(held) && lies_in(held, block)) pieces.emplace_back(held, i);
  }
  if (!std::is_sorted(pieces.begin(), pieces.end())) std::sort(pieces.begin(), pieces.end());
  int64_t covered = 0;
  std::vector<std::vector<size_t>> groups;
  for (size_t first = 0, end = 0; first < pieces.size(); first = end) {
    while (end < pieces.size() && pieces[end].first == pieces[first].first) ++end;
    covered += block_elements(pieces[first].first);
    if (first == 0) groups.resize(end);
    if (end - first != groups.size()) return {};
    for (size_t k = 0; k < groups.size(); ++k) groups[k].push_back(pieces[first + k].second);
  }
  if (covered != block_elements(block)) return {};
  return groups;
}

bool SplitLowering::gather(int32_t op, size_t input, const Block& block) {
  const auto& found = gathering(op, input, block);
  if (!found) return false;
  const int32_t axes = width_ > 0 ? gather_axes(op, input) : -1;
  for (const auto& group : found->groups)
    add_gather(op, graph_.op(op).inputs[input], group, block, found->taking, axes);
  return true;
}

const std::optional<SplitLowering::Gathering>& SplitLowering::gathering(int32_t op, size_t input,
                                                                        const Block& block) {
  const auto [known, fresh] = gatherings_.try_emplace({read_of(op, input), &block});
  if (fresh) known->second = find_gathering(op, input, block);
  return known->second;
}

std::optional<SplitLowering::Gathering> SplitLowering::find_gathering(int32_t op, size_t input,
                                                                      const Block& block) const {
  const int32_t tensor = graph_.op(op).inputs[input];
  std::map<int32_t, int32_t> readers;  // part, by device
  for (int32_t part = 0; part < layout_.cut(op).parts(); ++part)
    if (layout_.needed(op, input, part) == block)
      readers.insert_or_assign(readers.end(), layout_.device(op, part), part);
  Gathering found{holders(tensor, block), {}};
  const auto& groups = found.groups;
  std::vector<int32_t> members;
  for (const auto& group : groups)
    for (const size_t home : group) members.push_back(layout_.homes(tensor)[home].device);
  std::sort(members.begin(), members.end());
  if (groups.empty() || groups[0].size() < 2 || readers.size() != members.size() ||
      std::adjacent_find(members.begin(), members.end()) != members.end())
    return {};
  const auto inside = std::count_if(readers.begin(), readers.end(), [&](const auto& reader) {
    return std::binary_search(members.begin(), members.end(), reader.first);
  });
  if (inside == 0) {
    auto holder = members.begin();
    for (const auto& [device, part] : readers) found.taking[*holder++] = part;
  } else if (at(inside) == readers.size()) {
    found.taking = std::move(readers);
  } else {
    return {};
  }
  return found;
}

int32_t SplitLowering::gradient_for(int32_t op, int32_t tensor, int32_t part) {
  const auto phase = [&](int32_t of) { return graph_.op(graph_.tensor(of).producer).phase; };
  const auto& inputs = graph_.op(op).inputs;
  if (graph_.op(op).phase != Phase::backward || phase(tensor) != Phase::forward) return -1;
  for (size_t k = 0; k < inputs.size(); ++k)
    if (phase(inputs[k]) == Phase::backward) return fetch(op, k, part);
  return -1;
}

void SplitLowering::add_gather(int32_t op, int32_t tensor, const std::vector<size_t>& group,
                               const Block& block, const std::map<int32_t, int32_t>& taking,
                               int32_t axes) {
  Collective collective;
  collective.kind = CollectiveKind::all_gather;
  collective.axes = axes;
  collective.name = name_of([&] {
    const auto name = fmt::format("{}/gather", producer_name(tensor));
    const int32_t before = gathers_[name]++;
    return before == 0 ? name : fmt::format("{}{}", name, before + 1);
  });
  for (const size_t home : group) {
    const int32_t part = taking.at(layout_.homes(tensor)[home].device);
    const int32_t device = layout_.device(op, part);
    if (!makes(device)) continue;
    const int32_t gate = gradient_for(op, tensor, part);
    const int32_t id = add_member(op, part_name(collective.name, part, 2), collective.kind,
                                  graph_.op(op).phase, part);
    builder_.read(id, held_[tensor][home]);
    if (gate >= 0) builder_.read(id, gate);
    if (meaning_)
      builder_.op(id).attributes["begins"] = begins(layout_.homes(tensor)[home].block, block);
    const int32_t whole = add_block(id, tensor, block, 2, "whole");
    gathered_[std::make_tuple(tensor, device, block, gather_phase(op, tensor))] = whole;
    collective.bytes = builder_.tensor(whole).bytes;
    collective.members.push_back(id);
  }
  if (!collective.members.empty()) builder_.add_collective(std::move(collective));
}

size_t SplitLowering::holder(const std::vector<Home>& homes, int32_t device,
                             const Block& block) const {
  std::vector<size_t> equal;
  for (size_t i = 0; i < homes.size(); ++i) {
    if (homes[i].block != block) continue;
    if (homes[i].device == device) return i;
    equal.push_back(i);
  }
  for (const size_t home : equal)
    if (run_ > 1 && homes[home].device % run_ == device % run_) return home;
  return equal.empty() ? homes.size() : equal[at(device) % equal.size()];
}

int32_t SplitLowering::collect(int32_t op, int32_t tensor, int32_t device, const Block& block) {
  const auto& homes = layout_.homes(tensor);
  const Block inside = overlap(block, whole_block(graph_.tensor(tensor).shape));
  std::set<Block> seen;
  std::vector<int32_t> pieces;
  std::vector<int64_t> begin;
  for (const auto& home : homes) {
    const Block piece = overlap(home.block, inside);
    const bool takes = is_empty(inside) ? pieces.empty() : !is_empty(piece);  // all of it is padding
    if (!takes || !seen.insert(home.block).second) continue;
    const size_t holds = holder(homes, device, home.block);
    check_own(homes[holds], device);
    pieces.push_back(slice(tensor, holds, piece));
    for (const int64_t first : begins(piece, block)) begin.push_back(first);
  }
  if (pieces.size() == 1 && inside == block) return pieces[0];
  Operator concat;
  ++joins_;
  const auto& of = producer_name(tensor);
  concat.name = name_made_of(of, [&] { return fmt::format("{}/block{}", of, joins_); });
  concat.type = "Concat";
  concat.phase = graph_.op(op).phase;
  concat.inputs = std::move(pieces);
  if (meaning_) concat.attributes["begins"] = std::move(begin);
  const int32_t id = add_for(op, std::move(concat), device, 0);
  return add_block(id, tensor, block, 2, "block");
}

int32_t SplitLowering::slice(int32_t tensor, size_t home, const Block& piece) {
  if (layout_.homes(tensor)[home].block == piece) return made(held_[tensor][home]);
  const auto key = std::make_tuple(tensor, static_cast<int32_t>(home), piece);
  if (const auto found = sliced_.find(key); found != sliced_.end()) return found->second;
  Operator slice;
  const auto& of = producer_name(tensor);
  slice.name = name_made_of(of, [&] { return fmt::format("{}/piece{}", of, sliced_.size() + 1); });
  slice.type = "Slice";
  slice.phase = graph_.op(graph_.tensor(tensor).producer).phase;
  slice.inputs = {made(held_[tensor][home])};
  if (meaning_) state_range(slice, piece, layout_.homes(tensor)[home].block);
  const int32_t id = add_for(graph_.tensor(tensor).producer, std::move(slice),
                             layout_.homes(tensor)[home].device, 0);
  return sliced_[key] = add_block(id, tensor, piece, 2, "piece");
}

}  // namespace trinity
