#include "lua/host/structs.h"

#include <cstring>

namespace trinity::lua {
namespace {

struct TypeNumbers {
  uint16_t of[5];  // at the low byte of Magic; 0: not known yet
};

const char kKey = 0, kKeptKey = 0;

size_t place(Magic magic) { return static_cast<uint32_t>(magic) & 0xff; }

/// LuaJIT keeps the number in a cdata's header: collector's link, two bytes, number, padding up to
/// the payload. know_structs() makes sure of it.
uint16_t type_number(const void* payload) {
  uint16_t number;
  std::memcpy(&number, static_cast<const char*>(payload) - 6, sizeof number);
  return number;
}

TypeNumbers* numbers(lua_State* L) {
  lua_pushlightuserdata(L, const_cast<char*>(&kKey));
  lua_rawget(L, LUA_REGISTRYINDEX);
  auto* found = static_cast<TypeNumbers*>(lua_touserdata(L, -1));
  lua_pop(L, 1);
  return found;
}

uint16_t read_number(lua_State* L, const char* name, Magic magic) {
  Fields types(L, 1, "know_structs");
  if (!types.push_table(name)) throw ArgumentError("know_structs: no '{}'", name);
  lua_rawgeti(L, -1, 1);
  lua_rawgeti(L, -2, 2);
  const auto* payload = lua_type(L, -2) == kCdata ? lua_topointer(L, -2) : nullptr;
  const auto number = static_cast<uint16_t>(integer_arg(L, lua_gettop(L), "type number", 1, 65535));
  uint32_t word = 0;
  if (payload) std::memcpy(&word, payload, sizeof word);
  if (word != static_cast<uint32_t>(magic) || type_number(payload) != number)
    throw Error("internal error: this LuaJIT stores the types of cdata at an unexpected address");
  lua_pop(L, 3);
  return number;
}

}  // namespace

int know_structs(lua_State* L) {
  if (numbers(L)) return 0;  // of the library; a script cannot replace them
  TypeNumbers read = {};
  const std::pair<const char*, Magic> kinds[] = {{"int32_array", Magic::int32_array},
                                                 {"double_array", Magic::double_array},
                                                 {"int32_span", Magic::int32_span},
                                                 {"metrics", Magic::metrics}};
  for (const auto& [name, magic] : kinds) read.of[place(magic)] = read_number(L, name, magic);
  lua_pushlightuserdata(L, const_cast<char*>(&kKey));
  *static_cast<TypeNumbers*>(lua_newuserdata(L, sizeof read)) = read;
  lua_rawset(L, LUA_REGISTRYINDEX);
  return 0;
}

bool is_struct(lua_State* L, const void* payload, Magic magic) {
  const auto* known = numbers(L);
  return known && payload && type_number(payload) == known->of[place(magic)];
}

void keep_with(lua_State* L, int index) {
  lua_pushlightuserdata(L, const_cast<char*>(&kKeptKey));
  lua_rawget(L, LUA_REGISTRYINDEX);
  if (lua_isnil(L, -1)) {
    lua_pop(L, 1);
    lua_newtable(L);  // cdata to what it needs, with weak keys
    lua_newtable(L);
    lua_pushliteral(L, "k");
    lua_setfield(L, -2, "__mode");
    lua_setmetatable(L, -2);
    lua_pushlightuserdata(L, const_cast<char*>(&kKeptKey));
    lua_pushvalue(L, -2);
    lua_rawset(L, LUA_REGISTRYINDEX);
  }
  lua_pushvalue(L, index);
  lua_pushvalue(L, -3);
  lua_rawset(L, -3);
  lua_pop(L, 2);
}

}  // namespace trinity::lua
