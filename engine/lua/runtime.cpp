#include "lua/runtime.h"

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "base/confine.h"
#include "lua/bind/module.h"
#include "lua/host/libraries.h"
#include "lua/host/interrupt.h"
#include "lua/host/process_limits.h"
#include "lua/host/runner.h"
#include "lua/host/strict.h"
#include "lua/repl.h"

namespace trinity {

namespace fs = std::filesystem;

std::string find_home() {
  std::vector<fs::path> places;
  if (const char* home = std::getenv("TRINITY_HOME")) places.emplace_back(home);
  // The program or library that holds this function: build/NAME, or bin/NAME or lib/.../NAME.
  std::error_code error;
  Dl_info library;
  if (dladdr(reinterpret_cast<void*>(&find_home), &library) != 0) {
    auto place = fs::canonical(library.dli_fname, error).parent_path();
    if (error) place = fs::read_symlink("/proc/self/exe", error).parent_path();
    for (int levels = 0; levels < 3 && place.has_relative_path(); ++levels) {
      place = place.parent_path();
      places.push_back(place);
      places.push_back(place / "share/trinity");
    }
  }
  places.emplace_back(TRINITY_SOURCE_DIR);
  std::string looked;
  for (const auto& place : places) {
    if (fs::exists(place / "lib/trinity/init.lua")) return place.string();
    looked += (looked.empty() ? "" : ", ") + place.string();
  }
  throw Error("cannot find lib/trinity below any of: " + looked);
}

namespace {

/// Pushes what serves -j NAME and -O, as luajit does: a function of the module jit, or the `start`
/// of a module jit.NAME.
int push_jit_command(lua_State* L, const std::string& name) {
  if (name == "-O") {
    lua_getfield(L, LUA_REGISTRYINDEX, "_LOADED");
    lua_getfield(L, -1, "jit.opt");
    lua_getfield(L, -1, "start");
    return 0;
  }
  lua_getfield(L, LUA_REGISTRYINDEX, "_LOADED");
  lua_getfield(L, -1, "jit");
  lua_getfield(L, -1, name.c_str());
  if (lua_isfunction(L, -1)) return 0;
  lua_getglobal(L, "require");
  lua_pushstring(L, ("jit." + name).c_str());
  if (lua_pcall(L, 1, 1, 0) != 0)
    return luaL_error(L, "-j: unknown command '%s' (on, off, flush, or a module jit.%s)",
                      name.c_str(), name.c_str());
  lua_getfield(L, -1, "start");
  return 0;
}

/// LuaJIT does not survive every failed allocation of its own start.
constexpr size_t kMinMemoryBytes = size_t{1} << 18;

const RuntimeOptions& checked(const RuntimeOptions& options) {
  const auto limit = options.memory_limit_bytes;
  if (limit > 0 && limit < kMinMemoryBytes)
    throw ArgumentError("memory limit: expected at least {} bytes, got {}", kMinMemoryBytes, limit);
  return options;
}

}  // namespace

struct Runtime::Impl {
  explicit Impl(const RuntimeOptions& given)
      : options(given),
        memory(options.memory_limit_bytes),
        L(memory.new_state()),
        runner(L, memory, options.time_limit_s, hard_limit_s(), options.handle_interrupts) {}
  ~Impl() {
    if (!L) return;
    const lua::HardTimeLimit limit(hard_limit_s());  // a finaliser may loop
    lua::unwatch_interrupts(L);
    host.closing = true;
    lua_close(L);
  }

  double hard_limit_s() const { return options.owns_process ? options.time_limit_s : 0; }

  /// Everything that may fail for want of memory.
  void set_up(lua_State* state) {
    lua::set_host_state(state, &host);
    lua::open_libraries(state, host.home);
    if (options.memory_limit_bytes > 0 || lua::is_memory_bounded()) lua::stop_compiling(state);
    lua_getglobal(state, "package");
    lua_getfield(state, -1, "preload");
    lua_pushcfunction(state, lua::guard<lua::open_core>);
    lua_setfield(state, -2, "trinity.core");
    lua_pop(state, 2);
    lua_pushstring(state, host.home.c_str());
    lua_setfield(state, LUA_REGISTRYINDEX, lua::kHomeKey);
    lua::install_exit(state);
    lua::report_finalisers(state);
    lua::install_execute(state);
    lua::install_coroutine_guard(state);
    if (options.safe) lua::make_safe(state);
    if (options.strict) lua::make_strict(state);
  }

