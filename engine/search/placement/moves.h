#pragma once

#include <memory>
#include <optional>

#include "base/random.h"
#include "search/placement/blame.h"
#include "search/placement/placement_space.h"
#include "search/placement/unit_groups.h"
#include "simulator/simulator.h"

namespace trinity {

/// A change of an assignment: all `units` move to `device`; the two units of a swap exchange their
/// devices.
struct Move {
  enum class Kind : uint8_t { unit, cluster, chain, range, group, swap };
  Kind kind = Kind::unit;
  int32_t device = 0;
  std::vector<int32_t> units;

  void apply(Assignment& assignment) const;
};

/// Proposes moves in place of Moves. Called by one thread at a time.
class MoveSource {
 public:
  virtual ~MoveSource() = default;
  /// Writes units and device of a move of `assignment`. seed: the unit to build it around. Returns
  /// false to let Moves generate a move.
  virtual bool draw(int32_t seed, const Assignment& assignment, Move& move) = 0;
};

/// Distribution of moves.
struct MoveMix {
  /// one seed unit in this many is uniform, the others follow Moves::focus()
  int32_t evenly_one_in = 2;
  bool groups = false;        ///< one move in eight takes a group of UnitGroups
  std::shared_ptr<MoveSource> source = nullptr;  ///< asked first for each move; null: none
};

/// Random changes of an assignment, used by annealing and local search. A move builds a set of
/// units, all on one device, around a seed unit and moves it to another device:
///   unit     the seed alone;
///   cluster  the seed and units connected to it by the most bytes, up to a random size;
///   chain    the seed and its successors or predecessors without a fork or join;
///   range    the seed and the next units in topological order, on whatever device;
///   swap     the seed and another unit exchange devices;
///   group    a group of UnitGroups around the seed, of any level, on whatever devices (with
///            MoveMix::groups).
/// Sizes are log-uniform. The destination is a neighbour's device or any other device with equal
/// probability. Not thread-safe, except blame().
class Moves {
 public:
  Moves(const PlacementSpace& space, RandomStream random, const MoveMix& mix = {});

  /// Critical-path attribution of `assignment`, from one simulation (first in, first out, one
  /// micro-batch). Other threads may sample moves meanwhile.
  Blame blame(const Assignment& assignment);
  /// From now on half of all seed units (see MoveMix) are sampled by Blame::total().
  void focus(const Blame& blame);

  /// Generates a move of `assignment`; it changes something unless there is only one device. The
  /// reference is valid until the next call.
  const Move& draw(const Assignment& assignment);
  /// Generates a move that is not a swap, of at most `most` units except for the moves of
  /// MoveMix::source.
  const Move& draw_set(const Assignment& assignment, int32_t most);
  /// Generates a move and applies it.
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
  std::optional<UnitGroups> groups_;  // if the mix has groups and the graph has any
  Simulator simulator_;
  std::vector<std::vector<int32_t>> before_, after_;  // units that a unit reads, and its readers
  std::vector<double> blame_;  // cumulative, per unit; empty before focus()
  Move move_;
  std::vector<PlacementSpace::Neighbour> beside_;  // neighbours of the chosen units
  std::vector<char> in_picked_;
};

}  // namespace trinity
