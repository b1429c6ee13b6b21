#pragma once

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string_view>

#include "features/feature_options.h"
#include "lua/host/check.h"

// Options that the engine lists once (each_feature_option, each_option) from a table of a script.

namespace trinity::lua {

/// Takes options from a table, node2vec's from the table in it, if there is one.
struct OptionReader {
  Fields& fields;
  Fields* walks = nullptr;

  /// The table that an option is in, and its name there.
  Fields* table_of(const char*& name) const {
    constexpr std::string_view kWalks = "node2vec.";
    if (!std::string_view(name).starts_with(kWalks)) return &fields;
    name += kWalks.size();
    return walks;
  }
  template <class Number>
  void operator()(const char* name, Number& value, double least, double most, const char*) const {
    const char* key = name;
    auto* from = table_of(key);
    if (!from) return;
    if constexpr (std::is_integral_v<Number>)
      value = static_cast<Number>(from->integer(key, value, std::numeric_limits<Number>::min(),
                                                std::numeric_limits<Number>::max()));
    else
      value = from->number(key, value);
    check_option(name, value, least, most);
  }
  void operator()(const char* name, bool& value, const char*) const {
    value = fields.boolean(name, value);
  }
  void operator()(const char* name, std::string& value, const char*) const {
    value = fields.string(name, value);
  }
  template <class Choice, size_t Words>
  void operator()(const char* name, Choice& value, const std::array<const char*, Words>& words,
                  const char*) const {
    const auto word = fields.string(name, words[static_cast<size_t>(value)]);
    const auto found = std::find(words.begin(), words.end(), word);
    if (found == words.end())
      throw ArgumentError("field '{}': unknown value '{}'{} (known: {})", name, word,
                          suggestion(word, {words.begin(), words.end()}), fmt::join(words, ", "));
    value = static_cast<Choice>(found - words.begin());
  }
};

/// each(reader) with a reader of the table and of what field node2vec holds: a table, or false for
/// no such columns.
template <class Each>
void read_fields(lua_State* L, Fields& fields, int32_t& walk_dimensions, Each each) {
  fields.push_any("node2vec");
  const bool off = lua_isboolean(L, -1) && !lua_toboolean(L, -1);
  lua_pop(L, 1);
  std::optional<Fields> walks;
  if (!off && fields.push_table("node2vec")) walks.emplace(L, -1, "node2vec");
  each(OptionReader{fields, walks ? &*walks : nullptr});
  if (off) walk_dimensions = 0;
  if (!walks) return;
  walks->refuse_unknown();
  lua_pop(L, 1);
}

}  // namespace trinity::lua