  /// Scripts of ours are commands: what they print must not command a terminal.
  void guard_output(lua_State* state) {
    lua_getfield(state, LUA_REGISTRYINDEX, "_LOADED");
    lua_getfield(state, -1, "_G");
    lua_getfield(state, -1, "require");
    lua_pushliteral(state, "trinity.command.output");
    lua_call(state, 1, 1);
    lua_getfield(state, -1, "guard");
    lua_pushvalue(state, LUA_GLOBALSINDEX);
    lua_call(state, 1, 0);
    lua_pop(state, 3);
  }

  /// Ctrl-C does not stop the function that is called at the end: it sets the status.
  std::optional<lua::ScriptError> call_end(lua::Outcome& outcome) {
    const lua::HardTimeLimit limit(hard_limit_s());
    lua::begin_series();
    const auto failure = runner.protect([&](lua_State* state) {
      const std::string message = outcome.error ? outcome.error->message : "";
      outcome.status = lua::call_end(state, outcome.status, message);
    });
    lua::end_series();
    if (options.handle_interrupts && lua::was_interrupted()) lua::forget_interrupt(L);
    return failure;
  }

  /// Prints the error, if any; returns the exit status.
  int end(const lua::Outcome& outcome) {
    exited = outcome.exited;
    return lua::report(outcome);
  }

  lua::Outcome run_text(const std::string& text, const std::string& name,
                        const lua::ScriptRunner::Use& use = {}) {
    host.script.clear();
    host.script_folder.clear();
    host.is_command = false;
    return runner.run(
        [&](lua_State* state) {
          return luaL_loadbufferx(state, text.data(), text.size(), name.c_str(), "t");
        },
        {}, use);
  }

