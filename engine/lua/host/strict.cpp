#include "lua/host/strict.h"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <vector>

#include "lua/host/check.h"
#include "lua/host/host.h"

namespace trinity::lua {
namespace {

constexpr int kMaxLevels = 20;

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

bool is_package(std::string_view path) {
  return contains(path, "/lua_modules/") || contains(path, "/.luarocks/") ||
         contains(path, "/share/lua");
}

/// True if the code of `frame` is held to declarations.
bool is_strict(const HostState& host, const lua_Debug& frame) {
  const std::string_view source = frame.source;
  if (source == "=(command line)" || source == "=stdin" || source == "=(host)") return true;
  if (!source.starts_with('@')) return false;
  if (source == host.script) return true;
  const auto path = source.substr(1);
  return !host.script_folder.empty() && path.starts_with(host.script_folder) && !is_package(path) &&
         !path.starts_with(host.home + "/lib/");
}

/// The Lua function that touches a global from inside a metamethod: true when it must declare.
bool find_caller(lua_State* L, const HostState& host, lua_Debug& frame) {
  if (!lua_getstack(L, 1, &frame)) return false;
  lua_getinfo(L, "Sl", &frame);
  return frame.currentline > 0 && is_strict(host, frame);
}

/// Adds the names of the local variables of a frame.
void add_locals(lua_State* L, const lua_Debug& frame, std::vector<std::string>& names) {
  for (int i = 1; const char* name = lua_getlocal(L, &frame, i); ++i) {
    lua_pop(L, 1);
    if (*name != '(') names.emplace_back(name);
  }
}

/// ", did you mean 'x'?" for a local of the caller or of the functions of its file that called it
/// (where an outer local that is misspelt has its name), or for a global.
std::string suggest(lua_State* L, const lua_Debug& caller, const std::string& name) {
  std::vector<std::string> names;
  lua_Debug frame;
  for (int level = 1; level <= kMaxLevels && lua_getstack(L, level, &frame); ++level) {
    lua_getinfo(L, "S", &frame);
    if (std::string_view(frame.source) == caller.source) add_locals(L, frame, names);
  }
  lua_pushnil(L);
  while (lua_next(L, LUA_GLOBALSINDEX)) {
    lua_pop(L, 1);
    if (lua_type(L, -1) == LUA_TSTRING && lua_objlen(L, -1) > 0)
      names.emplace_back(lua_tostring(L, -1));
  }
  // Among this many names one is near anything; typing errors spare the first letter.
  std::erase_if(names, [&](const std::string& other) {
    return std::tolower(static_cast<unsigned char>(other[0])) !=
           std::tolower(static_cast<unsigned char>(name[0]));
  });
  std::sort(names.begin(), names.end());
  return name.size() < 3 ? "" : suggestion(name, names);
}

int raise(lua_State* L, const lua_Debug& frame, const std::string& message) {
  lua_pushfstring(L, "%s:%d: %s", frame.short_src, frame.currentline, message.c_str());
  return lua_error(L);
}

/// __index(globals, name)
int read_missing(lua_State* L) {
  const HostState& host = *host_state(L);
  lua_Debug frame;
  if (lua_type(L, 2) != LUA_TSTRING || !find_caller(L, host, frame)) return 0;
  const std::string name = lua_tostring(L, 2);
  if (host.declared.count(name)) return 0;
  if (host.ended_locals.count(name))
    return raise(L, frame,
                 fmt::format("variable '{}' is not declared: 'local {}' ended with its "
                             "line; leave out 'local' at the prompt",
                             name, name));
  return raise(L, frame,
               fmt::format("variable '{}' is not declared{}", name, suggest(L, frame, name)));
}

/// __newindex(globals, name, value)
int write_missing(lua_State* L) {
  HostState& host = *host_state(L);
  lua_Debug frame;
  if (lua_type(L, 2) == LUA_TSTRING) {
    const std::string name = lua_tostring(L, 2);
    const bool strict = find_caller(L, host, frame);
    const bool prompt = strict && host.interactive && std::string_view(frame.source) == "=stdin";
    if (strict && !prompt && !host.declared.count(name))
      return raise(L, frame,
                   fmt::format("assignment to variable '{}', which is not declared{} "
                               "(write 'local {}' or trinity.global('{}', value))",
                               name, suggest(L, frame, name), name, name));
    host.declared.insert(name);
  }
  lua_settop(L, 3);
  lua_rawset(L, 1);
  return 0;
}

/// trinity.global(name, value): declares a global variable. Returns the value.
int strict_global(lua_State* L) {
  const auto name = string_arg(L, 1, "name");
  lua_settop(L, 2);
  if (auto* host = host_state(L)) host->declared.insert(name);
  lua_pushvalue(L, 1);
  lua_pushvalue(L, 2);
  lua_rawset(L, LUA_GLOBALSINDEX);
  return 1;
}

constexpr luaL_Reg kFunctions[] = {TRINITY_BIND("global", strict_global)};

}  // namespace

void make_strict(lua_State* L) {
  lua_newtable(L);
  lua_pushcfunction(L, guard<read_missing>);
  lua_setfield(L, -2, "__index");
  lua_pushcfunction(L, guard<write_missing>);
  lua_setfield(L, -2, "__newindex");
  lua_setmetatable(L, LUA_GLOBALSINDEX);
}

void open_strict(lua_State* L) { register_functions(L, kFunctions); }

}  // namespace trinity::lua
