#include "base/thread_pool.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <utility>

namespace trinity {
namespace {

/// Signals belong to the thread that runs the script: workers must not receive them.
void block_signals() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

}  // namespace

ThreadPool::ThreadPool(int threads, std::function<void()> start) {
  if (threads <= 0) threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  running_ = threads - 1;
  for (int i = 1; i < threads; ++i) {
    workers_.emplace_back([this, i, start] {
      block_signals();
      if (start) start();
      finish();
      work(i);
    });
  }
  std::unique_lock lock(mutex_);
  done_.wait(lock, [this] { return running_ == 0; });
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard lock(mutex_);
    closing_ = true;
  }
  wake_.notify_all();
  for (auto& worker : workers_) worker.join();
}

void ThreadPool::parallel_for(int count, const std::function<void(int, int)>& body) {
  {
    std::lock_guard lock(mutex_);
    body_ = &body;
    count_ = count;
    next_ = 0;
    failed_item_ = -1;
    failure_ = nullptr;
    running_ = static_cast<int>(workers_.size());
    ++round_;
  }
  wake_.notify_all();
  drain(0);
  std::unique_lock lock(mutex_);
  done_.wait(lock, [this] { return running_ == 0; });
  body_ = nullptr;
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void ThreadPool::work(int thread) {
  uint64_t seen = 0;
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return closing_ || round_ != seen; });
      if (closing_) return;
      seen = round_;
    }
    drain(thread);
    finish();
  }
}

void ThreadPool::finish() {
  std::lock_guard lock(mutex_);
  if (--running_ == 0) done_.notify_one();
}

void ThreadPool::drain(int thread) {
  for (;;) {
    int item;
    {
      std::lock_guard lock(mutex_);
      if (next_ >= count_) return;
      item = next_++;
    }
    try {
      (*body_)(item, thread);
    } catch (...) {
      std::lock_guard lock(mutex_);
      if (failed_item_ < 0 || item < failed_item_) {
        failed_item_ = item;
        failure_ = std::current_exception();
      }
    }
  }
}

}  // namespace trinity