  RuntimeOptions options;
  lua::HostState host;
  lua::LuaMemory memory;
  lua_State* L;
  lua::ScriptRunner runner;
  bool exited = false;
};

Runtime::Runtime(const RuntimeOptions& options) : impl_(std::make_unique<Impl>(checked(options))) {
  impl_->host.home = options.home.empty() ? find_home() : options.home;
  impl_->host.keeps_runs = options.keep_runs;
  if (!fs::exists(fs::path(home()) / "lib/trinity/init.lua"))
    throw Error("cannot find lib/trinity below: " + home());
  if (!impl_->L) throw Error("cannot start Lua: not enough memory");
  const auto error = impl_->runner.protect([this](lua_State* L) { impl_->set_up(L); });
  if (error) throw Error("cannot start Lua: " + error->message);
  if (options.handle_interrupts) lua::watch_interrupts(impl_->L);
  if (options.owns_process) lua::limit_process_memory(options.memory_limit_bytes);
}

Runtime::~Runtime() = default;

lua_State* Runtime::state() const { return impl_->L; }

bool Runtime::exited() const { return impl_->exited; }

const std::string& Runtime::home() const { return impl_->host.home; }

void Runtime::set_arguments(const std::string& script, const std::vector<std::string>& arguments,
                            const std::vector<std::string>& host) {
  const auto set_in = [&](lua_State* L, int table) {
    lua_pushliteral(L, "arg");
    lua_newtable(L);
    const auto set = [L](size_t at, size_t origin, const std::string& text) {
      lua_pushlstring(L, text.data(), text.size());
      lua_rawseti(L, -2, static_cast<int>(at) - static_cast<int>(origin));
    };
    for (size_t i = 0; i < host.size(); ++i) set(i, host.size(), host[i]);
    set(0, 0, script);
    for (size_t i = 0; i < arguments.size(); ++i) set(i + 1, 0, arguments[i]);
    lua_rawset(L, table);
  };
  const auto error = impl_->runner.protect([&](lua_State* L) {
    // The library reads them, too: its globals are others than a safe script's, which changes what
    // it has as it likes.
    lua_getfield(L, LUA_REGISTRYINDEX, "_LOADED");
    lua_getfield(L, -1, "_G");
    set_in(L, lua_gettop(L));
    if (impl_->options.safe) set_in(L, LUA_GLOBALSINDEX);
    lua_pop(L, 2);
  });
  if (error) throw Error("cannot set the arguments: " + error->message);
}

int Runtime::confine(const std::string& script) {
  if (!impl_->options.safe || is_confined()) return 0;
  OpenFolders folders{home(), script == "-" ? "" : script, "", impl_->options.writable_folders};
  if (impl_->host.keeps_runs && !script.empty()) {
    impl_->host.script = script == "-" ? "=stdin" : "@" + script;
    const auto load = [&](lua_State* L) {
      lua_getfield(L, LUA_REGISTRYINDEX, "_LOADED");
      lua_getfield(L, -1, "_G");
      lua_getfield(L, -1, "require");
      lua_pushliteral(L, "trinity.runs.state");
      lua_call(L, 1, 1);
      lua_getfield(L, -1, "prepare");
      return 0;
    };
    const auto use = [&](lua_State* L, int first) {
      if (!lua_isstring(L, first)) return;
      const auto run = fs::absolute(lua_tostring(L, first)).string();
      folders.writable.push_back(run);
      folders.runs = lua_tostring(L, first + 1);
      setenv("TMPDIR", run.c_str(), 1);  // of programs that the library starts
    };
    if (const int status = impl_->end(impl_->runner.run(load, {}, use))) return status;
  }
  struct stat threads;
  if (impl_->options.owns_process && stat("/proc/self/task", &threads) == 0 && threads.st_nlink > 3)
    throw Error("internal error: --safe: a thread runs before the process is confined");
  trinity::confine(folders);
  return 0;
}

int Runtime::run_file(const std::string& path, const std::vector<std::string>& arguments) {
  if (const int status = confine(path)) return status;
  const bool input = path == "-";
  auto& host = impl_->host;
  host.script = input ? "=stdin" : "@" + path;
  const auto folder = fs::path(path).parent_path().string();
  host.script_folder = input ? "" : (folder.empty() ? "." : folder) + "/";
  host.is_command = path.starts_with(home() + "/scripts/");
  const auto load = [&](lua_State* L) {
    if (impl_->host.is_command) impl_->guard_output(L);
    if (!input) lua::add_script_folder(L, folder);
    return luaL_loadfilex(L, input ? nullptr : path.c_str(), "t");
  };
  auto outcome = impl_->runner.run(load, arguments);
  const auto failure = impl_->call_end(outcome);
  const int status = impl_->end(outcome);
  if (!failure || outcome.error) return status;
  std::fprintf(stderr, "trinity: %s\n", failure->message.c_str());
  return std::max(status, 1);  // what the script did is not all kept
}

int Runtime::run_text(const std::string& text, const std::string& name) {
  if (const int status = confine("")) return status;
  return impl_->end(impl_->run_text(text, name));
}

int Runtime::run_module(const std::string& name) {
  if (const int status = confine("")) return status;
  const auto load = [&](lua_State* L) {
    lua_getglobal(L, "require");
    return 0;
  };
  const auto keep = [&](lua_State* L, int first) {
    lua_pushlstring(L, name.data(), name.size());
    lua_pushvalue(L, first);
    lua_rawset(L, LUA_GLOBALSINDEX);
  };
  return impl_->end(impl_->runner.run(load, {name}, keep));
}

int Runtime::configure_jit(const std::string& option) {
  const bool optimise = option.starts_with("-O");
  const auto end = optimise ? size_t{2} : option.find('=');
  const auto name = option.substr(0, end);
  std::vector<std::string> arguments;
  if (end < option.size()) {
    std::stringstream words(option.substr(optimise ? end : end + 1));
    for (std::string word; std::getline(words, word, ',');) arguments.push_back(word);
  }
  return impl_->end(
      impl_->runner.run([&](lua_State* L) { return push_jit_command(L, name); }, arguments));
}

std::vector<std::string> Runtime::execute(const std::string& text, const std::string& name) {
  static_cast<void>(confine(""));
  std::vector<std::string> values;
  const auto outcome = impl_->run_text(text, name, [&](lua_State* L, int first) {
    for (int i = first, last = lua_gettop(L); i <= last; ++i) {
      lua_getglobal(L, "tostring");
      lua_pushvalue(L, i);
      lua_call(L, 1, 1);
      size_t length = 0;
      const char* value = lua_tolstring(L, -1, &length);
      values.emplace_back(value, length);
      lua_pop(L, 1);
    }
  });
  if (outcome.error) throw Error(outcome.error->message);
  impl_->exited = outcome.exited;
  if (outcome.exited) throw Error("the script called os.exit({})", outcome.status);
  if (outcome.status != 0) throw Interrupted();
  return values;
}

int Runtime::interact(bool always_prompt) {
  if (const int status = run_module("trinity")) return status;
  const char* begin =
      "rawset(_G, 'help', rawget(_G, 'help') or require('trinity.command.prompt').help)";
  if (const int status = run_text(begin, "=(host)")) return status;
  if (isatty(STDIN_FILENO))
    fmt::print("trinity {} on {}; end of input leaves\n", TRINITY_VERSION, LUAJIT_VERSION);
  return lua::run_repl(impl_->runner, always_prompt);
}

}  // namespace trinity
