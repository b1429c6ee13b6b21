#pragma once

#include <lua.hpp>
#include <string_view>

namespace trinity::lua {

/// Pushes the value of a JSON text without a document in between, which takes a third of the time:
/// objects and lists become tables, null nil, and false in a list, which keeps its length. Returns
/// false, with the stack as it was, where the text is not one that JsonDocument takes or is unusual
/// (a byte order mark, an object with dozens of nulls): that reader decides then, and says what is
/// wrong. Throws Interrupted after Ctrl-C.
bool push_plain_json(lua_State* L, std::string_view text);

}  // namespace trinity::lua
