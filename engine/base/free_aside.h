#pragma once

#include <exception>
#include <memory>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>

#include "base/stop.h"

namespace trinity {

/// Frees `values` on a background thread without waiting; on this thread if the system refuses one.
template <class T>
void free_aside(std::unique_ptr<T> values) {
  try {
    std::thread([held = std::shared_ptr<T>(std::move(values))] {}).detach();
  } catch (const std::system_error&) {
  }
}

/// Frees `values` in the background if the scope is left by Interrupted. A half-built result may
/// consist of millions of small allocations, which take too long to free after Ctrl-C.
/// For one scope of one thread.
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
