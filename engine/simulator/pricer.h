#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "base/thread_pool.h"
#include "simulator/batch.h"
#include "simulator/symmetry.h"
#include "strategy/lower.h"

namespace trinity {

/// A strategy that is ready to be simulated.
struct BoundStrategy {
  std::shared_ptr<const LoweredGraph> made;
  std::shared_ptr<const Problem> problem;  ///< problem of the lowered graph
  Arrangement arranged;
};

/// Cache of the latest simulation results of strategies, limited in bytes. Thread-safe.
class PriceCache {
 public:
  explicit PriceCache(size_t most_bytes) : most_bytes_(most_bytes) {}

  /// Fills `metrics` and returns true if the strategy is cached.
  bool find(const Strategy& strategy, Metrics& metrics);
  void add(const Strategy& strategy, const Metrics& metrics);

 private:
  struct Hash {
    size_t operator()(const Strategy& strategy) const { return hash_value(strategy); }
  };

  size_t most_bytes_, bytes_ = 0;
  std::mutex mutex_;
  std::unordered_map<Strategy, Metrics, Hash> prices_;
  std::deque<const Strategy*> oldest_;  // keys of `prices_`, oldest first
};

/// Simulates strategies: each is lowered, bound to the cluster and simulated under the problem's
/// rules. If replicas synchronise only every few steps, the result is the average step from one
/// synchronisation to the next, with the memory of the largest. Graphs are cached by structure
/// (structure_of()), the latest ones up to kMostOperators operators, and so are results. Results
/// depend neither on the number of threads nor on the caches. Thread-safe.
class StrategyPricer {
 public:
  static constexpr int64_t kMostOperators = 1'000'000;
  static constexpr size_t kPriceBytes = size_t{64} << 20;  ///< 100 results on 16,384 devices

  StrategyPricer(std::shared_ptr<const Problem> problem, ThreadPool& pool);

  /// Device of the first part of every operator. Throws the errors of lower().
  std::vector<int32_t> home(const Strategy& strategy);

  /// Owners of all devices' peaks, for a strategy with a mesh: in the step in which its replicas
  /// sync. Throws the errors of lower().
  std::vector<OwnedBytes> owners(const Strategy& strategy);

  /// Number of representative devices that a strategy with a mesh is simulated on. Throws the
  /// errors of lower().
  int32_t simulated_devices(const Strategy& strategy);

  /// Lowers and binds the strategy. Throws the errors of lower().
  BoundStrategy bind(const Strategy& strategy);

  /// metrics[i] is the result of strategy i, rejected if its step exceeds `limit_ns`. Throws the
  /// error that lower() or the simulator throws for the first strategy that fails; `entry`, if
  /// given, holds the strategies' numbers for messages.
  void run(std::span<const Strategy> strategies, std::vector<Metrics>& metrics, int64_t limit_ns,
           OnContradiction on_contradiction, std::span<const int64_t> entry = {});

 private:
  /// Cached graph of all strategies of one structure.
  struct Structure {
    std::shared_ptr<const LoweredGraph> made;
    std::shared_ptr<const Problem> problem;
    Idle<Simulator> idle;
  };

  std::shared_ptr<Structure> structure(const Strategy& strategy);
  void check_replica(const Strategy& strategy) const;
  template <class Run>
  auto of_symmetry(const Strategy& strategy, Run run);
  void price(const Strategy& strategy, Metrics& metrics, int64_t limit_ns,
             OnContradiction on_contradiction);
  bool price_symmetry(const Strategy& strategy, Metrics& metrics, int64_t limit_ns,
                      OnContradiction on_contradiction);
  void price_step(const Strategy& strategy, Metrics& metrics, int64_t limit_ns,
                  OnContradiction on_contradiction);

  std::shared_ptr<const Problem> problem_;
  ThreadPool& pool_;
  SymmetryPricer symmetry_;  // for meshes
  Latest<Strategy, Structure> structures_;
  PriceCache prices_{kPriceBytes};
};

}  // namespace trinity
