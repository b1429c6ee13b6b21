#include "simulator/batch.h"

#include <bit>

#include "base/hash.h"
#include "base/stop.h"

namespace trinity {
namespace {

uint64_t schedule_hash(const Schedule* schedule) {
  if (!schedule) return 0;
  Hasher hash;
  hash.add(static_cast<uint64_t>(schedule->micro_batches));
  hash.add(static_cast<uint64_t>(schedule->policy));
  for (const int64_t priority : schedule->priority) hash.add(static_cast<uint64_t>(priority));
  for (const auto* list : {&schedule->order, &schedule->order_first})
    for (const int32_t value : *list) hash.add(static_cast<uint64_t>(value));
  return hash.value();
}

}  // namespace

ResultCache::ResultCache(const Problem& problem, size_t bytes)
    : devices_(static_cast<size_t>(problem.devices())) {
  const size_t fit = bytes / (sizeof(Entry) + devices_ * sizeof(DeviceMetrics));
  room_ = fit == 0 ? 0 : std::bit_floor(fit);
}

/// Two independent multiply-and-rotate hashes, two devices at a time.
ResultCache::Key ResultCache::key(std::span<const int32_t> placement, uint64_t schedule) {
  uint64_t a = mix64(schedule + placement.size()), b = mix64(a);
  size_t i = 0;
  for (; i + 1 < placement.size(); i += 2) {
    const uint64_t two = static_cast<uint64_t>(static_cast<uint32_t>(placement[i])) |
                         static_cast<uint64_t>(placement[i + 1]) << 32;
    a = (a ^ two) * 0x9e3779b97f4a7c15ULL;
    a ^= a >> 29;
    b = (b + two) * 0xc2b2ae3d27d4eb4fULL;
    b ^= b >> 31;
  }
  if (i < placement.size()) {
    a = (a ^ static_cast<uint64_t>(placement[i])) * 0x9e3779b97f4a7c15ULL;
    b = (b + static_cast<uint64_t>(placement[i])) * 0xc2b2ae3d27d4eb4fULL;
  }
  return {mix64(a), mix64(b)};
}

bool ResultCache::find(const Key& key, Metrics& metrics) {
  const std::lock_guard lock(mutex_);
  if (entries_.empty()) return false;
  const auto& entry = entries_[key[0] & (room_ - 1)];
  if (!entry.used || entry.key != key) return false;
  metrics = entry.metrics;
  ++hits_;
  return true;
}

void ResultCache::add(const Key& key, const Metrics& metrics) {
  const std::lock_guard lock(mutex_);
  if (entries_.empty()) {
    entries_.resize(room_);
    for (auto& entry : entries_) entry.metrics.devices.resize(devices_);
  }
  auto& entry = entries_[key[0] & (room_ - 1)];
  entry.key = key;
  entry.used = true;
  entry.metrics = metrics;
}

BatchSimulator::BatchSimulator(const Problem& problem, ThreadPool& pool, size_t cache_bytes)
    : pool_(pool), cache_(problem, cache_bytes) {
  for (int i = 0; i < pool.threads(); ++i) simulators_.emplace_back(problem);
}

void BatchSimulator::run(std::span<const Plan> plans, std::vector<Metrics>& metrics,
                         int64_t limit_ns) {
  metrics.resize(plans.size());
  pool_.parallel_for(static_cast<int>(plans.size()), [&](int item, int thread) {
    poll_stop();
    const auto& plan = plans[static_cast<size_t>(item)];
    auto& result = metrics[static_cast<size_t>(item)];
    ResultCache::Key key{};
    if (cache_.enabled()) {
      key = ResultCache::key(plan.placement, schedule_hash(plan.schedule));
      if (cache_.find(key, result)) {
        if (result.step_time_ns > limit_ns) result.reject(limit_ns);
        return;
      }
    }
    simulators_[static_cast<size_t>(thread)].run(plan, result, nullptr, limit_ns);
    if (cache_.enabled() && !result.rejected) cache_.add(key, result);
  });
}

}  // namespace trinity
