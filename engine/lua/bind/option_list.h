#pragma once

#include "base/options.h"
#include "lua/host/bound.h"

namespace trinity::lua {

/// A visitor (base/options.h) that adds every option to the list on top of the stack, as { name =,
/// type = 'number' | 'integer' | 'boolean' | 'string' | 'choice', default =, least =, most =, words
/// = { ... }, help = }, those that it has.
struct OptionList {
  lua_State* L;
  int count = 0;

  template <class Number>
  void operator()(const char* name, Number value, double least, double most, const char* help) {
    add(name, std::is_integral_v<Number> ? "integer" : "number", help, "default", value, "least", least, "most", most);
  }
  void operator()(const char* name, bool value, const char* help) { add(name, "boolean", help, "default", value); }
  void operator()(const char* name, const std::string& value, const char* help) {
    add(name, "string", help, "default", value);
  }
  template <class Choice, size_t Words>
  void operator()(const char* name, Choice value, const std::array<const char*, Words>& words, const char* help) {
    add(name, "choice", help, "default", words[static_cast<size_t>(value)], "words", words);
  }

 private:
  template <class... Fields>
  void add(const char* name, const char* type, const char* help, const Fields&... fields) {
    push(L, record("name", name, "type", type, "help", help, fields...));
    lua_rawseti(L, -2, ++count);
  }
};

}  // namespace trinity::lua
