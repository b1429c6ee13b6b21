#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace trinity {

/// Threads that live as long as it does, so that what libraries keep by thread lasts from step to
/// step: cuDNN's plan of a convolution, one millisecond to make.
class Team {
 public:
  Team() = default;
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  /// Has at least so many threads from now on. Throws Error with the number of the first that the
  /// system refuses.
  void grow(size_t count);

  /// Calls body(i) for every i below count (at most the number of threads), always on thread i, and
  /// returns when all have returned; meanwhile `look`, if there is one, every millisecond. `body`
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
