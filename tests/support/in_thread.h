#pragma once

#include <exception>
#include <functional>
#include <thread>

namespace trinity::test {

/// Runs `body` in a thread of its own, because restrict_files() affects its thread permanently.
inline void in_thread(const std::function<void()>& body) {
  std::exception_ptr failure;
  std::thread([&] {
    try {
      body();
    } catch (...) {
      failure = std::current_exception();
    }
  }).join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace trinity::test
