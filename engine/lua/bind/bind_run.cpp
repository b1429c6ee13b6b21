#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "base/confine.h"
#include "base/file.h"
#include "base/hold.h"
#include "base/process.h"
#include "launch/launch_variables.h"
#include "launch/network.h"
#include "lua/bind/module.h"
#include "lua/host/host.h"

// System calls for the folder of a run (lib/trinity/runs/init.lua) and for the progress line.

namespace trinity::lua {
namespace {

char g_end_key;  // its address is the registry's key of the function that is called at the end

using Path = Text<"path">;

bool is_set(const char* name) {
  const char* value = std::getenv(name);
  return value && *value;
}

/// script() -> the path of the running script ("-" for standard input), where a script was started
/// as a program that keeps runs; else nil
std::optional<std::string> script(lua_State* L) {
  const HostState* host = host_state(L);
  if (!host || !host->keeps_runs || host->script.empty()) return std::nullopt;
  return host->script.starts_with('@') ? host->script.substr(1) : "-";
}

/// at_end(f): the script's end calls f(status, message or nil), once, which may return another
/// status; see call_end().
void at_end(lua_State* L) {
  if (lua_type(L, 1) != LUA_TFUNCTION)
    throw WrongArgument(1, "f", "expected function, got " + type_name(L, 1));
  lua_pushlightuserdata(L, &g_end_key);
  lua_pushvalue(L, 1);
  lua_rawset(L, LUA_REGISTRYINDEX);
}

/// process() -> { pid =, start =, system =, folder = }
auto process() {
  std::error_code error;
  return record("pid", getpid(), "start", process_start_ticks(getpid()), "system", system_id(), "folder",
                std::filesystem::current_path(error).string());
}

/// program() -> the file of this program
std::string program() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).string();
}

/// process_alive(pid, start) -> whether that process of this machine still runs
bool process_alive(Integer<"pid", 1, int64_t{1} << 31> pid, Integer<"start", 0, int64_t{1} << 53> start) {
  const auto found = process_start_ticks(pid);
  return found != 0 && found == start;
}

/// environment(name) -> text or nil
std::optional<std::string> environment(Text<"name"> name) {
  const char* value = std::getenv(name.c_str());
  return value ? std::optional<std::string>(value) : std::nullopt;
}

/// Returns whether the locale is UTF-8; the first variable that is set decides.
bool speaks_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    if (!is_set(name)) continue;
    const std::string value = std::getenv(name);
    return value.find("UTF-8") != std::string::npos || value.find("utf8") != std::string::npos;
  }
  return false;
}

/// terminal(descriptor) -> { redraws = whether lines can be redrawn, columns =, utf8 =, colour =
/// } (no-color.org)
auto terminal(Integer<"descriptor", 0, 2> which) {
  const auto descriptor = static_cast<int>(which);
  const char* kind = std::getenv("TERM");
  const bool redraws = isatty(descriptor) && (!kind || std::strcmp(kind, "dumb") != 0);
  return record("redraws", redraws, "columns", redraws ? terminal_columns(descriptor) : 0, "utf8", speaks_utf8(), "colour",
                redraws && !is_set("NO_COLOR"));
}

/// make_folder(path, { name, content, name, content... }, seal[, 'unheld']) -> whether it is new,
/// with these files and the seal in it, and held by this process
bool new_folder(lua_State* L, Path path, Table<"files"> list, Text<"seal"> seal,
                Optional<Text<"hold">> hold) {
  std::vector<std::string> words;
  for_each(L, list, [&](int) { words.push_back(string_arg(L, -1, "name or content")); });
  NewFiles files;
  for (size_t i = 0; i + 1 < words.size(); i += 2) files.emplace_back(words[i], words[i + 1]);
  return make_folder(path, files, seal, hold ? Hold::no : Hold::yes);
}

/// interfaces() -> list of { name =, address =, is_loopback = }
auto list_interfaces() {
  return list_of(interfaces(), [](const auto& found) {
    return record("name", found.name, "address", found.address, "is_loopback", found.is_loopback);
  });
}

