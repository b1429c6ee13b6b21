#pragma once

#include <atomic>
#include <boost/container/small_vector.hpp>
#include <exception>
#include <limits>
#include <lua.hpp>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "base/error.h"

// The vocabulary of the Lua boundary. A bound function is plain C++: it reads its arguments with
// the helpers below or by its parameters' types (lua/host/bound.h), throws on misuse, and pushes its
// results. guard<> turns it into a lua_CFunction whose exceptions become Lua errors with the
// caller's position.
// By hand on purpose: binding libraries neither name the script's line and field nor survive
// LuaJIT's unwinding through C++.

namespace trinity::lua {

/// Where the registry keeps the folder with lib, models and scripts.
inline constexpr const char* kHomeKey = "trinity.home";

/// Pushes "file:line: " of the innermost Lua frame outside our own library and commands, so that a
/// message names the script's line and not the wrapper's; "" when there is none. `level` is the first
/// frame looked at: 0 in a hook.
void push_position(lua_State* L, int level = 1);

/// An argument that is not what it should be. The boundary adds the function's name and counts
/// without the object before the colon. Immutable.
class WrongArgument : public ArgumentError {
 public:
  /// `index` on the Lua stack, `name` the parameter's, `text` what was expected and what came.
  WrongArgument(int index, std::string_view name, const std::string& text);
  template <class... Values>
    requires(sizeof...(Values) > 0)
  WrongArgument(int index, std::string_view name, fmt::format_string<Values...> text, Values&&... values)
      : WrongArgument(index, name, fmt::format(text, std::forward<Values>(values)...)) {}
  int index() const { return index_; }
  const std::string& text() const { return text_; }

