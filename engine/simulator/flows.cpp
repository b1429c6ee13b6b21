#include "simulator/flows.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/error.h"

namespace trinity {
namespace {

constexpr int64_t kLongestFlow = int64_t{1} << 61;

/// Share per flow of a channel with `left` bytes/s; kNever without flows.
inline int64_t fair_share(int64_t left, int32_t flows) {
  const int64_t each = std::max<int64_t>(1, left / std::max(flows, 1));
  return flows > 0 ? each : Flows::kNever;
}

}  // namespace

Flows::Flows(const Cluster& cluster) : cluster_(cluster) {
  for (const auto& channel : cluster.channels())
    capacity_.push_back(
        std::max<int64_t>(1, std::llround(std::min(channel.bandwidth_bytes_per_s, 4e18))));
  open_.resize(capacity_.size());
  unfixed_.resize(capacity_.size());
}

void Flows::clear() {
  const auto d = static_cast<size_t>(cluster_.device_count());
  pair_at_.resize(d * d, -1);
  for (const int32_t index : live_) {
    count(pairs_[index], -pairs_[index].count);
    pairs_[index].flows.clear();
    retire(index);
  }
  live_.clear();
  now_ns_ = 0;
  next_end_ns_ = kNever;
  changed_ = emptied_ = false;
}

int32_t Flows::pair_of(int32_t from, int32_t to) {
  int32_t& at = pair_at_[static_cast<size_t>(from) * static_cast<size_t>(cluster_.device_count()) +
                         static_cast<size_t>(to)];
  if (at < 0) {
    at = static_cast<int32_t>(pairs_.size());
    const Route route = cluster_.route(from, to);
    const size_t first = crossed_.size();
    crossed_.insert(crossed_.end(), route.begin(), route.end());
    pairs_.emplace_back(Pair{from, to, first, crossed_.size(), {}});
  }
  return at;
}

void Flows::begin(int32_t from, int32_t to, int64_t bytes, int32_t owner) {
  const int32_t index = pair_of(from, to);
  auto& pair = pairs_[index];
  pair.live ? carry_on(pair) : enlist(index);
  pair.flows.push_back({pair.carried + static_cast<__int128>(bytes) * 1'000'000'000, owner});
  std::push_heap(pair.flows.begin(), pair.flows.end(), std::greater<>());
  count(pair, 1);
}

/// Adds `more` (possibly negative) flows of a pair to its channels.
inline void Flows::count(Pair& pair, int32_t more) {
  changed_ = true;
  pair.count += more;
  for (const int32_t channel : channels_of(pair)) {
    auto& open = open_[channel];
    open.all += more;
    open.each_of_all = fair_share(capacity_[channel], open.all);
  }
}

void Flows::enlist(int32_t index) {
  auto& pair = pairs_[index];
  live_.push_back(index);
  pair.live = true;
  pair.rate = 0;
  pair.carried = 0;
  pair.since_ns = now_ns_;
  for (const int32_t channel : channels_of(pair)) {
    auto& open = open_[channel];
    if (open.pairs.empty())
      used_.insert(std::lower_bound(used_.begin(), used_.end(), channel), channel);
    open.pairs.push_back(index);
  }
}

/// Removes a pair without flows from the lists of its channels.
void Flows::retire(int32_t index) {
  pairs_[index].live = false;
  for (const int32_t channel : channels_of(pairs_[index])) {
    auto& open = open_[channel];
    *std::find(open.pairs.begin(), open.pairs.end(), index) = open.pairs.back();
    open.pairs.pop_back();
    if (open.pairs.empty())
      used_.erase(std::lower_bound(used_.begin(), used_.end(), channel));
  }
}

/// Updates what the flows of a pair have carried by now.
inline void Flows::carry_on(Pair& pair) {
  pair.carried += static_cast<__int128>(pair.rate) * (now_ns_ - pair.since_ns);
  pair.since_ns = now_ns_;
}

void Flows::advance(int64_t now_ns, std::vector<int32_t>& ended) {
  now_ns_ = now_ns;
  if (now_ns < next_end_ns_) return;
  for (const int32_t index : live_) {
    auto& pair = pairs_[index];
    if (pair.end_ns > now_ns) continue;
    carry_on(pair);
    int32_t fewer = 0;
    for (; !pair.flows.empty() && pair.flows.front().end <= pair.carried; ++fewer) {
      ended.push_back(pair.flows.front().owner);
      std::pop_heap(pair.flows.begin(), pair.flows.end(), std::greater<>());
      pair.flows.pop_back();
    }
    count(pair, -fewer);
    emptied_ = emptied_ || pair.count == 0;
  }
}

void Flows::settle() {
  if (!changed_) return;
  changed_ = false;
  if (emptied_)
    std::erase_if(live_, [this](int32_t index) {
      if (pairs_[index].count > 0) return false;
      retire(index);
      return true;
    });
  emptied_ = false;
  next_end_ns_ = kNever;
  share();
}

/// Finds when the first flow of a pair ends at its current rate.
inline void Flows::find_end(Pair& pair) {
  const __int128 left = pair.flows.front().end - pair.carried + pair.rate - 1;
  const __int128 wait =
      left <= kNever ? static_cast<int64_t>(left) / pair.rate : left / pair.rate;
  if (wait > kLongestFlow - now_ns_)
    throw LimitError("a transfer from '{}' to '{}' at its fair share ends later than the simulator's clock holds",
                     cluster_.device(pair.from).name, cluster_.device(pair.to).name);
  pair.end_ns = now_ns_ + static_cast<int64_t>(wait);
}

/// The channel with the smallest share per flow; ties: the first. Channels are offered in order.
struct Flows::Narrowest {
  int64_t each = kNever;
  int32_t channel = 0;

  void offer(int64_t other_each, int32_t other) {
    channel = other_each < each ? other : channel;
    each = std::min(each, other_each);
  }
};

/// Initialises the channels in use.
inline Flows::Narrowest Flows::open_all() {
  Narrowest narrowest;
  unfixed_count_ = 0;
  for (const int32_t channel : used_) {
    unfixed_[unfixed_count_++] = channel;
    auto& open = open_[channel];
    open.left = capacity_[channel];
    open.flows = open.all;
    open.each = open.each_of_all;
    narrowest.offer(open.each, channel);
  }
  return narrowest;
}

/// Searches the channels with flows that have no rate yet.
inline Flows::Narrowest Flows::find_narrowest() {
  Narrowest narrowest;
  size_t kept = 0;
  for (size_t i = 0; i < unfixed_count_; ++i) {
    const int32_t channel = unfixed_[i];
    const int64_t each = open_[channel].each;
    unfixed_[kept] = channel;
    kept += each < kNever;
    narrowest.offer(each, channel);
  }
  unfixed_count_ = kept;
  return narrowest;
}

/// Subtracts the rate of all flows of a pair from the channels of their route. No channel has a
/// smaller share, or the rate is 1 byte/s: the product fits 64 bits.
inline void Flows::take(const Pair& pair, int32_t narrowest) {
  const int64_t taken = pair.rate * pair.count;
  for (const int32_t channel : channels_of(pair)) {
    if (channel == narrowest) continue;
    auto& open = open_[channel];
    open.left = std::max<int64_t>(0, open.left - taken);
    open.flows -= pair.count;
    open.each = fair_share(open.left, open.flows);
  }
}

/// Fixes the rate of a pair's flows.
inline void Flows::fix(Pair& pair, int64_t rate) {
  pair.shared = shares_;
  carry_on(pair);
  pair.rate = rate;
  find_end(pair);
  next_end_ns_ = std::min(next_end_ns_, pair.end_ns);
}

/// Progressive filling: the channel with the smallest share fixes the rates of its flows.
void Flows::share() {
  size_t left = live_.size();
  if (left == 0) return;
  ++shares_;
  for (Narrowest narrowest = open_all(); true; narrowest = find_narrowest()) {
    auto& open = open_[narrowest.channel];
    open.each = kNever;
    for (const int32_t index : open.pairs) {
      auto& pair = pairs_[index];
      if (pair.shared == shares_) continue;
      fix(pair, narrowest.each);
      take(pair, narrowest.channel);
      --left;
    }
    if (left == 0) return;
  }
}

}  // namespace trinity
