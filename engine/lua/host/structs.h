#pragma once

#include <algorithm>
#include <lua.hpp>
#include <span>

#include "lua/host/check.h"
#include "lua/host/trinity_ffi.h"

// Which cdata are our structs. The first word of a struct says what it is, but a script can write a
// number literal with the same bits (0x74723101ULL is a cdata, too), so the type number that LuaJIT
// gave the struct is compared as well.

namespace trinity::lua {

/// trinity.core.know_structs(types): `types` maps the names of Magic to { sample, type number }.
int know_structs(lua_State* L);

/// True if `payload`, the bytes of some cdata, is the struct of that kind in this state.
bool is_struct(lua_State* L, const void* payload, Magic magic);

/// Pops a value and keeps it as long as the cdata at `index` lives.
void keep_with(lua_State* L, int index);

/// The type of FFI values, which LuaJIT's headers keep to themselves (LUA_TCDATA).
inline constexpr int kCdata = 10;

/// The payload of one of our FFI structs at `index`; nullptr for anything else.
template <class T>
T* find_struct(lua_State* L, int index, Magic magic) {
  if (lua_type(L, index) != kCdata) return nullptr;
  auto* payload = static_cast<T*>(const_cast<void*>(lua_topointer(L, index)));
  return is_struct(L, payload, magic) ? payload : nullptr;
}

/// The same for an argument. Throws ArgumentError for anything else; `expected` says what it needs.
template <class T>
T* struct_arg(lua_State* L, int index, Magic magic, const char* name, const char* expected) {
  auto* payload = find_struct<T>(L, index, magic);
  if (!payload)
    throw WrongArgument(index, name, "expected {}, got {}", expected, type_name(L, index));
  return payload;
}

/// The entries of an array of a script.
inline std::span<int32_t> integers_arg(lua_State* L, int index, const char* name,
                                       const char* expected = "an int32 array") {
  auto* array = struct_arg<trinity_int32_array>(L, index, Magic::int32_array, name, expected);
  return {reinterpret_cast<int32_t*>(array + 1), static_cast<size_t>(array->length)};
}
inline std::span<double> numbers_arg(lua_State* L, int index, const char* name) {
  auto* array =
      struct_arg<trinity_double_array>(L, index, Magic::double_array, name, "a double array");
  return {reinterpret_cast<double*>(array + 1), static_cast<size_t>(array->length)};
}

/// Fill an array of the same length: with indices, which scripts count from 1, or with numbers.
inline void fill_from_1(lua_State* L, int index, const char* name, std::span<const int32_t> from) {
  const auto out = integers_arg(L, index, name);
  TRINITY_CHECK_EQ(out.size(), from.size());
  for (size_t i = 0; i < from.size(); ++i) out[i] = from[i] + 1;
}
template <class Numbers>
void fill_numbers(lua_State* L, int index, const char* name, const Numbers& from) {
  const auto out = numbers_arg(L, index, name);
  TRINITY_CHECK_EQ(out.size(), from.size());
  std::copy(from.begin(), from.end(), out.begin());
}

}  // namespace trinity::lua