 private:
  int index_;
  std::string text_;
};

/// Writes the message for a script into `text`: "graph:operator: argument 1 ('operator'): expected
/// ...". The running function's name and kind are the upvalues that register_functions() gave it.
/// LibTorch's messages are cut to their first line.
void describe_error(lua_State* L, const std::exception& error, char* text, size_t size);

/// Throws for arguments beyond the `most` that the running bound function takes, a method's object
/// included; trailing nils are none.
void check_argument_count(lua_State* L, int most);

/// Calls a bound function whose arguments and results follow from its signature (lua/host/bound.h).
template <auto f>
int call_bound(lua_State* L);

/// A bound function at the boundary. Exceptions are copied to the stack of C, C++ unwinding ends,
/// then the Lua error is raised with the script's file and line. Lua's own errors pass through.
/// `most`: how many arguments it takes at most; -1: not checked, as the library's Lua calls it.
template <auto f, int most = -1>
int guard(lua_State* L) {
  char text[2048];
  try {
    if (most >= 0 && lua_gettop(L) > most) check_argument_count(L, most);
    if constexpr (std::is_convertible_v<decltype(f), lua_CFunction>)
      return f(L);
    else
      return call_bound<f>(L);
  } catch (const std::exception& error) {
    describe_error(L, error, text, sizeof text);
  }
  push_position(L);
  lua_pushstring(L, text);
  lua_concat(L, 2);
  return lua_error(L);
}

/// One line per bound function: {"name", guard<f>}, or guard<f, most> for one that scripts call.
#define TRINITY_BIND(name, ...) \
  { name, ::trinity::lua::guard<__VA_ARGS__> }

/// Where the registry keeps the list of all bound functions, { name =, call = } each, for tests.
inline constexpr const char* kBindingsKey = "trinity.bindings";

/// Adds functions to the table on top of the stack. `owner` begins their names in messages: a
/// type's name for methods (is_method), else "trinity".
void register_functions(lua_State* L, std::span<const luaL_Reg> functions,
                        std::string_view owner = "trinity", bool is_method = false);

/// The type of the value at `index` as a person would name it.
std::string type_name(lua_State* L, int index);
/// A string or number as text; empty for others.
std::string text_at(lua_State* L, int index);

/// Arguments of the running function; `name` is the parameter's name in messages. Throw
/// ArgumentError with position, expectation and what came.
double number_arg(lua_State* L, int index, const char* name);
int64_t integer_arg(lua_State* L, int index, const char* name, int64_t low, int64_t high);
std::string string_arg(lua_State* L, int index, const char* name);
void table_arg(lua_State* L, int index, const char* name);
void function_arg(lua_State* L, int index, const char* name);

/// Name and methods of an engine type in Lua. Specialised once per bound type.
template <class T>
inline constexpr const char* kTypeName = nullptr;

/// Engine objects live in Lua as userdata holding a shared pointer; close() empties it early.
template <class T>
using Handle = std::shared_ptr<T>;

/// Number of engine objects that scripts hold, neither closed nor collected.
inline std::atomic<int64_t> open_objects{0};

/// Its address marks the metatable of a type, at [1]: found faster than the type's name.
template <class T>
inline constexpr char kTypeTag = 0;

/// The object at `index`, closed or not; nullptr for anything of another type.
template <class T>
Handle<T>* find_handle(lua_State* L, int index) {
  void* memory = nullptr;
  if (lua_type(L, index) == LUA_TUSERDATA && lua_getmetatable(L, index)) {
    lua_rawgeti(L, -1, 1);
    if (lua_touserdata(L, -1) == &kTypeTag<T>) memory = lua_touserdata(L, index);
    lua_pop(L, 2);
  }
  return static_cast<Handle<T>*>(memory);
}

/// The open object at `index`; `name` is the parameter's name, by default the type's.
template <class T>
Handle<T>& handle_arg(lua_State* L, int index, const char* name = kTypeName<T>) {
  auto* handle = find_handle<T>(L, index);
  if (!handle)
    throw WrongArgument(index, name, "expected {}, got {}", kTypeName<T>, type_name(L, index));
  if (!*handle) throw WrongArgument(index, name, "this {} is closed", kTypeName<T>);
  return *handle;
}

template <class T>
T& object_arg(lua_State* L, int index, const char* name = kTypeName<T>) {
  return *handle_arg<T>(L, index, name);
}

template <class T>
void push_object(lua_State* L, std::shared_ptr<T> object) {
  void* memory = lua_newuserdata(L, sizeof(Handle<T>));
  new (memory) Handle<T>(std::move(object));
  ++open_objects;
  luaL_getmetatable(L, kTypeName<T>);
  lua_setmetatable(L, -2);
}

/// Serves __gc, and close(), which may come before; safe to run twice. Never throws for an object
/// of its own type: the error would surface in an unrelated line.
template <class T>
int close_object(lua_State* L) {
  auto* handle = find_handle<T>(L, 1);
  if (!handle)
    throw WrongArgument(1, kTypeName<T>, "expected {}, got {}", kTypeName<T>, type_name(L, 1));
  if (*handle) --open_objects;
  handle->reset();
  return 0;
}

/// Creates the metatable of a type: `methods` as its __index, close and __gc added.
template <class T>
void register_type(lua_State* L, std::span<const luaL_Reg> methods) {
  luaL_newmetatable(L, kTypeName<T>);
  lua_pushlightuserdata(L, const_cast<char*>(&kTypeTag<T>));
  lua_rawseti(L, -2, 1);
  lua_newtable(L);
  register_functions(L, methods, kTypeName<T>, true);
  const luaL_Reg close[] = {TRINITY_BIND("close", close_object<T>)};
  register_functions(L, close, kTypeName<T>, true);
  lua_setfield(L, -2, "__index");
  lua_pushcfunction(L, guard<close_object<T>>);
  lua_setfield(L, -2, "__gc");
  lua_pushstring(L, kTypeName<T>);
  lua_setfield(L, -2, "__metatable");
  lua_pop(L, 1);
}

/// Each pushes a result and returns 1, how many they are.
int push_number(lua_State* L, double value);
int push_boolean(lua_State* L, bool value);
int push_text(lua_State* L, std::string_view text);

/// The beginning of a message ("cluster 'x': device type 'p100'"): text, or a function that makes
/// it where there is a message, which most often there is not. The function outlives this.
/// Not thread-safe.
class Owner {
 public:
  Owner(std::string text) : text_(std::move(text)) {}
  Owner(const char* text) : text_(text) {}
  template <class Say>
    requires std::is_invocable_r_v<std::string, const Say&>
  Owner(Say& say)
      : said_(&say), say_([](const void* said) -> std::string {
          return (*static_cast<const Say*>(said))();
        }) {}

  std::string text() const { return say_ ? say_(said_) : text_; }

 private:
  std::string text_;
  const void* said_ = nullptr;
  std::string (*say_)(const void*) = nullptr;
};

/// Reads a table of named fields and refuses names that nobody asked for. `owner` begins every
/// message. The table stays at `index` while this lives. Not thread-safe, like its Lua state.
class Fields {
 public:
  Fields(lua_State* L, int index, Owner owner);

