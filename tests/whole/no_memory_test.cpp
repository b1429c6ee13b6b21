// Behavior of a C++ program that embeds the engine where there is no more memory from any point
// on: std::bad_alloc, and never its own end.

#include <doctest/doctest.h>

#include <filesystem>
#include <functional>
#include <new>

#include "base/file.h"
#include "formats/export/placement_export.h"
#include "formats/export/safetensors.h"
#include "formats/json/graph_json.h"
#include "learn/move_network.h"
#include "strategy/strategy.h"
#include "support/build.h"
#include "support/failing_new.h"

using namespace trinity;
using namespace trinity::test;

namespace {

std::shared_ptr<const Graph> chain() {
  GraphMaker make("chain");
  int before = make.op("first", 1e-3);
  for (int i = 0; i < 6; ++i) {
    const int op = make.op("operator " + std::to_string(i), 1e-3);
    make.edge(before, op, 8);
    before = op;
  }
  return make.share();
}

/// Files and folders that this process holds open.
int64_t open_files() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return std::distance(begin(all), end(all));
}

/// Runs a call while all of its allocations from each of them on fail. Returns how many it makes.
/// `clears`: it clears up in the end, and keeps quiet where that fails.
int64_t without_memory(const std::function<void()>& call, bool clears = false) {
  call();
  const auto open = open_files();
  fail_allocation(0);
  call();
  const int64_t points = fail_allocation(0);
  for (int64_t nth = 1; nth <= points; ++nth) {
    bool threw = false;
    fail_allocation(nth, true);
    try {
      call();
    } catch (const std::bad_alloc&) {
      threw = true;
    }
    fail_allocation(0);
    if (!threw && !clears) CHECK(nth == points);  // a later call needs fewer
  }
  call();
  CHECK(open_files() == open);
  return points;
}

}  // namespace

TEST_CASE("texts of strategies, placements, graphs and weights need memory and nothing else") {
  const auto graph = chain();
  const auto cluster = uniform_cluster(2, 1e9, 0);
  Strategy strategy{{0, 0, 0, 0, 1, 1, 1}, {}};
  strategy.schedule.name = "priority";
  strategy.schedule.priority = {1, 2, 3, 4, 5, 6, std::numeric_limits<double>::infinity()};
  const auto text =
      strategy_to_json(strategy, *graph, *cluster, {{"seed", "3"}, {"by", "[1, {\"a\": 2}]"}});
  const auto graph_text = graph_to_json(*graph);
  const auto path = (std::filesystem::temp_directory_path() / "no_memory.safetensors").string();
  int64_t points = 0;
  points += without_memory([&] {
    strategy_to_json(strategy, *graph, *cluster, {{"seed", "3"}, {"by", "[1, {\"a\": 2}]"}});
  });
  points += without_memory([&] { strategy_from_json(text, "file", *graph, *cluster); });
  points += without_memory([&] { placement_to_json(strategy, *graph, *cluster, {}); });
  points += without_memory([&] { parse_graph_json(graph_text, "file"); });
  points += without_memory([&] { graph_to_json(*graph); });
  const std::string bytes(16, 'x');
  write_arrays(path, {{"a", "F32", {2, 2}, bytes}}, {{"note", "text"}});
  points += without_memory([&] {
    write_arrays(path, {{"a", "F32", {2, 2}, bytes}}, {{"note", "text"}});
  });
  points += without_memory([&] { read_arrays(path, true); });
  const MoveNetwork network({3}, 1);
  save_move_network(network, path, {{"note", "text"}});
  points += without_memory([&] { save_move_network(network, path, {{"note", "text"}}); });
  points += without_memory([&] { load_move_network(path); });
  const auto folder = path + ".folder";
  points += without_memory(
      [&] { make_folder(folder, {{"a name of more than 15 bytes", bytes}}); }, true);
  std::filesystem::remove_all(folder);
  std::filesystem::remove(path);
  MESSAGE(points << " allocations");
  CHECK(points > 500);
}
