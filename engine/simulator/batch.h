#pragma once

#include <array>
#include <mutex>

#include "base/thread_pool.h"
#include "simulator/bind_schedule.h"
#include "simulator/simulator.h"

namespace trinity {

/// Remembers what plans of one problem cost: policies repeat themselves when they converge. Keys
/// are 128-bit hashes of the placement (and schedule), so that two plans never meet in practice. A
/// table in which a newer result takes the place of an older one; it grows with what it holds up to
/// its size, so that a problem which is asked once takes little. For threads.
class ResultCache {
 public:
  using Key = std::array<uint64_t, 2>;

  /// BatchSimulator::kCacheBytes; for problems of many devices what 256 results take, up to 64 MB.
  static size_t default_bytes(const Problem& problem);

  /// Room for as many results as fit `bytes` (a power of two of them); 0 remembers nothing.
  ResultCache(const Problem& problem, size_t bytes);

  bool enabled() const { return room_ > 0; }
  static Key key(std::span<const int32_t> placement, uint64_t schedule);
  /// Fills `metrics` and returns true when `key` is known.
  bool find(const Key& key, Metrics& metrics);
  void add(const Key& key, const Metrics& metrics);

 private:
  struct Entry {
    Key key{};
    bool used = false;
    Metrics metrics;
  };
  static size_t bytes_of(const Problem& problem);  // of an entry
  void grow();

  static constexpr size_t kFewDevices = 256;
  static constexpr size_t kFirstEntries = 256, kPlacesPerResult = 8;  // two rarely share a place
  size_t room_ = 0, devices_, used_ = 0;
  std::mutex mutex_;
  std::vector<Entry> entries_;  // none, or a power of two
};

/// Simulates a plan as `on_contradiction` says.
void simulate(Simulator& simulator, const Plan& plan, Metrics& metrics, int64_t limit_ns,
              OnContradiction on_contradiction);

/// Simulates many placements on a thread pool, one simulator per thread. Results do not depend on
/// the number of threads, nor on what the cache holds.
class BatchSimulator {
 public:
  static constexpr size_t kCacheBytes = size_t{4} << 20;

  /// cache_bytes: by default ResultCache::default_bytes().
  BatchSimulator(const Problem& problem, ThreadPool& pool);
  BatchSimulator(const Problem& problem, ThreadPool& pool, size_t cache_bytes);

  /// metrics[i] prices plan i, rejected when its step is longer than `limit_ns`.
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
