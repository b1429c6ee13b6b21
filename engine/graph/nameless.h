#pragma once

#include <string>
#include <string_view>

namespace trinity {

/// While an instance lives, this thread builds graphs without names: operators, tensors and
/// collectives need none, graphs derived from checked graphs are not checked again, and
/// fingerprints are 0. Building takes a third of the time.
class Nameless {
 public:
  Nameless() : before_(on_) { on_ = true; }
  ~Nameless() { on_ = before_; }
  Nameless(const Nameless&) = delete;
  Nameless& operator=(const Nameless&) = delete;

  static bool on() { return on_; }

 private:
  static thread_local bool on_;
  bool before_;
};

/// Result of `make`, or an empty string if names are not wanted.
template <class Make>
std::string name_of(Make make) {
  return Nameless::on() ? std::string() : make();
}

/// The layer prefix of an operator's name (up to its first '/') and its part numbers (after '@').
/// Kernels with equal prefix and parts are dispatched together (strategy/dispatch.h).
std::string layer_and_parts(std::string_view name);

/// Name of an operator derived from one named `of`: the result of `make`, or only
/// layer_and_parts(of) if names are not wanted.
template <class Make>
std::string name_made_of(std::string_view of, Make make) {
  return Nameless::on() ? layer_and_parts(of) : make();
}

}  // namespace trinity
