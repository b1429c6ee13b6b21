#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cluster/cluster.h"

namespace trinity {

/// Transfers that share channels max-min fairly (QueueModel::fair; rules: simulator.h). All
/// arithmetic is in integers: rates in bytes/s, remaining flow in bytes * 1e9. Not thread-safe.
class Flows {
 public:
  explicit Flows(const Cluster& cluster);

  void clear();
  /// Starts a flow of `bytes` > 0 now; `owner` is reported when it ends.
  void begin(int32_t from, int32_t to, int64_t bytes, int32_t owner);
  /// The next instant at which a flow ends, or kNever. Valid after settle().
  int64_t next_end_ns() const { return next_end_ns_; }
  static constexpr int64_t kNever = INT64_MAX;
  /// Advances all flows to `now_ns`; appends the owners of flows that have ended.
  void advance(int64_t now_ns, std::vector<int32_t>& ended);
  /// Recomputes the shares of the channels if a flow began or ended at this instant.
  void settle();

 private:
  struct Flow {
    __int128 end;  // bytes * 1e9, on the scale of Pair::carried, at which it ends
    int32_t owner;
    bool operator>(const Flow& other) const { return end > other.end; }
  };
  /// All flows between two devices. They share a route and so a rate; one number counts what each
  /// has carried.
  struct alignas(64) Pair {
    int32_t from, to;
    size_t first_crossed = 0, end_crossed = 0;  // range in crossed_
    std::vector<Flow> flows;                    // a min-heap by end
    int64_t rate = 0;                           // bytes/s, of each flow
    int64_t since_ns = 0;                       // `rate` holds from this time on
    __int128 carried = 0;                       // bytes * 1e9, of each flow, up to since_ns
    int64_t end_ns = kNever;                    // end of the first flow at this rate
    uint64_t shared = 0;                        // number of the last sharing that fixed its rate
    int32_t count = 0;                          // number of flows
    bool live = false;                          // listed in live_
  };
  /// A channel while rates are computed.
  struct alignas(64) Open {
    int64_t left = 0;       // bytes/s not assigned yet
    int64_t each = 0;       // share per flow without a rate; 0: not computed
    int64_t each_of_all = 0;     // the same if no flow has a rate yet
    int32_t flows = 0;           // flows without a rate yet
    int32_t all = 0;             // all flows that cross it
    std::vector<int32_t> pairs;  // live pairs that cross it, in any order
  };
  void enlist(int32_t index);
  void retire(int32_t index);
  void count(Pair& pair, int32_t more);
  void carry_on(Pair& pair);
  struct Narrowest;
  Narrowest open_all();
  Narrowest find_narrowest();
  void find_end(Pair& pair);
  void share();
  void fix(Pair& pair, int64_t rate);
  void take(const Pair& pair, int32_t narrowest);
  int32_t pair_of(int32_t from, int32_t to);
  std::span<const int32_t> channels_of(const Pair& pair) const {
    return {crossed_.data() + pair.first_crossed, pair.end_crossed - pair.first_crossed};
  }

  const Cluster& cluster_;
  std::vector<int64_t> capacity_;  // per channel, bytes/s
  std::vector<Pair> pairs_;       // pairs that have had a flow
  std::vector<int32_t> crossed_;  // channels of the routes of pairs_
  std::vector<int32_t> live_;     // pairs with a flow now
  std::vector<int32_t> used_;     // channels of live_, ascending
  std::vector<int32_t> pair_at_;  // [from][to]: index in pairs_, or -1
  std::vector<Open> open_;        // per channel
  int64_t now_ns_ = 0, next_end_ns_ = kNever;
  std::vector<int32_t> unfixed_;  // channels with flows that have no rate yet, ascending
  size_t unfixed_count_ = 0;      // valid entries of unfixed_
  uint64_t shares_ = 0;           // number of times that shares were computed
  bool changed_ = false, emptied_ = false;
};

}  // namespace trinity
