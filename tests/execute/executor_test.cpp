// The executor where its threads interact: one graph on three devices in many orders gives what one
// device gives, failures and stops end all workers, memory is counted whoever frees it. Meant for
// the thread sanitizer as much as for its own checks.
#include "execute/executor.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <thread>

#include "base/error.h"
#include "base/random.h"
#include "base/stop.h"
#include "execute/measure.h"
#include "execute/memory.h"
#include "support/layer_maker.h"

using namespace trinity;

namespace {

constexpr int64_t kRows = 4, kWidth = 6;

/// A training graph of two towers of layers that join in a loss: both branches can run at once.
std::shared_ptr<const Graph> two_towers() {
  test::LayerMaker make("two towers", [](Operator& op) {
    if (op.type != "Gemm") return;
    op.attributes["transB"] = int64_t{1};
    op.parameters.push_back({"bias", {kWidth}});
  });
  const int32_t x = make.add("x", "Input", {}, {kRows, kWidth});
  const int32_t source = make.builder.add_operator({.name = "labels", .type = "Input"});
  const int32_t labels = make.output(source, {kRows}, DType::int64);
  std::vector<int32_t> tops;
  for (const std::string tower : {"left", "right"}) {
    int32_t at = x;
    for (const std::string layer : {"1", "2", "3"}) {
      at = make.add(tower + layer, "Gemm", {at}, {kRows, kWidth}, {kWidth, kWidth});
      at = make.add(tower + "_relu" + layer, "Relu", {at}, {kRows, kWidth});
    }
    tops.push_back(at);
  }
  const int32_t sum = make.add("sum", "Add", tops, {kRows, kWidth});
  make.add("loss", "SoftmaxCrossEntropyLoss", {sum, labels}, {1});
  return std::make_shared<const Graph>(make.train());
}

bool runs_in(const Graph& graph, int32_t op, int32_t micro_batch, int32_t micro_batches) {
  return graph.op(op).phase != Phase::update || micro_batch + 1 == micro_batches;
}

/// Whether all that a task reads has run.
bool is_ready(const Graph& graph, const std::vector<double>& keys, int32_t task) {
  const int32_t ops = graph.operator_count(), op = task % ops;
  const int32_t first = graph.op(op).phase == Phase::update ? 0 : task / ops;
  for (const int32_t read : graph.op(op).inputs)
    for (int32_t m = first; m <= task / ops; ++m)
      if (keys[m * ops + graph.tensor(read).producer] < 0) return false;
  return true;
}

/// Keys of a random order of all tasks in which nothing runs before what it reads.
std::vector<double> random_order(const Graph& graph, int32_t micro_batches, RandomStream& random) {
  const int32_t ops = graph.operator_count();
  std::vector<double> keys(static_cast<size_t>(ops * micro_batches), -1);
  std::vector<int32_t> left;
  for (int32_t task = 0; task < ops * micro_batches; ++task)
    if (runs_in(graph, task % ops, task / ops, micro_batches)) left.push_back(task);
  for (double time = 0; !left.empty(); ++time) {
    std::vector<size_t> ready;
    for (size_t i = 0; i < left.size(); ++i)
      if (is_ready(graph, keys, left[i])) ready.push_back(i);
    const size_t chosen = ready.at(random.below(ready.size()));
    keys[left[chosen]] = time;
    left.erase(left.begin() + static_cast<std::ptrdiff_t>(chosen));
  }
  return keys;
}

std::vector<int32_t> random_placement(const Graph& graph, int32_t devices, RandomStream& random) {
  std::vector<int32_t> placement(static_cast<size_t>(graph.operator_count()));
  for (int32_t unit = 0; unit < graph.unit_count(); ++unit) {
    const auto device = static_cast<int32_t>(random.below(static_cast<uint64_t>(devices)));
    for (const int32_t op : graph.unit(unit)) placement[op] = device;
  }
  return placement;
}

/// Losses of three steps and the first weights after them.
std::vector<double> train(Executor& executor, const Graph& graph) {
  std::vector<double> numbers;
  for (int step = 0; step < 3; ++step) numbers.push_back(executor.step().loss);
  for (const double weight : executor.weight(graph.find("left1"), 0)) numbers.push_back(weight);
  return numbers;
}

}  // namespace

