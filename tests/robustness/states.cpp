// A thousand script states opened, used and closed in one process, some at the same time, some
// after errors, limits and interruptions: memory, open files, threads and timers stay what they
// were. Prints what the process holds after a tenth and after all; exit status 1 unless flat.
//   build/robustness_states [count [script]]
// With a script every state runs that instead. This program, but not the trinity command, closes
// its states and ends through exit(), so that leaks can be looked for:
//   linked with -fsanitize=leak, build/robustness_states 10 tests/robustness/support/methods.lua

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <string>

#include "base/error.h"
#include "lua/runtime.h"

namespace {

using trinity::Runtime;
using trinity::RuntimeOptions;

/// Resources that the process holds.
struct Usage {
  double rss_mb = 0;
  long files = 0, threads = 0, timers = 0;
};

long lines_with(const char* path, const std::string& beginning, std::string* last = nullptr) {
  std::ifstream file(path);
  long count = 0;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(beginning)) continue;
    ++count;
    if (last) *last = line.substr(beginning.size());
  }
  return count;
}

Usage usage() {
  Usage now;
  std::string text;
  lines_with("/proc/self/status", "VmRSS:", &text);
  now.rss_mb = std::atof(text.c_str()) / 1024;
  lines_with("/proc/self/status", "Threads:", &text);
  now.threads = std::atol(text.c_str());
  now.timers = lines_with("/proc/self/timers", "ID:");
  const std::filesystem::directory_iterator open("/proc/self/fd"), end;
  now.files = static_cast<long>(std::distance(open, end));
  return now;
}

constexpr const char* kWork = R"(
  local trinity = require 'trinity'
  local builder = trinity.graph.new { name = 'pair' }
  local x = builder:add { name = 'a', type = 'Work', outputs = { { shape = { 1 } } },
    measured_time_s = 2 }
  builder:add { name = 'b', type = 'Work', inputs = { x }, measured_time_s = 3 }
  local problem = trinity.problem { graph = builder:build(), cluster = trinity.cluster 'p100x2' }
  local found = trinity.methods.annealing(problem, { evaluations = 8, quiet = true })
  return problem:evaluate(problem:placement()).step_time_s, trinity.tensor.ones(3):sum():item()
)";

[[noreturn]] void fail(int state, const std::string& what) {
  throw trinity::Error("state " + std::to_string(state) + ": " + what);
}

/// A state's life; every fifth has another end.
void live(int state) {
  RuntimeOptions options;
  options.safe = state % 4 == 1;
  if (state % 5 == 2) options.memory_limit_bytes = size_t{32} << 20;
  if (state % 5 == 3) options.time_limit_s = 0.01;
  Runtime runtime(options);
  std::string expected = "5", found;
  try {
    switch (state % 5) {
      case 1:
        expected = "(case):1: expected here";
        runtime.execute("error 'expected here'", "=(case)");
        break;
      case 2:
        expected = "not enough memory";
        runtime.execute("local t = {} for i = 1, 1e9 do t[i] = {} end", "=(case)");
        break;
      case 3:
        expected = "(case):1: time limit of 0.01 s reached";
        runtime.execute("while true do end", "=(case)");
        break;
      default:
        found = runtime.execute(kWork).at(0);
    }
  } catch (const trinity::Error& error) {
    found = error.what();
  }
  if (found.find(expected) == std::string::npos)
    fail(state, "expected '" + expected + "', got '" + found + "'");
}

void run_script(int state, const std::string& path) {
  Runtime runtime;
  runtime.set_arguments(path, {std::to_string(state)});
  if (const int status = runtime.run_file(path, {std::to_string(state)}); status != 0)
    fail(state, path + " ended with status " + std::to_string(status));
}

/// Opens and closes `count` states; whether all is as it was.
bool run(int count, const std::string& script) {
  Usage warm;
  for (int state = 0; state < count; ++state) {
    if (script.empty())
      std::async(state % 4 == 1 ? std::launch::async : std::launch::deferred, live, state)
          .get();  // a thread of a safe script is confined from then on
    else
      run_script(state, script);
    if (state % 10 == 0) {  // two at the same time
      Runtime first, second;
      if (first.execute("return 1").at(0) != second.execute("return 1").at(0))
        fail(state, "differ");
    }
    if (state + 1 != count / 10 && state + 1 != count) continue;
    const auto now = usage();
    std::printf("states %5d: %.1f MB, %ld files, %ld threads, %ld timers\n", state + 1, now.rss_mb,
                now.files, now.threads, now.timers);
    if (state + 1 != count) {
      warm = now;
      continue;
    }
    const bool is_flat = now.rss_mb - warm.rss_mb < std::max(10.0, 0.01 * warm.rss_mb) &&
                         now.files <= warm.files && now.threads <= warm.threads &&
                         now.timers <= warm.timers;
    std::printf("states %s: %+.2f MB\n", is_flat ? "flat" : "GROW", now.rss_mb - warm.rss_mb);
    return is_flat;
  }
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  const int count = argc > 1 ? std::max(10, std::atoi(argv[1])) : 1000;
  try {
    return run(count, argc > 2 ? argv[2] : "") ? 0 : 1;
  } catch (const trinity::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
