// Chrome traces: a golden text, and their laws on random plans under every queue model.
#include "formats/export/chrome_trace.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "simulator/simulator.h"
#include "support/build.h"
#include "support/cases.h"

using namespace trinity;
using nlohmann::json;

namespace {

constexpr double kNs = 1e-9;

std::string trace_of(const Problem& problem, const std::vector<int32_t>& placement) {
  return chrome_trace(problem, test::simulate(problem, {placement}).timeline);
}

/// Whole nanoseconds of a time in microseconds.
int64_t ns(const json& micros) { return std::llround(micros.get<double>() * 1000); }

/// A slice of a thread.
struct Span {
  int64_t start_ns, end_ns;
};
using Thread = std::pair<int, int>;  // process, thread

std::map<Thread, std::vector<Span>> slices(const json& trace) {
  std::map<Thread, std::vector<Span>> result;
  for (const auto& event : trace.at("traceEvents"))
    if (event.at("ph") == "X")
      result[{event.at("pid"), event.at("tid")}].push_back(
          {ns(event.at("ts")), ns(event.at("ts")) + ns(event.at("dur"))});
  return result;
}

int64_t count(const json& trace, const char* phase, const char* category = nullptr) {
  const auto& events = trace.at("traceEvents");
  return std::count_if(events.begin(), events.end(), [&](const json& event) {
    return event.at("ph") == phase && (!category || event.at("cat") == category);
  });
}

void check_no_overlap(const std::map<Thread, std::vector<Span>>& threads) {
  for (auto [thread, spans] : threads) {
    std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) {
      return std::pair(a.start_ns, a.end_ns) < std::pair(b.start_ns, b.end_ns);
    });
    for (size_t i = 1; i < spans.size(); ++i) CHECK(spans[i - 1].end_ns <= spans[i].start_ns);
  }
}

/// Every arrow has one start and one end, not before it, each within a slice of its thread.
void check_flows(const json& trace, const std::map<Thread, std::vector<Span>>& threads) {
  std::map<int64_t, std::pair<int64_t, int64_t>> ends;
  for (const auto& event : trace.at("traceEvents")) {
    const auto& phase = event.at("ph");
    if (phase != "s" && phase != "f") continue;
    auto& [start, end] = ends.insert({event.at("id"), {-1, -1}}).first->second;
    auto& side = phase == "s" ? start : end;
    CHECK(side == -1);
    side = ns(event.at("ts"));
    CHECK((phase == "s" || event.at("bp") == "e"));
    const auto& spans = threads.at({event.at("pid"), event.at("tid")});
    CHECK(std::any_of(spans.begin(), spans.end(), [&](const Span& span) {
      return span.start_ns <= side && side <= span.end_ns;
    }));
  }
  for (const auto& [id, flow] : ends) {
    CHECK(flow.first >= 0);
    CHECK(flow.first <= flow.second);
  }
}

void check_threads_named(const json& trace, const std::map<Thread, std::vector<Span>>& threads) {
  std::map<Thread, std::string> names;
  for (const auto& event : trace.at("traceEvents"))
    if (event.at("name") == "thread_name")
      names[{event.at("pid"), event.at("tid")}] = event.at("args").at("name");
  std::set<std::pair<int, std::string>> distinct;
  for (const auto& [thread, name] : names) CHECK(distinct.insert({thread.first, name}).second);
  for (const auto& [thread, spans] : threads) CHECK(names.contains(thread));
}

std::set<std::string> thread_names(const json& trace) {
  std::set<std::string> names;
  for (const auto& event : trace.at("traceEvents"))
    if (event.at("name") == "thread_name") names.insert(event.at("args").at("name"));
  return names;
}

/// One tensor that two devices read, right after another one towards the first.
Problem two_receivers(QueueModel queue) {
  test::GraphMaker make("receivers");
  const int a = make.op("a", 1000 * kNs), b = make.op("b", 1000 * kNs);
  make.edge(a, make.op("c", 1000 * kNs), 5000);
  const int shared = make.output(b, 5000);
  make.read(make.op("d", 1000 * kNs), shared);
  make.read(make.op("e", 1000 * kNs), shared);
  auto spec = test::uniform_spec(3, 1e9, 0);
  spec.queue = queue;
  return test::make_problem(make.share(), spec);
}

