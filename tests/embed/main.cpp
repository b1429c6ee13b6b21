// Embeds trinity: asks it for numbers, runs a script, survives errors.

#include <trinity/error.h>
#include <trinity/runtime.h>

#include <cstdio>
#include <string>

namespace {

int g_failures = 0;

void expect(const char* what, const std::string& got, const std::string& expected) {
  const bool equal = got == expected;
  std::printf("%s %s: %s\n", equal ? "ok  " : "FAIL", what, got.c_str());
  if (!equal) ++g_failures;
}

constexpr const char* kPlacement = R"(
  local trinity = require 'trinity'
  local builder = trinity.graph.new { name = 'pair' }
  local x = builder:add { name = 'a', type = 'Work', outputs = { { shape = { 1 } } }, measured_time_s = 2 }
  builder:add { name = 'b', type = 'Work', inputs = { x }, measured_time_s = 3 }
  local problem = trinity.problem { graph = builder:build(), cluster = trinity.cluster 'p100x2' }
  local m = problem:evaluate(problem:placement())
  return m.step_time_s, problem.graph.name
)";

}  // namespace

int main() {
  trinity::Runtime runtime;
  const auto values = runtime.execute(kPlacement);
  expect("step time", values.at(0), "5");
  expect("graph", values.at(1), "pair");
  try {
    runtime.execute("local t = nil\nreturn t.field", "=(embedded)");
    expect("an error", "none", "thrown");
  } catch (const trinity::Error& error) {
    expect("an error", std::string(error.what()).substr(0, 13), "(embedded):2:");
  }
  runtime.set_arguments("embedded", {"one", "two"});
  expect("arguments", runtime.execute("return arg[0] .. arg[1] .. arg[2]").at(0), "embeddedonetwo");
  expect("exit status of an error", std::to_string(runtime.run_text("error 'expected'", "=text")),
         "1");
  trinity::RuntimeOptions options;
  options.handle_interrupts = false;
  trinity::Runtime second(options);
  expect("a second runtime", second.execute("return _VERSION").at(0), "Lua 5.1");
  return g_failures == 0 ? 0 : 1;
}
