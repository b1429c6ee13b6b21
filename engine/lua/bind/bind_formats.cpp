#include <rapidjson/memorystream.h>
#include <rapidjson/reader.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "base/late.h"
#include "base/stop.h"
#include "base/utf8.h"
#include "formats/export/dot.h"
#include "formats/export/placement_export.h"
#include "formats/json/graph_json.h"
#include "formats/json/json_reader.h"
#include "formats/onnx/onnx.h"
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
    for_each_entry(L_, index, [&] {
      if (lua_type(L_, -2) == LUA_TSTRING) {
        names.emplace_back(text_at(L_, -2));
        if (exact_ && !is_utf8(names.back())) refuse("a field's name is not UTF-8");
        return;
      }
      const double key = lua_type(L_, -2) == LUA_TNUMBER ? lua_tonumber(L_, -2) : 0;
      if (!(key >= 1 && key <= static_cast<double>(count) && key == std::floor(key)))
        refuse(key != 0 ? fmt::format("a list with holes (its keys are not 1, 2, 3, ...: {})", key)
                        : fmt::format("a table with a {} as a key", type_name(L_, -2)));
      ++entries;
    });
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

/// Builds Lua's values on its stack from the events of RapidJSON's reader; false ends it. The stack
/// holds the table and the current key of every open object, and the table of every open list,
/// which waits for the first element that is no number.
class TableBuilder : public rapidjson::BaseReaderHandler<rapidjson::UTF8<>, TableBuilder> {
 public:
  explicit TableBuilder(lua_State* L) : L_(L) {}

  bool StartObject() {
    if (!begin_container()) return false;
    lua_newtable(L_);
    open_.push_back({true, true, 0, 0, {}});
    return true;
  }

  /// No field may be repeated.
  bool Key(const char* text, rapidjson::SizeType size, bool) {
    const auto& nulls = open_.back().nulls;
    if (!is_utf8(text, size)) return false;
    if (std::find(nulls.begin(), nulls.end(), std::string_view(text, size)) != nulls.end())
      return false;
    lua_pushlstring(L_, text, size);
    lua_pushvalue(L_, -1);
    lua_rawget(L_, -3);
    const bool is_new = lua_isnil(L_, -1);
    lua_pop(L_, 1);
    return is_new;
  }

  bool EndObject(rapidjson::SizeType) {
    open_.pop_back();
    return end_value();
  }
  bool StartArray() {
    if (!begin_container()) return false;
    open_.push_back({false, false, numbers_.size(), 0, {}});
    return true;
  }
  bool EndArray(rapidjson::SizeType) {
    push_waiting();
    open_.pop_back();
    return end_value();
  }

  bool Null() {
    if (open_.empty()) {
      lua_pushnil(L_);
      return true;
    }
    if (!open_.back().object) return Bool(false);
    auto& nulls = open_.back().nulls;
    if (nulls.size() == kMostNulls) return false;
    size_t size = 0;
    const char* key = lua_tolstring(L_, -1, &size);
    nulls.emplace_back(key, size);
    lua_pop(L_, 1);
    return true;
  }

  bool Bool(bool value) {
    begin_value();
    lua_pushboolean(L_, value);
    return end_value();
  }
  bool String(const char* text, rapidjson::SizeType size, bool) {
    if (!is_utf8(text, size)) return false;
    begin_value();
    lua_pushlstring(L_, text, size);
    return end_value();
  }

  bool RawNumber(const char* text, rapidjson::SizeType size, bool) {
    const auto value = json_number({text, size});
    if (!value) return false;
    if (!open_.empty() && !open_.back().has_table) {
      stop_.step();
      numbers_.push_back(*value);
      return true;
    }
    begin_value();
    lua_pushnumber(L_, *value);
    return end_value();
  }

 private:
  static constexpr size_t kMostNulls = 32;  // of an object: they are kept, and searched

  struct Open {
    bool object, has_table;
    size_t first_number;  ///< of a list without a table: where its elements begin in numbers_
    int count;            ///< of a list with one: its elements
    std::vector<std::string> nulls;  ///< keys of an object that are not in its table
  };

  /// RapidJSON 1.1 takes half a surrogate pair, as an escape, for a character.
  static bool is_utf8(const char* text, size_t size) {
    return std::string_view(text, size).find('\xED') == std::string_view::npos;
  }

  bool begin_container() {
    if (open_.size() >= kMostJsonDepth) return false;
    luaL_checkstack(L_, 6, "from_json");
    begin_value();
    return true;
  }
  void begin_value() {
    stop_.step();
    if (!open_.empty()) push_waiting();
  }
  bool end_value() {
    if (open_.empty()) return true;
    if (open_.back().object)
      lua_rawset(L_, -3);
    else
      lua_rawseti(L_, -2, ++open_.back().count);
    return true;
  }

