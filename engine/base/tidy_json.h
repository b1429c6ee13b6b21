#pragma once

#include <nlohmann/json.hpp>

namespace trinity {

/// Takes a value of nlohmann's apart. Its own destructor asks for memory and ends the process where
/// there is none.
template <class Json>
void dismantle(Json& value) noexcept {
  if (!value.is_structured()) return;
  for (auto& child : value) dismantle(child);
  if (value.is_array())
    value.template get_ref<typename Json::array_t&>().clear();
  else
    value.template get_ref<typename Json::object_t&>().clear();
}

/// A value, at first an empty object, that is taken apart in the end. (Of nlohmann's, null["x"] =
/// leaves an object without its fields where there is no memory for them, which nothing survives.)
template <class Json>
struct Tidy {
  Json value = Json::object();
  Tidy() = default;
  explicit Tidy(Json given) : value(std::move(given)) {}
  Tidy(const Tidy&) = delete;
  Tidy& operator=(const Tidy&) = delete;
  ~Tidy() { dismantle(value); }
};

}  // namespace trinity
