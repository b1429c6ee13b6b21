#include "strategy/schedule.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "strategy/mesh_schedule.h"
#include "support/stages.h"

using namespace trinity;

namespace {

/// A chain of `stages` forward operators "f0", ... and their backward ones "b0", ..., an update
/// "u0", ... each: operator s is f, 2 * stages - 1 - s is b, 2 * stages + s is u.
Graph pipeline_graph(size_t stages) {
  return *test::graph_of({std::vector<double>(stages, 1), std::vector<double>(stages, 2)});
}

std::vector<int32_t> around(std::vector<int32_t> stage, int32_t devices) {
  for (int32_t& device : stage) device %= devices;
  return stage;
}

/// The sequence of a device as text: "f0.2" is operator f0 in micro-batch 2.
std::string text_of(const Graph& graph, const Schedule& schedule, size_t device) {
  std::string text;
  for (int32_t i = schedule.order_first[device]; i < schedule.order_first[device + 1]; ++i) {
    const int32_t task = schedule.order[i];
    text +=
        fmt::format("{}{}.{}", text.empty() ? "" : " ",
                    graph.op(task % graph.operator_count()).name, task / graph.operator_count());
  }
  return text;
}

Schedule schedule_of(const Graph& graph, int32_t devices, int32_t micro_batches,
                     PipelineSchedule kind) {
  const auto stage = test::stages_of(graph);
  return pipeline_schedule(graph, around(stage, devices), devices, stage, micro_batches, kind);
}

constexpr auto kGpipeSchedule = PipelineSchedule::gpipe;
constexpr auto k1F1BSchedule = PipelineSchedule::one_f_one_b;
constexpr auto kInterleavedSchedule = PipelineSchedule::interleaved;

/// As pipeline_graph(), with backward operators in two: "i0", ... gradients of inputs, "w0", ... of
/// weights, which read what comes into the stage forwards and backwards; all take one. Operator
/// names tell the stage.
Graph two_part_graph(int stages, double time_s = 1) {
  test::GraphMaker make("parts");
  std::vector<int> forward, weight(static_cast<size_t>(stages));
  for (int s = 0; s < stages; ++s) {
    forward.push_back(make.op("f" + std::to_string(s), time_s));
    if (s > 0) make.edge(forward[static_cast<size_t>(s) - 1], forward.back(), 1);
  }
  int gradient = -1;
  for (int s = stages - 1; s >= 0; --s) {
    const auto i = static_cast<size_t>(s);
    const int input = make.op_of(Phase::backward, "i" + std::to_string(s), time_s, forward[i]);
    weight[i] = make.op_of(Phase::backward, "w" + std::to_string(s), time_s, forward[i]);
    const int kept = make.output(forward[i], 1);
    for (const int reader : {input, weight[i]}) {
      make.read(reader, kept);
      if (gradient >= 0) make.read(reader, gradient);
    }
    gradient = make.output(input, 1);
  }
  for (int s = 0; s < stages; ++s) {
    const auto i = static_cast<size_t>(s);
    make.edge(weight[i], make.op_of(Phase::update, "u" + std::to_string(s), 0, forward[i]), 1);
  }
  return make.build();
}

std::vector<int32_t> in_chunks(const Graph& graph, PipelineSchedule kind, int32_t devices,
                               std::vector<int32_t>& stage) {
  std::vector<int32_t> placement;
  for (const auto& op : graph.operators()) {
    stage.push_back(std::stoi(op.name.substr(1)));
    placement.push_back(device_of_chunk(kind, devices, stage.back()));
  }
  return placement;
}

}  // namespace

TEST_CASE("zero-bubble schedules delay gradients of weights, and update last") {
  const auto graph = two_part_graph(2);
  std::vector<int32_t> stage;
  const auto placement = in_chunks(graph, PipelineSchedule::zb_h1, 2, stage);
  const auto schedule = pipeline_schedule(graph, placement, 2, stage, 2, PipelineSchedule::zb_h1);
  CHECK(text_of(graph, schedule, 0) == "f0.0 f0.1 i0.0 w0.0 i0.1 w0.1 u0.1");
  CHECK(text_of(graph, schedule, 1) == "f1.0 i1.0 f1.1 i1.1 w1.0 w1.1 u1.1");
  const auto joined = pipeline_graph(2);
  CHECK_THROWS_WITH_AS(schedule_of(joined, 2, 2, PipelineSchedule::zb_h1),
                       doctest::Contains("'b1' computes input and weight gradients together"),
                       ScheduleError);
}

