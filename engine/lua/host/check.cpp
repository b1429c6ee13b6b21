#include "lua/host/check.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>
#include <new>

#include "lua/host/host.h"
#include "lua/host/stopper.h"

namespace trinity::lua {

void push_position(lua_State* L, int level) {
  lua_getfield(L, LUA_REGISTRYINDEX, kHomeKey);
  const std::string home = fmt::format("@{}/", lua_isstring(L, -1) ? lua_tostring(L, -1) : "");
  lua_pop(L, 1);
  const auto library = home + "lib/", commands = home + "scripts/";
  const auto* host = host_state(L);
  const bool is_command = host && host->is_command;
  lua_Debug frame;
  for (int at = level; lua_getstack(L, at, &frame); ++at) {
    lua_getinfo(L, "Sl", &frame);
    const std::string_view source = frame.source;
    if (frame.currentline <= 0 || source.starts_with(library)) continue;
    if (is_command && source.starts_with(commands)) continue;
    lua_pushfstring(L, "%s:%d: ", frame.short_src, frame.currentline);
    return;
  }
  lua_pushliteral(L, "");
}

WrongArgument::WrongArgument(int index, std::string_view name, const std::string& text)
    : ArgumentError(fmt::format("argument {} ('{}'): {}", index, name, text)),
      index_(index),
      text_(fmt::format("('{}'): {}", name, text)) {}

namespace {

/// The allocator of LibTorch has an error of its own. Errors of files and arguments quote what came,
/// which may be these words.
bool is_memory_error(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error)) return true;
  return !dynamic_cast<const FileError*>(&error) && !dynamic_cast<const ArgumentError*>(&error) &&
         std::strstr(error.what(), "can't allocate memory");
}

}  // namespace

void check_argument_count(lua_State* L, int most) {
  int count = lua_gettop(L);
  while (count > most && lua_isnil(L, count)) --count;
  if (count <= most) return;
  const int own = lua_toboolean(L, lua_upvalueindex(2));  // a method's object
  throw ArgumentError("argument {}: expected no more than {}, got {}", count - own, most - own, type_name(L, count));
}

void describe_error(lua_State* L, const std::exception& error, char* text, size_t size) {
  if (dynamic_cast<const Interrupted*>(&error)) {
    std::snprintf(text, size, "%s", stop_text(L).c_str());
    return;
  }
  const char* function = lua_tostring(L, lua_upvalueindex(1));
  if (is_memory_error(error)) {  // no std::string is made: there may be no memory for one
    std::snprintf(text, size, "%s%snot enough memory", function ? function : "",
                  function ? ": " : "");
    return;
  }
  const std::string owner = function ? std::string(function) + ": " : "";
  std::string message = error.what();
  if (const auto end = message.find("\nException raised from"); end != std::string::npos)
    message.resize(end);
  const bool is_method = lua_toboolean(L, lua_upvalueindex(2)) != 0;
  if (const auto* wrong = dynamic_cast<const WrongArgument*>(&error); wrong && is_method)
    message = wrong->index() == 1
                  ? fmt::format("the object before ':' {}", wrong->text())
                  : fmt::format("argument {} {}", wrong->index() - 1, wrong->text());
  if (message.starts_with(owner)) message.erase(0, owner.size());
  // If a function implements several methods, the message names the one that was called.
  const auto object = owner.substr(0, owner.find(':') + 1);
  const bool names_method = is_method && message.starts_with(object) && message.size() > object.size() &&
                            std::isalpha(static_cast<unsigned char>(message[object.size()]));
  std::replace(message.begin(), message.end(), '\n', ' ');
  std::snprintf(text, size, "%s%s", names_method ? "" : owner.c_str(), message.c_str());
}

void register_functions(lua_State* L, std::span<const luaL_Reg> functions, std::string_view owner,
                        bool is_method) {
  const auto word = owner.substr(owner.rfind(' ') + 1);  // "graph builder" is builder: in messages
  lua_getfield(L, LUA_REGISTRYINDEX, kBindingsKey);
  if (lua_isnil(L, -1)) {
    lua_pop(L, 1);
    lua_newtable(L);
    lua_pushvalue(L, -1);
    lua_setfield(L, LUA_REGISTRYINDEX, kBindingsKey);
  }
  for (const auto& function : functions) {
    const auto name = fmt::format("{}{}{}", word, is_method ? ':' : '.', function.name);
    lua_pushlstring(L, name.data(), name.size());
    lua_pushboolean(L, is_method);
    lua_pushcclosure(L, function.func, 2);
    lua_newtable(L);
    set_field(L, "name", name);
    lua_pushvalue(L, -2);
    lua_setfield(L, -2, "call");
    lua_rawseti(L, -3, static_cast<int>(lua_objlen(L, -3)) + 1);
    lua_setfield(L, -3, function.name);
  }
  lua_pop(L, 1);
}

