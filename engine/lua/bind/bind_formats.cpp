#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/utf8.h"
#include "formats/export/dot.h"
#include "formats/export/placement_export.h"
#include "formats/json/graph_json.h"
#include "formats/json/json_reader.h"
#include "formats/read_model.h"
#include "lua/bind/json_table.h"
#include "lua/bind/module.h"

namespace trinity::lua {
namespace {

/// Deeper tables are an error: a table that holds itself has no end.
constexpr size_t kDeepest = 64;

std::string_view text_at(lua_State* L, int index) {
  size_t length = 0;
  const char* text = lua_tolstring(L, index, &length);
  return {text, length};
}

/// Writes a value of Lua as JSON: keys 1..n make a list, strings an object in sorted order; an empty
/// table is a list. Tables that mix both are refused. Where `exact`, so is everything that would
/// read back as another value: lists with holes, numbers that are not finite, text that is no UTF-8.
class ValueWriter {
 public:
  ValueWriter(lua_State* L, int indent, bool exact) : L_(L), json_(indent), exact_(exact) {}

  std::string text(int index) {
    write(index);
    return json_.take();
  }

 private:
  struct Step {
    std::string_view name;  ///< of a field; of a list's entry its index counts
    size_t index;
  };

  [[noreturn]] void refuse(const std::string& why) const {
    std::string place;
    for (size_t i = 0; i < std::min<size_t>(path_.size(), 8); ++i) {
      const auto& [name, index] = path_[i];
      place += index ? fmt::format("[{}]", index) : fmt::format("{}{}", i ? "." : "", name);
    }
    throw ArgumentError(place.empty() ? why : fmt::format("{}: {}", place, why));
  }

  /// The fields of a table that have names, sorted; refuses other keys than those and 1..count.
  std::vector<std::string> field_names(int index, size_t count) const {
    std::vector<std::string> names;
    size_t entries = 0;
    lua_pushnil(L_);
    while (lua_next(L_, index)) {
      lua_pop(L_, 1);
      if (lua_type(L_, -1) == LUA_TSTRING) {
        names.emplace_back(text_at(L_, -1));
        if (exact_ && !is_utf8(names.back())) refuse("a field's name is not UTF-8");
        continue;
      }
      const double key = lua_type(L_, -1) == LUA_TNUMBER ? lua_tonumber(L_, -1) : 0;
      if (!(key >= 1 && key <= static_cast<double>(count) && key == std::floor(key)))
        refuse(key != 0 ? fmt::format("a list with holes (its keys are not 1, 2, 3, ...: {})", key)
                        : fmt::format("a table with a {} as a key", type_name(L_, -1)));
      ++entries;
    }
    std::sort(names.begin(), names.end());
    if (count > 0 && !names.empty())
      refuse(fmt::format("a table with both a list and named fields ('{}')", names.front()));
    if (exact_ && entries < count) refuse("a list with holes (nil)");
    return names;
  }

  void write(int index) {
    switch (lua_type(L_, index)) {
      case LUA_TNIL:
        json_.raw("null");
        return;
      case LUA_TBOOLEAN:
        json_.boolean(lua_toboolean(L_, index) != 0);
        return;
      case LUA_TSTRING:
        return write_text(index);
      case LUA_TTABLE:
        return write_table(index);
      case LUA_TNUMBER:
        return write_number(lua_tonumber(L_, index));
      default:
        refuse(fmt::format("JSON cannot represent a {}", type_name(L_, index)));
    }
  }

  void write_text(int index) {
    const auto text = text_at(L_, index);
    if (exact_ && !is_utf8(text)) refuse("a text that is not UTF-8");
    json_.text(text);
  }

  void write_number(double value) {
    if (exact_ && !std::isfinite(value)) refuse(fmt::format("JSON cannot represent the number {}",
                                                            value));
    if (value == std::floor(value) && std::abs(value) < 0x1p53 && !(value == 0 && std::signbit(value)))
      json_.integer(static_cast<int64_t>(value));
    else
      json_.number(value);
  }

  void write_table(int index) {
    if (path_.size() >= kDeepest) refuse("tables nested more than 64 deep");
    luaL_checkstack(L_, 4, "to_json");
    const auto count = lua_objlen(L_, index);
    const auto names = field_names(index, count);
    if (names.empty()) {
      json_.begin_list();
      for (size_t i = 1; i <= count; ++i) {
        lua_rawgeti(L_, index, static_cast<int>(i));
        write_top({{}, i});
      }
      json_.end_list();
      return;
    }
    json_.begin_object();
    for (const auto& name : names) {
      push_text(L_, name);
      lua_rawget(L_, index);
      json_.key(name);
      write_top({name, 0});
    }
    json_.end_object();
  }

  void write_top(Step step) {
    path_.push_back(step);
    write(lua_gettop(L_));
    path_.pop_back();
    lua_pop(L_, 1);
  }

