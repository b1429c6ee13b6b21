#include "search/placement/in_flight.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <vector>

#include "base/stop.h"

namespace trinity {
namespace {

constexpr int kSpins = 2000;     // polls for work before a thread sleeps: waking takes longer
constexpr int32_t kLookLag = 4;  // trials of one thread during which an analysis may run

/// Open trials, in launch order, and the analysis, if any.
class Flights {
 public:
  Flights(Annealing& search, int32_t in_flight, int64_t last)
      : search_(search),
        in_flight_(static_cast<size_t>(in_flight)),
        look_lag_(kLookLag * (in_flight - 1)),
        last_(last),
        is_drawn_out_(search.evaluations() >= last) {}

  /// Main of every thread: launches, simulates and judges trials until there are none left.
  void work(Simulator& simulator) {
    std::unique_lock lock(mutex_);
    try {
      while (!is_over_ && (step_search(lock) || price_one(lock, simulator) || waits(lock))) {
      }
    } catch (...) {
      if (!lock.owns_lock()) lock.lock();
      is_over_ = true;
      changed(lock);
      throw;
    }
  }

 private:
  struct Open {
    Annealing::Flight flight;
    Score score;
    bool is_taken = false, is_priced = false;
  };

  /// Judges the first trial, or launches one if fewer are open than allowed, or lands the analysis;
  /// one thread at a time, always in the same order. Returns false if there is nothing to do.
  bool step_search(std::unique_lock<std::mutex>& lock) {
    if (is_searching_) return false;
    is_searching_ = true;
    const bool did = look_ && look_is_due() ? land_look(lock)
                     : !is_drawn_out_ && open_.size() < in_flight_ ? draw(lock)
                                                                  : judge(lock);
    is_searching_ = false;
    if (!did) return false;
    is_drawn_out_ = search_.evaluations() >= last_;
    changed(lock);
    return true;
  }

  bool look_is_due() const {
    return judged_ >= look_lands_at_ || (is_drawn_out_ && open_.empty());
  }

  bool land_look(std::unique_lock<std::mutex>& lock) {
    if (!look_->is_priced) return false;
    lock.unlock();
    search_.land(look_->flight, {});
    lock.lock();
    look_.reset();
    return true;
  }

  bool draw(std::unique_lock<std::mutex>& lock) {
    lock.unlock();
    Open drawn{search_.launch(last_ - search_.evaluations()), {}};
    lock.lock();
    if (drawn.flight.is_look) {
      look_ = std::move(drawn);
      look_lands_at_ = judged_ + look_lag_;
    } else {
      open_.push_back(std::move(drawn));
    }
    return true;
  }

  bool judge(std::unique_lock<std::mutex>& lock) {
    if (open_.empty() || !open_.front().is_priced) return false;
    const Open judged = std::move(open_.front());
    open_.pop_front();
    ++judged_;
    lock.unlock();
    search_.land(judged.flight, judged.score);
    lock.lock();
    return true;
  }

  /// An open trial that no thread simulates; null: none.
  Open* untaken() {
    if (look_ && !look_->is_taken) return &*look_;
    for (auto& open : open_)
      if (!open.is_taken) return &open;
    return nullptr;
  }

  /// Simulates one. Returns false if there is none.
  bool price_one(std::unique_lock<std::mutex>& lock, Simulator& simulator) {
    auto* open = untaken();
    if (!open) return false;
    open->is_taken = true;
    lock.unlock();
    poll_stop();
    open->score = price(open->flight, simulator);
    lock.lock();
    open->is_priced = true;
    return true;
  }

  Score price(const Annealing::Flight& flight, Simulator& simulator) {
    if (flight.is_look) return search_.look(flight), Score{};
    Metrics metrics;
    simulator.run(search_.space().placement(flight.assignment), metrics, nullptr,
                  limit_ns_of(flight.limit));
    return {std::max<int64_t>(0, metrics.excess_memory_bytes), metrics.step_time_s()};
  }

  /// Waits for work. Returns false if there will be none.
  bool waits(std::unique_lock<std::mutex>& lock) {
    if (is_drawn_out_ && !untaken() && !is_searching_) return false;
    const auto before = changes_.load();
    lock.unlock();
    for (int spin = 0; spin < kSpins && changes_.load() == before; ++spin) __builtin_ia32_pause();
    lock.lock();
    changed_.wait(lock, [&] { return changes_.load() != before; });
    return true;
  }

  void changed(const std::unique_lock<std::mutex>&) {
    changes_ += 1;
    changed_.notify_all();
  }

  Annealing& search_;
  size_t in_flight_;
  int64_t look_lag_, last_;
  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  std::atomic<uint64_t> changes_ = 0;
  std::deque<Open> open_;
  std::optional<Open> look_;
  int64_t judged_ = 0, look_lands_at_ = 0;
  bool is_searching_ = false;  // a thread judges or launches, without the mutex
  bool is_drawn_out_, is_over_ = false;
};

/// Asks for one trial and judges it.
void run_one(Searcher& search, Simulator& simulator) {
  Metrics metrics;
  const auto trials = search.ask(1);
  std::vector<Score> scores;
  for (const auto& placement : trials.placements) {
    simulator.run(placement, metrics, nullptr, limit_ns_of(trials.limit));
    scores.push_back({std::max<int64_t>(0, metrics.excess_memory_bytes), metrics.step_time_s()});
  }
  if (!scores.empty()) search.tell(scores);
}

}  // namespace

int64_t limit_ns_of(double limit_s) { return limit_s < 9e9 ? std::llround(limit_s * 1e9) + 1 : kNoLimit; }

void run_in_flight(Annealing& search, std::span<Simulator> simulators, int32_t in_flight,
                   int64_t evaluations, ThreadPool& pool) {
  const int64_t last = search.evaluations() + evaluations;
  while (search.at_starts() && search.evaluations() < last) {
    poll_stop();
    run_one(search, simulators[0]);
  }
  Flights flights(search, in_flight, last);
  pool.parallel_for(static_cast<int>(simulators.size()), [&](int item, int) {
    flights.work(simulators[static_cast<size_t>(item)]);
  });
}

}  // namespace trinity
