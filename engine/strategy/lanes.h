#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "strategy/lower.h"

namespace trinity {

/// The devices of one replica of a mesh in pipeline groups (`lane`): devices that send tensors to
/// each other are in one group; between groups there are only collectives. Groups do the same in the
/// same order if they are in one equivalence class (`kind`), by LoweredGraph::lanes. Immutable after construction.
class ReplicaLanes {
 public:
  struct Lane {
    int32_t kind = 0;               ///< the first lane that does the same
    std::vector<int32_t> devices;   ///< of the replica, ascending
    /// Devices of which one sends to the other, in order of the first operator that reads.
    std::vector<std::pair<int32_t, int32_t>> sends;
    /// Its collectives, each once, in order of their number; collectives between replicas last.
    std::vector<int32_t> groups;
  };

  /// `whole`: all devices are one pipeline group.
  ReplicaLanes(const LoweredGraph& replica, bool whole);

  const std::vector<Lane>& lanes() const { return lanes_; }
  int32_t lane_of(int32_t device) const { return lane_of_[device]; }
  /// The position of a device in its pipeline group.
  int32_t place_of(int32_t device) const { return place_of_[device]; }
  /// Devices between which there are collectives: each list once, ascending.
  const std::vector<std::vector<int32_t>>& groups() const { return groups_; }
  /// The first group whose collectives join the copies in all replicas (LoweredGraph::joined).
  int32_t first_joined() const {
    return first_joined_ < 0 ? static_cast<int32_t>(groups_.size()) : first_joined_;
  }
  /// The group of these that a device is in.
  int32_t joined_of(int32_t device) const {
    return first_joined_ + device / place_ * parts_ + device % parts_;
  }
  /// The group of a collective, or of the one that repeats it on a device of the same class (repeated()).
  int32_t group_of(int32_t collective, int32_t device) const;
  /// Whether collectives between replicas join copies of one device, not of a group that joins replicas.
  bool joins_copies(LoweredGraph::Among among) const { return joins_copies_[static_cast<size_t>(among)]; }
  bool exchanges() const { return exchanges_; }  ///< whether one of them is an all-to-all
  /// Everything but operators, as numbers: equal lists mean equal pipeline groups, groups and
  /// sends.
  std::vector<int32_t> outline() const;

 private:
  static constexpr int32_t kJoined = -2;  // axes of collectives that join the copies in all replicas

  void find_lanes(const LoweredGraph& replica, bool whole);
  void find_groups(const LoweredGraph& replica);
  void add_joined(const LoweredGraph& replica);
  void find_joined_copies(const LoweredGraph& replica);
  int32_t add_group(std::vector<int32_t> devices);
  int32_t add_over(int32_t device, int32_t axes);
  int32_t add_alike(const std::vector<int32_t>& group);
  void note(int32_t device, int32_t group);

  std::vector<Lane> lanes_;
  std::vector<int32_t> lane_of_, place_of_;           // per device
  std::vector<std::vector<int32_t>> groups_;
  std::map<std::vector<int32_t>, int32_t> known_;     // their numbers
  std::array<std::vector<int32_t>, 4> over_;          // [axes][device]: its group over them; -1: not added
  std::vector<int32_t> axes_;                         // per collective; -1: none, kJoined
  std::vector<int32_t> group_of_;                     // per collective
  std::vector<int32_t> kinds_;                        // LoweredGraph::lanes
  int32_t width_ = 1;
  int32_t place_ = 1;          // devices that share an operator: `context` x `tensor`
  int32_t parts_ = 1;          // `tensor`
  int32_t first_joined_ = -1;  // -1: no group joins replicas
  bool exchanges_ = false;
  std::array<bool, 3> joins_copies_ = {true, true, true};  // [LoweredGraph::Among]
};

}  // namespace trinity
