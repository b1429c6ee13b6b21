#pragma once

#include "search/placement/blame.h"
#include "search/placement/placement_space.h"
#include "simulator/simulator.h"

namespace trinity {

/// Analysis of the step of one assignment, as input for shortening it: per unit, per unit and
/// device, per edge between units, per device. All times in ns. Simulated first in, first out, with
/// one micro-batch. Not thread-safe.
class StepState {
 public:
  /// with_memory: compute Unit::peak_bytes.
  explicit StepState(const PlacementSpace& space, bool with_memory = false);

  /// Simulates `assignment` once; all other members then describe it.
  void refresh(const Assignment& assignment);

  struct Unit {
    double wait_ns = 0;   ///< sum over its operators of start minus ready time
    double slack_ns = 0;  ///< minimum slack of its operators, all else unchanged
    double tight_ns = 0;  ///< time of its operators with a slack below 1 % of the step
    double peak_bytes = 0;  ///< bytes held at its device's memory peak, without copies
  };
  struct Edge {
    double room_ns = 0;      ///< slack: additional transfer time without effect
    double critical_ns = 0;  ///< of its transfers on the critical path, including queueing
  };
  struct Device {
    double busy_ns = 0;
    double memory_bytes = 0;  ///< peak
  };

  double step_ns() const { return step_ns_; }
  const Blame& blame() const { return blame_; }
  /// Time by which an operator may end later without effect, all else unchanged.
  int64_t slack_ns(int32_t op) const { return latest_ns_[op] - timeline_.end_ns[op]; }
  const Unit& unit(int32_t u) const { return units_[u]; }
  const Device& device(int32_t d) const { return devices_[d]; }
  double mean_busy_ns() const { return mean_busy_ns_; }
  /// The unit's time on `device` x the fraction of the time for which that device is busy: while
  /// the unit runs (collision), and from when its operators are ready to when they must have ended
  /// (crowd).
  double collision_ns(int32_t unit, int32_t device) const { return shares(unit, device).collision; }
  double crowd_ns(int32_t unit, int32_t device) const { return shares(unit, device).crowd; }

  /// An edge of the unit graph as seen from one end.
  struct Incident {
    int32_t unit;  ///< the other end
    int32_t edge;
    bool out;  ///< the other end reads
  };
  std::span<const Incident> incident(int32_t unit) const {
    const auto first = static_cast<size_t>(first_incident_[unit]);
    const auto last = static_cast<size_t>(first_incident_[static_cast<size_t>(unit) + 1]);
    return {incidents_.data() + first, last - first};
  }
  const Edge& edge(int32_t edge) const { return edges_[edge]; }
  /// Time of a transfer of the edge's bytes without contention.
  double wire_ns(int32_t edge, int32_t from, int32_t to) const {
    const size_t pair = static_cast<size_t>(from) * devices_.size() + static_cast<size_t>(to);
    if (wire_ns_.empty())
      return static_cast<double>(
          space_.problem().wire_ns(from, to, space_.graph().edges[edge].bytes));
    return wire_ns_[static_cast<size_t>(edge) * wire_kinds_ + wire_kind_[pair]];
  }

  const PlacementSpace& space() const { return space_; }

 private:
  static constexpr int32_t kBins = 128;  // per step
  struct Shares {
    float collision = 0, crowd = 0;  // in ns
  };
  const Shares& shares(int32_t unit, int32_t device) const {
    return shares_[static_cast<size_t>(unit) * static_cast<size_t>(space_.devices()) +
                   static_cast<size_t>(device)];
  }

  void bind_edges();
  void bind_wires();
  void sort_tasks(std::span<const int32_t> placement);
  void index_transfers();
  int32_t transfer(int32_t output, int32_t to) const;
  void read_slack(std::span<const int32_t> placement);
  void read_units(std::span<const int32_t> placement);
  void read_busy(std::span<const int32_t> placement);
  void read_memory(std::span<const int32_t> placement);
  struct Point {
    int32_t bin;
    float share;  // fraction of the bin before the point
  };
  Point point(double time_ns) const;
  float busy_until(int32_t device, Point point) const;
  void read_shares(std::span<const int32_t> placement);
  void read_critical_transfers(const CriticalPath& path);

  const PlacementSpace& space_;
  bool with_memory_;
  Simulator simulator_;
  Metrics metrics_;
  Timeline timeline_;
  Blame blame_;
  double step_ns_ = 0, mean_busy_ns_ = 0;
  std::vector<Unit> units_;
  std::vector<Edge> edges_;
  std::vector<Device> devices_;
  std::vector<Shares> shares_;  // [unit][device]
  std::vector<Incident> incidents_;
  std::vector<int32_t> first_incident_, edge_of_;  // edge_of_: per edge of the problem, or -1
  size_t wire_kinds_ = 0;  // classes of device pairs by latency and bandwidth
  std::vector<uint32_t> wire_kind_;                // [from][to]
  std::vector<double> wire_ns_;                    // [edge][class]; empty: too many
  std::vector<int32_t> order_, next_;  // operators by start; next operator on the device
  std::vector<int64_t> latest_ns_;                 // per operator: latest end
  // per output; per transfer: next of its output
  std::vector<int32_t> first_transfer_, next_transfer_;
  std::vector<float> busy_;                              // [device][bin]: busy time until its start
};

}  // namespace trinity