  std::optional<double> number(const char* key);
  double number(const char* key, double fallback) { return number(key).value_or(fallback); }
  double required_number(const char* key);
  int64_t integer(const char* key, int64_t fallback, int64_t low, int64_t high);
  bool boolean(const char* key, bool fallback);
  /// The field into `value`, where it is there, and so on for further keys and values: any number of
  /// its type, or a flag. Ranges of options stand in one place, their declaration in Lua
  /// (lib/trinity/base/options.lua); what takes them here refuses only what it cannot work with.
  template <class Value, class... Rest>
  void take(const char* key, Value& value, Rest&&... rest) {
    using Limits = std::numeric_limits<Value>;
    if constexpr (std::is_same_v<Value, bool>)
      value = boolean(key, value);
    else if constexpr (std::is_floating_point_v<Value>)
      value = number(key, value);
    else if constexpr (sizeof(Value) < sizeof(int64_t))
      value = static_cast<Value>(integer(key, value, Limits::min(), Limits::max()));
    else
      value = static_cast<Value>(integer(key, static_cast<int64_t>(value),
                                         std::is_signed_v<Value> ? -kMostExact : 0, kMostExact));
    if constexpr (sizeof...(rest) > 0) take(std::forward<Rest>(rest)...);
  }
  /// The same fields, and no others.
  template <class... Values>
  void take_all(Values&&... values) {
    take(std::forward<Values>(values)...);
    refuse_unknown();
  }
  std::optional<std::string> string(const char* key);
  std::string string(const char* key, std::string fallback);
  std::string required_string(const char* key);
  /// The same, but refuse_unknown() reports that it is missing, after fields that nobody asked
  /// for: a misspelt one is called that. Until then it is "".
  std::string awaited_string(const char* key);
  /// Pushes the field when it is a table (true); pushes nothing when it is absent.
  bool push_table(const char* key);
  /// Calls body() with the field on top of the stack when it is a table; false when it is absent.
  template <class Body>
  bool table(const char* key, Body body) {
    if (!push_table(key)) return false;
    body();
    lua_pop(L_, 1);
    return true;
  }
  /// The same for a field that must be there.
  template <class Body>
  void required_table(const char* key, Body body) {
    if (!table(key, body)) miss(key);
  }
  /// Pushes the field, whatever it is.
  void push_any(const char* key);
  std::string owner() const { return owner_.text(); }
  lua_State* state() const { return L_; }

  /// Throws ArgumentError for a field that was never asked for, with a suggestion, then for an awaited
  /// one that is missing. Call last.
  void refuse_unknown() const;

 private:
  static constexpr int64_t kMostExact = int64_t{1} << 53;  // what a number counts exactly

  /// A key of the table.
  struct Key {
    std::string_view text;
    bool asked = false;
  };

  bool ask(const char* key);
  bool push(const char* key, int type, const char* expected);
  [[noreturn]] void mismatch(const char* key, const char* expected);
  [[noreturn]] void miss(const char* key) const;

  lua_State* L_;
  int index_;
  Owner owner_;
  boost::container::small_vector<const char*, 32> known_;  // what was asked for
  boost::container::small_vector<Key, 16> present_;        // the table's keys
  uint32_t initials_ = 0;  // the last five bits of their first characters, a bit for each
  std::vector<std::string> nameless_;  // those that are no text, as messages say them
  const char* missing_ = nullptr;      // the first awaited one that is not there
};

/// Calls body(i) for every element of the sequence at `index`, the element on top of the stack.
template <class Body>
void for_each(lua_State* L, int index, Body body) {
  const int count = static_cast<int>(lua_objlen(L, index));
  for (int i = 1; i <= count; ++i) {
    lua_rawgeti(L, index, i);
    body(i);
    lua_pop(L, 1);
  }
}

/// Calls body() for every entry of the table at `index`, its key and its value on top of the stack.
template <class Body>
void for_each_entry(lua_State* L, int index, Body body) {
  const int table = index < 0 ? lua_gettop(L) + index + 1 : index;
  for (lua_pushnil(L); lua_next(L, table); lua_pop(L, 1)) body();
}

/// Pushes a list of what push(element) pushes, one value an element.
template <class List, class Push>
void push_list(lua_State* L, const List& list, Push push) {
  lua_createtable(L, static_cast<int>(std::size(list)), 0);
  int count = 0;
  for (const auto& element : list) {
    push(element);
    lua_rawseti(L, -2, ++count);
  }
}

/// Pushes a list of numbers, each with `add` on top (1: what scripts count from 1). Returns 1.
template <class Numbers>
int push_numbers(lua_State* L, const Numbers& numbers, int add = 0) {
  push_list(L, numbers, [&](auto n) { lua_pushnumber(L, static_cast<double>(n) + add); });
  return 1;
}

/// Sets field `key` of the table on top of the stack to such a list.
template <class Numbers>
void set_numbers(lua_State* L, const char* key, const Numbers& numbers, int add = 0) {
  push_numbers(L, numbers, add);
  lua_setfield(L, -2, key);
}

/// Calls the function below `arguments` on the stack. Throws an Error with the text of one that it raises.
void call_function(lua_State* L, int arguments, int results);

/// A list of integers at `index`, as a shape is.
std::vector<int64_t> integers(lua_State* L, int index, const Owner& owner);

/// Sets field `key` of the table on top of the stack.
void set_field(lua_State* L, const char* key, double value);
void set_field(lua_State* L, const char* key, const std::string& value);
void set_boolean(lua_State* L, const char* key, bool value);

}  // namespace trinity::lua
