#include "base/thread_pool.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <latch>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"

namespace trinity {
namespace {

/// This process is a forked child of one that had pools.
bool g_forked = false;

/// The script's thread handles signals; workers must not receive them.
void block_signals() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

void watch_forks() {
  static const int registered = pthread_atfork(nullptr, nullptr, [] { g_forked = true; });
  static_cast<void>(registered);
}

/// The loops that a thread is inside of, innermost first.
struct Inside {
  const void* pool;
  int thread;
  const Inside* outer;
};
thread_local const Inside* t_inside = nullptr;

/// RAII: during its lifetime this thread runs items of a pool under a number.
class Enter {
 public:
  Enter(const void* pool, int thread) : here_{pool, thread, t_inside} { t_inside = &here_; }
  ~Enter() { t_inside = here_.outer; }
  Enter(const Enter&) = delete;
  Enter& operator=(const Enter&) = delete;

 private:
  Inside here_;
};

/// The number under which this thread runs items of a pool; -1: none.
int thread_inside(const void* pool) {
  for (const auto* at = t_inside; at; at = at->outer)
    if (at->pool == pool) return at->thread;
  return -1;
}

/// As with threads, every item runs, and the exception of the lowest failing one is rethrown.
void run_here(int count, int thread, const std::function<void(int, int)>& body) {
  std::exception_ptr failure;
  for (int item = 0; item < count; ++item) {
    try {
      body(item, thread);
    } catch (...) {
      if (!failure) failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
}

/// Memory that `first` may take over all threads (malloc arenas, settings).
size_t start_bytes(int threads) {
  const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  return (static_cast<size_t>(std::min(threads, 8 * cores)) << 17) +
         (static_cast<size_t>(threads) << 12);
}

}  // namespace

/// State shared by the threads. A forked child never touches it: its locks and waiters belong to
/// threads that the child does not have.
struct ThreadPool::Shared {
  /// `first` runs after all threads have started, with memory reserved for it: libgomp aborts the
  /// process if it finds none, even in a pool that is about to be refused.
  void start(int threads, const std::function<void()>& first) {
    running = threads - 1;
    std::latch all(1);
    bool given = false;
    try {
      const std::unique_ptr<char[]> kept(new char[start_bytes(threads)]);
      static_cast<volatile char&>(kept[0]) = 0;  // keeps the compiler from removing it
      for (int i = 1; i < threads; ++i) {
        workers.emplace_back([this, i, &first, &all, &given] {
          block_signals();
          all.wait();
          if (!given) return;
          if (first) first();
          finish();
          work(i);
        });
      }
      given = true;
    } catch (const std::system_error& error) {
      all.count_down();
      close();  // otherwise running threads would wait on a destroyed object
      throw LimitError("{} threads cannot be started, only {}: {}", threads, workers.size() + 1,
                       error.code().message());
    } catch (...) {
      all.count_down();
      close();
      throw;
    }
    all.count_down();
    std::unique_lock lock(mutex);
    done.wait(lock, [this] { return running == 0; });
  }

  void close() {
    {
      std::lock_guard lock(mutex);
      closing = true;
    }
    wake.notify_all();
    for (auto& worker : workers) worker.join();
  }

  void parallel_for(int items, const std::function<void(int, int)>& loop,
                    const std::function<void()>* first = nullptr) {
    if (const int thread = thread_inside(this); thread >= 0) return run_here(items, thread, loop);
    const std::lock_guard mine(turn);
    {
      std::lock_guard lock(mutex);
      body = &loop;
      each = first;
      count = items;
      next = 0;
      failed_item = -1;
      failure = nullptr;
      running = static_cast<int>(workers.size());
      ++round;
    }
    wake.notify_all();
    drain(0);
    std::unique_lock lock(mutex);
    done.wait(lock, [this] { return running == 0; });
    body = nullptr;
    if (failure) std::rethrow_exception(std::exchange(failure, nullptr));
  }

  void work(int thread) {
    uint64_t seen = 0;
    for (;;) {
      {
        std::unique_lock lock(mutex);
        wake.wait(lock, [&] { return closing || round != seen; });
        if (closing) return;
        seen = round;
      }
      if (each) (*each)();
      drain(thread);
      finish();
    }
  }

  void drain(int thread) {
    const Enter enter(this, thread);
    for (;;) {
      int item;
      {
        std::lock_guard lock(mutex);
        if (next >= count) return;
        item = next++;
      }
      try {
        (*body)(item, thread);
      } catch (...) {
        std::lock_guard lock(mutex);
        if (failed_item < 0 || item < failed_item) {
          failed_item = item;
          failure = std::current_exception();
        }
      }
    }
  }

  void finish() {
    std::lock_guard lock(mutex);
    if (--running == 0) done.notify_one();
  }

  std::vector<std::thread> workers;
  std::mutex turn;  // held by the thread whose loop runs
  std::mutex mutex;
  std::condition_variable wake, done;
  const std::function<void(int, int)>* body = nullptr;
  const std::function<void()>* each = nullptr;  // called by workers before they take items
  int count = 0, next = 0, running = 0, failed_item = -1;
  uint64_t round = 0;
  std::exception_ptr failure;
  bool closing = false;
};

ThreadPool::ThreadPool(int threads, std::function<void()> start)
    : threads_(threads > 0 ? threads
                           : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()))) {
  watch_forks();
  if (g_forked) threads_ = 1;
  if (threads_ == 1) return;
  shared_ = std::make_unique<Shared>();
  shared_->start(threads_, start);
}

ThreadPool::~ThreadPool() {
  if (!shared_) return;
  if (g_forked)
    // its destructor would wait for threads that do not exist here
    static_cast<void>(shared_.release());
  else
    shared_->close();
}

void ThreadPool::on_each(const std::function<void()>& body) {
  if (shared_ && !g_forked)
    shared_->parallel_for(
        0, [](int, int) {}, &body);
}

void ThreadPool::parallel_for(int count, const std::function<void(int, int)>& body) {
  if (shared_ && !g_forked) return shared_->parallel_for(count, body);
  run_here(count, 0, body);
}

}  // namespace trinity
