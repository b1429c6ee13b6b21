#include "search/placement/in_flight.h"

#include <array>
#include <condition_variable>
#include <deque>
#include <mutex>

#include "base/stop.h"
#include "search/placement/side_by_side.h"

namespace trinity {
namespace {

/// The trials that are open, in the order in which they were drawn.
class Flights {
 public:
  Flights(Annealing& search, int32_t in_flight, int64_t last)
      : search_(search), in_flight_(static_cast<size_t>(in_flight)), last_(last) {
    refill();
  }

  /// Simulates trials until there are none left; what every thread does.
  void work(Simulator& simulator) {
    std::unique_lock lock(mutex_);
    while (auto* open = next(lock)) {
      lock.unlock();
      try {
        poll_stop();
        price(*open, simulator);
        lock.lock();
        open->is_priced = true;
        judge();
      } catch (...) {
        if (!lock.owns_lock()) lock.lock();
        is_over_ = true;
        changed_.notify_all();
        throw;
      }
      changed_.notify_all();
    }
  }

 private:
  struct Open {
    Annealing::Flight flight;
    std::vector<int32_t> placement;
    Score score;
    bool is_priced = false;
  };

  /// One that no thread has taken, or null where none will come; waits while one may.
  Open* next(std::unique_lock<std::mutex>& lock) {
    for (;;) {
      if (is_over_) return nullptr;
      if (taken_ < open_.size()) return &open_[taken_++];
      if (search_.evaluations() >= last_) return nullptr;
      changed_.wait(lock);
    }
  }

  static void price(Open& open, Simulator& simulator) {
    Metrics metrics;
    simulator.run(open.placement, metrics, nullptr, limit_ns_of(open.flight.limit));
    open.score = {std::max<int64_t>(0, metrics.excess_memory_bytes), metrics.step_time_s()};
  }

  void judge() {
    while (!open_.empty() && open_.front().is_priced) {
      search_.land(open_.front().flight, open_.front().score);
      open_.pop_front();
      --taken_;
      refill();
    }
  }

  void refill() {
    while (open_.size() < in_flight_ && search_.evaluations() < last_) {
      auto flight = search_.launch(last_ - search_.evaluations());
      auto placement = search_.space().placement(flight.assignment);
      open_.push_back({std::move(flight), std::move(placement), {}, false});
    }
  }

  Annealing& search_;
  size_t in_flight_;
  int64_t last_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Open> open_;
  size_t taken_ = 0;  // of open_, the first ones: being simulated, or priced
  bool is_over_ = false;
};

}  // namespace

void run_in_flight(Annealing& search, std::span<Simulator> simulators, int32_t in_flight,
                   int64_t evaluations, ThreadPool& pool) {
  const int64_t last = search.evaluations() + evaluations;
  while (search.at_starts() && search.evaluations() < last)
    run_side_by_side(std::array{SideSearch{&search, &simulators[0]}}, 1, pool);
  Flights flights(search, in_flight, last);
  pool.parallel_for(static_cast<int>(simulators.size()), [&](int item, int) {
    flights.work(simulators[static_cast<size_t>(item)]);
  });
}

}  // namespace trinity
