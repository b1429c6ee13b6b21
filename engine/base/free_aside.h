#pragma once

#include <exception>
#include <memory>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>

#include "base/stop.h"

namespace trinity {

/// Frees what lies behind `values` on a thread of its own, which nobody waits for; here where the
/// system has no thread to give.
template <class T>
void free_aside(std::unique_ptr<T> values) {
  try {
    std::thread([held = std::shared_ptr<T>(std::move(values))] {}).detach();
  } catch (const std::system_error&) {
  }
}

/// Frees `values` aside where Ctrl-C ends the scope of this. What it leaves half made may be
/// millions of small pieces, and to free them takes longer than a person should wait.
template <class... T>
class AsideOnStop {
 public:
  explicit AsideOnStop(T&... values) : values_(values...) {}
  ~AsideOnStop() {
    if (!stop_flag() || std::uncaught_exceptions() == exceptions_) return;
    free_aside(std::make_unique<std::tuple<T...>>(
        std::apply([](T&... value) { return std::tuple<T...>(std::move(value)...); }, values_)));
  }
  AsideOnStop(const AsideOnStop&) = delete;
  AsideOnStop& operator=(const AsideOnStop&) = delete;

 private:
  std::tuple<T&...> values_;
  int exceptions_ = std::uncaught_exceptions();
};

}  // namespace trinity
