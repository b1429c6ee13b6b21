// Agents of several processes that learn one policy, here on threads: the hooks copy memory.
#include <doctest/doctest.h>

#include <barrier>
#include <cmath>
#include <memory>
#include <thread>
#include <vector>

#include "learn/torch/agent.h"
#include "simulator/simulator.h"
#include "support/build.h"

using namespace trinity;

namespace {

std::shared_ptr<const Problem> chain_problem() {
  test::GraphMaker make("chain");
  int last = -1;
  for (int i = 0; i < 12; ++i) {
    const int op = make.op("op" + std::to_string(i), 1e-3 * (1 + i % 3));
    if (last >= 0) make.edge(last, op, 400000);
    last = op;
  }
  return std::make_shared<const Problem>(make.share(), test::uniform_cluster(2, 1e9, 1e-6),
                                         SimulationRules{});
}

/// Adds vectors up over threads, in order of rank.
class Meeting {
 public:
  explicit Meeting(int size) : barrier_(size), parts_(static_cast<size_t>(size)) {}

  template <class Number>
  void sum(int rank, std::span<Number> values) {
    parts_[rank].assign(values.begin(), values.end());
    barrier_.arrive_and_wait();
    for (size_t i = 0; i < values.size(); ++i) {
      Number all = 0;
      for (const auto& part : parts_) all += static_cast<Number>(part[i]);
      values[i] = all;
    }
    barrier_.arrive_and_wait();
  }

 private:
  std::barrier<> barrier_;
  std::vector<std::vector<double>> parts_;
};

/// State and results of an agent after some batches.
struct Course {
  std::vector<double> rewards, losses, baselines;
  std::vector<int32_t> greedy;
};

double reward_of(const Problem& problem, std::span<const int32_t> placement) {
  Simulator simulator(problem);
  Metrics metrics;
  simulator.run(placement, metrics);
  return -std::log(metrics.step_time_s());
}

Course learn(const std::shared_ptr<const Problem>& problem, const AgentOptions& options,
             AgentPeers peers, int batches) {
  ThreadPool pool(1);
  const auto sum = peers.sum_doubles;
  Agent agent(problem, options, pool, std::move(peers));
  const auto n = static_cast<size_t>(problem->operators());
  Course course;
  for (int batch = 0; batch < batches; ++batch) {
    const auto placements = agent.sample();
    REQUIRE(placements.size() == n * static_cast<size_t>(agent.own_samples()));
    std::vector<double> rewards(static_cast<size_t>(options.samples), 0);
    for (size_t c = 0; c * n < placements.size(); ++c)
      rewards[static_cast<size_t>(agent.first_sample()) + c] =
          reward_of(*problem, placements.subspan(c * n, n));
    if (sum) sum(rewards);
    const auto report = agent.update(rewards);
    course.rewards.insert(course.rewards.end(), rewards.begin(), rewards.end());
    course.losses.push_back(report.loss);
    course.baselines.push_back(report.baseline);
  }
  course.greedy = agent.greedy();
  return course;
}

std::vector<Course> learn_together(const std::shared_ptr<const Problem>& problem,
                                   const AgentOptions& options, int size, int batches) {
  Meeting meeting(size);
  std::vector<Course> courses(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      courses[rank] = learn(problem, options,
                            {rank, size, [&, rank](std::span<float> x) { meeting.sum(rank, x); },
                             [&, rank](std::span<double> x) { meeting.sum(rank, x); }},
                            batches);
    });
  for (auto& thread : threads) thread.join();
  return courses;
}

AgentOptions peer_options() {
  AgentOptions options;
  options.groups = 6;
  options.samples = 7;
  options.hidden = 12;
  options.learning_rate = 1e-2;
  options.seed = 3;
  return options;
}

void compare(const AgentOptions& options, int size, double tolerance) {
  const auto problem = chain_problem();
  const auto alone = learn(problem, options, {}, 4);
  const auto together = learn_together(problem, options, size, 4);
  for (const auto& course : together) {
    CHECK(course.losses == together[0].losses);
    CHECK(course.baselines == together[0].baselines);
    CHECK(course.rewards == together[0].rewards);
    CHECK(course.greedy == together[0].greedy);
  }
  // The first batch is sampled from the same weights; later ones differ by rounding only.
  for (size_t i = 0; i < together[0].losses.size(); ++i)
    CHECK(together[0].losses[i] == doctest::Approx(alone.losses[i]).epsilon(tolerance));
  CHECK(together[0].rewards == alone.rewards);
}

}  // namespace

TEST_CASE("peers learn from each other's samples what one process learns from all") {
  for (const int size : {2, 3}) {
    CAPTURE(size);
    compare(peer_options(), size, 1e-3);
  }
}

TEST_CASE("peers agree with one process under the joint ratio and dropout") {
  auto options = peer_options();
  options.dropout = 0.2;
  options.ratio = Ratio::joint;
  compare(options, 3, 1e-3);
}
