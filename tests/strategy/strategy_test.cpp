#include <doctest/doctest.h>

#include "base/error.h"
#include "strategy/strategy.h"
#include "support/build.h"
#include "support/damage.h"

using namespace trinity;

namespace {

std::shared_ptr<const Graph> pair_graph() {
  test::GraphMaker make("pair");
  const int a = make.op("a", 1e-3), b = make.op("b", 1e-3), c = make.op("c", 1e-3);
  make.edge(a, b, 8);
  make.colocate(b, c);
  return make.share();
}

}  // namespace

TEST_CASE("placements are checked for length, devices and colocation") {
  const auto graph = pair_graph();
  const auto cluster = test::uniform_cluster(2, 1e9, 0);
  const auto check = [&](std::vector<int32_t> p) { check_placement(p, *graph, *cluster); };
  check({0, 1, 1});
  CHECK_THROWS_WITH_AS(check({0, 1}), doctest::Contains("needs 3 entries, got 2"), ArgumentError);
  CHECK_THROWS_WITH_AS(check({0, 2, 2}), doctest::Contains("'b' is placed on device 3"),
                       ArgumentError);
  CHECK_THROWS_WITH_AS(check({0, -1, -1}), doctest::Contains("expected 1 to 2"), ArgumentError);
  CHECK_THROWS_WITH_AS(check({0, 1, 0}), doctest::Contains("'b' and 'c' are colocated"),
                       ArgumentError);
}

TEST_CASE("a strategy survives JSON, and a changed graph is noticed") {
  const auto graph = pair_graph();
  const auto cluster = test::uniform_cluster(2, 1e9, 0);
  const Strategy strategy{{1, 0, 0}, {}};
  const auto text = strategy_to_json(strategy, *graph, *cluster, {{"seed", "3"}, {"by", "hand"}});
  CHECK(text == strategy_to_json(strategy, *graph, *cluster, {{"by", "hand"}, {"seed", "3"}}));
  const auto loaded = strategy_from_json(text, "file", *graph, *cluster);
  CHECK(loaded.strategy.placement == strategy.placement);
  CHECK(loaded.notes.at("seed") == "3");
  CHECK(loaded.same_graph);
  CHECK(loaded.same_cluster);
  test::GraphMaker make("pair");
  const int a = make.op("a", 2e-3), b = make.op("b", 1e-3), c = make.op("c", 1e-3);
  make.edge(a, b, 8);
  make.colocate(b, c);
  CHECK_FALSE(strategy_from_json(text, "file", *make.share(), *cluster).same_graph);
}

TEST_CASE("what a strategy was made for survives JSON, and earlier versions lack it") {
  const auto graph = pair_graph();
  const auto cluster = test::uniform_cluster(2, 1e9, 0);
  const std::map<std::string, Scalar> options = {{"layers", 2.0}};
  const Scalars made_for = {{"model", "pair"}, {"options", options}};
  auto text = strategy_to_json({{1, 0, 0}, {}}, *graph, *cluster, {}, made_for);
  auto loaded = strategy_from_json(text, "file", *graph, *cluster);
  CHECK(loaded.made_for == made_for);
  CHECK(loaded.version == 3);
  const auto from = text.find(" \"made_for\""), to = text.find(" \"notes\"");
  const auto old = text.substr(0, from) + text.substr(to);
  CHECK_THROWS_WITH_AS(strategy_from_json(old, "file", *graph, *cluster),
                       "file: expected a field 'made_for'", FileError);
  const auto second = test::replaced(old, "\"version\": 3", "\"version\": 2");
  loaded = strategy_from_json(second, "file", *graph, *cluster);
  CHECK(loaded.version == 2);
  CHECK(loaded.made_for.empty());
  for (const char* other : {"1", "4"}) {
    const auto changed = test::replaced(text, "\"version\": 3", fmt::format("\"version\": {}", other));
    CHECK_THROWS_WITH_AS(
        strategy_from_json(changed, "file", *graph, *cluster),
        fmt::format("file: expected version 2 or 3, got {}; search or plan again", other).c_str(),
        FileError);
  }
}

TEST_CASE("an order is written by device, operator and micro-batch") {
  const auto graph = pair_graph();
  const auto cluster = test::uniform_cluster(2, 1e9, 0);
  const auto text_of = [&](const ScheduleSpec& spec) {
    return strategy_to_json({{1, 0, 0}, spec}, *graph, *cluster, {});
  };
  CHECK(text_of({"order", 2, {}, {}, {{1, 4}, {0, 3}}}).find(R"( "schedule": {
  "name": "order",
  "micro_batches": 2,
  "order": {
   "d0": [
    "b@1",
    "b@2"
   ],
   "d1": [
    "a@1",
    "a@2"
   ]
  }
 },
)") != std::string::npos);
  CHECK_THROWS_WITH_AS(text_of({"priority", 1, {1, 2}, {}, {}}),
                       "priorities of graph 'pair' need 3 entries, got 2", ArgumentError);
}

