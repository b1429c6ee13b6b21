#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/hold.h"
#include "base/process.h"
#include "launch/launch_variables.h"
#include "launch/network.h"
#include "lua/bind/module.h"
#include "lua/host/host.h"
#include "lua/host/interrupt.h"

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

/// process() -> { pid =, start =, system =, folder = }
int run_process(lua_State* L) {
  std::error_code error;
  lua_newtable(L);
  set_field(L, "pid", static_cast<double>(getpid()));
  set_field(L, "start", static_cast<double>(process_start_ticks(getpid())));
  set_field(L, "system", system_id());
  set_field(L, "folder", std::filesystem::current_path(error).string());
  return 1;
}

/// program() -> the file of this program
int run_program(lua_State* L) {
  std::error_code error;
  return push_text(L, std::filesystem::read_symlink("/proc/self/exe", error).string());
}

/// hold_folder(path) -> whether it is this process's now, until its end
int run_hold_folder(lua_State* L) {
  const auto path = string_arg(L, 1, "path");
  const bool held = hold_folder(path);
  if (held) own_folder(path);
  return push_boolean(L, held);
}

/// is_held(path, system) -> whether a process works in that folder, begun on the system of that id;
/// nil where the folder does not say
int run_is_held(lua_State* L) {
  const auto held =
      is_held(string_arg(L, 1, "path"), string_arg(L, 2, "system") == system_id());
  return held ? push_boolean(L, *held) : 0;
}

/// process_alive(pid, start) -> whether that process of this machine still runs
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

/// make_folder(path, { name, content, name, content... }) -> whether it is new, with these files in
/// it, and held by this process
int run_make_folder(lua_State* L) {
  const auto path = string_arg(L, 1, "path");
  table_arg(L, 2, "files");
  std::vector<std::string> words;
  for_each(L, 2, [&](int) { words.push_back(string_arg(L, -1, "name or content")); });
  NewFiles files;
  for (size_t i = 0; i + 1 < words.size(); i += 2) files.emplace_back(words[i], words[i + 1]);
  return push_boolean(L, make_folder(path, files));
}

/// write_record(path, content): run.json of a run, which scripts do not write
int run_write_record(lua_State* L) {
  write_file(string_arg(L, 1, "path"), string_arg(L, 2, "content"), Durability::synced,
             Purpose::record);
  return 0;
}

/// is_safe() -> whether the script is a stranger's
int run_is_safe(lua_State* L) { return push_boolean(L, is_restricted()); }

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

/// interfaces() -> list of { name =, address =, is_loopback = }
int run_interfaces(lua_State* L) {
  lua_newtable(L);
  int i = 0;
  for (const auto& found : interfaces()) {
    lua_newtable(L);
    set_field(L, "name", found.name);
    set_field(L, "address", found.address);
    lua_pushboolean(L, found.is_loopback);
    lua_setfield(L, -2, "is_loopback");
    lua_rawseti(L, -2, ++i);
  }
  return 1;
}

/// addresses_of(host) -> list of addresses; raises why there are none
int run_addresses_of(lua_State* L) {
  lua_newtable(L);
  int i = 0;
  for (const auto& address : addresses_of(string_arg(L, 1, "host"))) {
    push_text(L, address);
    lua_rawseti(L, -2, ++i);
  }
  return 1;
}

int run_is_loopback(lua_State* L) {
  return push_boolean(L, is_loopback(string_arg(L, 1, "address")));
}

int port_arg(lua_State* L) { return static_cast<int>(integer_arg(L, 2, "port", 0, 65535)); }

/// address_towards(host, port) -> the address of this machine on the way there
int run_address_towards(lua_State* L) {
  return push_text(L, address_towards(string_arg(L, 1, "host"), port_arg(L)));
}

/// listening_failure(host, port) -> why nothing can listen there, "" where something can
int run_listening_failure(lua_State* L) {
  return push_text(L, listening_failure(string_arg(L, 1, "host"), port_arg(L)));
}

/// connecting_failure(host, port, timeout_s) -> why there is no connection, "" where there is one
int run_connecting_failure(lua_State* L) {
  return push_text(L, connecting_failure(string_arg(L, 1, "host"), port_arg(L),
                                         number_arg(L, 3, "timeout_s")));
}

/// launch_variables() -> { rank =, size =, local_rank =, local_size =, address =, port =, source =
/// }; raises what is wrong with them
int run_launch_variables(lua_State* L) {
  const auto found = read_launch_variables(process_environment);
  lua_newtable(L);
  set_field(L, "rank", found.rank);
  set_field(L, "size", found.size);
  set_field(L, "local_rank", found.local_rank);
  set_field(L, "local_size", found.local_size);
  set_field(L, "address", found.address);
  set_field(L, "port", found.port);
  set_field(L, "source", found.source);
  return 1;
}

/// The strings of a list, of which there is one at least.
std::vector<std::string> words_arg(lua_State* L, int index) {
  table_arg(L, index, "words");
  std::vector<std::string> words;
  for_each(L, index, [&](int i) {
    if (lua_type(L, -1) != LUA_TSTRING)
      throw WrongArgument(index, "words", fmt::format("entry {}: expected a string", i));
    words.emplace_back(lua_tostring(L, -1));
  });
  if (words.empty()) throw WrongArgument(index, "words", "expected a program, got an empty list");
  return words;
}

/// become(folder, words): this process goes on as the program words[1], found as a shell finds it,
/// with these words, in that folder: signals then reach it without a process between. Returns only
/// by raising.
int run_become(lua_State* L) {
  if (is_restricted()) throw ArgumentError("safe scripts start no programs");
  const auto folder = string_arg(L, 1, "folder");
  auto words = words_arg(L, 2);
  std::vector<char*> list;
  for (auto& word : words) list.push_back(word.data());
  list.push_back(nullptr);
  std::fflush(nullptr);
  if (chdir(folder.c_str()) != 0)
    throw FileError(fmt::format("{}: {}", folder, std::strerror(errno)));
  signal(SIGXFSZ, SIG_DFL);
  execvp(list[0], list.data());
  throw Error(fmt::format("cannot start {}: {}", words[0], std::strerror(errno)));
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
                                      TRINITY_BIND("hold_folder", run_hold_folder),
                                      TRINITY_BIND("program", run_program),
                                      TRINITY_BIND("is_held", run_is_held),
                                      TRINITY_BIND("process_alive", run_process_alive),
                                      TRINITY_BIND("environment", run_environment),
                                      TRINITY_BIND("terminal", run_terminal),
                                      TRINITY_BIND("make_folder", run_make_folder),
                                      TRINITY_BIND("write_record", run_write_record),
                                      TRINITY_BIND("is_safe", run_is_safe),
                                      TRINITY_BIND("remove_tree", run_remove_tree),
                                      TRINITY_BIND("warn_of_copies", run_warn_of_copies),
                                      TRINITY_BIND("describe_machine", run_describe_machine),
                                      TRINITY_BIND("become", run_become),
                                      TRINITY_BIND("interfaces", run_interfaces),
                                      TRINITY_BIND("addresses_of", run_addresses_of),
                                      TRINITY_BIND("is_loopback", run_is_loopback),
                                      TRINITY_BIND("address_towards", run_address_towards),
                                      TRINITY_BIND("listening_failure", run_listening_failure),
                                      TRINITY_BIND("connecting_failure", run_connecting_failure),
                                      TRINITY_BIND("launch_variables", run_launch_variables),
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