int push_number(lua_State* L, double value) {
  lua_pushnumber(L, value);
  return 1;
}

int push_boolean(lua_State* L, bool value) {
  lua_pushboolean(L, value);
  return 1;
}

int push_text(lua_State* L, std::string_view text) {
  lua_pushlstring(L, text.data(), text.size());
  return 1;
}

std::string text_at(lua_State* L, int index) {
  size_t length = 0;
  const char* text = lua_tolstring(L, index, &length);
  return text ? std::string(text, length) : std::string();
}

std::string type_name(lua_State* L, int index) {
  const int type = lua_type(L, index);
  if (type == LUA_TNONE || type == LUA_TNIL) return "nil";
  if (type == LUA_TSTRING) {
    std::string text = lua_tostring(L, index);
    if (text.size() > 40) text = text.substr(0, 37) + "...";
    return fmt::format("string '{}'", text);
  }
  if (type == LUA_TUSERDATA && lua_getmetatable(L, index)) {
    lua_getfield(L, -1, "__metatable");
    std::string name = lua_isstring(L, -1) ? lua_tostring(L, -1) : "userdata";
    lua_pop(L, 2);
    return name;
  }
  if (type == LUA_TNUMBER) return fmt::format("{:.17g}", lua_tonumber(L, index));
  return lua_typename(L, type);
}

double number_arg(lua_State* L, int index, const char* name) {
  if (lua_type(L, index) != LUA_TNUMBER)
    throw WrongArgument(index, name, "expected number, got " + type_name(L, index));
  return lua_tonumber(L, index);
}

int64_t integer_arg(lua_State* L, int index, const char* name, int64_t low, int64_t high) {
  const double value = number_arg(L, index, name);
  if (value != std::floor(value) || value < static_cast<double>(low) ||
      value > static_cast<double>(high))
    throw WrongArgument(index, name, "expected an integer from {} to {}, got {}", low, high, value);
  return static_cast<int64_t>(value);
}

std::string string_arg(lua_State* L, int index, const char* name) {
  if (lua_type(L, index) != LUA_TSTRING)
    throw WrongArgument(index, name, "expected string, got " + type_name(L, index));
  size_t length = 0;
  const char* text = lua_tolstring(L, index, &length);
  return {text, length};
}

void function_arg(lua_State* L, int index, const char* name) {
  if (!lua_isfunction(L, index))
    throw WrongArgument(index, name, "expected a function, got " + type_name(L, index));
}

void table_arg(lua_State* L, int index, const char* name) {
  if (lua_type(L, index) != LUA_TTABLE)
    throw WrongArgument(index, name, "expected table, got " + type_name(L, index));
}

/// A bit for the first character of a key.
static uint32_t initial(const char* key) { return uint32_t{1} << (*key & 31); }

Fields::Fields(lua_State* L, int index, Owner owner)
    : L_(L), index_(index < 0 ? lua_gettop(L) + index + 1 : index), owner_(std::move(owner)) {
  if (lua_type(L, index_) != LUA_TTABLE)
    throw ArgumentError("{}: expected a table, got {}", owner_.text(), type_name(L, index_));
  lua_pushnil(L_);
  while (lua_next(L_, index_)) {
    lua_pop(L_, 1);
    if (lua_type(L_, -1) == LUA_TSTRING) {
      present_.push_back({{lua_tostring(L_, -1), lua_objlen(L_, -1)}});
      initials_ |= initial(lua_tostring(L_, -1));
    } else {
      nameless_.push_back(fmt::format("[{}]", type_name(L_, -1)));
    }
  }
}

void Fields::mismatch(const char* key, const char* expected) {
  throw ArgumentError("{}: field '{}': expected {}, got {}", owner(), key, expected, type_name(L_, -1));
}

void Fields::miss(const char* key) const {
  throw ArgumentError("{}: field '{}' is missing", owner(), key);
}

/// True if a table's key is this one, decided at the first character that differs.
static bool is_key(std::string_view text, const char* key) {
  for (const char c : text)
    if (c == '\0' || *key++ != c) return false;
  return *key == '\0';
}

/// Without metamethods: a script's __index could close an object that the function works on.
static void push_raw(lua_State* L, int table, const char* key) {
  lua_pushstring(L, key);
  lua_rawget(L, table);
}