TEST_CASE("schedules in V shape give every device two stages, forwards and backwards") {
  const auto graph = two_part_graph(4);
  std::vector<int32_t> stage;
  const auto round = in_chunks(graph, PipelineSchedule::interleaved, 2, stage);
  CHECK_THROWS_WITH_AS(
      pipeline_schedule(graph, round, 2, stage, 4, PipelineSchedule::zb_v),
      doctest::Contains("stage 3 is on device 1, expected device 2 as for stage 2: "
                        "stages visit the 2 devices forwards, then backwards"),
      ScheduleError);
  std::vector<int32_t> plain;
  const auto single = in_chunks(graph, PipelineSchedule::zb_h1, 4, plain);
  CHECK_THROWS_WITH_AS(pipeline_schedule(graph, single, 4, plain, 8, PipelineSchedule::zb_v),
                       doctest::Contains("4 stages on 4 devices, expected two per device"),
                       ScheduleError);
  std::vector<int32_t> again;
  const auto v_shape = in_chunks(graph, PipelineSchedule::zb_v, 2, again);
  CHECK_THROWS_WITH_AS(pipeline_schedule(graph, v_shape, 2, again, 3, PipelineSchedule::dualpipe_v),
                       doctest::Contains("3 micro-batches on 2 devices, expected at least 4"),
                       ScheduleError);
}

TEST_CASE("PipeDream takes turns without a flush, and updates after every backward") {
  const auto graph = pipeline_graph(2);
  const auto schedule = schedule_of(graph, 2, 3, PipelineSchedule::pipedream);
  CHECK(schedule.micro_batches == 3);
  CHECK(schedule.measured_from == 12);
  CHECK(schedule.measured_to == 24);
  CHECK(schedule.stream == 27);
  CHECK(schedule.runs() == 27);
  CHECK(schedule.weight_versions == std::vector<int32_t>{2, 1});
  CHECK(text_of(graph, schedule, 0)
            .starts_with("f0.0 f0.1 b0.0 u0.0 f0.2 b0.1 u0.1 f0.3 b0.2 u0.2 f0.4"));
  CHECK(text_of(graph, schedule, 0).ends_with("f0.26 b0.25 u0.25 b0.26 u0.26"));
  CHECK(text_of(graph, schedule, 1).starts_with("f1.0 b1.0 u1.0 f1.1 b1.1 u1.1"));
  CHECK(schedule_of(graph, 2, 3, k1F1BSchedule).runs() == 3);
}

TEST_CASE("a stage of several operators runs them in ascending order") {
  test::GraphMaker make("g");
  const int a = make.op("a", 1), b = make.op("b", 1), c = make.op("c", 1);
  make.edge(a, b, 1);
  make.edge(b, c, 1);
  const auto graph = make.build();
  const std::vector<int32_t> placement = {1, 1, 0}, stage = {0, 0, 1};
  const auto schedule = pipeline_schedule(graph, placement, 3, stage, 2, k1F1BSchedule);
  CHECK(text_of(graph, schedule, 0) == "c.0 c.1");
  CHECK(text_of(graph, schedule, 1) == "a.0 b.0 a.1 b.1");
  CHECK(text_of(graph, schedule, 2).empty());
  CHECK(schedule.order_first == std::vector<int32_t>{0, 2, 6, 6});
}

TEST_CASE("members of collectives are in no sequence") {
  test::GraphMaker make("g");
  const int a = make.op("a", 1), b = make.op("b", 1), x = make.op("x", 1), y = make.op("y", 1);
  make.edge(a, x, 1);
  make.edge(b, y, 1);
  make.collective("sum", 8, {x, y});
  const auto graph = make.build();
  const std::vector<int32_t> placement = {0, 1, 0, 1}, stage = {0, 1, -1, -1};
  const auto schedule = pipeline_schedule(graph, placement, 2, stage, 2, kGpipeSchedule);
  CHECK(text_of(graph, schedule, 0) == "a.0 a.1");
  CHECK(text_of(graph, schedule, 1) == "b.0 b.1");
}