/// a (d0) -> b (d1) -> c (d1): 1000 bytes take 1 us of latency and 1 us of transfer.
constexpr const char* kThreeOperators =
    R"json({"displayTimeUnit":"ns","otherData":{"graph":"three \"ops\"","cluster":"uniform","step_time_s":0.000005507},"traceEvents":[
{"ph":"M","pid":0,"name":"process_name","args":{"name":"d0 (unit)"}},
{"ph":"M","pid":0,"name":"process_sort_index","args":{"sort_index":0}},
{"ph":"M","pid":0,"tid":0,"name":"thread_name","args":{"name":"compute"}},
{"ph":"M","pid":0,"tid":0,"name":"thread_sort_index","args":{"sort_index":0}},
{"ph":"M","pid":0,"tid":1,"name":"thread_name","args":{"name":"send"}},
{"ph":"M","pid":0,"tid":1,"name":"thread_sort_index","args":{"sort_index":1}},
{"ph":"M","pid":1,"name":"process_name","args":{"name":"d1 (unit)"}},
{"ph":"M","pid":1,"name":"process_sort_index","args":{"sort_index":1}},
{"ph":"M","pid":1,"tid":0,"name":"thread_name","args":{"name":"compute"}},
{"ph":"M","pid":1,"tid":0,"name":"thread_sort_index","args":{"sort_index":0}},
{"ph":"X","pid":0,"tid":0,"ts":0.000,"dur":1.500,"name":"a","cat":"forward","args":{"operator":"a","type":"Work","micro_batch":1,"flops":0,"bytes":1000,"ready_us":0.000,"queued_us":0.000}},
{"ph":"X","pid":1,"tid":0,"ts":3.500,"dur":2.000,"name":"b","cat":"forward","args":{"operator":"b","type":"Work","micro_batch":1,"flops":0,"bytes":10,"ready_us":3.500,"queued_us":0.000}},
{"ph":"X","pid":1,"tid":0,"ts":5.500,"dur":0.007,"name":"c","cat":"forward","args":{"operator":"c","type":"Work","micro_batch":1,"flops":0,"bytes":0,"ready_us":5.500,"queued_us":0.000}},
{"ph":"X","pid":0,"tid":1,"ts":1.500,"dur":2.000,"name":"a","cat":"transfer","args":{"operator":"a","type":"Work","micro_batch":1,"to":"d1","bytes":1000,"ready_us":1.500,"queued_us":0.000}},
{"ph":"s","id":1,"pid":0,"tid":0,"ts":1.499,"name":"data","cat":"flow"},
{"ph":"f","bp":"e","id":1,"pid":0,"tid":1,"ts":1.500,"name":"data","cat":"flow"},
{"ph":"s","id":2,"pid":0,"tid":1,"ts":3.499,"name":"data","cat":"flow"},
{"ph":"f","bp":"e","id":2,"pid":1,"tid":0,"ts":3.500,"name":"data","cat":"flow"},
{"ph":"C","pid":0,"ts":0.000,"name":"memory","args":{"bytes":1000}},
{"ph":"C","pid":1,"ts":3.500,"name":"memory","args":{"bytes":1010}},
{"ph":"C","pid":1,"ts":5.500,"name":"memory","args":{"bytes":10}}
]}
)json";

}  // namespace

TEST_CASE("the trace of three operators, byte for byte") {
  test::GraphMaker make("three \"ops\"");
  const int a = make.op("a", 1500 * kNs), b = make.op("b", 2000 * kNs), c = make.op("c", 7 * kNs);
  make.edge(a, b, 1000);
  make.edge(b, c, 10);
  const auto problem = test::make_problem(make.share(), test::uniform_spec(2, 1e9, 1e-6));
  CHECK(trace_of(problem, {0, 1, 1}) == kThreeOperators);
}

