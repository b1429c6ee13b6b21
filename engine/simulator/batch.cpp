#include "simulator/batch.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/hash.h"
#include "base/stop.h"

namespace trinity {
size_t ResultCache::default_bytes(const Problem& problem) {
  constexpr size_t kMost = size_t{64} << 20, kResults = 256;
  return std::clamp(kResults * bytes_of(problem), BatchSimulator::kCacheBytes, kMost);
}

size_t ResultCache::bytes_of(const Problem& problem) {
  return sizeof(Entry) + static_cast<size_t>(problem.devices()) * sizeof(DeviceMetrics);
}

ResultCache::ResultCache(const Problem& problem, size_t bytes)
    : devices_(static_cast<size_t>(problem.devices())) {
  const size_t fit = bytes / bytes_of(problem);
  room_ = fit == 0 ? 0 : std::bit_floor(fit);
}

/// Four independent multiply-and-rotate chains over two devices at a time, folded into two words.
ResultCache::Key ResultCache::key(std::span<const int32_t> placement, uint64_t schedule) {
  constexpr uint64_t kFactor[] = {0x9e3779b97f4a7c15ULL, 0xc2b2ae3d27d4eb4fULL,
                                  0xd6e8feb86659fd93ULL, 0xa0761d6478bd642fULL};
  uint64_t lane[4];
  for (uint64_t i = 0; i < 4; ++i) lane[i] = mix64(schedule + placement.size() + (i << 32));
  const size_t blocks = placement.size() / 8;
  for (size_t block = 0; block < blocks; ++block) {
    uint64_t words[4];
    std::memcpy(words, placement.data() + 8 * block, sizeof words);
    for (size_t i = 0; i < 4; ++i) {
      const uint64_t mixed = (lane[i] ^ words[i]) * kFactor[i];
      lane[i] = mixed ^ (mixed >> 29);
    }
  }
  for (size_t i = 8 * blocks; i < placement.size(); ++i)
    lane[i % 4] = mix64(lane[i % 4] ^ static_cast<uint64_t>(placement[i]));
  uint64_t a = 0, b = 1;
  for (const uint64_t value : lane) {
    a = mix64(a ^ value);
    b = mix64(b + value * kFactor[1]);
  }
  return {a, b};
}

bool ResultCache::find(const Key& key, Metrics& metrics) {
  const std::lock_guard lock(mutex_);
  if (entries_.empty()) return false;
  const auto& entry = entries_[key[0] & (entries_.size() - 1)];
  if (!entry.used || entry.key != key) return false;
  metrics = entry.metrics;
  return true;
}

void ResultCache::add(const Key& key, const Metrics& metrics) {
  const std::lock_guard lock(mutex_);
  if (kPlacesPerResult * used_ >= entries_.size() && entries_.size() < room_) grow();
  auto& entry = entries_[key[0] & (entries_.size() - 1)];
  if (!entry.used) ++used_;
  entry.key = key;
  entry.used = true;
  entry.metrics = metrics;
}

/// Doubles the table: entries that shared a slot may now have one each; others are unaffected.
void ResultCache::grow() {
  std::vector<Entry> larger(std::min(room_, std::max(kFirstEntries, 2 * entries_.size())));
  for (auto& entry : entries_)
    if (entry.used) larger[entry.key[0] & (larger.size() - 1)] = std::move(entry);
  if (devices_ <= kFewDevices)  // entries for many devices are allocated when used
    for (auto& entry : larger) entry.metrics.devices.resize(devices_);
  entries_ = std::move(larger);
}

BatchSimulator::BatchSimulator(const Problem& problem, ThreadPool& pool)
    : BatchSimulator(problem, pool, ResultCache::default_bytes(problem)) {}

BatchSimulator::BatchSimulator(const Problem& problem, ThreadPool& pool, size_t cache_bytes)
    : pool_(pool), cache_(problem, cache_bytes) {
  for (int i = 0; i < pool.threads(); ++i) simulators_.emplace_back(problem);
}

void BatchSimulator::run(std::span<const Plan> plans, std::vector<Metrics>& metrics,
                         int64_t limit_ns, OnContradiction on_contradiction) {
  metrics.resize(plans.size());
  pool_.parallel_for(static_cast<int>(plans.size()), [&](int item, int thread) {
    poll_stop();
    run_one(plans[item], simulators_[thread], metrics[item], limit_ns, on_contradiction);
  });
}

void simulate(Simulator& simulator, const Plan& plan, Metrics& metrics, int64_t limit_ns,
              OnContradiction on_contradiction) {
  try {
    simulator.run(plan, metrics, nullptr, limit_ns);
  } catch (const ScheduleError&) {
    if (on_contradiction == OnContradiction::fail) throw;
    Schedule instead;
    instead.micro_batches = plan.schedule->micro_batches;
    instead.contradicts = true;
    simulator.run({plan.placement, &instead}, metrics, nullptr, limit_ns);
  }
}

void BatchSimulator::run_one(const Plan& plan, Simulator& simulator, Metrics& metrics,
                             int64_t limit_ns, OnContradiction on_contradiction) {
  const bool strict = on_contradiction == OnContradiction::fail;
  ResultCache::Key key{};
  if (cache_.enabled()) {
    const bool known = plan.schedule_hash != 0 || !plan.schedule;
    key = ResultCache::key(plan.placement,
                           known ? plan.schedule_hash : hash_value(*plan.schedule));
    if (cache_.find(key, metrics) && !(strict && metrics.unscheduled)) {
      if (metrics.step_time_ns > limit_ns) metrics.reject(limit_ns);
      return;
    }
  }
  simulate(simulator, plan, metrics, limit_ns, on_contradiction);
  if (cache_.enabled() && !metrics.rejected) cache_.add(key, metrics);
}

}  // namespace trinity
