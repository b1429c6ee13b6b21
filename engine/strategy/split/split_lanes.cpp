#include <algorithm>
#include <set>

#include "strategy/split/split_lowering.h"

// Finds the pipeline groups that do the same (strategy/splits.h, `lower_lanes()`), so that one per
// class is built.

namespace trinity {
namespace {

void add_lengths(const Block& block, std::vector<int64_t>& to) {
  for (const auto& range : block) to.push_back(range.length());
}

}  // namespace

/// The cost of a part depends on the lengths of its blocks, which are equal (SplitOptions::padded),
/// and in rings on whose keys it has; check_reads() verifies that its inputs are the same in all
/// pipeline groups.
void SplitLowering::find_lanes() {
  if (!graph_.collectives().empty()) throw LanesDiffer{};
  Extents extents(at(width_));
  part_on_.resize(at(graph_.operator_count()), nullptr);
  for (int32_t op = 0; op < graph_.operator_count(); ++op) {
    if (layout_.is_source(op)) continue;
    find_parts(op);
    add_ring_places(op, extents);
  }
  for (int32_t op = 0; op < graph_.operator_count(); ++op)
    layout_.is_source(op) ? add_source_extents(op, extents) : check_reads(op);
  for (const auto& lane : extents)
    lanes_.push_back(static_cast<int32_t>(std::find(extents.begin(), extents.end(), lane) -
                                          extents.begin()));
  for (int32_t lane = 0; lane < width_; ++lane)  // groups over `tensor` are in one class
    if (tensor_ == 0 || lanes_[at(lane)] != lanes_[at(lane - lane % tensor_)]) throw LanesDiffer{};
  for (int32_t op = 0; op < graph_.operator_count(); ++op)
    if (!layout_.is_source(op)) check_ring(op);
}

/// One on each device of a run; the first pipeline group has the first.
void SplitLowering::find_parts(int32_t op) {
  const int32_t parts = layout_.cut(op).parts(), first = layout_.device(op, 0);
  if (parts != width_ || first % width_ != 0 || layout_.reads_window(op)) throw LanesDiffer{};
  const auto [known, fresh] = parts_on_.try_emplace(&layout_.devices(op));
  auto& part_on = known->second;
  part_on_[at(op)] = &part_on;
  if (!fresh) return;
  part_on.assign(at(width_), -1);
  for (int32_t part = 0; part < width_; ++part) {
    const int32_t lane = layout_.device(op, part) - first;
    if (lane < 0 || lane >= width_ || part_on[at(lane)] >= 0) throw LanesDiffer{};
    part_on[at(lane)] = part;
  }
}

/// Checks that pipeline groups have equally many blocks of a source, in the same runs and order.
void SplitLowering::add_source_extents(int32_t op, Extents& extents) const {
  for (auto& of : extents) of.push_back(-1);
  for (const auto& home : layout_.homes(graph_.op(op).outputs[0])) {
    auto& of = extents[at(home.device % width_)];
    of.push_back(home.device / width_);
    add_lengths(home.block, of);
  }
}

/// Parts of a ring send to each other, so that they are in different classes.
void SplitLowering::add_ring_places(int32_t op, Extents& extents) const {
  if (ring_of(op).empty()) return;
  const auto& cut = layout_.cut(op);
  const auto s = at(cut.space().find("s"));
  for (size_t lane = 0; lane < extents.size(); ++lane)
    extents[lane].push_back(cut.coordinates(part_on(op, static_cast<int32_t>(lane)))[s]);
}

/// Checks that all pipeline groups read a tensor that they hold, or all read a piece of it, or all
/// read a tensor that none of them holds, which has to be gathered or exchanged (fetch()).
void SplitLowering::check_reads(int32_t op) {
  for (size_t k = 0; k < graph_.op(op).inputs.size(); ++k) {
    const int32_t tensor = graph_.op(op).inputs[k], from = graph_.tensor(tensor).producer;
    if (layout_.is_source(from)) continue;
    if (layout_.homes(tensor).size() != at(width_)) throw LanesDiffer{};
    if (*part_on_[at(op)] == *part_on_[at(from)] && layout_.reads_own_part(op, k)) continue;
    const auto [known, fresh] = checked_.try_emplace(read_of(op, k), false);
    if (fresh) {
      known->second = reads_of_others(op, k);
      if (known->second) check_pieces(op, k);
    }
    if (known->second) check_shared(op, k);
  }
}

bool SplitLowering::reads_of_others(int32_t op, size_t input) const {
  const int32_t tensor = graph_.op(op).inputs[input], from = graph_.tensor(tensor).producer;
  int32_t own = 0;
  for (int32_t lane = 0; lane < width_; ++lane) {
    const int32_t part = part_on(op, lane), home = part_on(from, lane);
    const Block& block = layout_.homes(tensor)[at(home)].block;
    if (layout_.needed(op, input, part) == block) ++own;
    if (block.empty() && part != home) throw LanesDiffer{};  // parts of one number match (fetch())
  }
  if (own > 0 && own < width_) throw LanesDiffer{};
  return own == 0;
}

/// Checks that a piece of a tensor that a pipeline group holds belongs to nothing else.
void SplitLowering::check_pieces(int32_t op, size_t input) const {
  const int32_t tensor = graph_.op(op).inputs[input], from = graph_.tensor(tensor).producer;
  const auto& homes = layout_.homes(tensor);
  int32_t within = 0;
  for (int32_t lane = 0; lane < width_; ++lane) {
    const Block& read = layout_.needed(op, input, part_on(op, lane));
    const Block& own = homes[at(part_on(from, lane))].block;
    if (!lies_in(read, own)) continue;
    ++within;
    for (const auto& home : homes)
      if (home.block != own && !is_empty(overlap(home.block, read))) throw LanesDiffer{};
  }
  if (within > 0 && within < width_) throw LanesDiffer{};
}

/// Checks that readers of a tensor share the operators made for one block of it in all pipeline
/// groups or in none.
void SplitLowering::check_shared(int32_t op, size_t input) {
  auto& readers = readers_[graph_.op(op).inputs[input]];
  for (const auto& [other, of] : readers) {
    if (read_of(op, input) == read_of(other, of)) return;
    int32_t equal = 0;
    for (int32_t lane = 0; lane < width_; ++lane)
      equal += layout_.needed(op, input, part_on(op, lane)) == layout_.needed(other, of, part_on(other, lane));
    if (equal == width_) return;
    if (equal > 0) throw LanesDiffer{};
  }
  readers.emplace_back(op, input);
}

/// Checks that a part follows another at the same distance as in the representative, and of its
/// class.
void SplitLowering::check_ring(int32_t op) const {
  const auto ring = ring_of(op);
  const auto before = [&](int32_t lane) {
    return layout_.device(op, ring[at(part_on(op, lane))]) % width_;
  };
  for (int32_t lane = 0; lane < width_ && !ring.empty(); ++lane) {
    const int32_t kind = lanes_[at(lane)], from = before(lane), made = before(kind);
    if (lanes_[at(from)] != made || from - lane != made - kind) throw LanesDiffer{};
  }
}

int32_t SplitLowering::axes_of(const Where& where) const {
  std::vector<int32_t> group_of(at(run_), -1);  // [pipeline group]
  for (const auto& [group, device] : where) group_of[at(device % run_)] = group;
  const auto same = [&](int32_t a, int32_t b) { return group_of[at(a)] == group_of[at(b)]; };
  const bool whole = tensor_ > 0 && std::ssize(where) == run_;
  const bool over_tensor = whole && tensor_ > 1 && same(0, 1);
  const bool over_context = whole && run_ > tensor_ && same(0, tensor_);
  const auto first = [&](int32_t lane) {  // of its group, if they are over these
    return (over_context ? 0 : lane / tensor_ * tensor_) + (over_tensor ? 0 : lane % tensor_);
  };
  bool fits = whole;
  for (int32_t lane = 0; lane < run_ && fits; ++lane) {
    fits = group_of[at(lane)] >= 0 && same(lane, first(lane));
    for (int32_t other = 0; first(lane) == lane && other < lane && fits; ++other)
      fits = first(other) != other || !same(lane, other);
  }
  if (!fits && width_ > 0) throw LanesDiffer{};
  return fits ? kOverTensor * over_tensor + kOverContext * over_context : -1;
}

int32_t SplitLowering::gather_axes(int32_t op, size_t input) {
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

int32_t SplitLowering::exchange_axes(int32_t op, size_t input) {
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

}  // namespace trinity
