#pragma once

#include "strategy/split/split_parts.h"

namespace trinity {

/// Finds the pipeline groups that do the same (strategy/splits.h, `lower_lanes()`), so that one per class is built.
class SplitLanes : protected SplitParts {
 public:
  using SplitParts::SplitParts;

 protected:
  using Extents = std::vector<std::vector<int64_t>>;  // by pipeline group
  /// The tensors that parts on some devices read of a tensor in some homes.
  using Read = std::tuple<const std::vector<Home>*, const Blocks*, const std::vector<int32_t>*>;

  /// The cost of a part depends on the lengths of its blocks, which are equal (SplitOptions::tensor),
  /// and in rings on whose keys it has; check_reads() verifies that its inputs are the same in all
  /// pipeline groups.
  void find_lanes() {
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
      if (lanes_[at(lane)] != lanes_[at(lane - lane % tensor_)]) throw LanesDiffer{};
    for (int32_t op = 0; op < graph_.operator_count(); ++op)
      if (!layout_.is_source(op)) check_ring(op);
  }

  /// One on each device of a run; the first pipeline group has the first.
  void find_parts(int32_t op) {
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
  void add_source_extents(int32_t op, Extents& extents) const {
    for (auto& of : extents) of.push_back(-1);
    for (const auto& home : layout_.homes(graph_.op(op).outputs[0])) {
      auto& of = extents[at(home.device % width_)];
      of.push_back(home.device / width_);
      for (const auto& range : home.block) of.push_back(range.length());
    }
  }

  /// Parts of a ring send to each other, so that they are in different classes.
  void add_ring_places(int32_t op, Extents& extents) const {
    if (ring_of(op).empty()) return;
    const auto& cut = layout_.cut(op);
    const auto s = at(cut.space().find("s"));
    for (size_t lane = 0; lane < extents.size(); ++lane)
      extents[lane].push_back(cut.coordinates(part_on(op, static_cast<int32_t>(lane)))[s]);
  }

  /// Checks that all pipeline groups read a tensor that they hold, or all read a piece of it, or all
  /// read a tensor that none of them holds, which has to be gathered or exchanged (fetch()).
  void check_reads(int32_t op) {
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

  /// True if no pipeline group holds the tensor that it reads as an input.
  bool reads_of_others(int32_t op, size_t input) const {
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
  void check_pieces(int32_t op, size_t input) const {
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
  void check_shared(int32_t op, size_t input) {
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
  void check_ring(int32_t op) const {
    const auto ring = ring_of(op);
    const auto before = [&](int32_t lane) {
      return layout_.device(op, ring[at(part_on(op, lane))]) % width_;
    };
    for (int32_t lane = 0; lane < width_ && !ring.empty(); ++lane) {
      const int32_t kind = lanes_[at(lane)], from = before(lane), made = before(kind);
      if (lanes_[at(from)] != made || from - lane != made - kind) throw LanesDiffer{};
    }
  }

  /// For every part of an attention in a ring the part before it; empty if it is not in a ring.
  std::vector<int32_t> ring_of(int32_t op) const {
    const auto& cut = layout_.cut(op);
    if (!is_ring(graph_.op(op))) return {};
    const int32_t s = cut.space().find("s"), length = s < 0 ? 1 : cut.factors()[s];
    if (length < 2) return {};
    const auto group = cut.groups({s});
    std::vector<int32_t> before(at(cut.parts()), -1);
    for (int32_t part = 0; part < cut.parts(); ++part)
      for (int32_t other = 0; other < cut.parts(); ++other)
        if (group[part] == group[other] &&
            (cut.coordinates(other)[s] + 1) % length == cut.coordinates(part)[s])
          before[part] = other;
    return before;
  }

  int32_t ring_length(int32_t op) const {
    const auto& cut = layout_.cut(op);
    return cut.factors()[cut.space().find("s")];
  }

  int32_t part_on(int32_t op, int32_t lane) const { return (*part_on_[at(op)])[at(lane)]; }

  Read read_of(int32_t op, size_t input) const {
    return {&layout_.homes(graph_.op(op).inputs[input]), &layout_.reads(op, input),
            &layout_.devices(op)};
  }

 private:
  std::map<const std::vector<int32_t>*, std::vector<int32_t>> parts_on_;  // [devices of an operator][pipeline group]
  std::vector<const std::vector<int32_t>*> part_on_;      // [operator]: its list in parts_on_
  std::map<Read, bool> checked_;  // check_reads(): results of reads_of_others()
  std::map<int32_t, std::vector<std::pair<int32_t, size_t>>> readers_;  // check_shared(), by tensor
};

}  // namespace trinity
