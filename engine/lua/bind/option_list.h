#pragma once

#include "base/options.h"
#include "lua/host/check.h"

namespace trinity::lua {

/// A visitor (base/options.h) that adds every option to the list on top of the stack, as { name =,
/// type = 'number' | 'integer' | 'boolean' | 'string' | 'choice', default =, least =, most =, words
/// = { ... }, help = }, those that it has.
struct OptionList {
  lua_State* L;
  int count = 0;

  template <class Number>
  void operator()(const char* name, Number value, double least, double most, const char* help) {
    begin(name, std::is_integral_v<Number> ? "integer" : "number", help);
    set_field(L, "default", static_cast<double>(value));
    set_field(L, "least", least);
    set_field(L, "most", most);
    end();
  }
  void operator()(const char* name, bool value, const char* help) {
    begin(name, "boolean", help);
    set_boolean(L, "default", value);
    end();
  }
  void operator()(const char* name, const std::string& value, const char* help) {
    begin(name, "string", help);
    set_field(L, "default", value);
    end();
  }
  template <class Choice, size_t Words>
  void operator()(const char* name, Choice value, const std::array<const char*, Words>& words,
                  const char* help) {
    begin(name, "choice", help);
    set_field(L, "default", std::string(words[static_cast<size_t>(value)]));
    push_list(L, words, [&](const char* word) { lua_pushstring(L, word); });
    lua_setfield(L, -2, "words");
    end();
  }

 private:
  void begin(const char* name, const char* type, const char* help) {
    lua_newtable(L);
    set_field(L, "name", std::string(name));
    set_field(L, "type", std::string(type));
    set_field(L, "help", std::string(help));
  }
  void end() { lua_rawseti(L, -2, ++count); }
};

}  // namespace trinity::lua
