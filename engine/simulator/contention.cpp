#include "simulator/contention.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace trinity {
namespace {

constexpr int kBits = 20;
constexpr int64_t kOne = int64_t{1} << kBits;

}  // namespace

Contention::Contention(const Problem& problem)
    : problem_(problem),
      group_of_(static_cast<size_t>(problem.devices()), -1),
      work_(static_cast<size_t>(problem.devices())) {
  if (!problem.contends()) return;
  const auto& cluster = problem.cluster();
  std::map<std::pair<std::string, int32_t>, std::vector<int32_t>> alike;
  for (int32_t d = 0; d < problem.devices(); ++d)
    if (!cluster.device(d).node.empty() && has_contention(cluster.type_of(d)))
      alike[{cluster.device(d).node, cluster.device(d).type}].push_back(d);
  for (auto& [key, devices] : alike) {
    if (devices.size() < 2) continue;
    for (const int32_t d : devices) group_of_[d] = static_cast<int32_t>(groups_.size());
    auto& slowing = slowing_.emplace_back();
    for (const auto& op : problem.graph().operators())
      slowing.push_back(std::llround((contention(op, cluster.type_of(devices[0])) - 1) *
                                     static_cast<double>(kOne)));
    groups_.push_back(std::move(devices));
  }
}

void Contention::clear() { std::fill(work_.begin(), work_.end(), Work{}); }

void Contention::start(int32_t device, int32_t op, int64_t now_ns, int64_t begin_ns,
                       int64_t cost_ns) {
  const int32_t group = group_of_[device];
  const int64_t slowing = slowing_[group][op];
  work_[device] = {true, cost_ns << kBits, 0, begin_ns, -1, slowing};
  repace(group, now_ns);
}

void Contention::stop(int32_t device, int64_t now_ns) {
  work_[device].computes = false;
  repace(group_of_[device], now_ns);
}

/// Updates remaining work and sets the current rate of all devices of a group.
void Contention::repace(int32_t group, int64_t now_ns) {
  const auto& devices = groups_[group];
  moved_.clear();
  int64_t others = -1;
  for (const int32_t d : devices) others += work_[d].computes ? 1 : 0;
  const auto most = static_cast<int64_t>(devices.size()) - 1;
  for (const int32_t d : devices) {
    Work& work = work_[d];
    if (!work.computes) continue;
    if (now_ns > work.from_ns) {
      work.left = std::max<int64_t>(0, work.left - work.rate * (now_ns - work.from_ns));
      work.from_ns = now_ns;
    }
    const int64_t slowed = kOne + work.slowing * others / most;
    work.rate = std::max<int64_t>(1, (kOne * kOne + slowed / 2) / slowed);
    const int64_t end = work.from_ns + (work.left + work.rate - 1) / work.rate;
    if (end == work.end_ns) continue;
    work.end_ns = end;
    moved_.push_back(d);
  }
}

}  // namespace trinity
