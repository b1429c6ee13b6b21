#include "simulator/flows.h"

#include <algorithm>
#include <cmath>

namespace trinity {

Flows::Flows(const Cluster& cluster) : cluster_(cluster) {
  for (const auto& channel : cluster.channels())
    capacity_.push_back(std::max<int64_t>(1, std::llround(channel.bandwidth_bytes_per_s)));
  left_.resize(capacity_.size());
  unfixed_.resize(capacity_.size());
}

void Flows::clear() {
  flows_.clear();
  now_ns_ = 0;
  next_end_ns_ = kNever;
  changed_ = false;
}

void Flows::begin(int32_t from, int32_t to, int64_t bytes, int32_t owner) {
  flows_.push_back({from, to, owner, 0, static_cast<__int128>(bytes) * 1'000'000'000});
  changed_ = true;
}

void Flows::advance(int64_t now_ns, std::vector<int32_t>& ended) {
  const int64_t passed = now_ns - now_ns_;
  now_ns_ = now_ns;
  if (passed > 0)
    for (auto& flow : flows_) flow.remaining -= static_cast<__int128>(flow.rate) * passed;
  if (now_ns < next_end_ns_) return;
  std::erase_if(flows_, [&](const Flow& flow) {
    if (flow.remaining > 0) return false;
    ended.push_back(flow.owner);
    changed_ = true;
    return true;
  });
}

void Flows::settle() {
  if (!changed_) return;
  changed_ = false;
  share();
  next_end_ns_ = kNever;
  for (const auto& flow : flows_) {
    const auto wait = (flow.remaining + flow.rate - 1) / flow.rate;
    if (wait < kNever - now_ns_)
      next_end_ns_ = std::min(next_end_ns_, now_ns_ + static_cast<int64_t>(wait));
  }
}

/// Progressive filling: the channel that can give its flows least fixes their rates.
void Flows::share() {
  left_ = capacity_;
  std::fill(unfixed_.begin(), unfixed_.end(), 0);
  for (auto& flow : flows_) {
    flow.rate = 0;
    for (const int32_t channel : cluster_.route(flow.from, flow.to))
      ++unfixed_[static_cast<size_t>(channel)];
  }
  for (size_t fixed = 0; fixed < flows_.size();) {
    int64_t least = kNever;
    size_t narrowest = 0;
    for (size_t c = 0; c < left_.size(); ++c) {
      if (unfixed_[c] == 0) continue;
      const int64_t each = std::max<int64_t>(1, left_[c] / unfixed_[c]);
      if (each < least) least = each, narrowest = c;
    }
    for (auto& flow : flows_) {
      const auto route = cluster_.route(flow.from, flow.to);
      const auto on = std::find(route.begin(), route.end(), static_cast<int32_t>(narrowest));
      if (flow.rate > 0 || on == route.end()) continue;
      flow.rate = least;
      ++fixed;
      for (const int32_t channel : route) {
        --unfixed_[static_cast<size_t>(channel)];
        auto& left = left_[static_cast<size_t>(channel)];
        left = std::max<int64_t>(0, left - least);
      }
    }
  }
}

}  // namespace trinity
