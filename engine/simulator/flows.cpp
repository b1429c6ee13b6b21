#include "simulator/flows.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/error.h"

namespace trinity {
namespace {

constexpr int64_t kLongestFlow = int64_t{1} << 61;

}  // namespace

Flows::Flows(const Cluster& cluster) : cluster_(cluster) {
  for (const auto& channel : cluster.channels())
    capacity_.push_back(
        std::max<int64_t>(1, std::llround(std::min(channel.bandwidth_bytes_per_s, 4e18))));
  open_.resize(capacity_.size());
}

void Flows::clear() {
  const auto d = static_cast<size_t>(cluster_.device_count());
  pair_at_.resize(d * d, -1);
  for (const int32_t index : live_) {
    pairs_[index].flows.clear();
    retire(index);
  }
  live_.clear();
  now_ns_ = carried_ns_ = 0;
  next_end_ns_ = kNever;
  changed_ = false;
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
  carry_on();
  const int32_t index = pair_of(from, to);
  auto& pair = pairs_[index];
  if (!pair.live) enlist(index);
  pair.flows.push_back({pair.carried + static_cast<__int128>(bytes) * 1'000'000'000, owner});
  std::push_heap(pair.flows.begin(), pair.flows.end(), std::greater<>());
  changed_ = true;
}

void Flows::enlist(int32_t index) {
  auto& pair = pairs_[index];
  live_.push_back(index);
  pair.live = true;
  pair.rate = 0;
  pair.carried = 0;
  for (const int32_t channel : channels_of(pair)) {
    auto& open = open_[channel];
    if (open.pairs.empty()) {
      open.at = used_.size();
      used_.push_back(channel);
    }
    open.pairs.push_back(index);
  }
}

/// A pair without flows leaves the lists of its channels.
void Flows::retire(int32_t index) {
  pairs_[index].live = false;
  for (const int32_t channel : channels_of(pairs_[index])) {
    auto& open = open_[channel];
    *std::find(open.pairs.begin(), open.pairs.end(), index) = open.pairs.back();
    open.pairs.pop_back();
    if (!open.pairs.empty()) continue;
    open_[used_.back()].at = open.at;
    used_[open.at] = used_.back();
    used_.pop_back();
  }
}

/// What all flows have been given by now.
void Flows::carry_on() {
  const int64_t passed = now_ns_ - carried_ns_;
  carried_ns_ = now_ns_;
  if (passed == 0) return;
  for (const int32_t index : live_)
    pairs_[index].carried += static_cast<__int128>(pairs_[index].rate) * passed;
}

void Flows::advance(int64_t now_ns, std::vector<int32_t>& ended) {
  now_ns_ = now_ns;
  if (now_ns < next_end_ns_) return;
  carry_on();
  for (const int32_t index : live_) {
    auto& pair = pairs_[index];
    for (; !pair.flows.empty() && pair.flows.front().end <= pair.carried; changed_ = true) {
      ended.push_back(pair.flows.front().owner);
      std::pop_heap(pair.flows.begin(), pair.flows.end(), std::greater<>());
      pair.flows.pop_back();
    }
  }
}

void Flows::settle() {
  if (!changed_) return;
  changed_ = false;
  std::erase_if(live_, [this](int32_t index) {
    if (!pairs_[index].flows.empty()) return false;
    retire(index);
    return true;
  });
  share();
  find_next_end();
}

void Flows::find_next_end() {
  next_end_ns_ = kNever;
  for (const int32_t index : live_) {
    const auto& pair = pairs_[index];
    const __int128 left = pair.flows.front().end - pair.carried + pair.rate - 1;
    const __int128 wait =
        left <= kNever ? static_cast<int64_t>(left) / pair.rate : left / pair.rate;
    if (wait > kLongestFlow - now_ns_)
      throw LimitError(
          fmt::format("a transfer from '{}' to '{}' at its fair share ends later than the "
                      "simulator's clock holds",
                      cluster_.device(pair.from).name, cluster_.device(pair.to).name));
    next_end_ns_ = std::min(next_end_ns_, now_ns_ + static_cast<int64_t>(wait));
  }
}

/// Of the channels in use the one that can give its flows least; of equal ones the first.
inline int32_t Flows::find_narrowest() {
  int64_t least = kNever;
  int32_t narrowest = -1;
  for (const int32_t channel : used_) {
    auto& open = open_[channel];
    if (open.each == 0)
      open.each = open.flows == 0 ? kNever : std::max<int64_t>(1, open.left / open.flows);
    if (open.each > least || (open.each == least && channel > narrowest)) continue;
    least = open.each;
    narrowest = channel;
  }
  return narrowest;
}

/// Gives all flows of a pair their rate and takes it from the channels of their route.
inline void Flows::fix(Pair& pair, int64_t rate) {
  pair.rate = rate;
  const auto taken = static_cast<__int128>(rate) * pair.count();
  for (const int32_t channel : channels_of(pair)) {
    auto& open = open_[channel];
    open.left = taken < open.left ? open.left - static_cast<int64_t>(taken) : 0;
    open.flows -= pair.count();
    open.each = 0;
  }
}

/// Progressive filling: the channel that can give its flows least fixes their rates.
void Flows::share() {
  for (const int32_t channel : used_) {
    auto& open = open_[channel];
    open.left = capacity_[channel];
    open.each = open.flows = 0;
    for (const int32_t index : open.pairs) open.flows += pairs_[index].count();
  }
  for (const int32_t index : live_) pairs_[index].rate = 0;
  for (size_t unfixed = live_.size(); unfixed > 0;) {
    const auto& narrowest = open_[find_narrowest()];
    const int64_t least = narrowest.each;
    for (const int32_t index : narrowest.pairs) {
      if (pairs_[index].rate > 0) continue;
      fix(pairs_[index], least);
      --unfixed;
    }
  }
}

}  // namespace trinity