TEST_CASE("stages by device follow the first forward operators") {
  const auto graph = pipeline_graph(3);
  const auto stage = test::stages_of(graph);
  std::vector<int32_t> placement;
  for (const int32_t s : stage) placement.push_back(2 - s);
  CHECK(stages_by_device(graph, placement) == stage);
  placement[graph.find("b1")] = 5;  // a device of backward operators alone
  CHECK(stages_by_device(graph, placement)[graph.find("b1")] == 3);
  CHECK(stages_by_device(graph, placement)[graph.find("u1")] == 1);

  test::GraphMaker make("backwards");
  make.op_of(Phase::backward, "b", 1);
  const std::vector<int32_t> one = {0};
  CHECK_THROWS_WITH_AS(stages_by_device(make.build(), one),
                       doctest::Contains("graph 'backwards' has no forward operators"),
                       ArgumentError);
}

namespace {

/// data, labels -> a -> b -> loss with gradients, where the loss reads the labels.
Graph labelled_graph() {
  test::GraphMaker make("labelled");
  const int labels = make.op("labels", 0), data = make.op("data", 0);
  const int a = make.op("a", 1), b = make.op("b", 1), loss = make.op("loss", 1);
  make.edge(data, a, 1);
  make.edge(a, b, 1);
  make.edge(b, loss, 1);
  make.edge(labels, loss, 1);
  const int d_loss = make.op_of(Phase::backward, "d_loss", 1, loss);
  const int d_b = make.op_of(Phase::backward, "d_b", 1, b);
  const int d_a = make.op_of(Phase::backward, "d_a", 1, a);
  make.edge(loss, d_loss, 1);
  make.edge(d_loss, d_b, 1);
  make.edge(d_b, d_a, 1);
  return make.build();
}

/// Devices of labelled_graph(), gradients where their operators are.
std::vector<int32_t> place(int32_t labels, int32_t data, int32_t a, int32_t b, int32_t loss) {
  return {labels, data, a, b, loss, loss, b, a};
}

}  // namespace

TEST_CASE("labels on the last stage make it no first one") {
  const auto graph = labelled_graph();
  const auto natural = place(2, 0, 0, 1, 2);
  CHECK(stages_by_device(graph, natural) == natural);
  const auto schedule = pipeline_schedule(graph, natural, 3, natural, 4, k1F1BSchedule);
  CHECK(text_of(graph, schedule, 2).substr(0, 27) == "labels.0 loss.0 d_loss.0 la");
  // Devices count in any order; data alone on a device come first.
  CHECK(stages_by_device(graph, place(0, 2, 2, 1, 0)) == place(2, 0, 0, 1, 2));
  CHECK(stages_by_device(graph, place(2, 3, 0, 1, 2)) == place(3, 0, 1, 2, 3));
  // Earlier results stay: the first operators decide where gradients do not.
  CHECK(stages_by_device(graph, place(0, 1, 1, 1, 1)) == place(0, 1, 1, 1, 1));
  CHECK(stages_by_device(graph, place(0, 1, 0, 1, 0)) == place(0, 1, 0, 1, 0));
}

