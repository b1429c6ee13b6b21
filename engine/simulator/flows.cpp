#include "simulator/flows.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace trinity {
namespace {

constexpr int64_t kLongestFlow = int64_t{1} << 61;

}  // namespace

Flows::Flows(const Cluster& cluster) : cluster_(cluster) {
  for (const auto& channel : cluster.channels())
    capacity_.push_back(
        std::max<int64_t>(1, std::llround(std::min(channel.bandwidth_bytes_per_s, 4e18))));
  left_.resize(capacity_.size());
  unfixed_.resize(capacity_.size());
}

void Flows::clear() {
  flows_.clear();
  const auto d = static_cast<size_t>(cluster_.device_count());
  pair_at_.resize(d * d, -1);
  for (const auto& pair : pairs_)
    pair_at_[static_cast<size_t>(pair.from) * d + static_cast<size_t>(pair.to)] = -1;
  pairs_.clear();
  crossed_.clear();
  live_.clear();
  now_ns_ = 0;
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
    pairs_.push_back({from, to, first, crossed_.size()});
  }
  return at;
}

void Flows::begin(int32_t from, int32_t to, int64_t bytes, int32_t owner) {
  const int32_t pair = pair_of(from, to);
  auto& entry = pairs_[pair];
  ++entry.flows;
  if (!entry.live) live_.push_back(pair);
  entry.live = true;
  flows_.push_back({pair, owner, static_cast<__int128>(bytes) * 1'000'000'000});
  changed_ = true;
}

void Flows::advance(int64_t now_ns, std::vector<int32_t>& ended) {
  const int64_t passed = now_ns - now_ns_;
  now_ns_ = now_ns;
  if (passed > 0)
    for (auto& flow : flows_)
      flow.remaining -= static_cast<__int128>(pairs_[flow.pair].rate) * passed;
  if (now_ns < next_end_ns_) return;
  std::erase_if(flows_, [&](const Flow& flow) {
    if (flow.remaining > 0) return false;
    ended.push_back(flow.owner);
    --pairs_[flow.pair].flows;
    changed_ = true;
    return true;
  });
}

void Flows::settle() {
  if (!changed_) return;
  changed_ = false;
  std::erase_if(live_, [this](int32_t pair) {
    auto& entry = pairs_[pair];
    entry.live = entry.flows > 0;
    entry.least = -1;
    return !entry.live;
  });
  share();
  // Of the flows of one pair the one with least left ends first.
  for (const auto& flow : flows_) {
    auto& least = pairs_[flow.pair].least;
    if (least < 0 || flow.remaining < least) least = flow.remaining;
  }
  next_end_ns_ = kNever;
  for (const int32_t index : live_) {
    const auto& pair = pairs_[index];
    const auto wait = (pair.least + pair.rate - 1) / pair.rate;
    if (wait > kLongestFlow - now_ns_)
      throw LimitError(
          fmt::format("a transfer from '{}' to '{}' at its fair share ends later than the "
                      "simulator's clock holds",
                      cluster_.device(pair.from).name, cluster_.device(pair.to).name));
    next_end_ns_ = std::min(next_end_ns_, now_ns_ + static_cast<int64_t>(wait));
  }
}

/// Progressive filling: the channel that can give its flows least fixes their rates.
void Flows::share() {
  used_.clear();
  for (const int32_t index : live_) {
    auto& pair = pairs_[index];
    pair.rate = 0;
    for (const int32_t channel : channels_of(pair)) {
      const auto c = static_cast<size_t>(channel);
      if (unfixed_[c] == 0) {
        used_.push_back(channel);
        left_[c] = capacity_[c];
      }
      unfixed_[c] += pair.flows;
    }
  }
  std::sort(used_.begin(), used_.end());
  for (size_t open = live_.size(); open > 0;) {
    int64_t least = kNever;
    int32_t narrowest = -1;
    for (const int32_t channel : used_) {
      const auto c = static_cast<size_t>(channel);
      if (unfixed_[c] == 0) continue;
      const int64_t each = std::max<int64_t>(1, left_[c] / unfixed_[c]);
      if (each < least) least = each, narrowest = channel;
    }
    for (const int32_t index : live_) {
      auto& pair = pairs_[index];
      if (pair.rate > 0) continue;
      const auto route = channels_of(pair);
      if (std::find(route.begin(), route.end(), narrowest) == route.end()) continue;
      fix(pair, least);
      --open;
    }
  }
}

/// Gives all flows of a pair their rate and takes it from the channels of their route.
void Flows::fix(Pair& pair, int64_t rate) {
  pair.rate = rate;
  const auto taken = static_cast<__int128>(rate) * pair.flows;
  for (const int32_t channel : channels_of(pair)) {
    auto& left = left_[channel];
    left = taken < left ? left - static_cast<int64_t>(taken) : 0;
    unfixed_[channel] -= pair.flows;
  }
}

}  // namespace trinity