using Host = Text<"host">;

/// launch_variables() -> { rank =, size =, local_rank =, local_size =, address =, port =, source =
/// }; raises what is wrong with them
auto launch_variables() {
  const auto found = read_launch_variables(process_environment);
  return record("rank", found.rank, "size", found.size, "local_rank", found.local_rank, "local_size", found.local_size,
                "address", found.address, "port", found.port, "source", found.source);
}

/// The strings of a list, of which there is one at least.
std::vector<std::string> words_arg(lua_State* L, int index) {
  table_arg(L, index, "words");
  std::vector<std::string> words;
  for_each(L, index, [&](int i) {
    if (lua_type(L, -1) != LUA_TSTRING)
      throw WrongArgument(index, "words", "entry {}: expected a string", i);
    words.emplace_back(lua_tostring(L, -1));
  });
  if (words.empty()) throw WrongArgument(index, "words", "expected a program, got an empty list");
  return words;
}

/// become(folder, words): this process becomes the program words[1], found as a shell finds it, with these words as
/// arguments, in that folder: signals then reach it without a process between. Returns only by raising.
void become(lua_State* L) {
  if (is_confined()) throw ArgumentError("safe scripts start no programs");
  const auto folder = string_arg(L, 1, "folder");
  auto words = words_arg(L, 2);
  std::vector<char*> list;
  for (auto& word : words) list.push_back(word.data());
  list.push_back(nullptr);
  std::fflush(nullptr);
  if (chdir(folder.c_str()) != 0) throw FileError("{}: {}", folder, std::strerror(errno));
  signal(SIGXFSZ, SIG_DFL);
  execvp(list[0], list.data());
  throw Error("cannot start {}: {}", words[0], std::strerror(errno));
}

/// describe_machine() -> { processor =, cores =, memory_bytes = }
auto machine() {
  const auto machine = describe_machine();
  return record("processor", machine.processor, "cores", machine.cores, "memory_bytes", machine.memory_bytes);
}

constexpr luaL_Reg kRunFunctions[] = {
    TRINITY_BIND("script", script),
    TRINITY_BIND("at_end", at_end),
    TRINITY_BIND("process", process),
    // Whether the folder is this process's now, until its end.
    TRINITY_BIND("hold_folder", [](Path path) { return hold_folder(path); }),
    TRINITY_BIND("program", program),
    // Whether a process works in that folder, begun on the system of that id; nil if the folder does not record it.
    TRINITY_BIND("is_held", [](Path path, Text<"system"> system) { return is_held(path, system == system_id()); }),
    TRINITY_BIND("process_alive", process_alive),
    TRINITY_BIND("environment", environment),
    TRINITY_BIND("terminal", terminal),
    TRINITY_BIND("make_folder", new_folder),
    // The seal with which a process that was not confined made the folder; "" without one.
    TRINITY_BIND("read_seal", [](Path path) { return read_seal(path); }),
    TRINITY_BIND("is_safe", is_confined),
    TRINITY_BIND("remove_tree", [](Path path) { remove_tree(path); }),
    // Says it where several processes were started that have joined no job.
    TRINITY_BIND("warn_of_copies", warn_of_copies),
    TRINITY_BIND("describe_machine", machine),
    TRINITY_BIND("become", become),
    TRINITY_BIND("interfaces", list_interfaces),
    // The addresses of a host; raises why there are none.
    TRINITY_BIND("addresses_of", [](Host host) { return addresses_of(host); }),
    TRINITY_BIND("is_loopback", [](Text<"address"> address) { return is_loopback(address); }),
    // Why nothing can listen there; "" where something can.
    TRINITY_BIND("listening_failure", [](Host host, Integer<"port", 0, 65535> port) {
      return listening_failure(host, static_cast<int>(port));
    }),
    TRINITY_BIND("launch_variables", launch_variables),
    // Removes the files that killed writers left in a folder.
    TRINITY_BIND("remove_leftovers", [](Path path) { remove_leftovers(path); })};

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
