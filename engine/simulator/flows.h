#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cluster/cluster.h"

namespace trinity {

/// Transfers that share channels max-min fairly (QueueModel::fair; the rules: simulator.h). All
/// arithmetic is in integers: rates in bytes/s, what is left of a flow in bytes * 1e9.
class Flows {
 public:
  explicit Flows(const Cluster& cluster);

  void clear();
  /// A flow of `bytes` > 0 begins at the present instant; `owner` is handed back when it ends.
  void begin(int32_t from, int32_t to, int64_t bytes, int32_t owner);
  /// The next instant at which a flow ends, or kNever. Valid after settle().
  int64_t next_end_ns() const { return next_end_ns_; }
  static constexpr int64_t kNever = INT64_MAX;
  /// Lets all flows run on to `now_ns`; appends the owners of those that have ended.
  void advance(int64_t now_ns, std::vector<int32_t>& ended);
  /// Shares the channels anew if a flow began or ended in this instant.
  void settle();

 private:
  struct Flow {
    __int128 end;  // bytes * 1e9, among what its pair has carried: when it is through
    int32_t owner;
    bool operator>(const Flow& other) const { return end > other.end; }
  };
  /// Flows between two devices: they share a route and so a rate, so that what each of them was
  /// given is one number.
  struct alignas(64) Pair {
    int32_t from, to;
    size_t first_crossed = 0, end_crossed = 0;  // in crossed_
    std::vector<Flow> flows;                    // a heap, the first to end first
    int64_t rate = 0;                           // bytes/s, of each
    int64_t since_ns = 0;                       // from when it has had that rate, or later
    __int128 carried = 0;                       // bytes * 1e9, of each; known up to since_ns
    int64_t end_ns = kNever;                    // when the first flow ends at that rate
    uint64_t shared = 0;                        // the last share that fixed its rate
    int32_t count = 0;                          // of flows
    bool live = false;                          // listed in live_
  };
  /// A channel while its rates are shared out.
  struct alignas(64) Open {
    int64_t left = 0;       // bytes/s
    int64_t each = 0;       // what that gives each of its flows without a rate; 0: to be found
    int64_t each_of_all = 0;     // the same where none has a rate yet
    int32_t flows = 0;           // those without a rate yet
    int32_t all = 0;             // that cross it
    std::vector<int32_t> pairs;  // live ones that cross it, in any order
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
  std::vector<Pair> pairs_;       // those that have had a flow
  std::vector<int32_t> crossed_;  // channels of the routes of pairs_
  std::vector<int32_t> live_;     // those that have one now
  std::vector<int32_t> used_;     // channels of these, ascending
  std::vector<int32_t> pair_at_;  // [from][to]: position in pairs_, or -1
  std::vector<Open> open_;        // per channel
  int64_t now_ns_ = 0, next_end_ns_ = kNever;
  std::vector<int32_t> unfixed_;  // channels with flows that have no rate yet, ascending
  size_t unfixed_count_ = 0;      // of these
  uint64_t shares_ = 0;           // how often channels were shared
  bool changed_ = false, emptied_ = false;
};

}  // namespace trinity
