#include "lua/bind/json_table.h"

#include <rapidjson/memorystream.h>
#include <rapidjson/reader.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/stop.h"
#include "formats/json/json_reader.h"

namespace trinity::lua {
namespace {

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

}  // namespace

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

}  // namespace trinity::lua
