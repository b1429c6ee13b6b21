// turns_inside() of simulator/bind_schedule.h.
#include <algorithm>
#include <functional>
#include <limits>
#include <queue>
#include <utility>

#include "base/index.h"
#include "simulator/bind_schedule.h"
#include "strategy/schedule.h"

namespace trinity {
namespace {

using Moment = std::pair<int64_t, int32_t>;  // ns, operator or device
using Earliest = std::priority_queue<Moment, std::vector<Moment>, std::greater<>>;

class Listing {
 public:
  Listing(const Problem& problem, std::span<const int32_t> placement,
          std::span<const int32_t> devices)
      : problem_(problem),
        graph_(problem.graph()),
        placement_(placement),
        devices_(devices),
        readers_(graph_.tensors().size()),
        missing_(at(graph_.operator_count()), 0),
        waiting_(graph_.collectives().size(), 0),
        ready_ns_(at(graph_.operator_count()), 0),
        turn_(at(graph_.operator_count()), 0) {
    const int32_t used = *std::max_element(placement.begin(), placement.end()) + 1;
    queues_.resize(at(used));
    busy_.assign(at(used), false);
    for (int32_t op = 0; op < graph_.operator_count(); ++op) {
      for (const int32_t input : graph_.op(op).inputs) readers_[at(input)].push_back(op);
      missing_[at(op)] = static_cast<int32_t>(graph_.op(op).inputs.size());
      if (const int32_t group = graph_.op(op).collective; group >= 0)
        waiting_[at(group)] += missing_[at(op)];
    }
  }

  std::vector<int32_t> run() {
    for (int32_t op = 0; op < graph_.operator_count(); ++op)
      if (missing_[at(op)] == 0 && graph_.op(op).collective < 0) arrivals_.push({0, op});
    while (!arrivals_.empty() || !ends_.empty()) {
      const int64_t now = std::min(arrivals_.empty() ? kNone : arrivals_.top().first,
                                   ends_.empty() ? kNone : ends_.top().first);
      for (; !ends_.empty() && ends_.top().first == now; ends_.pop()) {
        const int32_t op = ends_.top().second;
        busy_[at(placement_[at(op)])] = false;
        touched_.push_back(placement_[at(op)]);
        hand_on(op, now);
      }
      for (; !arrivals_.empty() && arrivals_.top().first == now; arrivals_.pop()) {
        const int32_t op = arrivals_.top().second;
        queues_[at(placement_[at(op)])].push({now, op});
        touched_.push_back(placement_[at(op)]);
      }
      for (const int32_t device : touched_) dispatch(device, now);
      touched_.clear();
    }
    return std::move(turn_);
  }

 private:
  static constexpr int64_t kNone = std::numeric_limits<int64_t>::max();

  int32_t in_cluster(int32_t device) const {
    return devices_.empty() ? device : devices_[at(device)];
  }

  void dispatch(int32_t device, int64_t now) {
    auto& queue = queues_[at(device)];
    if (busy_[at(device)] || queue.empty()) return;
    const int32_t op = queue.top().second;
    queue.pop();
    busy_[at(device)] = true;
    turn_[at(op)] = turns_++;
    ends_.push({now + problem_.cost_ns(in_cluster(device), op), op});
  }

  /// Delivers an operator's outputs to their readers.
  void hand_on(int32_t op, int64_t now) {
    for (const int32_t output : graph_.op(op).outputs)
      for (const int32_t reader : readers_[at(output)]) {
        const int32_t a = placement_[at(op)], b = placement_[at(reader)];
        const int64_t wire =
            a == b ? 0 : problem_.wire_ns(in_cluster(a), in_cluster(b), graph_.tensor(output).bytes);
        arrive(reader, now + wire);
      }
  }

  void arrive(int32_t op, int64_t there) {
    ready_ns_[at(op)] = std::max(ready_ns_[at(op)], there);
    const int32_t group = graph_.op(op).collective;
    if (group < 0) {
      if (--missing_[at(op)] == 0) arrivals_.push({ready_ns_[at(op)], op});
      return;
    }
    if (--waiting_[at(group)] > 0) return;
    const auto& members = graph_.collectives()[at(group)].members;
    int64_t all = 0;
    for (const int32_t member : members) all = std::max(all, ready_ns_[at(member)]);
    for (const int32_t member : members) hand_on(member, all);
  }

  const Problem& problem_;
  const Graph& graph_;
  std::span<const int32_t> placement_, devices_;
  std::vector<std::vector<int32_t>> readers_;  // per tensor
  std::vector<int32_t> missing_, waiting_;     // inputs: per operator, per collective
  std::vector<int64_t> ready_ns_;
  std::vector<int32_t> turn_;
  int32_t turns_ = 0;
  std::vector<Earliest> queues_;  // [device]: ready operators
  std::vector<bool> busy_;
  std::vector<int32_t> touched_;
  Earliest arrivals_, ends_;
};

}  // namespace

std::vector<int32_t> turns_inside(const Problem& problem, std::span<const int32_t> placement,
                                  std::span<const int32_t> stage,
                                  std::span<const int32_t> devices) {
  if (!places_operators(problem.graph(), placement, stage)) return {};
  return Listing(problem, placement, devices).run();
}

}  // namespace trinity
