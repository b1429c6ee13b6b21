#include "strategy/split/split_lowering.h"

#include <algorithm>
#include <optional>

#include "graph/nameless.h"

// All-to-alls between parts that cut a tensor along one axis and parts that cut it along another
// (strategy/splits.h, SplitOptions::exchanges).

namespace trinity {
namespace {

/// The axis along which two blocks differ; none if they are equal or differ along several.
std::optional<size_t> differing_axis(const Block& a, const Block& b) {
  std::optional<size_t> found;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) continue;
    if (found) return std::nullopt;
    found = i;
  }
  return found;
}

/// True if blocks are equally long and consecutive along an axis, and equal otherwise.
bool in_a_row(const std::vector<Block>& blocks, size_t axis) {
  for (size_t i = 1; i < blocks.size(); ++i)
    if (differing_axis(blocks[i - 1], blocks[i]) != axis ||
        blocks[i - 1][axis].end != blocks[i][axis].begin ||
        blocks[i - 1][axis].length() != blocks[i][axis].length())
      return false;
  return true;
}

}  // namespace

std::vector<size_t> SplitLowering::exchanged_homes(int32_t op, size_t input, const Block& block,
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

bool SplitLowering::exchange(int32_t op, size_t input, const Block& block) {
  std::vector<int32_t> parts;
  const auto group = exchanged_homes(op, input, block, parts);
  if (group.empty()) return false;
  add_exchange(op, input, group, parts);
  return true;
}

void SplitLowering::add_exchange(int32_t op, size_t input, const std::vector<size_t>& group,
                                 const std::vector<int32_t>& parts) {
  const int32_t tensor = graph_.op(op).inputs[input];
  const auto& homes = layout_.homes(tensor);
  Collective collective;
  collective.kind = CollectiveKind::all_to_all;
  if (width_ > 0) collective.axes = exchange_axes(op, input);
  collective.name = name_of([&] {
    const auto name = fmt::format("{}/exchange", producer_name(tensor));
    const int32_t before = gathers_[name]++;
    return before == 0 ? name : fmt::format("{}{}", name, before + 1);
  });
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

}  // namespace trinity
