#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include "lua/host/check.h"

// A bound function by its C++ signature: `TRINITY_BIND("wire", f)` reads f's arguments by their types, calls it and pushes
// what it returns. Arguments are
//   lua_State*                  the state; takes no place among a script's arguments
//   const Graph&, Graph&        an engine object (kTypeName); Named<const Graph, "problem"> under another name
//   Integer<"count", 1, 9>      also Number, Text, Table, Function (the last two as their place on the stack)
//   Given<"options">            any value, as its place on the stack; bool: whether it is true
//   Optional<Text<"name">>      nothing for nil
//   Options<"select">           a table called 'options' in messages, as Fields that begin theirs with this word
// It returns nothing, a value that push() takes, a std::tuple of such, or, with a lua_State* among its arguments, an int:
// how many values it pushed itself.

namespace trinity::lua {

/// A text as a template's argument.
template <size_t size>
struct Name {
  char text[size];
  constexpr Name(const char (&from)[size]) { std::copy_n(from, size, text); }
};

/// Pushes one value: a number, a flag, text, a choice by its name, nil for an empty optional or a null pointer, an
/// engine object, a variant, list or map (by name) of such, a record(), or from_1().
template <class Value>
void push(lua_State* L, const Value& value);

template <class List>
struct Shifted {
  List list;
  int add;
};
/// A list of numbers that scripts count from 1 and the engine from 0.
template <class List>
Shifted<std::remove_cvref_t<List>> from_1(List&& list) {
  return {std::forward<List>(list), 1};
}

template <class... Parts>
struct Record {
  std::tuple<Parts...> parts;
};
/// A table of fields: record("name", value, "name", value...), without those whose value is nil.
template <class... Parts>
Record<std::decay_t<Parts>...> record(Parts&&... parts) {
  return {{std::forward<Parts>(parts)...}};
}

/// A list of what each(element) returns, or of a member of each.
template <class List, class Each>
auto list_of(const List& list, Each each) {
  std::vector<std::decay_t<decltype(std::invoke(each, *std::begin(list)))>> result;
  result.reserve(std::size(list));
  for (const auto& element : list) result.push_back(std::invoke(each, element));
  return result;
}

/// Sets fields of the table on top of the stack.
template <class Value, class... Rest>
void set_fields(lua_State* L, const char* key, const Value& value, const Rest&... rest) {
  push(L, value);
  lua_setfield(L, -2, key);
  if constexpr (sizeof...(rest) > 0) set_fields(L, rest...);
}

namespace detail {

template <class>
inline constexpr bool kIsHandle = false;
template <class T>
inline constexpr bool kIsHandle<std::shared_ptr<T>> = true;
template <class>
inline constexpr bool kIsOptional = false;
template <class T>
inline constexpr bool kIsOptional<std::optional<T>> = true;
template <class>
inline constexpr bool kIsVariant = false;
template <class... T>
inline constexpr bool kIsVariant<std::variant<T...>> = true;
template <class>
inline constexpr bool kIsTuple = false;
template <class... T>
inline constexpr bool kIsTuple<std::tuple<T...>> = true;
template <class... T>
inline constexpr bool kIsTuple<std::pair<T...>> = true;

}  // namespace detail

template <class... Parts>
void push(lua_State* L, const Record<Parts...>& fields) {
  lua_newtable(L);
  if constexpr (sizeof...(Parts) > 0)
    std::apply([L](const auto&... parts) { set_fields(L, parts...); }, fields.parts);
}

template <class List>
void push(lua_State* L, const Shifted<List>& numbers) {
  push_numbers(L, numbers.list, numbers.add);
}

template <class Value>
void push(lua_State* L, const Value& value) {
  if constexpr (std::is_same_v<Value, bool> || std::is_same_v<Value, std::_Bit_reference>)
    lua_pushboolean(L, value);
  else if constexpr (std::is_arithmetic_v<Value>)
    lua_pushnumber(L, static_cast<double>(value));
  else if constexpr (std::is_enum_v<Value>)
    lua_pushstring(L, choice_name(value));
  else if constexpr (std::is_null_pointer_v<Value>)
    lua_pushnil(L);
  else if constexpr (std::is_same_v<Value, const char*>)
    lua_pushstring(L, value);  // nil for nullptr
  else if constexpr (std::is_convertible_v<const Value&, std::string_view>)
    push_text(L, value);
  else if constexpr (detail::kIsHandle<Value>) {
    static_assert(kTypeName<typename Value::element_type> != nullptr, "of a bound type");
    value ? push_object(L, value) : lua_pushnil(L);
  } else if constexpr (detail::kIsOptional<Value>)
    value ? push(L, *value) : lua_pushnil(L);
  else if constexpr (detail::kIsVariant<Value>)
    std::visit([L](const auto& held) { push(L, held); }, value);
  else if constexpr (requires { value.begin()->second; }) {
    lua_newtable(L);
    for (const auto& [key, held] : value) set_fields(L, key.c_str(), held);
  }
  else
    push_list(L, value, [L](const auto& element) { push(L, element); });
}

/// Pushes the values of a std::tuple, or one value. Returns how many they are.
template <class Result>
int push_results(lua_State* L, const Result& result) {
  if constexpr (detail::kIsTuple<Result>) {
    std::apply([L](const auto&... each) { (push(L, each), ...); }, result);
    return std::tuple_size_v<Result>;
  } else {
    push(L, result);
    return 1;
  }
}

// --- Arguments

/// An engine object that messages call by another name than its type's.
template <class T, Name name>
struct Named {
  T& object;
  operator T&() const { return object; }
  T* operator->() const { return &object; }
  static Named from_stack(lua_State* L, int index) { return {object_arg<T>(L, index, name.text)}; }
};

template <Name name, int64_t low, int64_t high>
struct Integer {
  int64_t value;
  operator int64_t() const { return value; }
  static Integer from_stack(lua_State* L, int index) { return {integer_arg(L, index, name.text, low, high)}; }
};

template <Name name>
struct Number {
  double value;
  operator double() const { return value; }
  static Number from_stack(lua_State* L, int index) { return {number_arg(L, index, name.text)}; }
};

template <Name name>
struct Text : std::string {
  static Text from_stack(lua_State* L, int index) { return {string_arg(L, index, name.text)}; }
};

/// A value by its place on the stack, checked or not.
template <Name name, void (*check)(lua_State*, int, const char*)>
struct Place {
  int index;
  operator int() const { return index; }
  static Place from_stack(lua_State* L, int index) {
    if constexpr (check != nullptr) check(L, index, name.text);
    return {index};
  }
};
template <Name name>
using Given = Place<name, nullptr>;
template <Name name>
using Table = Place<name, table_arg>;
template <Name name>
using Function = Place<name, function_arg>;

/// A list of numbers.
template <Name name>
struct Numbers : std::vector<double> {
  static Numbers from_stack(lua_State* L, int index) {
    table_arg(L, index, name.text);
    Numbers numbers;
    for_each(L, index, [&](int) { numbers.push_back(number_arg(L, lua_gettop(L), name.text)); });
    return numbers;
  }
};

template <class Argument>
struct Optional : std::optional<Argument> {
  static Optional from_stack(lua_State* L, int index) {
    return lua_isnoneornil(L, index) ? Optional{} : Optional{Argument::from_stack(L, index)};
  }
};

template <Name word>
struct Options : Fields {
  static Options from_stack(lua_State* L, int index) {
    table_arg(L, index, "options");
    return {Fields(L, index, word.text)};
  }
};

namespace detail {

/// The argument after the one at `index`, which counts on.
template <class Argument>
decltype(auto) next_argument(lua_State* L, int& index) {
  using Plain = std::remove_cvref_t<Argument>;
  if constexpr (std::is_same_v<Plain, lua_State*>)
    return static_cast<lua_State*>(L);
  else if constexpr (std::is_same_v<Plain, bool>)
    return lua_toboolean(L, ++index) != 0;
  else if constexpr (requires { Plain::from_stack(L, index); })
    return Plain::from_stack(L, ++index);
  else if constexpr (kTypeName<const Plain> != nullptr)
    return object_arg<const Plain>(L, ++index);
  else {
    static_assert(kTypeName<Plain> != nullptr, "of a bound type");
    return object_arg<Plain>(L, ++index);
  }
}

template <class F, class Result, class... Arguments>
int call(lua_State* L, F f) {
  int index = 0;
  // In braces: read in their order.
  std::tuple<decltype(next_argument<Arguments>(L, index))...> arguments{next_argument<Arguments>(L, index)...};
  constexpr bool has_state = (std::is_same_v<Arguments, lua_State*> || ...);
  if constexpr (std::is_void_v<Result>) {
    std::apply(f, std::move(arguments));
    return 0;
  } else if constexpr (has_state && std::is_same_v<Result, int>) {
    return std::apply(f, std::move(arguments));
  } else {
    return push_results(L, std::apply(f, std::move(arguments)));
  }
}

template <class F>
struct Signature : Signature<decltype(&F::operator())> {};
template <class Result, class... Arguments>
struct Signature<Result (*)(Arguments...)> {
  template <class F>
  static int run(lua_State* L, F f) { return call<F, Result, Arguments...>(L, f); }
};
template <class Owner, class Result, class... Arguments>
struct Signature<Result (Owner::*)(Arguments...)> {
  template <class F>
  static int run(lua_State* L, F f) {
    return call<decltype(std::mem_fn(f)), Result, Owner&, Arguments...>(L, std::mem_fn(f));
  }
};
template <class Owner, class Result, class... Arguments>
struct Signature<Result (Owner::*)(Arguments...) const> {
  template <class F>
  static int run(lua_State* L, F f) {
    if constexpr (std::is_member_function_pointer_v<F>)
      return call<decltype(std::mem_fn(f)), Result, const Owner&, Arguments...>(L, std::mem_fn(f));
    else
      return call<F, Result, Arguments...>(L, f);
  }
};

}  // namespace detail

/// More methods of a type that is registered.
template <class T>
void add_methods(lua_State* L, std::span<const luaL_Reg> methods) {
  luaL_getmetatable(L, kTypeName<T>);
  lua_getfield(L, -1, "__index");
  register_functions(L, methods, kTypeName<T>, true);
  lua_pop(L, 2);
}

template <auto f>
int call_bound(lua_State* L) {
  return detail::Signature<std::remove_const_t<decltype(f)>>::run(L, f);
}

}  // namespace trinity::lua