  lua_State* L_;
  JsonWriter json_;
  bool exact_;
  std::vector<Step> path_;
};

/// to_json(value, form) -> text with sorted keys. form: nil indented; 'line' on one line; 'exact' on
/// one line, only of values that read back as they are
auto value_to_json(lua_State* L) {
  lua_settop(L, 2);
  const std::string form = lua_isnil(L, 2) ? "" : string_arg(L, 2, "form");
  return ValueWriter(L, form.empty() ? 2 : -1, form == "exact").text(1);
}

/// Objects and lists become tables, null nil, and false in a list, which keeps its length.
void push_json(lua_State* L, const nlohmann::json& value, bool in_list) {
  luaL_checkstack(L, 4, "from_json");
  if (value.is_boolean()) return lua_pushboolean(L, value.get<bool>());
  if (value.is_number()) return lua_pushnumber(L, value.get<double>());
  if (value.is_string()) {
    push_text(L, value.get_ref<const std::string&>());
    return;
  }
  if (value.is_null()) return in_list ? lua_pushboolean(L, 0) : lua_pushnil(L);
  if (value.is_array())
    return push_list(L, value, [L](const auto& element) { push_json(L, element, true); });
  lua_newtable(L);
  for (const auto& [key, field] : value.items()) {
    push_text(L, key);
    push_json(L, field, false);
    lua_rawset(L, -3);
  }
}

/// from_json(text, source) -> value; errors begin with `source`
int value_from_json(lua_State* L, Text<"text"> text) {
  if (push_plain_json(L, text)) return 1;
  push_json(L, JsonDocument(text, string_arg(L, 2, "source")).json(), false);
  return 1;
}

/// { open_dimension =, dimensions = { name = size }, copy_shared_vectors = }
OnnxOptions onnx_options(lua_State* L, int index) {
  OnnxOptions options;
  if (lua_isnoneornil(L, index)) return options;
  Fields fields(L, index, "read_model");
  constexpr int64_t kLargest = int64_t{1} << 40;
  options.copy_shared_vectors = fields.boolean("copy_shared_vectors", true);
  options.open_dimension = fields.integer("open_dimension", 1, 1, kLargest);
  if (fields.push_table("dimensions")) {
    const int table = lua_gettop(L);
    lua_pushnil(L);
    while (lua_next(L, table)) {
      const double size = lua_type(L, -1) == LUA_TNUMBER ? lua_tonumber(L, -1) : -1;
      if (lua_type(L, -2) != LUA_TSTRING || !(size >= 1 && size <= kLargest) ||
          size != std::floor(size))
        throw ArgumentError("dimensions: expected names with whole numbers from 1");
      options.dimensions[lua_tostring(L, -2)] = static_cast<int64_t>(size);
      lua_pop(L, 1);
    }
    lua_pop(L, 1);
  }
  fields.refuse_unknown();
  return options;
}

/// read_model(path, {open_dimension=, dimensions=}) -> graph, {format=, whole_step=, warnings=,
/// unknown_types=}
auto formats_read_model(lua_State* L, Text<"path"> path) {
  auto imported = read_model(path, onnx_options(L, 2));
  return std::tuple(std::make_shared<const Graph>(std::move(imported.graph)),
                    record("format", imported.format, "whole_step", imported.whole_step, "warnings", imported.warnings,
                           "unknown_types", imported.unknown_types));
}

/// graph_to_json(graph) -> text
auto formats_graph_to_json(const Graph& graph) { return graph_to_json(graph); }

/// The names at `index`, a list of strings; empty for nil.
std::vector<std::string> names_arg(lua_State* L, int index, const char* name) {
  std::vector<std::string> names;
  if (lua_isnoneornil(L, index)) return names;
  table_arg(L, index, name);
  for_each(L, index, [&](int i) {
    if (lua_type(L, -1) != LUA_TSTRING)
      throw ArgumentError("{}: entry {}: expected a string, got {}", name, i, type_name(L, -1));
    names.emplace_back(lua_tostring(L, -1));
  });
  return names;
}

/// graph_to_dot(graph, by units, problem or nil, placement or nil) -> text; devices
/// are the devices of the problem's cluster
auto formats_graph_to_dot(lua_State* L, const Graph& graph, bool units) {
  DotOptions options;
  options.units = units;
  if (!lua_isnoneornil(L, 3)) {
    const auto& problem = *object_arg<BoundProblem>(L, 3).problem;
    options.devices = problem.cluster().device_names();
    options.placement.resize(static_cast<size_t>(problem.operators()));
    placement_arg(L, 4, problem, options.placement.data());
  }
  return graph_to_dot(graph, options);
}

/// placement_to_json(problem, placement, schedule, device names or nil) -> text
auto formats_placement_to_json(lua_State* L, const BoundProblem& of) {
  const auto& problem = *of.problem;
  Strategy strategy;
  strategy.placement.resize(static_cast<size_t>(problem.operators()));
  placement_arg(L, 2, problem, strategy.placement.data());
  strategy.schedule = schedule_arg(L, 3, problem);
  return placement_to_json(strategy, problem.graph(), problem.cluster(), names_arg(L, 4, "device names"));
}

constexpr luaL_Reg kFormatsFunctions[] = {
    TRINITY_BIND("to_json", value_to_json), TRINITY_BIND("from_json", value_from_json),
    TRINITY_BIND("read_model", formats_read_model), TRINITY_BIND("graph_to_json", formats_graph_to_json),
    TRINITY_BIND("graph_to_dot", formats_graph_to_dot), TRINITY_BIND("placement_to_json", formats_placement_to_json)};

}  // namespace

void open_formats(lua_State* L) { register_functions(L, kFormatsFunctions); }

}  // namespace trinity::lua