TEST_CASE("members of collectives have no stage in a file") {
  test::GraphMaker make("reduced");
  make.op("a", 1e-3);
  make.collective("sum", 8, {make.op("b@1", 1e-3), make.op("c", 1e-3)});
  const auto graph = make.share();
  const auto cluster = test::uniform_cluster(2, 1e9, 0);
  const Strategy strategy{{0, 0, 1}, {"gpipe", 1, {}, {0, 2, -7}, {}}};
  const auto text = strategy_to_json(strategy, *graph, *cluster, {});
  const auto loaded = strategy_from_json(text, "file", *graph, *cluster);
  CHECK(loaded.strategy.schedule.stage == std::vector<int32_t>{0, -1, -1});
  // A name may hold '@' itself.
  const Strategy ordered{{0, 0, 1}, {"order", 2, {}, {}, {{0, 1, 3, 4}, {}}}};
  const auto again = strategy_to_json(ordered, *graph, *cluster, {});
  CHECK(again.find("\"b@1@2\"") != std::string::npos);
  CHECK(strategy_from_json(again, "file", *graph, *cluster).strategy.schedule == ordered.schedule);
}

TEST_CASE("a broken schedule names file, field, operator and what was meant") {
  const auto graph = pair_graph();
  const auto cluster = test::uniform_cluster(2, 1e9, 0);
  const auto plain = strategy_to_json({{1, 0, 0}, {}}, *graph, *cluster, {});
  const auto fails = [&](const std::string& schedule, const char* message) {
    auto text = plain;
    text.insert(text.find("\"placement\""), "\"schedule\": " + schedule + ",");
    CHECK_THROWS_WITH_AS(strategy_from_json(text, "file", *graph, *cluster),
                         doctest::Contains(message), FileError);
  };
  fails("7", "file: field 'schedule': expected an object");
  fails("{}", "file: expected a field 'name'");
  fails(R"({"name": 7})", "file: schedule: name: expected a string, got 7");
  fails(R"({"name": "fifo", "micro_batch": 2})",
        "file: schedule: unknown field 'micro_batch', did you mean 'micro_batches'?");
  for (const char* count : {"0", "-1", "1.5", "\"2\"", "1073741825", "99999999999999999999"})
    fails(fmt::format(R"({{"name": "fifo", "micro_batches": {}}})", count),
          "file: schedule: micro_batches: expected an integer from 1 to 1073741824, got ");
  fails(R"({"name": "priority", "priority": [1]})", "file: field 'priority': expected an object");
  fails(R"({"name": "priority", "priority": {"a": 1, "b": null, "c": 1}})",
        "file: priority of operator 'b': expected a number, got null");
  fails(R"({"name": "priority", "priority": {"a": 1, "c": 1}})",
        "file: priority: operator 'b' of graph 'pair' is missing");
  fails(R"({"name": "priority", "priority": {"a": 1, "bb": 1, "c": 1}})",
        "file: priority: graph 'pair' has no operator 'bb', did you mean 'b'?");
  fails(R"({"name": "1f1b", "stage": {"a": 1, "b": 2, "c": 4}})",
        "file: stage of operator 'c': expected an integer from 1 to 3, got 4");
  fails(R"({"name": "order", "order": []})", "file: field 'order': expected an object");
  fails(R"({"name": "order", "order": {"d0": []}})",
        "file: order: device 'd1' of cluster 'uniform' is missing");
  fails(R"({"name": "order", "order": {"d0": [], "d1": [], "d": []}})",
        "file: order: no device 'd' in cluster 'uniform'");
  fails(R"({"name": "order", "order": {"d0": [], "d1": 7}})",
        "file: order of device 'd1': expected a list, got 7");
  fails(R"({"name": "order", "order": {"d0": [], "d1": [0]}})",
        "file: order of device 'd1': expected an operator's name, got 0");
  fails(R"({"name": "order", "order": {"d0": ["b@1"], "d1": ["a"]}})",
        "file: order of device 'd0': graph 'pair' has no operator 'b@1'");
  for (const char* task : {"b", "b@", "b@0", "b@3", "b@x", "b@99999999999999999999"})
    fails(fmt::format(R"({{"name": "order", "micro_batches": 2, "order":
                       {{"d0": ["{}"], "d1": []}}}})",
                      task),
          "expected 'operator@micro-batch' with a micro-batch from 1 to 2, got 'b");
}

TEST_CASE("any damage to a strategy file is a file error, never a crash") {
  const auto graph = pair_graph();
  const auto cluster = test::uniform_cluster(2, 1e9, 0);
  std::vector<std::string> texts;
  for (const auto& spec : {ScheduleSpec{}, ScheduleSpec{"gpipe", 2, {}, {1, 0, 0}, {}},
                           ScheduleSpec{"priority", 1, {3, 1, 2}, {}, {}},
                           ScheduleSpec{"order", 2, {}, {}, {{1, 2, 4, 5}, {0, 3}}}})
    texts.push_back(strategy_to_json({{1, 0, 0}, spec}, *graph, *cluster, {{"seed", "3"}}));
  const auto error_of = [&](const std::string& text) {
    return test::message_of<FileError>(
        [&] { strategy_from_json(text, "x.json", *graph, *cluster); });
  };
  for (const auto& text : texts) test::check_damaged(text, error_of);  // it ends with a newline
}
