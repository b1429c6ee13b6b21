#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "simulator/problem.h"
#include "strategy/quotient.h"

namespace trinity {

/// When the queues that transfers and collectives occupy are free: under queue model sender a queue per device, under
/// pair one per pair of devices, under route one per channel; other models have none. Devices have the plan's numbers.
/// Not thread-safe.
class Bookings {
 public:
  explicit Bookings(const Problem& problem) : problem_(problem), model_(problem.rules().queue) {}

  void begin(const Quotient* quotient, size_t devices) {
    quotient_ = model_ == QueueModel::pair || model_ == QueueModel::route ? quotient : nullptr;
    devices_ = static_cast<int32_t>(devices);
    size_t queues = 0;
    if (quotient_)
      queues = static_cast<size_t>(quotient_->queues);
    else if (model_ == QueueModel::sender)
      queues = devices;
    else if (model_ == QueueModel::pair)
      queues = devices * devices;
    else if (model_ == QueueModel::route)
      queues = problem_.cluster().channels().size();
    free_ns_.assign(queues, 0);
  }

  /// Occupies the queues of a transfer together, from `now_ns` at the earliest; returns the start.
  int64_t transfer(int32_t from, int32_t to, int64_t now_ns, int64_t duration_ns) {
    queues_.clear();
    add(from, to);
    return book(now_ns, duration_ns);
  }

  /// The same for a collective between several devices, `ring`.
  int64_t collective(int32_t collective, std::span<const int32_t> ring, int64_t now_ns, int64_t duration_ns) {
    queues_.clear();
    if (quotient_)
      add(quotient_->group_queues[quotient_->group[collective]]);
    else
      for (size_t i = 0; i < ring.size(); ++i) add(ring[i], ring[(i + 1) % ring.size()]);
    return book(now_ns, duration_ns);
  }

 private:
  void add(std::span<const int32_t> queues) { queues_.insert(queues_.end(), queues.begin(), queues.end()); }
  void add(int32_t from, int32_t to) {
    if (quotient_)
      add(quotient_->path(from, to));
    else if (model_ == QueueModel::sender)
      queues_.push_back(from);
    else if (model_ == QueueModel::pair)
      queues_.push_back(from * devices_ + to);
    else if (model_ == QueueModel::route)
      for (const int32_t channel : problem_.cluster().route(from, to)) queues_.push_back(channel);
  }

  int64_t book(int64_t now_ns, int64_t duration_ns) {
    int64_t start = now_ns;
    for (const int32_t queue : queues_) start = std::max(start, free_ns_[queue]);
    for (const int32_t queue : queues_) free_ns_[queue] = start + duration_ns + problem_.rules().link_dead_ns;
    return start;
  }

  const Problem& problem_;
  const QueueModel model_;
  const Quotient* quotient_ = nullptr;  // whose queues are meant; nullptr: the cluster's
  int32_t devices_ = 0;
  std::vector<int64_t> free_ns_;  // [queue]; pair: [from][to]
  std::vector<int32_t> queues_;   // of the current transfer or collective
};

}  // namespace trinity
