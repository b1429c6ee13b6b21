#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "strategy/lanes.h"

namespace trinity {

/// Pipeline groups (one per tensor/context rank of a replica, across its stages) of a mesh with
/// many stages, derived from a mesh with few. The inner stages must send each other the same and
/// have the same groups. Immutable after make().
class LaneFold {
 public:
  /// Returns none if the inner stages differ, or if a pipeline group has other device indices in
  /// one stage than in another. few_stages, stages: numbers of stages of both meshes; equal numbers
  /// map one to one. mesh: any mesh with the same devices per stage. parts: device indices in a
  /// stage that run, ascending; empty: the first pipeline group of each class.
  static std::optional<LaneFold> make(const ReplicaLanes& few, const Mesh& mesh,
                                      int32_t few_stages, int32_t stages,
                                      const std::vector<int32_t>& parts = {});

  ReplicaLanes lanes(const Mesh& mesh) const {
    return ReplicaLanes(mesh, lanes_, groups_, first_joined_, exchanges_);
  }
  /// Device indices in a stage that run, ascending.
  const std::vector<int32_t>& parts() const { return parts_; }
  /// Group index in lanes() of a reduced group in a stage (or of the one group, if it spans several
  /// stages).
  int32_t group(int32_t few, int32_t stage) const {
    const auto& of = group_of_[at_stage_[static_cast<size_t>(few)]];
    return of[of.size() == 1 ? 0 : static_cast<size_t>(stage)];
  }
  /// True if two reduced groups join the same devices of their stages.
  bool alike(int32_t a, int32_t b) const {
    return at_stage_[static_cast<size_t>(a)] == at_stage_[static_cast<size_t>(b)];
  }
  /// As ReplicaLanes::joined_of().
  int32_t joined(int32_t stage, int32_t part) const {
    return first_joined_ + stage * tensor_ + part % tensor_;
  }

 private:
  LaneFold(const ReplicaLanes& few, const Mesh& mesh, int32_t few_stages, int32_t stages)
      : width_(mesh.width()), tensor_(mesh.tensor), few_stages_(few_stages), stages_(stages),
        exchanges_(few.exchanges()) {}

  bool find_lanes(const ReplicaLanes& few);
  bool find_sends(const ReplicaLanes::Lane& few, ReplicaLanes::Lane& lane) const;
  bool find_groups(const ReplicaLanes& few);
  void add_inside(const std::vector<int32_t>& parts, int32_t few_stage, std::vector<int32_t>& of);
  bool add_across(std::vector<int32_t> devices, std::vector<int32_t>& of);
  int32_t add_group(std::vector<int32_t> devices);
  void add_joined();
  /// Stage of the full mesh that a reduced stage maps to; -1 for inner stages, which have many.
  int32_t many_stage(int32_t few) const {
    if (few_stages_ == stages_ || few == 0) return few;
    return few == few_stages_ - 1 ? stages_ - 1 : -1;
  }

  int32_t width_, tensor_, few_stages_, stages_;
  bool exchanges_;
  int32_t first_joined_ = -1;
  std::vector<ReplicaLanes::Lane> lanes_;
  std::vector<int32_t> parts_, lane_of_part_;
  std::vector<std::vector<int32_t>> groups_;
  std::vector<size_t> at_stage_;                // per reduced group: index in group_of_
  std::vector<std::vector<int32_t>> group_of_;  // by stage, or one entry
};

}  // namespace trinity
