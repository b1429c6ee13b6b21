#include "lua/host/show.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <tuple>
#include <vector>

#include "lua/host/check.h"
#include "lua/host/structs.h"

namespace trinity::lua {
namespace {

constexpr size_t kMaxEntries = 64, kMaxKeys = 10000, kMaxText = 60, kLineWidth = 78;
constexpr size_t kMaxInner = 8;  // entries of a table within a table that is shown

/// A string as Lua would read it, cut when long.
std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text.substr(0, kMaxText)) {
    if (c == '\'' || c == '\\')
      out += std::string("\\") + c;
    else if (c == '\n')
      out += "\\n";
    else if (std::iscntrl(static_cast<unsigned char>(c)))
      out += fmt::format("\\{:03}", static_cast<unsigned char>(c));
    else
      out += c;
  }
  return out + (text.size() > kMaxText ? "...'" : "'");
}

bool has_tostring(lua_State* L, int index) {
  if (!luaL_getmetafield(L, index, "__tostring")) return false;
  lua_pop(L, 1);
  return true;
}

/// tostring(value), by what tostring was when the program began.
std::string plain(lua_State* L, int index) {
  if (luaL_callmeta(L, index, "__tostring")) {
    const auto text = text_at(L, -1);
    lua_pop(L, 1);
    return text;
  }
  switch (lua_type(L, index)) {
    case LUA_TNIL:
      return "nil";
    case LUA_TBOOLEAN:
      return lua_toboolean(L, index) ? "true" : "false";
    case LUA_TNUMBER: {
      lua_pushvalue(L, index);  // a conversion in place would confuse lua_next
      const auto text = text_at(L, -1);
      lua_pop(L, 1);
      return text;
    }
    case LUA_TSTRING:
      return text_at(L, index);
    default:
      return fmt::format("{}: {}", luaL_typename(L, index), lua_topointer(L, index));
  }
}

std::string show_inner_table(lua_State* L, int index);

/// A value inside a table: one short line.
std::string show_inner(lua_State* L, int index) {
  if (lua_type(L, index) == LUA_TSTRING) return quoted(text_at(L, index));
  if (lua_istable(L, index) && !has_tostring(L, index)) {
    return show_inner_table(L, index);
  }
  if (lua_isfunction(L, index)) return "function";  // its address says nothing here
  auto text = plain(L, index);
  const auto end = std::min(text.find('\n'), kMaxText);
  return end < text.size() ? text.substr(0, end) + "..." : text;
}

bool is_identifier(const std::string& text) {
  return !text.empty() && !std::isdigit(static_cast<unsigned char>(text[0])) &&
         std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return std::isalnum(c) || c == '_'; });
}

struct Entry {
  int kind;  // numbers, then strings, then the rest
  double number;
  std::string key, value;
};

/// Collects what is not in the list part; counts everything beyond the limit into `left_out`.
std::vector<Entry> named_entries(lua_State* L, int index, size_t list_size, size_t& left_out) {
  std::vector<Entry> entries;
  lua_pushnil(L);
  while (lua_next(L, index)) {
    const int type = lua_type(L, -2);
    const double number = type == LUA_TNUMBER ? lua_tonumber(L, -2) : 0;
    const bool in_list = type == LUA_TNUMBER && number >= 1 &&
                         number <= static_cast<double>(list_size) &&
                         number == static_cast<double>(static_cast<size_t>(number));
    if (!in_list && entries.size() >= kMaxKeys) {
      ++left_out;
    } else if (!in_list && type == LUA_TSTRING) {
      const auto key = text_at(L, -2);
      entries.push_back(
          {1, 0, is_identifier(key) ? key : fmt::format("[{}]", quoted(key)), show_inner(L, -1)});
    } else if (!in_list) {
      entries.push_back({type == LUA_TNUMBER ? 0 : 2, number,
                         fmt::format("[{}]", show_inner(L, -2)), show_inner(L, -1)});
    }
    lua_pop(L, 1);
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.kind, a.number, a.key) < std::tie(b.kind, b.number, b.key);
  });
  return entries;
}

/// A table inside a table: whole where it is short and holds no further one, else "{...}".
std::string show_inner_table(lua_State* L, int index) {
  if (index < 0) index += lua_gettop(L) + 1;
  size_t left_out = 0, count = 0;
  lua_pushnil(L);
  while (lua_next(L, index)) {
    const bool is_nested = lua_istable(L, -1) && !has_tostring(L, -1);
    lua_pop(L, 1);
    if (++count > kMaxInner || is_nested) {
      lua_pop(L, 1);
      return "{...}";
    }
  }
  std::vector<std::string> parts;
  const size_t list_size = std::min(lua_objlen(L, index), kMaxInner);
  for (size_t i = 1; i <= list_size; ++i) {
    lua_rawgeti(L, index, static_cast<int>(i));
    parts.push_back(show_inner(L, -1));
    lua_pop(L, 1);
  }
  for (const auto& entry : named_entries(L, index, list_size, left_out))
    parts.push_back(fmt::format("{} = {}", entry.key, entry.value));
  if (parts.empty()) return "{}";
  const auto text = fmt::format("{{ {} }}", fmt::join(parts, ", "));
  return text.size() <= kMaxText ? text : "{...}";
}

/// The text of lib/trinity/command/prompt.lua for a value, or nothing.
std::string shown_by_library(lua_State* L, int index) {
  const int top = lua_gettop(L);
  std::string text;
  lua_getfield(L, LUA_REGISTRYINDEX, "_LOADED");
  lua_getfield(L, -1, "trinity.command.prompt");
  if (lua_istable(L, -1)) {
    lua_getfield(L, -1, "show");
    lua_pushvalue(L, index);
    if (lua_pcall(L, 1, 1, 0) == 0 && lua_type(L, -1) == LUA_TSTRING) text = text_at(L, -1);
  }
  lua_settop(L, top);
  return text;
}

std::string show_table(lua_State* L, int index) {
  const size_t list_size = lua_objlen(L, index);
  std::vector<std::string> parts;
  for (size_t i = 1; i <= std::min(list_size, kMaxEntries); ++i) {
    lua_rawgeti(L, index, static_cast<int>(i));
    parts.push_back(show_inner(L, -1));
    lua_pop(L, 1);
  }
  size_t left_out = list_size - parts.size();
  for (const auto& entry : named_entries(L, index, list_size, left_out)) {
    if (parts.size() < kMaxEntries)
      parts.push_back(fmt::format("{} = {}", entry.key, entry.value));
    else
      ++left_out;
  }
  if (left_out > 0) parts.push_back(fmt::format("... {} more", left_out));
  if (parts.empty()) return "{}";
  const auto line = fmt::format("{{ {} }}", fmt::join(parts, ", "));
  if (line.size() <= kLineWidth) return line;
  return fmt::format("{{\n  {}\n}}", fmt::join(parts, ",\n  "));
}

}  // namespace

std::string show(lua_State* L, int index) {
  if (index < 0) index += lua_gettop(L) + 1;
  luaL_checkstack(L, LUA_MINSTACK, "too many values");
  if (lua_istable(L, index) && !has_tostring(L, index)) return show_table(L, index);
  if (lua_isfunction(L, index) || lua_type(L, index) == kCdata) {
    const auto text = shown_by_library(L, index);
    if (!text.empty()) return text;
  }
  return plain(L, index);
}

}  // namespace trinity::lua
