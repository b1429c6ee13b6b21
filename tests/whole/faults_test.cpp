// Single failures: in every function that scripts can call each allocation of C++ and of Lua fails
// in turn, and each call to the file system (tests/lua/support/fault_points.lua). Of a call with
// many points some are tried, equally spaced; TRINITY_FAULTS in the environment says how many of a
// kind at most ('all': all of them). TRINITY_FAULTS_ONLY is a pattern of the calls to try,
// 'CLASS.METHOD KIND', TRINITY_FAULTS_FROM their first point, TRINITY_FAULTS_AFTER the call after
// which to begin, TRINITY_FAULTS_TELL=1 names every point before it on standard error, and
// TRINITY_FAULTS_LIBRARIES=1 lets allocations in LibTorch fail, which end the process.

#include <doctest/doctest.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <lua.hpp>
#include <string>

#include "base/file.h"
#include "base/error.h"
#include "lua/runtime.h"
#include "support/failing_new.h"
#include "support/needs_torch.h"

using namespace trinity;
using namespace trinity::test;
namespace fs = std::filesystem;

namespace {

/// Lua's allocator with one that fails.
struct LuaFault {
  lua_Alloc allocate = nullptr;
  void* self = nullptr;
  int64_t made = 0, failing = 0;

  static void* change(void* fault, void* old, size_t old_bytes, size_t new_bytes) {
    auto& at = *static_cast<LuaFault*>(fault);
    if (new_bytes > old_bytes && ++at.made == at.failing) return nullptr;
    return at.allocate(at.self, old, old_bytes, new_bytes);
  }
};

class Laboratory {
 public:
  Laboratory() : runtime_(options()) {
    auto name = (fs::temp_directory_path() / "trinity-faults-XXXXXX").string();
    folder_ = mkdtemp(name.data());
    lua_.allocate = lua_getallocf(runtime_.state(), &lua_.self);
    lua_setallocf(runtime_.state(), LuaFault::change, &lua_);
    add("arm", arm);
    add("live", live);
    add("left", left);
    add("tell", tell);
    runtime_.execute("folder = '" + folder_.string() + "'");
  }
  ~Laboratory() {
    lua_setallocf(runtime_.state(), lua_.allocate, lua_.self);
    fs::remove_all(folder_);
  }
  std::vector<std::string> run(const std::string& text) { return runtime_.execute(text); }

 private:
  static RuntimeOptions options() {
    RuntimeOptions chosen;
    chosen.strict = false;
    chosen.memory_limit_bytes = size_t{4} << 30;  // nothing is compiled
    return chosen;
  }
  void add(const char* name, lua_CFunction function) {
    lua_State* L = runtime_.state();
    lua_pushlightuserdata(L, this);
    lua_pushcclosure(L, function, 1);
    lua_setglobal(L, name);
  }
  static Laboratory& of(lua_State* L) {
    return *static_cast<Laboratory*>(lua_touserdata(L, lua_upvalueindex(1)));
  }
  static int arm(lua_State* L) {
    const std::string_view kind = lua_tostring(L, 1);
    const auto nth = static_cast<int64_t>(lua_tonumber(L, 2));
    int64_t passed = 0;
    if (kind == "new") {
      passed = fail_allocation(nth);
    } else if (kind == "file") {
      passed = fail_call(nth, EIO);
    } else {
      auto& fault = of(L).lua_;
      fault.failing = nth;
      passed = std::exchange(fault.made, 0);
    }
    lua_pushnumber(L, static_cast<double>(passed));
    return 1;
  }
  static int live(lua_State* L) {
    lua_pushnumber(L, static_cast<double>(live_blocks()));
    return 1;
  }
  /// Names of files that a failed writer left.
  static int left(lua_State* L) {
    lua_newtable(L);
    int count = 0;
    for (const auto& entry : fs::recursive_directory_iterator(of(L).folder_)) {
      const auto name = entry.path().filename().string();
      if (!name.starts_with('.')) continue;
      lua_pushstring(L, name.c_str());
      lua_rawseti(L, -2, ++count);
    }
    return 1;
  }
  static int tell(lua_State* L) {
    if (std::getenv("TRINITY_FAULTS_TELL")) std::fprintf(stderr, "%s\n", lua_tostring(L, 1));
    return 0;
  }

  Runtime runtime_;
  fs::path folder_;
  LuaFault lua_;
};

std::string from_environment(const char* name, const std::string& otherwise) {
  const char* given = std::getenv(name);
  return given ? given : otherwise;
}

}  // namespace

TEST_CASE("every allocation and every call to the file system may fail once" * test::needs_torch) {
  Laboratory lab;
  auto most = from_environment("TRINITY_FAULTS", "6");
  if (most == "all") most = "math.huge";
  const auto only = from_environment("TRINITY_FAULTS_ONLY", "");
  lab.run("most, from = " + most + ", " + from_environment("TRINITY_FAULTS_FROM", "nil"));
  const auto after = from_environment("TRINITY_FAULTS_AFTER", "");
  lab.run("after = " + (after.empty() ? "nil" : "[[" + after + "]]"));
  lab.run(std::string("libraries = ") + (std::getenv("TRINITY_FAULTS_LIBRARIES") ? "true" : "nil"));
  lab.run("only = " + (only.empty() ? "nil" : "[[" + only + "]]"));
  const auto found = lab.run(R"(
    local try = dofile(require('trinity.core').home .. '/tests/lua/support/fault_points.lua')
    local result = try { arm = arm, live = live, left = left, tell = tell, folder = folder, most = most,
      only = only, from = from, after = after,
      libraries = libraries }
    local points = result.points
    return table.concat(result.faults, '\n'), points.new + points.lua + points.file, ('%d calls, %d allocations, '
      .. '%d of Lua, %d calls to files'):format(result.calls, points.new, points.lua, points.file))");
  CHECK(found.at(0) == "");
  CHECK((!only.empty() || !after.empty() || std::stod(found.at(1)) > 1000));
  MESSAGE(found.at(2));
}