TEST_CASE("parsed back: slices, arrows, counters and names, whatever the queue model") {
  for (uint64_t i = 0; i < 60; ++i) {
    CAPTURE(i);
    const auto c = test::random_case(i, {.queue = test::kQueues[i % 5],
                                         .most_micro_batches = 3,
                                         .collectives = i % 2 == 0});
    const auto& problem = *c.problem;
    const auto timeline = test::simulate(problem, c.plan()).timeline;
    const std::string text = chrome_trace(problem, timeline);
    CHECK(text == chrome_trace(problem, timeline));
    const auto trace = json::parse(text);
    const auto threads = slices(trace);
    check_no_overlap(threads);
    check_flows(trace, threads);
    check_threads_named(trace, threads);

    const auto transfers = static_cast<int64_t>(timeline.transfers.size());
    int64_t levels = 0;
    for (const auto& device : timeline.memory) levels += static_cast<int64_t>(device.size());
    std::map<Phase, int64_t> tasks;
    for (size_t t = 0; t < timeline.start_ns.size(); ++t) {
      const auto& op = problem.graph().op(static_cast<int32_t>(t) % problem.operators());
      if (timeline.start_ns[t] >= 0 && op.collective < 0) ++tasks[op.phase];
    }
    int64_t collective_slices = 0;
    for (const auto& run : timeline.collectives) {
      std::set<int32_t> devices;
      for (const int32_t member : problem.graph().collectives()[run.collective].members)
        devices.insert(c.placement[member]);
      collective_slices += static_cast<int64_t>(devices.size());
    }
    CHECK(count(trace, "X", "forward") == tasks[Phase::forward]);
    CHECK(count(trace, "X", "backward") == tasks[Phase::backward]);
    CHECK(count(trace, "X", "update") == tasks[Phase::update]);
    CHECK(count(trace, "X", "transfer") == transfers);
    CHECK(count(trace, "X", "collective") == collective_slices);
    CHECK(count(trace, "s") == 2 * transfers);
    CHECK(count(trace, "f") == 2 * transfers);
    CHECK(count(trace, "C") == levels);
    const int64_t step = *std::max_element(timeline.end_ns.begin(), timeline.end_ns.end());
    CHECK(std::llround(trace.at("otherData").at("step_time_s").get<double>() * 1e9) == step);
  }
}

TEST_CASE("transfers lie on one thread a queue, and on further ones where they overlap") {
  const std::vector<int32_t> placement = {0, 0, 1, 1, 2};
  const auto names = [&](QueueModel queue) {
    const auto problem = two_receivers(queue);
    return thread_names(json::parse(trace_of(problem, placement)));
  };
  using Names = std::set<std::string>;
  CHECK(names(QueueModel::sender) == Names{"compute", "send"});
  CHECK(names(QueueModel::pair) == Names{"compute", "to d1", "to d2"});
  CHECK(names(QueueModel::route) == Names{"compute", "to d1", "to d2"});
  CHECK(names(QueueModel::none) == Names{"compute", "to d1", "to d1 (2)", "to d2"});
  CHECK(names(QueueModel::fair) == Names{"compute", "to d1", "to d1 (2)", "to d2"});
}

TEST_CASE("a trace takes names with control characters, and a graph called after any file") {
  test::GraphMaker make("\xff");
  make.op("\x1f\\\"", 1000 * kNs);
  const auto problem = test::make_problem(make.share(), test::uniform_spec(1, 1e9, 0));
  const auto trace = json::parse(trace_of(problem, {0}));
  CHECK(trace.at("otherData").at("graph") == "\\xFF");
  const auto& events = trace.at("traceEvents");
  const auto slice = std::find_if(events.begin(), events.end(),
                                  [](const json& event) { return event.at("ph") == "X"; });
  REQUIRE(slice != events.end());
  CHECK(slice->at("name") == "\x1f\\\"");
}
