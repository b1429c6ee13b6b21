#pragma once

#include "strategy/split/split_lanes.h"

namespace trinity {

/// The blocks that parts read: their devices, all-gathers, slices and joins, and all-to-alls between parts that cut a
/// tensor along one axis and parts that cut it along another (SplitOptions::exchanges).
class SplitGathers : protected SplitLanes {
 public:
  using SplitLanes::SplitLanes;

 protected:

  /// The groups for which that holds, and the parts that read, by the device that holds their
  /// piece.
  struct Gathering {
    std::vector<std::vector<size_t>> groups;
    std::map<int32_t, int32_t> taking;
  };

  /// The tensor from which a part reads its block of an input.
  int32_t fetch(int32_t op, size_t input, int32_t part) {
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
    if (options_.exchanges && exchange(op, input, block)) return exchanged_.at(key);
    return joined_[key] = collect(op, tensor, device, block);
  }

  /// The inputs of an operator's parts, by part. Input by input, so that operators made for them
  /// are in one order on all devices.
  std::vector<TensorNumbers> fetched(int32_t op) {
    std::vector<TensorNumbers> inputs(at(layout_.cut(op).parts()));
    for (size_t k = 0; k < graph_.op(op).inputs.size(); ++k)
      for (size_t part = 0; part < inputs.size(); ++part)
        if (makes_part(op, part)) inputs[part].push_back(fetch(op, k, static_cast<int32_t>(part)));
    return inputs;
  }

  /// The readers that share a gather of a tensor: the readers of one pass, for rows of experts of
  /// both passes.
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

  /// All-gathers of a block, if every device that holds a piece of it reads it with this
  /// operator, or an equal number of others does (the next stage's), which get a piece each first;
  /// false if some do not.
  bool gather(int32_t op, size_t input, const Block& block) {
    const auto& found = gathering(op, input, block);
    if (!found) return false;
    const int32_t axes = of_classes_ ? gather_axes(op, input) : -1;
    for (const auto& group : found->groups)
      add_gather(op, graph_.op(op).inputs[input], group, block, found->taking, axes);
    return true;
  }

  /// block: one of those that parts read.
  const std::optional<Gathering>& gathering(int32_t op, size_t input, const Block& block) {
    const auto [known, fresh] = gatherings_.try_emplace({read_of(op, input), &block});
    if (fresh) known->second = find_gathering(op, input, block);
    return known->second;
  }

