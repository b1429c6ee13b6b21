#include "strategy/replica_clock.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"

namespace trinity {

ReplicaClock::ReplicaClock(std::vector<double> alone_s, std::vector<double> together_s)
    : alone_s_(std::move(alone_s)), together_s_(std::move(together_s)), now_s_(alone_s_.size(), 0) {
  if (alone_s_.empty() || (!together_s_.empty() && together_s_.size() != alone_s_.size()))
    throw ArgumentError(fmt::format("replica clock: seconds of {} nodes alone, of {} together",
                                    alone_s_.size(), together_s_.size()));
  for (const auto* times : {&alone_s_, &together_s_})
    for (const double time_s : *times)
      if (!(time_s >= 0)) throw ArgumentError(fmt::format("replica clock: a step of {} s", time_s));
  compute_s_ = *std::max_element(alone_s_.begin(), alone_s_.end());
}

double ReplicaClock::local_sgd_epoch_s(int64_t batches, int64_t steps, double average_s) const {
  const auto count = static_cast<double>(batches);
  return count * compute_s_ + std::ceil(count / static_cast<double>(steps)) * average_s;
}

double ReplicaClock::server_epoch_s(int64_t batches, double all_s, double one_s,
                                    bool asynchronous) const {
  const double batch_s = asynchronous ? std::max(all_s, compute_s_ + one_s) : compute_s_ + all_s;
  return static_cast<double>(batches) * batch_s;
}

double ReplicaClock::latest_s() const { return *std::max_element(now_s_.begin(), now_s_.end()); }

void ReplicaClock::step(bool together) {
  const auto& step_s = together ? together_s_ : alone_s_;
  if (step_s.empty()) throw ArgumentError("replica clock: no seconds of nodes together");
  for (size_t node = 0; node < now_s_.size(); ++node) now_s_[node] += step_s[node];
}

void ReplicaClock::step_of_all(double step_s) {
  std::fill(now_s_.begin(), now_s_.end(), latest_s() + step_s);
}

void ReplicaClock::add(double seconds) {
  for (double& now_s : now_s_) now_s += seconds;
}

void ReplicaClock::send(double sum_s) {
  wire_free_s_ = std::max(latest_s(), wire_free_s_) + sum_s;
  sent_s_ = wire_free_s_;
}

void ReplicaClock::end_batch() {
  if (sent_s_) earlier_s_ = std::exchange(sent_s_, std::nullopt);
}

void ReplicaClock::wait(std::optional<double>& until_s) {
  if (!until_s) throw ArgumentError("replica clock: nothing was sent that nodes could wait for");
  for (double& now_s : now_s_) now_s = std::max(now_s, *until_s);
  until_s.reset();
}

void ReplicaClock::wait_for_sent() { wait(sent_s_); }
void ReplicaClock::wait_for_earlier() { wait(earlier_s_); }

}  // namespace trinity
