#include "execute/team.h"

#include <chrono>

#include "base/error.h"

namespace trinity {

Team::~Team() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  begun_.notify_all();
  for (auto& thread : threads_) thread.join();
}

void Team::grow(size_t count) {
  while (threads_.size() < count) {
    try {
      threads_.emplace_back(&Team::serve, this, threads_.size(), runs_);
    } catch (const std::exception& error) {  // also if there is no memory for one
      throw Error("execute: no thread for worker {}: {}", threads_.size() + 1, error.what());
    }
  }
}

void Team::run(size_t count, const std::function<void(size_t)>& body,
               const std::function<void()>& look) {
  std::unique_lock lock(mutex_);
  count_ = busy_ = count;
  body_ = &body;
  ++runs_;
  begun_.notify_all();
  while (busy_ > 0) {
    if (!look) {
      ended_.wait(lock);
      continue;
    }
    ended_.wait_for(lock, std::chrono::milliseconds(1));
    lock.unlock();
    look();
    lock.lock();
  }
}

void Team::serve(size_t number, uint64_t seen) {
  std::unique_lock lock(mutex_);
  while (true) {
    begun_.wait(lock, [&] { return closing_ || runs_ != seen; });
    if (closing_) return;
    seen = runs_;
    if (number >= count_) continue;
    const auto& body = *body_;
    lock.unlock();
    body(number);
    lock.lock();
    if (--busy_ == 0) ended_.notify_all();
  }
}

}  // namespace trinity
