#pragma once

#include <condition_variable>
#include <functional>
#include <list>
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

/// Prices strategies of all kinds: each is lowered, bound to the cluster and simulated under the
/// rules of the problem; one whose replicas meet every few steps costs the mean step from meeting to
/// meeting, and the memory of the largest. Graphs are kept by the structure of what they were made of
/// (structure_of()): the latest, up to kMostOperators operators. So are prices. Results depend
/// neither on the number of threads nor on what is kept. For threads.
class StrategyPricer {
 public:
  static constexpr int64_t kMostOperators = 1'000'000;
  static constexpr size_t kPriceBytes = size_t{4} << 20;

  /// Binds a lowered graph; it is called on the thread of bind() and run() alone, which is then the
  /// only one.
  using BindGraph = std::function<std::shared_ptr<const Problem>(std::shared_ptr<const Graph>)>;

  StrategyPricer(std::shared_ptr<const Problem> problem, ThreadPool& pool);

  /// Where the first part of every operator is. Throws what lower() throws.
  std::vector<int32_t> home(const Strategy& strategy, const BindGraph& bind = {});

  /// Of how many devices a strategy with a mesh is simulated, as which all others behave. Throws what
  /// lower() throws.
  int32_t simulated_devices(const Strategy& strategy, const BindGraph& bind = {});

  /// Throws what lower() throws. bind: for a cost model of its own; empty: the cluster's.
  BoundStrategy bind(const Strategy& strategy, const BindGraph& bind = {});

  /// metrics[i] prices strategy i, rejected when its step is longer than `limit_ns`. Throws of the
  /// first strategy that cannot be priced what lower() and the simulator throw; `entry`, where it
  /// is given, numbers strategies in messages.
  void run(std::span<const Strategy> strategies, std::vector<Metrics>& metrics, int64_t limit_ns,
           OnContradiction on_contradiction, const BindGraph& bind = {},
           std::span<const int64_t> entry = {});

 private:
  /// The graph of all strategies of one structure, with simulators that nobody uses now.
  struct Structure {
    Strategy of;
    std::shared_ptr<const LoweredGraph> made;
    std::shared_ptr<const Problem> problem;
    std::vector<std::unique_ptr<Simulator>> idle;
  };
  class Making;

  std::shared_ptr<Structure> structure(const Strategy& strategy, const BindGraph& bind);
  std::shared_ptr<Structure> find(const Strategy& of);
  std::shared_ptr<Structure> make(const Strategy& strategy, const BindGraph& bind) const;
  void keep(std::shared_ptr<Structure> made);
  void price(const Strategy& strategy, Metrics& metrics, int64_t limit_ns,
             OnContradiction on_contradiction, const BindGraph& bind);
  void price_step(const Strategy& strategy, Metrics& metrics, int64_t limit_ns,
                  OnContradiction on_contradiction, const BindGraph& bind);
  bool find_price(const Strategy& strategy, Metrics& metrics);
  void keep_price(const Strategy& strategy, const Metrics& metrics);
  std::unique_ptr<Simulator> take_simulator(Structure& structure);
  void give_back(Structure& structure, std::unique_ptr<Simulator> simulator);

  std::shared_ptr<const Problem> problem_;
  ThreadPool& pool_;
  SymmetryPricer symmetry_;  // of meshes without a cost model of their own
  std::mutex mutex_;  // of all below
  std::condition_variable made_;
  std::list<std::shared_ptr<Structure>> structures_;  // the latest first
  std::list<Strategy> making_;
  struct Hash {
    size_t operator()(const Strategy& strategy) const { return hash_value(strategy); }
  };
  std::unordered_map<Strategy, Metrics, Hash> prices_;
};

}  // namespace trinity
