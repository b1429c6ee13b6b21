#include <algorithm>
#include <bit>

#include "strategy/split/split_lowering.h"

// Which lanes do the same (strategy/splits.h, lower_lanes()), so that one of each kind is made.

namespace trinity {
namespace {

void add_lengths(const Block& block, std::vector<int64_t>& to) {
  for (const auto& range : block) to.push_back(range.length());
}

}  // namespace

/// What a part costs goes by the lengths of its blocks alone. Where all of an operator's are equal
/// each reads as the first does; where some are not, check_reads() has to say so.
void SplitLowering::find_lanes() {
  if (!graph_.collectives().empty()) throw LanesDiffer{};
  std::vector<bool> uneven(at(graph_.operator_count()), false);
  Extents extents(at(width_));
  for (int32_t op = 0; op < graph_.operator_count(); ++op) {
    if (layout_.is_source(op)) continue;
    check_devices(op);
    uneven[at(op)] = !layout_.even(op);
    if (uneven[at(op)]) add_extents(op, extents);
  }
  const bool alike = std::find(uneven.begin(), uneven.end(), true) == uneven.end();
  for (int32_t op = 0; op < graph_.operator_count() && !alike; ++op)
    layout_.is_source(op) ? add_source_extents(op, extents) : check_reads(op, uneven);
  for (const auto& lane : extents)
    lanes_.push_back(static_cast<int32_t>(std::find(extents.begin(), extents.end(), lane) -
                                          extents.begin()));
}

void SplitLowering::check_devices(int32_t op) const {
  if (layout_.cut(op).parts() != width_ || layout_.device(op, 0) % width_ != 0 ||
      layout_.reads_window(op) || !ring_of(op).empty())
    throw LanesDiffer{};
  for (int32_t part = 0; part < width_; ++part)
    if (layout_.device(op, part) != layout_.device(op, 0) + part) throw LanesDiffer{};
}

/// All that part_of(), restate_traffic() and rows() go by.
void SplitLowering::add_extents(int32_t op, Extents& extents) const {
  const auto& about = graph_.op(op);
  const auto& cut = layout_.cut(op);
  const auto& parameters = graph_.op(layout_.leader(op)).parameters;
  for (int32_t part = 0; part < width_; ++part) {
    auto& of = extents[at(part)];
    of.push_back(std::bit_cast<int64_t>(cut.share(part)));
    for (size_t k = 0; k < about.inputs.size(); ++k) add_lengths(layout_.needed(op, k, part), of);
    for (size_t o = 0; o < about.outputs.size(); ++o) add_lengths(layout_.written(op, o, part), of);
    for (size_t i = 0; i < parameters.size(); ++i)
      add_lengths(cut.block(parameters[i].shape, cut.space().parameters[i], part), of);
  }
}

/// Lanes have as many blocks of a source, in the same runs and order.
void SplitLowering::add_source_extents(int32_t op, Extents& extents) const {
  for (auto& of : extents) of.push_back(-1);
  for (const auto& home : layout_.homes(graph_.op(op).outputs[0])) {
    auto& of = extents[at(home.device % width_)];
    of.push_back(home.device / width_);
    add_lengths(home.block, of);
  }
}

/// Of a tensor that is in unequal parts, or read in such, all parts read what their own lane holds,
/// or all read the same of which no lane holds all.
void SplitLowering::check_reads(int32_t op, const std::vector<bool>& uneven) const {
  for (size_t k = 0; k < graph_.op(op).inputs.size(); ++k) {
    const int32_t tensor = graph_.op(op).inputs[k], from = graph_.tensor(tensor).producer;
    if (layout_.is_source(from) || (!uneven[at(op)] && !uneven[at(from)])) continue;
    const auto& homes = layout_.homes(tensor);
    if (homes.size() != at(width_)) throw LanesDiffer{};
    const Block first = layout_.needed(op, k, 0);
    bool own = true, whole = true;
    for (int32_t part = 0; part < width_; ++part) {
      const Block needed = layout_.needed(op, k, part);
      const bool holds = needed == homes[at(part)].block;
      own = own && holds;
      whole = whole && !holds && needed == first;
    }
    if (!own && !whole) throw LanesDiffer{};
  }
}

/// Lanes meet in collectives alone.
void SplitLowering::check_lanes_apart(const Lowered& lowered) const {
  for (int32_t op = 0; op < lowered.graph.operator_count(); ++op)
    for (const int32_t input : lowered.graph.op(op).inputs)
      if (lowered.placement[at(op)] % width_ !=
          lowered.placement[at(lowered.graph.tensor(input).producer)] % width_)
        throw LanesDiffer{};
}

}  // namespace trinity