TEST_CASE("stages against the order of the graph are refused by the operators in the way") {
  const auto graph = labelled_graph();
  const auto order = [&](const std::vector<int32_t>& on, std::vector<int32_t> stage, int32_t micro,
                         PipelineSchedule kind) {
    return pipeline_schedule(graph, on, 3, stage, micro, kind);
  };
  const auto circle = place(0, 0, 0, 1, 0), natural = place(2, 0, 0, 1, 2);
  const auto against = place(0, 1, 1, 2, 0);
  CHECK_THROWS_WITH_AS(
      order(circle, circle, 2, k1F1BSchedule),
      doctest::Contains("the order contradicts graph 'labelled': operator 'loss' in stage 1 on "
                        "device 1 reads 'b' in stage 2 on device 2"),
      ScheduleError);
  CHECK_THROWS_WITH_AS(
      order(natural, against, 4, k1F1BSchedule),
      doctest::Contains("operator 'loss' in stage 1 on device 3 reads 'b' in stage "
                        "3 on device 2, and its gradient returns there"),
      ScheduleError);
  CHECK_THROWS_WITH_AS(order(natural, against, 4, PipelineSchedule::pipedream),
                       doctest::Contains("Use field 'stage'"), ScheduleError);
  // One micro-batch has no order to break, and GPipe's has none between stages.
  CHECK(order(natural, against, 1, k1F1BSchedule).order ==
        order(natural, natural, 1, k1F1BSchedule).order);
  CHECK(order(natural, against, 4, kGpipeSchedule).order ==
        order(natural, natural, 4, kGpipeSchedule).order);
  CHECK(order(circle, circle, 2, kGpipeSchedule).order.size() == 16);
}

TEST_CASE("schedules that do not fit are refused") {
  const auto graph = pipeline_graph(4);
  const auto stage = test::stages_of(graph);
  const auto fails = [&](std::vector<int32_t> placement, int32_t devices,
                         std::vector<int32_t> stages, int32_t micro_batches, PipelineSchedule kind,
                         const char* text) {
    CHECK_THROWS_WITH_AS(pipeline_schedule(graph, placement, devices, stages, micro_batches, kind),
                         doctest::Contains(text), ArgumentError);
  };
  fails({0}, 4, stage, 4, k1F1BSchedule, "placements of graph 'stages' need 12 entries, got 1");
  fails(stage, 4, {0}, 4, k1F1BSchedule, "stages of graph 'stages' need 12 entries, got 1");
  fails(stage, 0, stage, 4, k1F1BSchedule, "at least 1 device, got 0");
  fails(stage, 4, stage, 0, k1F1BSchedule, "at least 1 micro-batch, got 0");
  fails(stage, 3, stage, 4, k1F1BSchedule, "operator 'f3' is placed on device 4, expected 1 to 3");
  auto wrong = stage;
  wrong[1] = 12;
  fails(stage, 4, wrong, 4, k1F1BSchedule, "operator 'f1' is in stage 13, expected 1 to 12");
  wrong = stage;
  wrong[graph.find("b1")] = 0;
  fails(stage, 4, wrong, 4, k1F1BSchedule,
        "schedule '1f1b': stages 1 and 2 are on device 2, expected a device for every stage");
  wrong = stage;
  for (int32_t& s : wrong) s += s == 3;
  fails(stage, 4, wrong, 4, k1F1BSchedule, "stage 4 has no operators");
  fails(around(stage, 2), 2, stage, 4, kGpipeSchedule,
        "schedule 'gpipe': stages 1 and 3 are on device 1, expected a device for every stage");
  fails(around(stage, 3), 3, stage, 3, kInterleavedSchedule,
        "schedule 'interleaved': 4 stages on 3 devices, expected a multiple");
  fails(around(stage, 2), 2, stage, 3, kInterleavedSchedule,
        "schedule 'interleaved': 3 micro-batches on 2 devices, expected a multiple");
  auto folded = stage;
  for (int32_t& device : folded) device = std::min(device, 3 - device);
  fails(folded, 2, stage, 2, kInterleavedSchedule,
        "schedule 'interleaved': stage 3 is on device 2, expected device 1 as for stage 1");
  CHECK_THROWS_AS(pipeline_schedule(graph, stage, 4, stage, 1 << 30, k1F1BSchedule), LimitError);
}

