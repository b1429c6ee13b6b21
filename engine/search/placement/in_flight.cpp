#include "search/placement/in_flight.h"

#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>

#include "base/stop.h"
#include "search/placement/side_by_side.h"

namespace trinity {
namespace {

constexpr int kSpins = 20000;

/// The trials that are open, in the order in which they were drawn.
class Flights {
 public:
  Flights(Annealing& search, int32_t in_flight, int64_t last)
      : search_(search),
        in_flight_(static_cast<size_t>(in_flight)),
        last_(last),
        is_drawn_out_(search.evaluations() >= last) {}

  /// Draws, simulates and judges trials until there are none left; what every thread does.
  void work(Simulator& simulator) {
    std::unique_lock lock(mutex_);
    try {
      while (!is_over_ && (step_search(lock) || price_one(lock, simulator) || waits(lock))) {
      }
    } catch (...) {
      if (!lock.owns_lock()) lock.lock();
      is_over_ = true;
      changes_ += 1;
      changed_.notify_all();
      throw;
    }
  }

 private:
  struct Open {
    Annealing::Flight flight;
    Score score;
    bool is_priced = false;
  };

  bool front_is_priced() const { return !open_.empty() && open_.front().is_priced; }

  /// Judges the first trial, or draws one where fewer are open than may be: one thread at a time,
  /// always in the same turn. False where there is neither to do.
  bool step_search(std::unique_lock<std::mutex>& lock) {
    const bool draws = !is_drawn_out_ && open_.size() < in_flight_;
    if (is_searching_ || (!draws && !front_is_priced())) return false;
    is_searching_ = true;
    if (draws) {
      lock.unlock();
      Open drawn{search_.launch(last_ - search_.evaluations()), {}, false};
      lock.lock();
      open_.push_back(std::move(drawn));
    } else {
      const Open judged = std::move(open_.front());
      open_.pop_front();
      --taken_;
      lock.unlock();
      search_.land(judged.flight, judged.score);
      lock.lock();
    }
    is_drawn_out_ = search_.evaluations() >= last_;
    is_searching_ = false;
    changes_ += 1;
    changed_.notify_all();
    return true;
  }

  /// Simulates one that no thread has taken. False where there is none.
  bool price_one(std::unique_lock<std::mutex>& lock, Simulator& simulator) {
    if (taken_ == open_.size()) return false;
    Open& open = open_[taken_++];
    lock.unlock();
    poll_stop();
    open.score = price(open.flight, simulator);
    lock.lock();
    open.is_priced = true;
    return true;
  }

  Score price(const Annealing::Flight& flight, Simulator& simulator) {
    if (flight.is_look) return search_.look(flight), Score{};
    Metrics metrics;
    simulator.run(search_.space().placement(flight.assignment), metrics, nullptr,
                  limit_ns_of(flight.limit));
    return {std::max<int64_t>(0, metrics.excess_memory_bytes), metrics.step_time_s()};
  }

  /// False where nothing will come any more.
  bool waits(std::unique_lock<std::mutex>& lock) {
    if (is_drawn_out_ && taken_ == open_.size() && !is_searching_) return false;
    const auto before = changes_.load();
    lock.unlock();
    for (int spin = 0; spin < kSpins && changes_.load() == before; ++spin) __builtin_ia32_pause();
    lock.lock();
    changed_.wait(lock, [&] { return changes_.load() != before; });
    return true;
  }

  Annealing& search_;
  size_t in_flight_;
  int64_t last_;
  std::mutex mutex_;  // of all below
  std::condition_variable changed_;
  std::atomic<uint64_t> changes_ = 0;
  std::deque<Open> open_;
  size_t taken_ = 0;           // of open_, the first ones: being simulated, or priced
  bool is_searching_ = false;  // a thread judges or draws, without the mutex
  bool is_drawn_out_, is_over_ = false;
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
