#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/thread_pool.h"
#include "simulator/mesh/fewer_layers.h"
#include "simulator/mesh/layer_fold.h"
#include "simulator/problem.h"
#include "strategy/lower.h"

namespace trinity {

/// A lowered replica of a reduced model, and the pipeline groups of the whole replica.
struct FewLayersReplica {
  LoweredReplica replica;
  ReplicaLanes lanes;
};

/// A lowered reduced model, from which meshes that differ in their number of stages and of layers
/// per stage are expanded.
struct FewLayersLowered {
  int32_t layers = 0;
  FoldRuns runs;
  std::shared_ptr<const FewLayersReplica> one;
  LoweredCopies copies;
  std::unique_ptr<Problem> problem;
};

/// A mesh of equivalent layers that was lowered by a reduced model.
struct FoldedMesh {
  std::shared_ptr<const FewLayersLowered> few;
  std::unique_ptr<LayerFold> fold;
  std::vector<int32_t> home, home_rank;  ///< as in LoweredReplica
};

/// Lowers meshes by reduced models (few layers and stages), and caches these. Thread-safe.
class FoldedMeshes {
 public:
  explicit FoldedMeshes(std::shared_ptr<const Problem> problem) : problem_(std::move(problem)) {}

  /// Selects the replicas and devices of the full mesh that run.
  using Runs = std::function<FoldRuns(const ReplicaLanes& lanes)>;

  /// Returns null if layers, stages or pipeline groups are not equivalent. `given` has passed
  /// check_mesh(). Throws the errors of lower_replica() and Problem for the reduced model, without
  /// operator names.
  std::shared_ptr<const FoldedMesh> make(const Parallelism& given, const Runs& runs);

 private:
  struct Key {
    Parallelism of;
    int32_t layers = 0;
    FoldRuns runs;  // for a replica only its `parts`
    bool operator==(const Key&) const = default;
  };
  std::shared_ptr<const FewLayersReplica> one(const Parallelism& of, int32_t layers,
                                              const std::vector<int32_t>& parts);
  std::shared_ptr<const FewLayersLowered> few(const Parallelism& of, int32_t layers,
                                              const FoldRuns& runs);
  std::shared_ptr<const FewLayersReplica> lower_one(const Key& key);
  LaneParts& parts_of(int32_t layers);
  std::shared_ptr<const FoldedMesh> make(const Parallelism& given, const FoldSizes& sizes,
                                         const Runs& runs, const std::vector<int32_t>& guess);
  std::vector<int32_t> guessed(const Parallelism& given, const std::vector<FoldSizes>& all_sizes,
                               const Runs& runs);
  std::vector<int32_t> home(const Parallelism& given) const;

  static constexpr int64_t kMostFew = 32;

  std::shared_ptr<const Problem> problem_;
  std::once_flag once_;
  std::shared_ptr<FewerLayers> layers_;  // made once
  Latest<Key, const FewLayersReplica> ones_{kMostFew};
  Latest<Key, const FewLayersLowered> few_{kMostFew};
  std::mutex mutex_;                     // guards parts_
  std::map<int32_t, LaneParts> parts_;   // by number of layers
};

}  // namespace trinity