TEST_CASE("three devices compute the bits of one, twenty pipelines through") {
  const auto graph = two_towers();
  ExecutorOptions options;
  options.learning_rate = 0.1;
  options.micro_batches = 3;
  const std::vector<int32_t> one(static_cast<size_t>(graph->operator_count()), 0);
  for (uint64_t round = 0; round < 20; ++round) {
    CAPTURE(round);
    RandomStream random(7, "executor", round);
    const auto order = random_order(*graph, options.micro_batches, random);
    const auto placement = random_placement(*graph, 3, random);
    Executor alone(graph, one, 1, order, options);
    Executor three(graph, placement, 3, order, options);
    const auto before = alone.weight(graph->find("left1"), 0);
    const auto expected = train(alone, *graph), found = train(three, *graph);
    CHECK(expected[0] > 0);
    CHECK(expected[1] != expected[0]);
    CHECK(std::vector<double>(expected.begin() + 3, expected.end()) != before);
    CHECK(found == expected);
  }
}

TEST_CASE("a worker that fails ends the others, and names itself") {
  const auto graph = two_towers();
  ExecutorOptions options;
  options.micro_batches = 4;
  for (uint64_t round = 0; round < 10; ++round) {
    RandomStream random(8, "executor", round);
    const auto placement = random_placement(*graph, 3, random);
    options.memory_limit_bytes = 0;
    Executor free(graph, placement, 3, {}, options);
    const auto peaks = free.step().peak_memory_bytes;
    // A peak depends on when other workers free what they read, so the limit falls until one is met.
    // Weights alone fit, some value does not.
    std::string message;
    options.memory_limit_bytes = *std::max_element(peaks.begin(), peaks.end());
    while (message.empty()) {
      options.memory_limit_bytes -= 16;
      try {
        Executor limited(graph, placement, 3, {}, options);
        limited.step();
      } catch (const Error& error) {
        message = error.what();
      }
    }
    CHECK(message.find("execute: operator ") == 0);
    CHECK(message.find("out of memory") != std::string::npos);
  }
}

TEST_CASE("a stop ends a step at once, wherever its workers are") {
  const auto graph = two_towers();
  ExecutorOptions options;
  options.micro_batches = 500;
  RandomStream random(9, "executor");
  const auto placement = random_placement(*graph, 3, random);
  for (int round = 0; round < 10; ++round) {
    Executor executor(graph, placement, 3, {}, options);
    std::thread user([round] {
      std::this_thread::sleep_for(std::chrono::milliseconds(3 * round));
      stop_flag() = true;
    });
    bool stopped = false;
    try {
      for (int step = 0; step < 1000; ++step) executor.step();
    } catch (const Interrupted&) {
      stopped = true;
    }
    user.join();
    stop_flag() = false;
    CHECK(stopped);
    CHECK_THROWS_WITH(executor.step(), "execute: an earlier step failed; create a new executor");
  }
}

TEST_CASE("accounts add up what several threads take and give back") {
  const auto account = std::make_shared<MemoryAccount>("device", 1000);
  std::vector<std::thread> threads;
  std::atomic<int> refused{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 5000; ++i) {
        try {
          account->add(400);
          account->remove(400);
        } catch (const LimitError&) {
          ++refused;
        }
      }
    });
  for (auto& thread : threads) thread.join();
  CHECK(account->current_bytes() == 0);
  CHECK(account->peak_bytes() >= 400);
  CHECK(account->peak_bytes() <= 1000);
  CHECK(refused < 20000);
}

TEST_CASE("copies between workers take time, and more for more") {
  const auto times = measure_copies("cpu:0", "cpu:1", {4096, 16 << 20}, 5);
  REQUIRE(times.size() == 2);
  CHECK(times[0] > 0);
  CHECK(times[1] > times[0]);
  stop_flag() = true;
  CHECK_THROWS_AS(measure_copies("cpu:0", "cpu:1", {4096}, 5), Interrupted);
  stop_flag() = false;
}