TEST_CASE("descriptions of schedules are checked") {
  const auto graph = pipeline_graph(2);
  const auto fails = [&](const ScheduleSpec& spec, const char* text) {
    CHECK_THROWS_WITH_AS(check_schedule(spec, graph, 2), doctest::Contains(text), ArgumentError);
  };
  check_schedule({}, graph, 2);
  check_schedule({"interleaved", 4, {}, {}, {}}, graph, 2);
  check_schedule({"order", 2, {}, {}, {{0, 11}, {}}}, graph, 2);
  fails({"fif", 1, {}, {}, {}}, "unknown schedule 'fif', did you mean 'fifo'?");
  fails({"fifo", 0, {}, {}, {}}, "at least 1 micro-batch, got 0");
  fails({"fifo", 1, {1, 2, 3, 4, 5, 6}, {}, {}}, "schedule 'fifo' takes no field 'priority'");
  fails({"priority", 1, {}, {}, {}}, "schedule 'priority' needs a field 'priority'");
  fails({"priority", 1, {1}, {}, {}}, "priorities of graph 'stages' need 6 entries, got 1");
  fails({"priority", 1, {1, 2, 3, 4, NAN, 6}, {}, {}}, "the priority of operator 'u0' is not a");
  fails({"lifo", 1, {}, {0, 0, 0, 0, 0, 0}, {}}, "schedule 'lifo' takes no field 'stage'");
  fails({"gpipe", 1, {}, {0, 0}, {}}, "stages of graph 'stages' need 6 entries, got 2");
  fails({"gpipe", 1, {}, {0, 0, 0, 0, 6, 0}, {}}, "operator 'u0' is in stage 7, expected 1 to 6");
  fails({"gpipe", 1, {}, {-1, 0, 0, 0, 0, 0}, {}}, "operator 'f0' is in stage 0, expected 1 to 6");
  fails({"order", 1, {}, {}, {}}, "schedule 'order' needs a field 'order'");
  fails({"order", 1, {}, {}, {{0}}}, "an order needs 2 lists of tasks, one per device, got 1");
  fails({"order", 2, {}, {}, {{0}, {12}}}, "the order of device 2 names task 13, expected 1 to 12");
  CHECK_THROWS_WITH_AS(check_schedule({"fifo", 1 << 30, {}, {}, {}}, graph, 2),
                       doctest::Contains("more than 2^30 tasks"), LimitError);
}

TEST_CASE("servers take replicas in turn, aside of their own mini-batches") {
  test::GraphMaker make("round robin");
  std::vector<int32_t> placement, turn;
  const auto add = [&](Phase phase, const std::string& what, int32_t device, int32_t replica) {
    placement.push_back(device);
    turn.push_back(replica);
    return make.op_of(phase, fmt::format("{}{}", what, replica), 1);
  };
  std::vector<int> forward, backward, served;
  for (const int32_t replica : {0, 1}) {
    forward.push_back(add(Phase::forward, "f", replica, replica));
    backward.push_back(add(Phase::backward, "b", replica, replica));
    make.edge(forward.back(), backward.back(), 1);
  }
  for (const int32_t replica : {0, 1}) {  // on device 0, for both
    served.push_back(add(Phase::update, "server", 0, replica));
    make.edge(backward[static_cast<size_t>(replica)], served.back(), 1);
  }
  make.edge(served[0], served[1], 0);
  for (const int32_t replica : {0, 1})
    make.edge(served[static_cast<size_t>(replica)], add(Phase::update, "pull", replica, replica), 1);
  const auto graph = make.build();
  const auto schedule = round_robin_schedule(graph, placement, 3, turn, 2);
  CHECK(text_of(graph, schedule, 0).starts_with("f0.0 b0.0 pull0.0 f0.1 b0.1 pull0.1 "));
  CHECK(text_of(graph, schedule, 1).starts_with("f1.0 b1.0 pull1.0 f1.1 b1.1 pull1.1 "));
  CHECK(text_of(graph, schedule, 2).empty());
  CHECK(text_of(graph, schedule, 3).starts_with("server0.0 server1.0 server0.1 server1.1 "));
  CHECK(text_of(graph, schedule, 3).ends_with(" server0.25 server1.25"));
  CHECK(text_of(graph, schedule, 4).empty());
  CHECK(schedule.order_first.size() == 7);
  CHECK(schedule.micro_batches == 2);
  CHECK(round_robin_schedule(graph, placement, 3, turn, 70).stream == 70);
  CHECK_THROWS_WITH_AS(round_robin_schedule(graph, placement, 1, turn, 1),
                       doctest::Contains("device 2, expected 1 to 1"), ArgumentError);
}
