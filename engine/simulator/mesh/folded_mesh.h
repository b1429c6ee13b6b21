#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "simulator/mesh/fewer_layers.h"
#include "simulator/mesh/layer_fold.h"
#include "simulator/problem.h"
#include "strategy/lower.h"

namespace trinity {

/// What meshes that differ in their number of stages and of layers in a stage are unfolded from.
struct FewLayersLowered {
  Parallelism of;
  int32_t layers = 0;
  FoldRuns runs;  // no replicas: the lanes alone
  std::shared_ptr<const LoweredReplica> replica;  // what of it runs
  std::shared_ptr<const ReplicaLanes> lanes;
  LoweredCopies copies;
  std::unique_ptr<Problem> problem;  // nothing where it is not lowered
};

/// A mesh of equal layers, of which a few were lowered.
struct FoldedMesh {
  std::shared_ptr<const FewLayersLowered> few;
  std::unique_ptr<LayerFold> fold;
  std::vector<int32_t> home, home_rank;  ///< as LoweredReplica has them
};

/// Lowers meshes by few of their layers and stages, and keeps those few. For one thread.
class FoldedMeshes {
 public:
  explicit FoldedMeshes(std::shared_ptr<const Problem> problem) : problem_(std::move(problem)) {}

  /// What of a mesh of all stages runs.
  using Runs = std::function<FoldRuns(const ReplicaLanes& lanes)>;

  /// Nothing where layers or stages differ, or lanes do. given: what check_mesh() takes.
  std::shared_ptr<const FoldedMesh> make(const Parallelism& given, const Runs& runs);

 private:
  std::shared_ptr<const FewLayersLowered> few(const Parallelism& of, int32_t layers,
                                              const FoldRuns& runs);
  std::shared_ptr<const FewLayersLowered> lower(const Parallelism& of, int32_t layers,
                                                const FoldRuns& runs);
  void lower_replica_of(FewLayersLowered& made);
  std::shared_ptr<const FoldedMesh> make(const Parallelism& given, const FoldSizes& sizes,
                                         const Runs& runs, const FoldRuns& guess);
  FoldRuns guessed(const Parallelism& given, const std::vector<FoldSizes>& all_sizes,
                   const Runs& runs);
  std::vector<int32_t> home(const Parallelism& given) const;

  static constexpr size_t kMostFew = 32;

  std::shared_ptr<const Problem> problem_;
  std::shared_ptr<FewerLayers> layers_;
  std::map<int32_t, LaneParts> parts_;  // by the number of layers
  std::list<std::shared_ptr<const FewLayersLowered>> few_;  // the latest first
};

}  // namespace trinity
