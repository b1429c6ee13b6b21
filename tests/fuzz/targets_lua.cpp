// What scripts read and say: Lua files in tests/fuzz/lua, each a target, run by a Runtime here.
#include <lua.hpp>
#include <memory>

#include "base/error.h"
#include "fuzz/coverage.h"
#include "fuzz/target.h"
#include "lua/command_line.h"
#include "lua/runtime.h"

namespace trinity::fuzz {
namespace {

/// A text as Lua writes it.
std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += fmt::format("\\{:03d}", static_cast<unsigned char>(c));
  return out + "'";
}

/// Lines of Lua count as places. The text of `source` lies still while its chunk lives.
void on_line(lua_State* L, lua_Debug* info) {
  lua_getinfo(L, "S", info);
  reach(reinterpret_cast<uintptr_t>(info->source) + static_cast<uintptr_t>(info->currentline) * 64);
}

/// A runtime with one target in it.
class LuaTarget {
 public:
  /// counts_lines: its lines are places, but nothing is compiled then (LuaJIT's hooks).
  /// tests/fuzz/lua/frame.lua loads the target and judges its errors.
  LuaTarget(const std::string& name, const std::string& folder, bool counts_lines)
      : counts_lines_(counts_lines), runtime_(options()) {
    const auto library = runtime_.home() + "/tests/fuzz/lua/?.lua;";
    const auto text = fmt::format(
        "package.path = {} .. package.path\nreturn unpack(require('frame').begin({}, {}))",
        quoted(library), quoted(name), quoted(folder));
    seeds = runtime_.execute(text, "=(fuzz)");
  }

  void run(std::string_view input) {
    lua_State* L = runtime_.state();
    lua_getfield(L, LUA_REGISTRYINDEX, "_LOADED");
    lua_pushlstring(L, input.data(), input.size());
    lua_setfield(L, -2, "fuzz.input");
    lua_pop(L, 1);
    if (counts_lines_) lua_sethook(L, on_line, LUA_MASKLINE, 0);
    const auto results = runtime_.execute("return require('frame').run()", "=(fuzz)");
    if (!results.empty() && !results[0].empty()) throw Finding(results[0]);
  }

  std::vector<std::string> seeds;

 private:
  static RuntimeOptions options() {
    RuntimeOptions options;
    options.handle_interrupts = false;
    options.time_limit_s = 3;  // what a program asks for may be long work, but it must stop
    return options;
  }

  bool counts_lines_;
  Runtime runtime_;
};

Target target(const char* name, const char* about, Grammar grammar = Grammar::text) {
  return {name, about, grammar, [name](const std::string& folder, uint64_t number) {
            const auto lua = std::make_shared<LuaTarget>(name, folder, number % 2 == 1);
            return Session{[lua](std::string_view input) { lua->run(input); }, lua->seeds};
          }};
}

/// Lines as words: of the program itself, of a script.
Target options_target() {
  auto made = target("options", "command lines of the program and of scripts");
  made.begin = [begin = made.begin](const std::string& folder, uint64_t number) {
    auto session = begin(folder, number);
    session.run = [run = session.run](std::string_view input) {
      std::vector<std::string> words = {"trinity"};
      for (size_t at = 0; at < input.size();) {
        const auto end = std::min(input.find('\n', at), input.size());
        words.emplace_back(input.substr(at, end - at));
        at = end + 1;
      }
      try {
        lua::parse_command_line(words);
      } catch (const Error&) {
      }
      run(input);
    };
    return session;
  };
  return made;
}

}  // namespace

std::vector<Target> lua_targets() {
  return {options_target(),
          target("cluster", "clusters as tables, as files, by name"),
          target("strategy", "strategy files with schedules, splits, replication"),
          target("checkpoint", "checkpoints of searches, policies, tensors, networks"),
          target("records", "profiles, run folders, JSON"),
          target("api", "random programs over everything that scripts can call", Grammar::bytes)};
}

}  // namespace trinity::fuzz
