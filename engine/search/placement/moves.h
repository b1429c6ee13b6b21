#pragma once

#include <memory>
#include <optional>

#include "base/random.h"
#include "search/placement/blame.h"
#include "search/placement/placement_space.h"
#include "search/placement/unit_groups.h"
#include "simulator/simulator.h"

namespace trinity {

/// A change of an assignment: all `units` go to `device`; of a swap there are two, which exchange
/// their devices.
struct Move {
  enum class Kind : uint8_t { unit, cluster, chain, range, group, swap };
  Kind kind = Kind::unit;
  int32_t device = 0;
  std::vector<int32_t> units;

  void apply(Assignment& assignment) const;
};

/// Gives moves in place of those of Moves.
class MoveSource {
 public:
  virtual ~MoveSource() = default;
  /// Writes the units and the device of a move of `assignment`. seed: a unit, drawn as Moves draws
  /// them. False: Moves shall draw a move around it.
  virtual bool draw(int32_t seed, const Assignment& assignment, Move& move) = 0;
};

/// What moves are drawn from.
struct MoveMix {
  int32_t evenly_one_in = 2;  ///< one seed in so many is drawn evenly, others by Moves::focus()
  bool groups = false;        ///< whether one move in eight takes a group of UnitGroups
  std::shared_ptr<MoveSource> source = nullptr;  ///< asked for each move first; null: none
};

/// Random changes of an assignment, shared by annealing and local search. A move takes a seed unit
/// and gives a set of units around it, all on the seed's device, to another device:
///   unit     the seed alone;
///   cluster  the seed and what hangs together with it by the most bytes, up to a random size;
///   chain    the seed and what follows or precedes it without a fork or a join;
///   range    the seed and the next units in topological order, whatever their device;
///   swap     the seed and another unit exchange devices;
///   group    a group of UnitGroups around the seed, of any level, whatever the devices of its
///            units (with MoveMix::groups).
/// Sizes are drawn so that every order of magnitude is equally likely. The destination is as often
/// the device of a neighbour as any.
class Moves {
 public:
  Moves(const PlacementSpace& space, RandomStream random, const MoveMix& mix = {});

  /// The blame of the step of `assignment`, which it simulates once (first in first out, one
  /// micro-batch). Another thread may draw moves meanwhile.
  Blame blame(const Assignment& assignment);
  /// From now on half of all seeds (see MoveMix) are drawn by Blame::total().
  void focus(const Blame& blame);

  /// Draws a move of `assignment`; it changes nothing only where there is one device. The
  /// reference lives until the next call.
  const Move& draw(const Assignment& assignment);
  /// Draws one that is no swap, of at most `most` units but for those of MoveMix::source.
  const Move& draw_set(const Assignment& assignment, int32_t most);
  /// Draws a move and makes it.
  void apply(Assignment& assignment) { draw(assignment).apply(assignment); }

  RandomStream& random() { return random_; }
  const MoveMix& mix() const { return mix_; }

 private:
  void cluster(int32_t seed, int32_t size, const Assignment& assignment);
  void chain(int32_t seed, int32_t size, const Assignment& assignment);
  void range(int32_t seed, int32_t size);
  int32_t draw_seed();
  int32_t draw_size(int32_t most);
  int32_t draw_device(const Assignment& assignment, int32_t home);
  bool swap(int32_t seed, const Assignment& assignment);
  bool pick_group(int32_t seed, int32_t most);
  void pick(int32_t seed, const Assignment& assignment, int32_t most);
  bool from_source(int32_t seed, const Assignment& assignment);
  const Move& set_around(int32_t seed, const Assignment& assignment, int32_t most);

  const PlacementSpace& space_;
  RandomStream random_;
  MoveMix mix_;
  std::optional<UnitGroups> groups_;  // where the mix has them and the graph any
  Simulator simulator_;
  std::vector<std::vector<int32_t>> before_, after_;  // units that a unit reads, and its readers
  std::vector<double> blame_;  // per unit, summed up to it; empty before focus()
  Move move_;
  std::vector<PlacementSpace::Neighbour> beside_;  // units beside the picked ones
  std::vector<char> in_picked_;
};

}  // namespace trinity
