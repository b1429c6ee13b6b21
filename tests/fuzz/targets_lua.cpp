// Input and output of scripts: Lua files in tests/fuzz/lua, each a target, run by a Runtime here.
#include <lua.hpp>
#include <memory>

#include "base/error.h"
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
  /// tests/fuzz/lua/frame.lua loads the target and judges its errors.
  LuaTarget(const std::string& name, const std::string& folder) : runtime_(options()) {
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
    if (reach) count_lines(L);
    const auto results = runtime_.execute("return require('frame').run()", "=(fuzz)");
    if (!results.empty() && !results[0].empty()) throw Finding(results[0]);
  }

  std::vector<std::string> seeds;

 private:
  static RuntimeOptions options() {
    RuntimeOptions options;
    options.handle_interrupts = false;
    // A program may ask for long work, but it must stop; opening LibTorch from a cold disk
    // takes seconds.
    options.time_limit_s = 8;
    return options;
  }

  /// Lines are places in the first of every two thousand inputs; nothing is compiled then (LuaJIT's
  /// hooks), so that the second runs compiled code.
  void count_lines(lua_State* L) {
    const auto turn = runs_++ % 2000;
    if (turn == 0) luaJIT_setmode(L, 0, LUAJIT_MODE_ENGINE | LUAJIT_MODE_FLUSH);
    lua_sethook(L, turn < 1000 ? on_line : nullptr, turn < 1000 ? LUA_MASKLINE : 0, 0);
  }

  uint64_t runs_ = 0;
  Runtime runtime_;
};

Target target(const char* name, const char* about) {
  return {name, about, [name](const std::string& folder) {
            const auto lua = std::make_shared<LuaTarget>(name, folder);
            return Session{[lua](std::string_view input) { lua->run(input); }, lua->seeds};
          }};
}

/// Lines as words: of the program itself, of a script.
Target options_target() {
  auto made = target("options", "command lines of the program and of scripts");
  made.begin = [begin = made.begin](const std::string& folder) {
    auto session = begin(folder);
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
          target("strategy", "strategy files with schedules and splits"),
          target("checkpoint", "checkpoints of searches, policies, tensors, networks"),
          target("records", "profiles, run folders, JSON"),
          target("exported", "programs that PyTorch exported"),
          target("decoder", "decoders by their config.json"),
          target("chakra", "Chakra's execution traces"),
          target("formats", "schedules and layouts of other programs"),
          target("profiles", "profiles of PipeDream and DAPPLE, graphs of Doppler"),
          target("instances", "instances of dnn-partitioning and Piper"),
          target("selection", "strategy-selection problems, also compressed"),
          target("api", "random programs over everything that scripts can call")};
}

}  // namespace trinity::fuzz
