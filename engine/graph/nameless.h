#pragma once

#include <string>
#include <string_view>

namespace trinity {

/// While one lives, the graphs that this thread builds are for their numbers alone: operators,
/// tensors and collectives need no names, and what is made of a graph that was checked is not
/// checked again. Such graphs have fingerprint 0. Building takes a third of the time.
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

/// What `make` returns, or nothing where names are not wanted.
template <class Make>
std::string name_of(Make make) {
  return Nameless::on() ? std::string() : make();
}

/// The layer of an operator's name, before its first '/', and its parts, the numbers behind '@': a
/// host dispatches the kernels of both together (strategy/dispatch.h).
std::string layer_and_parts(std::string_view name);

/// The name of an operator that is made of one of name `of`: what `make` returns, or its layer and
/// parts where names are not wanted.
template <class Make>
std::string name_made_of(std::string_view of, Make make) {
  return Nameless::on() ? layer_and_parts(of) : make();
}

}  // namespace trinity
