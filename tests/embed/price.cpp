// Without Lua: reads a graph and a strategy that scripts saved, lowers and simulates the strategy.
//   `price GRAPH.json STRATEGY.json`

#include <formats/json/graph_json.h>
#include <simulator/pricer.h>
#include <strategy/strategy.h>
#include <trinity/error.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

namespace {

std::string text_of(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Eight GPUs around a switch: the cluster of tests/lua/whole/embed_spec.lua.
std::shared_ptr<const trinity::Cluster> cluster() {
  trinity::ClusterSpec spec;
  spec.name = "eight";
  trinity::DeviceType card;
  card.name = "card";
  card.peak_flops_per_s[trinity::DType::float32] = 1e13;
  card.memory_bandwidth_bytes_per_s = 5e11;
  card.memory_bytes = int64_t{16} << 30;
  spec.device_types.push_back(card);
  for (int d = 0; d < 8; ++d) {
    const auto name = "card" + std::to_string(d);
    spec.devices.push_back({name, 0, 1, ""});
    spec.links.push_back({name, "switch", 1e10, 5e-6});
  }
  return std::make_shared<const trinity::Cluster>(spec);
}

int price(const char* graph_path, const char* strategy_path) {
  const auto machine = cluster();
  const auto graph = std::make_shared<const trinity::Graph>(
      trinity::parse_graph_json(text_of(graph_path), graph_path));
  const auto loaded = trinity::strategy_from_json(text_of(strategy_path), strategy_path, *graph,
                                                  *machine);
  const auto problem = std::make_shared<const trinity::Problem>(
      graph, machine, trinity::SimulationRules::standard(*machine));
  trinity::ThreadPool pool(1);
  trinity::StrategyPricer pricer(problem, pool);
  std::vector<trinity::Metrics> metrics;
  pricer.run(std::span(&loaded.strategy, 1), metrics, trinity::kNoLimit,
             trinity::OnContradiction::fail);
  std::printf("same graph %d, same cluster %d, %d operators, %lld ns\n", loaded.same_graph,
              loaded.same_cluster, pricer.bind(loaded.strategy).problem->operators(),
              static_cast<long long>(metrics[0].step_time_ns));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return argc == 3 ? price(argv[1], argv[2]) : 2;
  } catch (const trinity::Error& error) {
    std::printf("error: %s\n", error.what());
    return 1;
  }
}
