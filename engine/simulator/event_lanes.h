#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace trinity {

/// Priority queue of events, ordered by (time_ns, key), both at least 0, no two equal. Events are
/// in sorted lists, and a tournament tree holds the first event of each. Fast if the events of a
/// list are pushed in order: a pop then costs log2(lists) branch-free comparisons. Not thread-safe.
class EventLanes {
 public:
  struct Event {
    int64_t time_ns;
    uint64_t key, data;
    bool operator<(const Event& other) const {
      return time_ns != other.time_ns ? time_ns < other.time_ns : key < other.key;
    }
  };

  /// Clears it and sets the number of lists.
  void reset(size_t lanes) {
    leaves_ = std::bit_ceil(std::max<size_t>(lanes, 1));
    times_.assign(2 * leaves_, kNever);
    keys_.assign(2 * leaves_, 0);
    firsts_.assign(2 * leaves_, 0);
    if (lanes_.size() < leaves_) lanes_.resize(leaves_);
    for (auto& lane : lanes_) {
      lane.events.clear();
      lane.first = 0;
      lane.stale = false;
    }
    stale_.clear();
  }

  void push(size_t number, int64_t time_ns, uint64_t key, uint64_t data) {
    auto& lane = lanes_[number];
    auto& list = lane.events;
    size_t place = list.size();
    list.push_back({time_ns, key, data});
    if (place > lane.first && list[place] < list[place - 1]) {
      const Event event = list[place];
      for (; place > lane.first && event < list[place - 1]; --place) list[place] = list[place - 1];
      list[place] = event;
    }
    if (place == lane.first) note_stale(number);
  }

  bool empty() {
    renew();
    return times_[1] == kNever;
  }
  /// The first event. Requires !empty().
  const Event& front() {
    renew();
    const auto& lane = lanes_[firsts_[1]];
    return lane.events[lane.first];
  }
  void pop() {
    const size_t number = firsts_[1];
    auto& lane = lanes_[number];
    if (++lane.first == lane.events.size()) {
      lane.events.clear();
      lane.first = 0;
    } else if (lane.first == kMostBefore) {
      lane.events.erase(lane.events.begin(), lane.events.begin() + std::ptrdiff_t{kMostBefore});
      lane.first = 0;
    }
    note_stale(number);
  }

  /// Calls visit(event) for all events, list by list.
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (const auto& lane : lanes_)
      for (size_t i = lane.first; i < lane.events.size(); ++i) visit(lane.events[i]);
  }

 private:
  static constexpr size_t kMostBefore = 256;
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
  struct Lane {
    std::vector<Event> events;  // ascending from index `first` on
    size_t first = 0;
    bool stale = false;  // its first event differs from the tree's
  };

  __extension__ using Joined = unsigned __int128;
  static Joined joined(int64_t time_ns, uint64_t key) {
    return static_cast<Joined>(static_cast<uint64_t>(time_ns)) << 64 | key;
  }

  void note_stale(size_t number) {
    if (lanes_[number].stale) return;
    lanes_[number].stale = true;
    stale_.push_back(number);
  }
  void renew() {
    if (stale_.empty()) return;
    for (const size_t number : stale_) renew(number);
    stale_.clear();
  }
  void renew(size_t number) {
    auto& lane = lanes_[number];
    lane.stale = false;
    const bool any = lane.events.size() > lane.first;
    int64_t time_ns = any ? lane.events[lane.first].time_ns : kNever;
    uint64_t key = any ? lane.events[lane.first].key : 0;
    size_t first = number;
    int64_t* times = times_.data();
    uint64_t* keys = keys_.data();
    size_t* firsts = firsts_.data();
    size_t node = leaves_ + number;
    times[node] = time_ns;
    keys[node] = key;
    firsts[node] = first;
    for (; node > 1; node /= 2) {
      const int64_t other_ns = times[node ^ 1];
      const uint64_t other = keys[node ^ 1];
      const size_t other_first = firsts[node ^ 1];
      // Branch-free selection.
      const bool less = joined(other_ns, other) < joined(time_ns, key);
      const uint64_t mask = -static_cast<uint64_t>(less);
      time_ns ^= (time_ns ^ other_ns) & static_cast<int64_t>(mask);
      key ^= (key ^ other) & mask;
      first ^= (first ^ other_first) & mask;
      times[node / 2] = time_ns;
      keys[node / 2] = key;
      firsts[node / 2] = first;
    }
  }

  size_t leaves_ = 1;
  // Node n is the smaller of nodes 2 n and 2 n + 1; the root is node 1.
  std::vector<int64_t> times_;
  std::vector<uint64_t> keys_;
  std::vector<size_t> firsts_;  // lists
  std::vector<Lane> lanes_;
  std::vector<size_t> stale_;
};

}  // namespace trinity
