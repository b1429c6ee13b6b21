#pragma once

#include <array>
#include <mutex>

#include "base/thread_pool.h"
#include "simulator/bind_schedule.h"
#include "simulator/simulator.h"

namespace trinity {

/// Cache of simulation results of one problem; policies repeat plans when they converge. Keys are
/// 128-bit hashes of placement and schedule, so collisions do not occur in practice. Newer results
/// overwrite older ones in the same slot. The table grows on demand up to its maximum size, so a
/// problem that is evaluated once takes little memory. Thread-safe.
class ResultCache {
 public:
  using Key = std::array<uint64_t, 2>;

  /// BatchSimulator::kCacheBytes; for problems with many devices the size of 256 results, at most
  /// 64 MB.
  static size_t default_bytes(const Problem& problem);

  /// Capacity: the number of results that fit in `bytes`, as a power of two; 0 disables the cache.
  ResultCache(const Problem& problem, size_t bytes);

  bool enabled() const { return room_ > 0; }
  static Key key(std::span<const int32_t> placement, uint64_t schedule);
  /// Fills `metrics` and returns true if `key` is cached.
  bool find(const Key& key, Metrics& metrics);
  void add(const Key& key, const Metrics& metrics);

 private:
  struct Entry {
    Key key{};
    bool used = false;
    Metrics metrics;
  };
  static size_t bytes_of(const Problem& problem);  // of one entry
  void grow();

  static constexpr size_t kFewDevices = 256;
  static constexpr size_t kFirstEntries = 256, kPlacesPerResult = 8;  // sparse: collisions are rare
  size_t room_ = 0, devices_, used_ = 0;
  std::mutex mutex_;
  std::vector<Entry> entries_;  // empty, or a power of two
};

/// Simulates a plan; `on_contradiction` says what happens if its schedule contradicts it.
void simulate(Simulator& simulator, const Plan& plan, Metrics& metrics, int64_t limit_ns,
              OnContradiction on_contradiction);

/// Simulates many placements on a thread pool, one simulator per thread. Results depend neither on
/// the number of threads nor on the cache. Not thread-safe: one run at a time.
class BatchSimulator {
 public:
  static constexpr size_t kCacheBytes = size_t{4} << 20;

  /// Default cache size: ResultCache::default_bytes().
  BatchSimulator(const Problem& problem, ThreadPool& pool);
  BatchSimulator(const Problem& problem, ThreadPool& pool, size_t cache_bytes);

  /// metrics[i] is the result of plan i, rejected if its step exceeds `limit_ns`.
  void run(std::span<const Plan> plans, std::vector<Metrics>& metrics, int64_t limit_ns = kNoLimit,
           OnContradiction on_contradiction = OnContradiction::fail);

 private:
  void run_one(const Plan& plan, Simulator& simulator, Metrics& metrics, int64_t limit_ns,
               OnContradiction on_contradiction);

  ThreadPool& pool_;
  ResultCache cache_;
  std::vector<Simulator> simulators_;
};

}  // namespace trinity
