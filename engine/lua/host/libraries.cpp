#include "lua/host/libraries.h"

#include <pthread.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <string_view>

#include "lua/host/check.h"

namespace trinity::lua {
namespace {

/// The trees of LuaRocks, nearest first, then what LuaJIT was built with.
std::string default_path(const std::string& folder, const std::string& ending, bool with_init,
                         const std::string& built_in) {
  std::string paths;
  const char* user = std::getenv("HOME");
  for (const std::string& root :
       {std::string("./lua_modules"), user ? std::string(user) + "/.luarocks" : std::string(),
        std::string("/usr/local")}) {
    if (root.empty()) continue;
    const auto start = root + folder + "/5.1/?";
    if (built_in.find(start + ending) != std::string::npos) continue;
    paths += start + ending + ";";
    if (with_init) paths += start + "/init" + ending + ";";
  }
  return paths + built_in;
}

/// The environment's path with its ';;' replaced by `otherwise`, or `otherwise` itself.
std::string from_environment(const char* variable, const std::string& otherwise) {
  const char* given = std::getenv(variable);
  if (!given) return otherwise;
  std::string path = given;
  const auto at = path.find(";;");
  if (at == std::string::npos) return path;
  const auto before = path.substr(0, at), after = path.substr(at + 2);
  return before + (before.empty() ? "" : ";") + otherwise + (after.empty() ? "" : ";") + after;
}

/// Puts `front` before field `name` of the table package on top of the stack, once.
void put_before(lua_State* L, const char* name, const std::string& front) {
  lua_getfield(L, -1, name);
  const std::string old = lua_isstring(L, -1) ? lua_tostring(L, -1) : "";
  lua_pop(L, 1);
  if (old.starts_with(front)) return;
  lua_pushstring(L, (front + old).c_str());
  lua_setfield(L, -2, name);
}

/// A loader of package.loaders for modules that a file next to a script must not replace: modules
/// of trinity, which are the library's or none, and modules of LuaJIT itself, by the paths that it
/// was built with. Upvalues: the paths of both.
int load_own(lua_State* L) {
  const std::string_view name = luaL_checkstring(L, 1);
  const bool ours = name == "trinity" || name.starts_with("trinity.");
  if (!ours && !name.starts_with("jit.")) return 0;
  lua_getglobal(L, "package");
  lua_getfield(L, -1, "searchpath");
  lua_pushvalue(L, 1);
  lua_pushvalue(L, lua_upvalueindex(ours ? 1 : 2));
  lua_call(L, 2, 2);
  if (lua_isnil(L, -2))
    return ours ? luaL_error(L, "module '%s' not found:%s", lua_tostring(L, 1), lua_tostring(L, -1))
                : 0;
  if (luaL_loadfilex(L, lua_tostring(L, -2), nullptr) != 0) return lua_error(L);
  return 1;
}

/// The parts of a search path that begin at the root of the file system.
std::string rooted(const std::string& paths) {
  std::string kept;
  for (size_t from = 0; from < paths.size();) {
    const auto end = std::min(paths.find(';', from), paths.size());
    if (paths[from] == '/') kept += paths.substr(from, end - from) + ";";
    from = end + 1;
  }
  return kept;
}

/// Puts load_own() after the loader of preloaded modules. The table package is on top.
void put_own_first(lua_State* L, const std::string& library, const std::string& built_in) {
  lua_getfield(L, -1, "loaders");
  for (int i = static_cast<int>(lua_objlen(L, -1)); i >= 2; --i) {
    lua_rawgeti(L, -1, i);
    lua_rawseti(L, -2, i + 1);
  }
  lua_pushstring(L, library.c_str());
  lua_pushstring(L, rooted(built_in).c_str());
  lua_pushcclosure(L, load_own, 2);
  lua_rawseti(L, -2, 2);
  lua_pop(L, 1);
}

/// The middle of this thread's stack, which grows downwards; nullptr where it is not known.
const char* middle_of_stack() {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return nullptr;
  void* lowest = nullptr;
  size_t size = 0;
  const bool known = pthread_attr_getstack(&attributes, &lowest, &size) == 0;
  pthread_attr_destroy(&attributes);
  return known ? static_cast<const char*>(lowest) + size / 2 : nullptr;
}

/// Calls the function in upvalue 1 with all arguments, unless the stack is half used.
int call_guarded(lua_State* L) {
  thread_local const char* const middle = middle_of_stack();
  const char here = 0;
  if (&here < middle) return luaL_error(L, "stack overflow (coroutines within coroutines)");
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_insert(L, 1);
  lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
  return lua_gettop(L);
}

/// coroutine.wrap: upvalue 1 is LuaJIT's.
int wrap(lua_State* L) {
  lua_settop(L, 1);
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_insert(L, 1);
  lua_call(L, 1, 1);
  lua_pushcclosure(L, call_guarded, 1);
  return 1;
}

void replace(lua_State* L, const char* name, lua_CFunction function) {
  lua_getfield(L, -1, name);
  lua_pushcclosure(L, function, 1);
  lua_setfield(L, -2, name);
}

}  // namespace

void open_libraries(lua_State* L, const std::string& home) {
  // LuaJIT must not read the variables itself: it would put its own default for ';;'.
  lua_pushboolean(L, 1);
  lua_setfield(L, LUA_REGISTRYINDEX, "LUA_NOENV");
  luaL_openlibs(L);
  lua_pushnil(L);
  lua_setfield(L, LUA_REGISTRYINDEX, "LUA_NOENV");
  lua_getglobal(L, "package");
  lua_getfield(L, -1, "path");
  lua_getfield(L, -2, "cpath");
  const std::string built_in = lua_tostring(L, -2), built_in_c = lua_tostring(L, -1);
  lua_pop(L, 2);
  const std::string library = home + "/lib/?.lua;" + home + "/lib/?/init.lua;";
  put_own_first(L, library, built_in);
  const auto path =
      library +
      from_environment("LUA_PATH", default_path("/share/lua", ".lua", true, built_in));
  const auto cpath =
      from_environment("LUA_CPATH", default_path("/lib/lua", ".so", false, built_in_c));
  lua_pushstring(L, path.c_str());
  lua_setfield(L, -2, "path");
  lua_pushstring(L, cpath.c_str());
  lua_setfield(L, -2, "cpath");
  lua_pop(L, 1);
}

void add_script_folder(lua_State* L, const std::string& folder) {
  const std::string start = (folder.empty() ? std::string(".") : folder) + "/?";
  lua_getglobal(L, "package");
  if (lua_istable(L, -1)) {  // a safe state has none
    put_before(L, "path", start + ".lua;" + start + "/init.lua;");
    put_before(L, "cpath", start + ".so;");
  }
  lua_pop(L, 1);
}

void install_coroutine_guard(lua_State* L) {
  lua_getglobal(L, "coroutine");
  replace(L, "resume", call_guarded);
  replace(L, "wrap", wrap);
  lua_pop(L, 1);
}

void make_safe(lua_State* L) {
  lua_getfield(L, LUA_REGISTRYINDEX, kHomeKey);
  const std::string home = lua_tostring(L, -1);
  lua_pop(L, 1);
  if (luaL_loadfilex(L, (home + "/lib/trinity/command/safe.lua").c_str(), "t") != 0) lua_error(L);
  lua_call(L, 0, 1);
  lua_replace(L, LUA_GLOBALSINDEX);
}

}  // namespace trinity::lua
