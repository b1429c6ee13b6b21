#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/file.h"
#include "base/machine.h"
#include "base/process.h"
#include "launch/launch_variables.h"
#include "lua/bind/module.h"
#include "lua/host/host.h"

// What the folder of a run (lib/trinity/runs/init.lua) and the progress line need of the system.

namespace trinity::lua {
namespace {

char g_end_key;  // its address is the registry's key of the function that is told of the end

bool is_set(const char* name) {
  const char* value = std::getenv(name);
  return value && *value;
}

/// script() -> the path of the running script ("-" for standard input), where a script was started
/// as a program that keeps runs; else nil
int run_script(lua_State* L) {
  const HostState* host = host_state(L);
  if (!host || !host->keeps_runs || host->script.empty()) return 0;
  const std::string path = host->script.starts_with('@') ? host->script.substr(1) : "-";
  lua_pushstring(L, path.c_str());
  return 1;
}

/// at_end(f): the script's end calls f(status, message or nil), once, which may return another
/// status; see call_end().
int run_at_end(lua_State* L) {
  if (lua_type(L, 1) != LUA_TFUNCTION)
    throw WrongArgument(1, "f", "expected function, got " + type_name(L, 1));
  lua_pushlightuserdata(L, &g_end_key);
  lua_pushvalue(L, 1);
  lua_rawset(L, LUA_REGISTRYINDEX);
  return 0;
}

/// process() -> { pid =, start =, folder = }
int run_process(lua_State* L) {
  std::error_code error;
  lua_newtable(L);
  set_field(L, "pid", static_cast<double>(getpid()));
  set_field(L, "start", static_cast<double>(process_start_ticks(getpid())));
  set_field(L, "folder", std::filesystem::current_path(error).string());
  return 1;
}

/// process_alive(pid, start) -> whether that process still runs
int run_process_alive(lua_State* L) {
  const auto pid = integer_arg(L, 1, "pid", 1, int64_t{1} << 31);
  const auto start = integer_arg(L, 2, "start", 0, int64_t{1} << 53);
  const auto found = process_start_ticks(pid);
  return push_boolean(L, found != 0 && found == start);
}

/// environment(name) -> text or nil
int run_environment(lua_State* L) {
  const char* value = std::getenv(string_arg(L, 1, "name").c_str());
  if (!value) return 0;
  lua_pushstring(L, value);
  return 1;
}

/// What the variables of the locale say of the encoding, the first that is set deciding.
bool speaks_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    if (!is_set(name)) continue;
    const std::string value = std::getenv(name);
    return value.find("UTF-8") != std::string::npos || value.find("utf8") != std::string::npos;
  }
  return false;
}

/// terminal(descriptor) -> { redraws = whether lines can be drawn anew, columns =, utf8 =, colour =
/// } (no-color.org)
int run_terminal(lua_State* L) {
  const auto descriptor = static_cast<int>(integer_arg(L, 1, "descriptor", 0, 2));
  const char* kind = std::getenv("TERM");
  const bool redraws = isatty(descriptor) && (!kind || std::strcmp(kind, "dumb") != 0);
  lua_newtable(L);
  set_boolean(L, "redraws", redraws);
  set_field(L, "columns", redraws ? terminal_columns(descriptor) : 0);
  set_boolean(L, "utf8", speaks_utf8());
  set_boolean(L, "colour", redraws && !is_set("NO_COLOR"));
  return 1;
}

/// make_folder(path, first, content) -> whether it is new, with the file `first` in it
int run_make_folder(lua_State* L) {
  return push_boolean(L, make_folder(string_arg(L, 1, "path"), string_arg(L, 2, "first"),
                                     string_arg(L, 3, "content")));
}

/// remove_leftovers(path): what killed writers left in a folder
int run_remove_leftovers(lua_State* L) {
  remove_leftovers(string_arg(L, 1, "path"));
  return 0;
}

int run_remove_tree(lua_State* L) {
  remove_tree(string_arg(L, 1, "path"));
  return 0;
}

/// warn_of_copies(): says it where several processes were started that have joined no job
int run_warn_of_copies(lua_State*) {
  warn_of_copies();
  return 0;
}

/// describe_machine() -> { processor =, cores =, memory_bytes = }
int run_describe_machine(lua_State* L) {
  const auto machine = describe_machine();
  lua_newtable(L);
  set_field(L, "processor", machine.processor);
  set_field(L, "cores", static_cast<double>(machine.cores));
  set_field(L, "memory_bytes", static_cast<double>(machine.memory_bytes));
  return 1;
}

constexpr luaL_Reg kRunFunctions[] = {TRINITY_BIND("script", run_script),
                                      TRINITY_BIND("at_end", run_at_end),
                                      TRINITY_BIND("process", run_process),
                                      TRINITY_BIND("process_alive", run_process_alive),
                                      TRINITY_BIND("environment", run_environment),
                                      TRINITY_BIND("terminal", run_terminal),
                                      TRINITY_BIND("make_folder", run_make_folder),
                                      TRINITY_BIND("remove_tree", run_remove_tree),
                                      TRINITY_BIND("warn_of_copies", run_warn_of_copies),
                                      TRINITY_BIND("describe_machine", run_describe_machine),
                                      TRINITY_BIND("remove_leftovers", run_remove_leftovers)};

}  // namespace

int call_end(lua_State* L, int status, const std::string& message) {
  lua_pushlightuserdata(L, &g_end_key);
  lua_rawget(L, LUA_REGISTRYINDEX);
  if (lua_isnil(L, -1)) return status;
  lua_pushlightuserdata(L, &g_end_key);
  lua_pushnil(L);
  lua_rawset(L, LUA_REGISTRYINDEX);
  lua_pushinteger(L, status);
  message.empty() ? lua_pushnil(L) : lua_pushlstring(L, message.data(), message.size());
  lua_call(L, 2, 1);
  return lua_isnumber(L, -1) ? static_cast<int>(lua_tointeger(L, -1)) : status;
}

void open_run(lua_State* L) { register_functions(L, kRunFunctions); }

}  // namespace trinity::lua
