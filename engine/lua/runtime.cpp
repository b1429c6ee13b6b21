#include "lua/runtime.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "lua/interrupt.h"
#include "lua/module.h"

namespace trinity::lua {
namespace {

namespace fs = std::filesystem;

bool is_home(const fs::path& folder) { return fs::exists(folder / "lib/trinity/init.lua"); }

/// Turns an error value into text. A table with a `message` is one of ours and carries its own
/// position; anything else gets a traceback of the Lua frames.
int on_error(lua_State* L) {
  if (lua_istable(L, 1)) {
    lua_getfield(L, 1, "message");
    if (lua_isstring(L, -1)) {
      lua_pop(L, 1);
      return 1;
    }
    lua_pop(L, 1);
  }
  if (!lua_isstring(L, 1)) {
    if (!luaL_callmeta(L, 1, "__tostring"))
      lua_pushfstring(L, "(error object is a %s value)", luaL_typename(L, 1));
    lua_replace(L, 1);
    lua_settop(L, 1);
  }
  if (std::getenv("TRINITY_TRACEBACK")) luaL_traceback(L, L, lua_tostring(L, 1), 1);
  return 1;
}

}  // namespace

std::string find_home() {
  std::vector<fs::path> places;
  if (const char* home = std::getenv("TRINITY_HOME")) places.emplace_back(home);
  std::error_code error;
  const auto program = fs::read_symlink("/proc/self/exe", error);
  if (!error) {
    places.push_back(program.parent_path().parent_path());
    places.push_back(program.parent_path().parent_path() / "share/trinity");
  }
  places.emplace_back(TRINITY_SOURCE_DIR);
  std::string looked;
  for (const auto& place : places) {
    if (is_home(place)) return place.string();
    looked += (looked.empty() ? "" : ", ") + place.string();
  }
  throw Error("cannot find lib/trinity below any of: " + looked);
}

Runtime::Runtime(const std::string& home) : L_(luaL_newstate()), home_(home) {
  if (!L_) throw Error("cannot start Lua: out of memory");
  luaL_openlibs(L_);
  lua_getglobal(L_, "package");
  lua_getfield(L_, -1, "preload");
  lua_pushcfunction(L_, guard<open_core>);
  lua_setfield(L_, -2, "trinity.core");
  lua_pop(L_, 2);
  lua_pushstring(L_, home.c_str());
  lua_setfield(L_, LUA_REGISTRYINDEX, kHomeKey);
  set_path("");
  watch_interrupts(L_);
}

Runtime::~Runtime() { lua_close(L_); }

/// Script folder, the library, then whatever LuaJIT had (LUA_PATH included).
void Runtime::set_path(const std::string& folder) {
  lua_getglobal(L_, "package");
  lua_getfield(L_, -1, "path");
  const std::string old = lua_tostring(L_, -1);
  lua_pop(L_, 1);
  std::string path;
  if (!folder.empty()) path = folder + "/?.lua;";
  if (old.find(home_ + "/lib/?.lua") == std::string::npos)
    path += home_ + "/lib/?.lua;" + home_ + "/lib/?/init.lua;";
  path += old;
  lua_pushstring(L_, path.c_str());
  lua_setfield(L_, -2, "path");
  lua_pop(L_, 1);
}

void Runtime::set_arguments(const std::string& script, const std::vector<std::string>& arguments,
                            const std::vector<std::string>& host) {
  lua_newtable(L_);
  const auto set = [this](int at, const std::string& text) {
    lua_pushlstring(L_, text.data(), text.size());
    lua_rawseti(L_, -2, at);
  };
  for (size_t i = 0; i < host.size(); ++i)
    set(static_cast<int>(i) - static_cast<int>(host.size()), host[i]);
  set(0, script);
  for (size_t i = 0; i < arguments.size(); ++i) set(static_cast<int>(i) + 1, arguments[i]);
  lua_setglobal(L_, "arg");
}

int Runtime::run_file(const std::string& path, const std::vector<std::string>& arguments) {
  const bool input = path == "-";
  if (!input) {
    const auto folder = fs::path(path).parent_path().string();
    set_path(folder.empty() ? "." : folder);
  }
  const int status = luaL_loadfilex(L_, input ? nullptr : path.c_str(), "t");
  if (status == 0)
    for (const auto& argument : arguments) lua_pushlstring(L_, argument.data(), argument.size());
  return run_loaded(status, static_cast<int>(arguments.size()));
}

int Runtime::run_text(const std::string& text, const std::string& name) {
  return run_loaded(luaL_loadbufferx(L_, text.data(), text.size(), name.c_str(), "t"), 0);
}

int Runtime::run_loaded(int load_status, int arguments) {
  int status = load_status;
  if (status == 0) {
    const int base = lua_gettop(L_) - arguments;
    lua_pushcfunction(L_, on_error);
    lua_insert(L_, base);
    status = lua_pcall(L_, arguments, 0, base);
    lua_remove(L_, base);
  }
  if (status == 0) return was_interrupted() ? 130 : 0;
  int exit_status = 1;
  if (lua_istable(L_, -1)) {
    lua_getfield(L_, -1, "usage");
    if (lua_toboolean(L_, -1)) exit_status = 2;
    lua_pop(L_, 1);
    lua_getfield(L_, -1, "message");
    lua_remove(L_, -2);
  }
  const char* message = lua_tostring(L_, -1);
  std::fprintf(stderr, "trinity: %s\n", message ? message : "(no message)");
  lua_pop(L_, 1);
  return was_interrupted() ? 130 : exit_status;
}

}  // namespace trinity::lua
