#include <algorithm>
#include <cctype>
#include <set>

#include "lua/repl.h"

namespace trinity::lua {
namespace {

constexpr int kMaxDepth = 8;
constexpr size_t kMaxNames = 10000;
constexpr const char* kKeywords[] = {"and",   "break", "do",       "else", "elseif", "end",
                                     "false", "for",   "function", "goto", "if",     "in",
                                     "local", "nil",   "not",      "or",   "repeat", "return",
                                     "then",  "true",  "until",    "while"};

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

/// Pushes the table that the value on top of the stack looks fields up in next; false at the end.
/// Classes that are metatables with a function __index hold their methods themselves.
bool push_next(lua_State* L) {
  if (!lua_getmetatable(L, -1)) return false;
  lua_pushliteral(L, "__index");
  lua_rawget(L, -2);
  if (!lua_istable(L, -1)) {
    const bool is_function = lua_isfunction(L, -1);
    lua_pop(L, 1);
    if (!is_function) lua_pop(L, 1);
    return is_function;
  }
  lua_remove(L, -2);
  return true;
}

/// Fills a table that gets its fields late (lib/trinity/base/late.lua), on top of the stack. Where
/// that fails the names that are there must do.
void fill(lua_State* L) {
  if (!luaL_getmetafield(L, -1, "__fill")) return;
  lua_pushvalue(L, -2);
  if (lua_pcall(L, 1, 0, 0) != 0) lua_pop(L, 1);
}

/// Replaces the value on top of the stack by its field `name`; false, and pops it, without one.
bool replace_by_field(lua_State* L, const std::string& name) {
  const int base = lua_gettop(L);
  for (int depth = 0; depth < kMaxDepth; ++depth) {
    if (lua_istable(L, -1)) {
      fill(L);
      lua_pushlstring(L, name.data(), name.size());
      lua_rawget(L, -2);
      if (!lua_isnil(L, -1)) {
        lua_replace(L, base);
        lua_settop(L, base);
        return true;
      }
      lua_pop(L, 1);
    }
    if (!push_next(L)) break;
  }
  lua_settop(L, base - 1);
  return false;
}

/// Adds the names in the value on top of the stack, and pops it.
void add_names(lua_State* L, bool only_functions, std::set<std::string>& names) {
  const int base = lua_gettop(L);
  for (int depth = 0; depth < kMaxDepth; ++depth) {
    if (lua_istable(L, -1)) {
      fill(L);
      lua_pushnil(L);
      while (lua_next(L, -2)) {
        if (lua_type(L, -2) == LUA_TSTRING && (!only_functions || lua_isfunction(L, -1)) &&
            names.size() < kMaxNames)
          names.insert(lua_tostring(L, -2));
        lua_pop(L, 1);
      }
    }
    if (!push_next(L)) break;
  }
  lua_settop(L, base - 1);
}

bool can_be_typed(const std::string& name) {
  return !name.empty() && !name.starts_with("__") &&
         !std::isdigit(static_cast<unsigned char>(name[0])) &&
         std::all_of(name.begin(), name.end(), is_word);
}

}  // namespace

bool completed_by_library(lua_State* L, const std::string& line, const std::string& word,
                          std::vector<std::string>& found) {
  const int top = lua_gettop(L);
  bool is_known = false;
  lua_getfield(L, LUA_REGISTRYINDEX, "_LOADED");
  lua_getfield(L, -1, "trinity.command.prompt");
  if (lua_istable(L, -1)) {
    lua_getfield(L, -1, "complete");
    lua_pushlstring(L, line.data(), line.size());
    lua_pushlstring(L, word.data(), word.size());
    lua_pushvalue(L, LUA_GLOBALSINDEX);
    is_known = lua_pcall(L, 3, 1, 0) == 0 && lua_istable(L, -1);
    for (size_t i = 1; is_known && i <= std::min(lua_objlen(L, -1), kMaxNames); ++i) {
      lua_rawgeti(L, -1, static_cast<int>(i));
      if (lua_type(L, -1) == LUA_TSTRING) found.emplace_back(lua_tostring(L, -1));
      lua_pop(L, 1);
    }
  }
  lua_settop(L, top);
  return is_known;
}

std::vector<std::string> completions(lua_State* L, const std::string& line) {
  size_t start = line.size();
  while (start > 0 &&
         (is_word(line[start - 1]) || line[start - 1] == '.' || line[start - 1] == ':'))
    --start;
  const auto word = line.substr(start);
  const auto split = word.find_last_of(".:");
  const auto owner = split == std::string::npos ? "" : word.substr(0, split);
  const auto begun = split == std::string::npos ? word : word.substr(split + 1);
  std::set<std::string> names;
  luaL_checkstack(L, 2 * kMaxDepth + LUA_MINSTACK, "completion");
  lua_pushvalue(L, LUA_GLOBALSINDEX);
  for (size_t at = 0; split != std::string::npos && at <= owner.size();) {
    const auto end = std::min(owner.find_first_of(".:", at), owner.size());
    if (!replace_by_field(L, owner.substr(at, end - at))) return {};
    at = end + 1;
  }
  add_names(L, split != std::string::npos && word[split] == ':', names);
  if (split == std::string::npos) names.insert(std::begin(kKeywords), std::end(kKeywords));
  std::vector<std::string> found;
  for (const auto& name : names)
    if (can_be_typed(name) && name.starts_with(begun))
      found.push_back(word.substr(0, word.size() - begun.size()) + name);
  return found;
}

}  // namespace trinity::lua
