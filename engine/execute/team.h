#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace trinity {

/// Threads that live as long as the object, so that thread-local caches of libraries survive from
/// step to step, such as cuDNN's convolution plans (one millisecond each). Not thread-safe.
class Team {
 public:
  Team() = default;
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  /// Ensures at least `count` threads. Throws Error with the number of the first one that the
  /// system refuses.
  void grow(size_t count);

  /// Calls body(i) for every i < count (at most the number of threads), always on thread i, and
  /// returns when all have returned. Meanwhile calls `look`, if given, every millisecond. `body`
  /// must not throw.
  void run(size_t count, const std::function<void(size_t)>& body,
           const std::function<void()>& look = {});

 private:
  void serve(size_t number, uint64_t seen);

  std::mutex mutex_;
  std::condition_variable begun_, ended_;
  uint64_t runs_ = 0;
  size_t count_ = 0, busy_ = 0;
  const std::function<void(size_t)>* body_ = nullptr;
  bool closing_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace trinity
