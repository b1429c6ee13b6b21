// Memory and messages of devices, computed by hand.
#include "simulator/account.h"

#include <doctest/doctest.h>

#include <numeric>

#include "simulator/simulator.h"
#include "support/cases.h"

namespace trinity {
namespace {

/// source -> a -> b -> loss on devices 0, 0, 1, 1 and back: b/grad reads a's output (100 bytes), a
/// sent copy; a/grad reads its own (100 bytes) and gives a weight gradient (40 bytes) to its
/// update.
Graph there_and_back() {
  test::GraphMaker make("there_and_back");
  const int source = make.op("source", 0), a = make.op("a", 1, 400), b = make.op("b", 2);
  const int loss = make.op("loss", 1);
  const int b_grad = make.op_of(Phase::backward, "b/grad", 2, b);
  const int a_grad = make.op_of(Phase::backward, "a/grad", 1, a);
  const int update = make.op_of(Phase::update, "a/update", 1, a);
  make.edge(source, a, 50);
  const int kept = make.output(a, 100);
  for (const int reader : {b, b_grad, a_grad}) make.read(reader, kept);
  make.edge(b, loss, 30);
  make.edge(loss, b_grad, 30);
  make.edge(b_grad, a_grad, 100);
  make.edge(a_grad, update, 40);
  return make.build();
}

TEST_CASE("an account says what is held for the backward pass, and what is sent") {
  const auto graph = std::make_shared<const Graph>(there_and_back());
  const auto problem = test::make_problem(graph, test::uniform_spec(2, 1e9, 1e-6));
  std::vector<int32_t> placement(7, 0);
  for (const char* name : {"b", "loss", "b/grad"}) placement[graph->find(name)] = 1;
  Schedule schedule;
  schedule.micro_batches = 3;
  const auto [metrics, timeline] = test::simulate(problem, {placement, &schedule});
  std::vector<int32_t> group(7, 0);
  group[graph->find("b/grad")] = 1;
  const auto found = account(problem, placement, timeline, group, 2);
  const auto& first = found.devices[0];
  CHECK(first.weight_bytes == 400);
  CHECK(first.gradient_bytes == 40);
  CHECK(first.activation_bytes == std::vector<int64_t>{300, 0});  // of all three micro-batches
  // The second device takes a copy when it reads it, and does not run ahead.
  CHECK(found.devices[1].activation_bytes[0] == 0);
  CHECK(found.devices[1].activation_bytes[1] >= 100 + 30);  // with the loss
  CHECK(found.devices[1].activation_bytes[1] <= 3 * (100 + 30));
  REQUIRE(found.traffic.size() == 2);
  CHECK(found.traffic[0] == Traffic{true, {}, {0, 1}, Phase::forward, 0, 100, 3});
  CHECK(found.traffic[1] == Traffic{true, {}, {1, 0}, Phase::backward, 1, 100, 3});
  for (const auto& device : found.devices) {
    const int64_t waits = std::accumulate(device.exposed_ns.begin(), device.exposed_ns.end(), 0L);
    CHECK(device.compute_ns + waits + device.idle_ns == metrics.step_time_ns);
    CHECK(device.recompute_ns == 0);
  }
  CHECK(first.compute_ns == metrics.devices[0].compute_busy_ns);
  CHECK(first.exposed_ns[static_cast<size_t>(MessagePurpose::gradients)] == 0);
  CHECK(found.devices[1].exposed_ns[static_cast<size_t>(MessagePurpose::activations)] > 0);
  int64_t sent = 0;
  for (const auto& row : found.traffic) sent += row.bytes * row.count;
  CHECK(sent == metrics.total_communication_bytes);
}

}  // namespace
}  // namespace trinity
