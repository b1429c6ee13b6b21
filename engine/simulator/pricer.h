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

/// A strategy ready to be simulated.
struct BoundStrategy {
  std::shared_ptr<const LoweredGraph> made;
  std::shared_ptr<const Problem> problem;  ///< of its graph
  Arrangement arranged;
};

/// Remembers what strategies cost: the latest results, up to a number of bytes. Thread-safe.
class PriceCache {
 public:
  explicit PriceCache(size_t most_bytes) : most_bytes_(most_bytes) {}

  /// Fills `metrics` and returns true when the strategy is known.
  bool find(const Strategy& strategy, Metrics& metrics);
  void add(const Strategy& strategy, const Metrics& metrics);

 private:
  struct Hash {
    size_t operator()(const Strategy& strategy) const { return hash_value(strategy); }
  };

  size_t most_bytes_, bytes_ = 0;
  std::mutex mutex_;
  std::unordered_map<Strategy, Metrics, Hash> prices_;
  std::deque<const Strategy*> oldest_;  // of `prices_`, in the order in which they were added
};

/// Prices strategies of all kinds: each is lowered, bound to the cluster and simulated under the
/// rules of the problem; one whose replicas meet every few steps costs the mean step from meeting to
/// meeting, and the memory of the largest. Graphs are kept by the structure of what they were made of
/// (structure_of()): the latest, up to kMostOperators operators. So are prices. Results depend
/// neither on the number of threads nor on what is kept. For threads.
class StrategyPricer {
 public:
  static constexpr int64_t kMostOperators = 1'000'000;
  static constexpr size_t kPriceBytes = size_t{64} << 20;  ///< 100 results on 16,384 devices

  StrategyPricer(std::shared_ptr<const Problem> problem, ThreadPool& pool);

  /// Where the first part of every operator is. Throws what lower() throws.
  std::vector<int32_t> home(const Strategy& strategy);

  /// Who owns the peaks of all devices, of a strategy with a mesh: in the step in which its replicas
  /// meet. Throws what lower() throws.
  std::vector<OwnedBytes> owners(const Strategy& strategy);

  /// Of how many devices a strategy with a mesh is simulated, as which all others behave. Throws what
  /// lower() throws.
  int32_t simulated_devices(const Strategy& strategy);

  /// Throws what lower() throws.
  BoundStrategy bind(const Strategy& strategy);

  /// metrics[i] prices strategy i, rejected when its step is longer than `limit_ns`. Throws of the
  /// first strategy that cannot be priced what lower() and the simulator throw; `entry`, where it
  /// is given, numbers strategies in messages.
  void run(std::span<const Strategy> strategies, std::vector<Metrics>& metrics, int64_t limit_ns,
           OnContradiction on_contradiction, std::span<const int64_t> entry = {});

 private:
  /// The graph of all strategies of one structure.
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
  SymmetryPricer symmetry_;  // of meshes
  Latest<Strategy, Structure> structures_;
  PriceCache prices_{kPriceBytes};
};

}  // namespace trinity
