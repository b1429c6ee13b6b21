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

/// One replica of few layers: what of it runs, and the lanes of all of it.
struct FewLayersReplica {
  LoweredReplica replica;
  ReplicaLanes lanes;
};

/// What meshes that differ in their number of stages and of layers in a stage are unfolded from.
struct FewLayersLowered {
  int32_t layers = 0;
  FoldRuns runs;
  std::shared_ptr<const FewLayersReplica> one;
  LoweredCopies copies;
  std::unique_ptr<Problem> problem;
};

/// A mesh of equal layers, of which a few were lowered.
struct FoldedMesh {
  std::shared_ptr<const FewLayersLowered> few;
  std::unique_ptr<LayerFold> fold;
  std::vector<int32_t> home, home_rank;  ///< as LoweredReplica has them
};

/// Lowers meshes by few of their layers and stages, and keeps those few. Thread-safe.
class FoldedMeshes {
 public:
  explicit FoldedMeshes(std::shared_ptr<const Problem> problem) : problem_(std::move(problem)) {}

  /// What of a mesh of all stages runs.
  using Runs = std::function<FoldRuns(const ReplicaLanes& lanes)>;

  /// Nothing where layers or stages differ, or lanes do. given: what check_mesh() takes. Throws what
  /// lower_replica() and Problem throw, of few layers without names.
  std::shared_ptr<const FoldedMesh> make(const Parallelism& given, const Runs& runs);

 private:
  struct Key {
    Parallelism of;
    int32_t layers = 0;
    FoldRuns runs;  // of a replica its `parts` alone
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
  std::mutex mutex_;                     // of what follows
  std::map<int32_t, LaneParts> parts_;   // by the number of layers
};

}  // namespace trinity
