// What fails once: for each public call every allocation of C++ and of Lua fails in turn, and every
// call to the file system. The call then ends with an error or as always; afterwards it gives what
// it gave before, and nothing is left. Of calls with many points some are tried, evenly spaced.

#include <doctest/doctest.h>

#include <cerrno>
#include <filesystem>
#include <functional>
#include <lua.hpp>
#include <string>
#include <vector>

#include "base/door.h"
#include "base/error.h"
#include "lua/runtime.h"
#include "support/failing_new.h"

using namespace trinity;
using namespace trinity::test;
namespace fs = std::filesystem;

namespace {

struct PublicCall {
  const char* name;
  const char* text;
  /// Its text is made by nlohmann's library, whose destructors ask for memory: the program then
  /// ends with "not enough memory" (engine/lua/host/process_limits.cpp), a test with it.
  bool by_nlohmann = false;
};

/// `g`, `problem`, `placement`, `found` and `folder` are there.
constexpr PublicCall kCalls[] = {
    {"graph.new",
     "local b = trinity.graph.new { name = 'n' } b:add_operator { name = 'a', time_s = 1 } "
     "b:add_operator { name = 'b', time_s = 1 } b:add_edge('a', 'b', 10) "
     "return b:build().operators"},
    {"model", "return trinity.model('alexnet', { batch_size = 2 }).operators"},
    {"model file", "return trinity.model(folder .. '/g.json').operators"},
    {"cluster", "return #trinity.cluster('p100x4').devices"},
    {"problem",
     "return trinity.problem { graph = g, cluster = trinity.cluster 'p100x2' }.graph.name"},
    {"evaluate", "return problem:evaluate(placement).step_time_s"},
    {"bounds", "return problem:bounds().step_time_s"},
    {"timeline", "return #problem:timeline(placement):chrome_trace()"},
    {"strategy", "return problem:strategy(placement).metrics.step_time_s"},
    {"to_json", "return #problem:to_json(placement, {})", true},
    {"save and load",
     "found:save(folder .. '/s.json') return problem:load(folder .. '/s.json').reward", true},
    {"graph:save", "g:save(folder .. '/h.json') return #trinity.files.read(folder .. '/h.json')"},
    {"random", "return trinity.methods.random(problem, { evaluations = 20, quiet = true }).reward"},
    {"local_search",
     "return trinity.methods.local_search(problem, { evaluations = 40, quiet = true }).reward"},
    {"metis", "return trinity.methods.metis(problem, { quiet = true }).reward"},
    {"contiguous", "return trinity.methods.contiguous(problem, { quiet = true }).reward"},
    {"json", "return trinity.json.encode(trinity.json.decode('{\"a\":[1,2,{\"b\":null}]}'))"},
    {"files",
     "trinity.files.write(folder .. '/f', 'x') return trinity.files.read(folder .. '/f') .. "
     "#trinity.files.list(folder)"},
    {"random streams", "return trinity.random(1, 'x'):integer(1000)"},
    {"compare",
     "return tostring(#trinity.compare(problem, { 'single_device', 'random' }, "
     "{ evaluations = 10, quiet = true }).rows)"},
};

constexpr const char* kSetUp =
    "trinity = require 'trinity' g = trinity.model('alexnet', { batch_size = 2 }) "
    "problem = trinity.problem { graph = g, cluster = trinity.cluster 'p100x2' } "
    "placement = problem:placement() found = problem:strategy(placement) "
    "g:save(folder .. '/g.json') found:save(folder .. '/s.json')";

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
    runtime_.execute("folder = '" + folder_.string() + "'");
    runtime_.execute(kSetUp);
  }
  ~Laboratory() {
    lua_setallocf(runtime_.state(), lua_.allocate, lua_.self);
    fs::remove_all(folder_);
  }
  std::string run(const char* text) {
    std::string all;
    for (const auto& value : runtime_.execute(text)) all += value + "\n";
    return all;
  }
  void collect() { runtime_.execute("collectgarbage() collectgarbage()"); }
  /// Whether a file that a killed or failed writer left lies about.
  bool has_leftovers() const {
    for (const auto& entry : fs::recursive_directory_iterator(folder_))
      if (entry.path().filename().string().starts_with('.')) return true;
    return false;
  }
  LuaFault& lua() { return lua_; }

 private:
  static RuntimeOptions options() {
    RuntimeOptions chosen;
    chosen.strict = false;
    chosen.memory_limit_bytes = size_t{1} << 30;  // nothing is compiled
    return chosen;
  }
  Runtime runtime_;
  fs::path folder_;
  LuaFault lua_;
};

/// One kind of fault: arms the nth point (0: none) and tells how many were passed since.
using Arm = std::function<int64_t(int64_t nth)>;

/// Tries a call with each of its points failing. Returns how many were tried.
int64_t try_points(Laboratory& lab, const PublicCall& call, const Arm& arm, int64_t most) {
  const std::string name = call.name;
  CAPTURE(name);
  const auto expected = lab.run(call.text);
  REQUIRE(lab.run(call.text) == expected);
  arm(0);
  lab.run(call.text);
  const int64_t points = arm(0);
  int64_t tried = 0;
  const int64_t step = std::max<int64_t>(1, points / most);
  for (int64_t nth = 1; nth <= points; nth += step, ++tried) {
    arm(nth);
    std::string outcome;
    try {
      outcome = lab.run(call.text) == expected ? "" : "another result";
    } catch (const Error& error) {
      outcome = *error.what() ? "" : "an error without a message";
    } catch (const std::bad_alloc&) {  // the host's own, which a host program sees
    }
    arm(0);
    CAPTURE(nth);
    CHECK(outcome == "");
    if (nth % 7 == 1) CHECK(lab.run(call.text) == expected);
  }
  CHECK(lab.run(call.text) == expected);
  return tried;
}

}  // namespace

TEST_CASE("every allocation and every call to the file system may fail once") {
  Laboratory lab;
  int64_t in_engine = 0, in_lua = 0, in_files = 0;
  for (const auto& call : kCalls) {
    lab.run(call.text);
    lab.collect();
    const auto before = live_blocks();
    if (!call.by_nlohmann) in_engine += try_points(lab, call, fail_allocation, 150);
    in_lua += try_points(
        lab, call,
        [&](int64_t nth) {
          lab.lua().failing = nth;
          return std::exchange(lab.lua().made, 0);
        },
        150);
    in_files += try_points(
        lab, call, [](int64_t nth) { return fail_call(nth, EIO); }, 100);
    lab.collect();
    const std::string name = call.name;
    CAPTURE(name);
    // The first error of a kind may make something that stays; a leak would be one of each point.
    CHECK(live_blocks() - before < 60);
    CHECK_FALSE(lab.has_leftovers());
  }
  MESSAGE(in_engine << " allocations, " << in_lua << " of Lua, " << in_files << " calls to files");
  CHECK(in_engine + in_lua + in_files > 1000);
}