  /// Gives the innermost list its table, with the numbers that came, where it has none yet.
  void push_waiting() {
    auto& list = open_.back();
    if (list.has_table) return;
    const size_t first = list.first_number, count = numbers_.size() - first;
    lua_createtable(L_, static_cast<int>(count), 0);
    for (size_t i = 0; i < count; ++i) {
      lua_pushnumber(L_, numbers_[first + i]);
      lua_rawseti(L_, -2, static_cast<int>(i + 1));
    }
    numbers_.resize(first);
    list.count = static_cast<int>(count);
    list.has_table = true;
  }

  lua_State* L_;
  std::vector<Open> open_;
  std::vector<double> numbers_;  // of lists that hold nothing else so far
  StopPoll stop_;
};

/// Pushes the value of a JSON text without a document in between, which takes a third of the time:
/// objects and lists become tables, null nil, and false in a list, which keeps its length. Returns
/// false, with the stack as it was, where the text is not one that JsonDocument takes or is unusual
/// (a byte order mark, an object with dozens of nulls): that reader decides then, and says what is
/// wrong. Throws Interrupted after Ctrl-C.
bool push_plain_json(lua_State* L, std::string_view text) {
  if (text.size() > JsonDocument::kMaxBytes) return false;
  const int top = lua_gettop(L);
  constexpr unsigned kFlags =
      rapidjson::kParseNumbersAsStringsFlag | rapidjson::kParseValidateEncodingFlag;
  luaL_checkstack(L, 6, "from_json");
  rapidjson::MemoryStream stream(text.data(), text.size());
  rapidjson::Reader reader;
  TableBuilder builder(L);
  const auto result = reader.Parse<kFlags>(stream, builder);
  if (!result.IsError() && stream.Tell() == text.size()) return true;
  lua_settop(L, top);
  return false;
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
  Fields fields(L, index, "read_onnx");
  constexpr int64_t kLargest = int64_t{1} << 40;
  options.copy_shared_vectors = fields.boolean("copy_shared_vectors", true);
  options.open_dimension = fields.integer("open_dimension", 1, 1, kLargest);
  const auto read_size = [&] {
    const double size = lua_type(L, -1) == LUA_TNUMBER ? lua_tonumber(L, -1) : -1;
    if (lua_type(L, -2) != LUA_TSTRING || !(size >= 1 && size <= kLargest) || size != std::floor(size))
      throw ArgumentError("dimensions: expected names with whole numbers from 1");
    options.dimensions[lua_tostring(L, -2)] = static_cast<int64_t>(size);
  };
  fields.table("dimensions", [&] { for_each_entry(L, -1, read_size); });
  fields.refuse_unknown();
  return options;
}

/// read_onnx(path, {open_dimension=, dimensions=}) -> graph, {warnings=, unknown_types=}
auto formats_read_onnx(lua_State* L, Text<"path"> path) {
  static auto* const read = late<OnnxReader>(kOnnxPart, "trinity_read_onnx");
  std::optional<Imported> imported;
  read(path, onnx_options(L, 2), imported);
  return std::tuple(std::make_shared<const Graph>(std::move(imported->graph)),
                    record("warnings", imported->warnings, "unknown_types", imported->unknown_types));
}

/// read_graph(path) -> graph of trinity's own file
auto formats_read_graph(Text<"path"> path) {
  return std::make_shared<const Graph>(parse_graph_json(read_file(path), path));
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
    options.placement = placement_arg(L, 4, problem);
  }
  return graph_to_dot(graph, options);
}

/// placement_to_json(problem, placement, schedule, device names or nil) -> text
auto formats_placement_to_json(lua_State* L, const BoundProblem& of) {
  const auto& problem = *of.problem;
  Strategy strategy;
  strategy.placement = placement_arg(L, 2, problem);
  strategy.schedule = schedule_arg(L, 3, problem);
  return placement_to_json(strategy, problem.graph(), problem.cluster(), names_arg(L, 4, "device names"));
}

constexpr luaL_Reg kFormatsFunctions[] = {
    TRINITY_BIND("to_json", value_to_json), TRINITY_BIND("from_json", value_from_json),
    TRINITY_BIND("read_onnx", formats_read_onnx), TRINITY_BIND("read_graph", formats_read_graph), TRINITY_BIND("graph_to_json", formats_graph_to_json),
    TRINITY_BIND("graph_to_dot", formats_graph_to_dot), TRINITY_BIND("placement_to_json", formats_placement_to_json)};

}  // namespace

void open_formats(lua_State* L) { register_functions(L, kFormatsFunctions); }

}  // namespace trinity::lua