  std::optional<Gathering> find_gathering(int32_t op, size_t input, const Block& block) const {
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

  int32_t gather_axes(int32_t op, size_t input) {
    const auto [known, fresh] = gather_axes_.try_emplace(read_of(op, input), -1);
    if (!fresh) return known->second;
    const auto& homes = layout_.homes(graph_.op(op).inputs[input]);
    Where where;
    std::set<Block> seen;
    int32_t number = 0;
    for (int32_t part = 0; part < layout_.cut(op).parts(); ++part) {
      const Block& read = layout_.needed(op, input, part);
      if (!seen.insert(read).second) continue;
      const auto& found = gathering(op, input, read);
      if (!found) throw LanesDiffer{};
      for (const auto& [device, reader] : found->taking)
        if (layout_.device(op, reader) % width_ != device % width_) throw LanesDiffer{};
      for (const auto& group : found->groups) {
        for (const size_t home : group) where.emplace_back(number, homes[home].device);
        ++number;
      }
    }
    return known->second = axes_of(where);
  }

  /// An all-to-all of a tensor's pieces, if the devices that hold the pieces of a block read equal
  /// parts of all of them; otherwise false. Forward all-to-alls serve backward readers.
  bool exchange(int32_t op, size_t input, const Block& block) {
    std::vector<int32_t> parts;
    const auto group = exchanged_homes(op, input, block, parts);
    if (group.empty()) return false;
    add_exchange(op, input, group, parts);
    return true;
  }

  void add_exchange(int32_t op, size_t input, const std::vector<size_t>& group,
                    const std::vector<int32_t>& parts) {
    const int32_t tensor = graph_.op(op).inputs[input];
    const auto& homes = layout_.homes(tensor);
    Collective collective;
    collective.kind = CollectiveKind::all_to_all;
    if (of_classes_) collective.axes = exchange_axes(op, input);
    collective.name = numbered(tensor, "exchange");
    const auto axis = [&](const Block& a, const Block& b) {
      return static_cast<int64_t>(*differing_axis(a, b));
    };
    const int64_t joined = axis(homes[group[0]].block, homes[group[1]].block);
    const int64_t cut =
        axis(layout_.needed(op, input, parts[0]), layout_.needed(op, input, parts[1]));
    for (size_t i = 0; i < group.size(); ++i) {
      if (!makes(homes[group[i]].device)) continue;
      const Block needed = layout_.needed(op, input, parts[i]);
      Operator member;
      member.name = part_name(collective.name, parts[i], 2);
      member.type = "AllToAllParts";
      member.phase = graph_.op(op).phase;
      member.traffic_bytes = 0;
      member.inputs = {made(held_[tensor][group[i]])};
      if (meaning_) {
        member.attributes["joined"] = joined;
        member.attributes["cut"] = cut;
      }
      const int32_t id = add_for(op, std::move(member), homes[group[i]].device, parts[i]);
      collective.bytes = builder_.tensor(held_[tensor][group[i]]).bytes;
      collective.members.push_back(id);
      exchanged_[std::make_tuple(tensor, homes[group[i]].device, needed)] =
          add_block(id, tensor, needed, 2, "exchanged");
    }
    builder_.add_collective(std::move(collective));
  }

  int32_t exchange_axes(int32_t op, size_t input) {
    const auto& homes = layout_.homes(graph_.op(op).inputs[input]);
    Where where;
    std::set<std::vector<size_t>> seen;
    for (int32_t part = 0; part < width_; ++part) {
      std::vector<int32_t> parts;
      const auto group = exchanged_homes(op, input, layout_.needed(op, input, part), parts);
      if (group.empty()) throw LanesDiffer{};
      const auto number = static_cast<int32_t>(seen.size());
      if (!seen.insert(group).second) continue;
      for (const size_t home : group) where.emplace_back(number, homes[home].device);
    }
    return axes_of(where);
  }

  /// The name of a collective for a tensor, with a number where there are several.
  std::string numbered(int32_t tensor, const char* what) {
    return name_of([&] {
      const auto name = fmt::format("{}/{}", producer_name(tensor), what);
      const int32_t before = gathers_[name]++;
      return before == 0 ? name : fmt::format("{}{}", name, before + 1);
    });
  }

  /// The pieces of those devices in the order of the sequence, and the reader on each; none if an
  /// all-to-all is not possible.
  std::vector<size_t> exchanged_homes(int32_t op, size_t input, const Block& block,
                                      std::vector<int32_t>& parts) const {
    const auto& homes = layout_.homes(graph_.op(op).inputs[input]);
    std::vector<size_t> group;
    for (size_t i = 0; i < homes.size(); ++i)
      if (!is_empty(overlap(homes[i].block, block))) group.push_back(i);
    if (group.size() < 2) return {};
    std::sort(group.begin(), group.end(),
              [&](size_t a, size_t b) { return homes[a].block < homes[b].block; });
    std::vector<Block> held, needed;
    for (const size_t home : group) {
      held.push_back(homes[home].block);
      for (int32_t part = 0; part < layout_.cut(op).parts(); ++part)
        if (layout_.device(op, part) == homes[home].device) {
          parts.push_back(part);
          needed.push_back(layout_.needed(op, input, part));
        }
      if (needed.size() != held.size()) return {};
    }
    const auto from = differing_axis(held[0], held[1]), to = differing_axis(needed[0], needed[1]);
    if (!from || !to || from == to || !in_a_row(held, *from) || !in_a_row(needed, *to)) return {};
    const bool whole = held.front()[*from].begin == needed[0][*from].begin &&
                       held.back()[*from].end == needed[0][*from].end &&
                       needed.front()[*to].begin == held[0][*to].begin &&
                       needed.back()[*to].end == held[0][*to].end;
    return whole ? group : std::vector<size_t>{};
  }

  /// The tensor that the gather of a forward tensor for a backward operator waits for, so that it
  /// is gathered no earlier than it is used: the first gradient that the operator reads; -1:
  /// nothing.
  int32_t gradient_for(int32_t op, int32_t tensor, int32_t part) {
    const auto phase = [&](int32_t of) { return graph_.op(graph_.tensor(of).producer).phase; };
    const auto& inputs = graph_.op(op).inputs;
    if (graph_.op(op).phase != Phase::backward || phase(tensor) != Phase::forward) return -1;
    for (size_t k = 0; k < inputs.size(); ++k)
      if (phase(inputs[k]) == Phase::backward) return fetch(op, k, part);
    return -1;
  }

  /// taking: as in Gathering.
  void add_gather(int32_t op, int32_t tensor, const std::vector<size_t>& group, const Block& block,
                  const std::map<int32_t, int32_t>& taking, int32_t axes) {
    Collective collective;
    collective.kind = CollectiveKind::all_gather;
    collective.axes = axes;
    collective.name = numbered(tensor, "gather");
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

  /// The home with exactly this block: on the device if there is one, else at the same position of
  /// another run; otherwise devices choose round-robin.
  size_t holder(const std::vector<Home>& homes, int32_t device, const Block& block) const {
    std::vector<size_t> equal;
    for (size_t i = 0; i < homes.size(); ++i) {
      if (homes[i].block != block) continue;
      if (homes[i].device == device) return i;
      equal.push_back(i);
    }
    for (const size_t home : equal)
      if (width_ > 1 && homes[home].device % width_ == device % width_) return home;
    return equal.empty() ? homes.size() : equal[at(device) % equal.size()];
  }

  /// Pieces of homes that cover the block, joined on the device if there are several.
  int32_t collect(int32_t op, int32_t tensor, int32_t device, const Block& block) {
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

  int32_t slice(int32_t tensor, size_t home, const Block& piece) {
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

  /// Checks that a device has a pipeline group's own part.
  void check_own(const Home& home, int32_t device) const {
    if (of_classes_ && home.device % width_ != device % width_) throw LanesDiffer{};
  }

  /// The axis along which two blocks differ; none if they are equal or differ along several.
  static std::optional<size_t> differing_axis(const Block& a, const Block& b) {
    std::optional<size_t> found;
    for (size_t i = 0; i < a.size(); ++i) {
      if (a[i] == b[i]) continue;
      if (found) return std::nullopt;
      found = i;
    }
    return found;
  }

  /// True if blocks are equally long and consecutive along an axis, and equal otherwise.
  static bool in_a_row(const std::vector<Block>& blocks, size_t axis) {
    for (size_t i = 1; i < blocks.size(); ++i)
      if (differing_axis(blocks[i - 1], blocks[i]) != axis ||
          blocks[i - 1][axis].end != blocks[i][axis].begin ||
          blocks[i - 1][axis].length() != blocks[i][axis].length())
        return false;
    return true;
  }

  std::map<std::tuple<int32_t, int32_t, Block>, int32_t> joined_, sliced_, exchanged_;
  std::map<std::tuple<int32_t, int32_t, Block, Phase>, int32_t> gathered_;
  std::map<std::pair<Read, const Block*>, std::optional<Gathering>> gatherings_;
  std::map<Read, int32_t> gather_axes_;
  int64_t joins_ = 0;
  std::map<std::string, int32_t> gathers_;  // by name
};

}  // namespace trinity