/// True if the table has a key, which is known from now on.
bool Fields::ask(const char* key) {
  known_.push_back(key);
  if ((initials_ & initial(key)) == 0) return false;
  for (auto& present : present_)
    if (is_key(present.text, key)) return present.asked = true;
  return false;
}

/// Pushes the field when present and of `type`.
bool Fields::push(const char* key, int type, const char* expected) {
  if (!ask(key)) return false;
  push_raw(L_, index_, key);
  if (lua_type(L_, -1) != type) mismatch(key, expected);
  return true;
}

std::optional<double> Fields::number(const char* key) {
  if (!push(key, LUA_TNUMBER, "a number")) return std::nullopt;
  const double value = lua_tonumber(L_, -1);
  if (std::isnan(value)) mismatch(key, "a number");
  lua_pop(L_, 1);
  return value;
}

double Fields::required_number(const char* key) {
  const auto value = number(key);
  if (!value) miss(key);
  return *value;
}

int64_t Fields::integer(const char* key, int64_t fallback, int64_t low, int64_t high) {
  const auto value = number(key);
  if (!value) return fallback;
  if (*value != std::floor(*value) || *value < static_cast<double>(low) ||
      *value > static_cast<double>(high))
    throw ArgumentError("{}: field '{}': expected an integer from {} to {}, got {}", owner(), key, low, high, *value);
  return static_cast<int64_t>(*value);
}

bool Fields::boolean(const char* key, bool fallback) {
  if (!push(key, LUA_TBOOLEAN, "true or false")) return fallback;
  const bool value = lua_toboolean(L_, -1) != 0;
  lua_pop(L_, 1);
  return value;
}

std::optional<std::string> Fields::string(const char* key) {
  if (!push(key, LUA_TSTRING, "a string")) return std::nullopt;
  size_t length = 0;
  const char* text = lua_tolstring(L_, -1, &length);
  std::string value(text, length);
  lua_pop(L_, 1);
  return value;
}

std::string Fields::string(const char* key, std::string fallback) {
  return string(key).value_or(std::move(fallback));
}

std::string Fields::required_string(const char* key) {
  auto value = string(key);
  if (!value) miss(key);
  return *value;
}

std::string Fields::awaited_string(const char* key) {
  auto value = string(key);
  if (!value && !missing_) missing_ = key;
  return value.value_or("");
}

bool Fields::push_table(const char* key) { return push(key, LUA_TTABLE, "a table"); }

void Fields::push_any(const char* key) {
  ask(key);
  push_raw(L_, index_, key);
}

void Fields::refuse_unknown() const {
  auto unknown = nameless_;
  for (const auto& key : present_)
    if (!key.asked) unknown.emplace_back(key.text);
  if (unknown.empty() && missing_) miss(missing_);
  if (unknown.empty()) return;
  const auto& first = *std::min_element(unknown.begin(), unknown.end());
  std::vector<std::string> sorted(known_.begin(), known_.end());
  std::sort(sorted.begin(), sorted.end());
  throw ArgumentError("{}: unknown field '{}'{} (known: {})", owner(), first, suggestion(first, sorted),
                      fmt::join(sorted, ", "));
}

void call_function(lua_State* L, int arguments, int results) {
  if (lua_pcall(L, arguments, results, 0) == 0) return;
  const char* text = lua_tostring(L, -1);
  const std::string message = text ? text : "an error that is not a string";
  lua_pop(L, 1);
  throw Error(message);
}

std::vector<int64_t> integers(lua_State* L, int index, const Owner& owner) {
  std::vector<int64_t> values;
  const int table = index < 0 ? lua_gettop(L) + index + 1 : index;
  for_each(L, table, [&](int i) {
    const double value = lua_type(L, -1) == LUA_TNUMBER ? lua_tonumber(L, -1) : 0.5;
    if (value != std::floor(value) || std::fabs(value) > 9e15)
      throw ArgumentError("{}: entry {}: expected an integer, got {}", owner.text(), i, type_name(L, -1));
    values.push_back(static_cast<int64_t>(value));
  });
  return values;
}

void set_field(lua_State* L, const char* key, double value) {
  lua_pushnumber(L, value);
  lua_setfield(L, -2, key);
}

void set_field(lua_State* L, const char* key, const std::string& value) {
  lua_pushlstring(L, value.data(), value.size());
  lua_setfield(L, -2, key);
}

void set_boolean(lua_State* L, const char* key, bool value) {
  lua_pushboolean(L, value);
  lua_setfield(L, -2, key);
}

}  // namespace trinity::lua
