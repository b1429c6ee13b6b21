#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "search/construct/list_schedule.h"
#include "search/placement/placement_space.h"
#include "search/placement/task_graph.h"

namespace trinity {

/// What speaks against a device for a unit, each a time in nanoseconds.
inline constexpr std::array<std::string_view, 15> kListTerms = {
    "queue",        // until the device has run what waits for it
    "arrival",      // until all that the operator reads is there
    "start",        // the later of both
    "time",         // of the operator
    "unit_time",    // of all operators of the unit
    "wires",        // of all that flows between the unit and placed ones on other devices
    "load",         // work of the units that the device has, over that of the device with least
    "overload",     // of that with this unit, what is above an equal share of all work
    "apart",        // tensors to readers whose other inputs come from other devices
    "siblings",     // work of the units there that read what this one reads
    "sends",        // until the device has sent what waits to be sent
    "unused",       // a twentieth of an equal share of all work, where the device has no unit
    "leaves_unit",  // the unit's time, where what it reads most of is elsewhere
    "leaves_mean",  // a mean unit's time, there
    "receives",     // wires of what the operator reads that is not on the device yet
};
/// What the weight of a term depends on; each about -1 to 1.
inline constexpr std::array<std::string_view, 7> kListCircumstances = {
    "always",
    "slack",        // of the operator, over the longest path: its length over that through it
    "progress",     // share of all work that is placed
    "parallelism",  // of the graph: log of work over the longest path without wires
    "devices",      // log of how many
    "wire_share",   // log of the unit's wires over its time
    "graph_wires",  // the same of all units
};
inline constexpr int32_t kListWeightCount =
    static_cast<int32_t>(kListTerms.size() * kListCircumstances.size());

/// List scheduling whose choice of devices is learned. Time runs as in the simulator: operators in
/// order of when what they read is there, first in first out on a device, one send queue a device.
/// The first operator of a unit that could run places it on the device of least cost, the sum over
/// terms of (term x sum over circumstances of (weight x circumstance)); ties: the lower device.
/// What it reads from other devices counts as sent when it was made. A device without room for the
/// unit's weights and activations is taken only where all are. Nothing is simulated; the makespan
/// is the schedule's own.
///
/// With weight 1 on (start, always) and (time, always) alone that is earliest finish time.
class LearnedList {
 public:
  explicit LearnedList(const Problem& problem);

  struct Result {
    Assignment assignment;  ///< the device of every unit
    int64_t makespan = 0;   ///< by the schedule itself
    bool fits = true;       ///< whether every unit found a device with room
    bool better(const Result& other) const {
      return fits != other.fits ? fits : makespan < other.makespan;
    }
  };
  /// `weights`: kListWeightCount numbers, those of a term together.
  Result build(std::span<const double> weights) const;

  /// All operators on the one device where they take least.
  Result alone() const;

  /// The best by its own schedule, of alone() and what each member (a row of weights) builds; ties:
  /// the earlier.
  Result best(std::span<const std::vector<double>> members) const;

 private:
  friend class LearnedListRun;
  void bind_units();
  void bind_memory();
  void bind_graph();

  PlacementSpace space_;
  TaskGraph graph_;
  std::vector<int32_t> awaited_;                 // inputs of every operator that do not follow
  std::vector<double> slack_;                    // of every operator
  std::vector<double> unit_time_, wire_share_;   // of every unit: mean time; circumstance
  std::vector<int64_t> unit_bytes_;              // of every unit: weights and activations
  std::vector<int64_t> passing_bytes_;           // and the most that an operator adds for a while
  std::vector<bool> kept_;                       // of every output: until a gradient reads it
  std::vector<std::vector<int32_t>> readers_;    // units that read a unit's forward operators
  std::vector<std::vector<int32_t>> producers_;  // and the reverse
  double work_ = 0, parallelism_ = 0, graph_wires_ = 0, share_ = 0;
};

}  // namespace trinity
