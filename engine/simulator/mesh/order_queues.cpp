// Queues of transfers and collectives, and collectives that can be booked early.
#include <algorithm>

#include "base/index.h"
#include "simulator/order_engine.h"

namespace trinity {
namespace {

template <class Routes, class Groups, class Visit>
void for_rows(Routes& routes, Groups& groups, const Visit& visit) {
  for (auto& route : routes) visit(route);
  for (auto& group : groups) visit(group);
}

}  // namespace

/// Writes the queues of a transfer to queues_.
void OrderEngine::add_queues(int32_t from, int32_t to) {
  const auto model = problem_->rules().queue;
  const auto add = [this](std::span<const int32_t> list) {
    queues_.insert(queues_.end(), list.begin(), list.end());
  };
  if (model == QueueModel::sender)
    queues_.push_back(from);
  else if (quotient_ && (model == QueueModel::pair || model == QueueModel::route))
    add(quotient_->path(from, to));
  else if (model == QueueModel::pair)
    queues_.push_back(from * static_cast<int32_t>(devices_.size()) + to);
  else if (model == QueueModel::route)
    for (const int32_t channel : problem_->cluster().route(from, to)) queues_.push_back(channel);
}

/// Finds equivalence classes of queues: those used by the same transfers and collectives.
void OrderEngine::find_queue_classes() {
  auto& [class_of, row_of, becomes] = classes_;
  class_of.assign(queue_count_, 0);
  row_of.assign(1, -1);
  becomes.assign(1, 0);
  int32_t row = 0;
  for_rows(routes_, groups_, [&](const auto& taker) {
    for (int32_t i = taker.queues_begin; i < taker.queues_end; ++i) {
      auto& of = class_of[at(queues_[i])];
      if (row_of[of] != row) {
        row_of[of] = row;
        becomes[of] = static_cast<int32_t>(row_of.size());
        row_of.push_back(-1);
        becomes.push_back(0);
      }
      of = becomes[of];
    }
    ++row;
  });
}

/// Merges queues of one class: they are free at the same times.
void OrderEngine::join_queues() {
  queue_count_ = 0;
  for (const int32_t queue : queues_) queue_count_ = std::max(queue_count_, at(queue) + 1);
  if (queue_count_ > kMostQueues) return;
  find_queue_classes();
  auto& [class_of, row_of, number] = classes_;
  std::fill(row_of.begin(), row_of.end(), -1);
  std::fill(number.begin(), number.end(), -1);
  int32_t row = 0, numbers = 0;
  for_rows(routes_, groups_, [&](auto& taker) {
    int32_t end = taker.queues_begin;
    for (int32_t i = taker.queues_begin; i < taker.queues_end; ++i) {
      const size_t of = at(class_of[at(queues_[i])]);
      if (number[of] < 0) number[of] = numbers++;
      if (row_of[of] != row) queues_[end++] = number[of];
      row_of[of] = row;
    }
    taker.queues_end = end;
    ++row;
  });
  queue_count_ = at(numbers);
}

/// True if one device alone provides the inputs, from its lists, in every micro-batch, and is the
/// only one that waits.
bool OrderEngine::own(int32_t collective) const {
  const auto& group = groups_[collective];
  const auto members = graph_->members(collective);
  if (group.once || members.size() != 1 || group.missing == 0) return false;
  const int32_t op = members[0];
  if (route_first_[op] < route_first_[at(op) + 1] || feeds_begin_[op] < feeds_end_[op])
    return false;
  for (const auto& [from, output] : graph_->inputs(op))
    if (placement_[from] != placement_[op] || member(from) || graph_->once(from)) return false;
  return true;
}

void OrderEngine::find_at_once() {
  constexpr int32_t kNobody = -1, kSeveral = -2;
  queue_device_.assign(queue_count_, kNobody);
  if (queue_count_ > kMostQueues) return;
  for (const auto& route : routes_)
    for (int32_t i = route.queues_begin; i < route.queues_end; ++i)
      queue_device_[queues_[i]] = kSeveral;
  for (int32_t c = 0; c < graph_->collectives(); ++c) {
    groups_[c].at_once = own(c);
    const int32_t device = groups_[c].at_once ? placement_[graph_->members(c)[0]] : kSeveral;
    for (const int32_t queue : queues_of(groups_[c])) {
      auto& owner = queue_device_[queue];
      owner = owner == kNobody || owner == device ? device : kSeveral;
    }
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (auto& group : groups_) {
      const auto list = queues_of(group);
      if (!group.at_once || std::none_of(list.begin(), list.end(), [&](int32_t queue) {
            return queue_device_[queue] == kSeveral;
          }))
        continue;
      group.at_once = false;
      changed = true;
      for (const int32_t queue : list) queue_device_[queue] = kSeveral;
    }
  }
}

}  // namespace trinity
