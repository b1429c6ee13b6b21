#include "search/pase/pase_search.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/random.h"
#include "base/stop.h"
#include "search/placement/markov_chain.h"
#include "selection/selection_solver.h"

namespace trinity {
namespace {

/// Edges of every node, for the cost change of a single node.
class Neighbours {
 public:
  explicit Neighbours(const SelectionProblem& problem)
      : problem_(problem), edges_(static_cast<size_t>(problem.nodes())) {
    for (size_t e = 0; e < problem.edges.size(); ++e) {
      const auto [from, to] = problem.edges[e];
      edges_[from].push_back(e);
      if (to != from) edges_[to].push_back(e);
    }
  }

  /// Cost of a node and its edges.
  double around(int32_t node, const std::vector<int32_t>& choice) const {
    double cost = problem_.costs(node)[at(choice, node)];
    for (const size_t e : edges_[node]) {
      const auto [from, to] = problem_.edges[e];
      const auto columns = static_cast<size_t>(problem_.strategies(to));
      cost += problem_.edge_table(e)[at(choice, from) * columns + at(choice, to)];
    }
    return cost;
  }

 private:
  static size_t at(const std::vector<int32_t>& choice, int32_t node) {
    return static_cast<size_t>(choice[node]);
  }
  const SelectionProblem& problem_;
  std::vector<std::vector<size_t>> edges_;
};

std::vector<int32_t> prime_factors(int32_t n) {
  std::vector<int32_t> factors;
  for (int32_t k = 2; k * k <= n; ++k)
    for (; n % k == 0; n /= k) factors.push_back(k);
  if (n > 1) factors.push_back(n);
  std::reverse(factors.begin(), factors.end());
  return factors;
}

/// All ways to split one more dimension of a configuration by k; the configuration itself if there
/// is none.
std::vector<Configuration> extended(const PaseLayer& layer, const Configuration& configuration,
                                    int32_t k, const std::vector<Configuration>& space) {
  std::vector<Configuration> found;
  for (size_t d = 0; d < configuration.size(); ++d) {
    Configuration next = configuration;
    next[d] *= k;
    if (!layer.dimensions[d].splits || next[d] > layer.dimensions[d].size) continue;
    if (std::binary_search(space.begin(), space.end(), next)) found.push_back(std::move(next));
  }
  if (found.empty()) found.push_back(configuration);
  return found;
}

SelectionProblem communication_problem(const PaseProblem& problem,
                                       const std::vector<std::vector<Configuration>>& choices) {
  SelectionProblem level;
  const auto& layers = problem.graph.layers;
  for (size_t i = 0; i < layers.size(); ++i) {
    std::vector<double> costs;
    for (const auto& c : choices[i])
      costs.push_back(layer_cost(layers[i], c, problem.options).communication);
    level.add_node(costs);
  }
  std::map<std::pair<int32_t, int32_t>, std::vector<double>> tables;
  for (const auto& edge : problem.graph.edges) {
    auto& table = tables[{edge.from, edge.to}];
    const auto& to = choices[edge.to];
    std::vector<double> added;
    for (const auto& a : choices[edge.from])
      for (const auto& b : to) added.push_back(edge_cost(edge, a, b, problem.options));
    if (problem.options.sum_edges && !table.empty())
      std::transform(added.begin(), added.end(), table.begin(), added.begin(), std::plus<>());
    table = std::move(added);
  }
  for (const auto& [ends, table] : tables) level.add_edge(ends.first, ends.second, table);
  return level;
}

}  // namespace

Walk flexflow_walk(const SelectionProblem& problem, const WalkOptions& options) {
  MarkovChain chain{options.iterations};
  chain.state = options.start;
  chain.cost = score_selection(problem, chain.state).cost;
  chain.changed();
  Walk walk{chain.best, chain.best_cost, 0, 0};
  if (problem.nodes() < 2) return walk;
  const Neighbours neighbours(problem);
  chain.alpha = MarkovChain::scale(options.alpha_per_ms * 1e3 / options.flops, chain.cost);
  chain.proposals = chain.improved = 1;  // the start counts
  RandomStream random(options.seed, "flexflow_walk", 0);
  while (walk.iterations < options.iterations && !chain.stuck() &&
         !stop_flag().load(std::memory_order_relaxed)) {
    ++walk.iterations;
    chain.begin_proposal();
    const auto node = static_cast<int32_t>(random.below(problem.nodes() - 1));
    auto& strategy = chain.state[node];
    const int32_t before = strategy;
    const double old_cost = neighbours.around(node, chain.state);
    strategy = static_cast<int32_t>(random.below(problem.strategies(node)));
    const double change = neighbours.around(node, chain.state) - old_cost;
    if (change > 0 && change >= chain.most_increase(random.uniform())) {
      strategy = before;
      continue;
    }
    ++walk.accepted;
    chain.cost += change;
    chain.changed();
  }
  walk.choice = chain.best;
  walk.cost = score_selection(problem, walk.choice).cost;
  return walk;
}

std::vector<Configuration> tofu_split(const PaseProblem& problem, ThreadPool& pool) {
  const auto& layers = problem.graph.layers;
  std::vector<Configuration> found;
  for (const auto& layer : layers) found.emplace_back(layer.dimensions.size(), 1);
  for (const int32_t k : prime_factors(problem.options.devices)) {
    std::vector<std::vector<Configuration>> choices;
    for (size_t i = 0; i < layers.size(); ++i)
      choices.push_back(extended(layers[i], found[i], k, problem.configurations[i]));
    const auto level = communication_problem(problem, choices);
    const SelectionResult solved = solve_selection(level, {}, pool);
    for (size_t i = 0; i < layers.size(); ++i) found[i] = choices[i][solved.choice[i]];
  }
  return found;
}

namespace {

int32_t product(std::span<const int32_t> factors) {
  int32_t parts = 1;
  for (const int32_t factor : factors) parts *= factor;
  return parts;
}

/// Factors of an operator's own dimensions, from the factors of the layer that its output carries.
std::vector<int32_t> followed(const IterationSpace& space, const TensorAxes& written,
                              const Configuration& factors) {
  std::vector<int32_t> own(space.dimensions.size(), 1);
  if (space.outputs.empty()) return own;
  const auto& axes = space.outputs[0];
  for (size_t i = 0; i < axes.size() && i < written.size(); ++i) {
    int32_t cut = 1;
    for (const int32_t d : written[i]) cut *= factors[d];
    if (axes[i].size() != 1) continue;
    const auto& dimension = space.dimensions[axes[i][0]];
    if (dimension.splits && cut <= dimension.size) own[axes[i][0]] = cut;
  }
  return own;
}

/// An LSTM layer of a stack: its dimensions are the stack's without l, its devices a part of the
/// stack's.
OperatorSplit stacked(const PaseLayer& layer, const Configuration& factors, int32_t number,
                      std::span<const int32_t> devices) {
  OperatorSplit split;
  split.factors.assign(factors.begin() + 1, factors.end());
  const auto parts = static_cast<size_t>(product(split.factors));
  const auto count = static_cast<int32_t>(layer.dimensions[0].size);
  const auto group = static_cast<size_t>(number * factors[0] / count);
  split.devices.assign(devices.begin() + static_cast<std::ptrdiff_t>(group * parts),
                       devices.begin() + static_cast<std::ptrdiff_t>((group + 1) * parts));
  return split;
}

}  // namespace

Splits pase_splits(const Graph& graph, const PaseProblem& problem,
                   std::span<const Configuration> strategy, std::span<const int32_t> devices) {
  price_strategy(problem, strategy);  // checks it
  if (graph.fingerprint() != problem.graph.fingerprint)
    throw ArgumentError("pase: expected the layers of graph '{}', got another graph's", graph.name());
  if (devices.size() < static_cast<size_t>(problem.options.devices))
    throw ArgumentError("pase: expected {} devices, got {}", problem.options.devices, devices.size());
  Splits splits(static_cast<size_t>(graph.operator_count()));
  for (size_t i = 0; i < problem.graph.layers.size(); ++i) {
    const auto& layer = problem.graph.layers[i];
    const auto& factors = strategy[i];
    int32_t number = 0;  // index of an LSTM in its stack
    for (size_t k = 0; k < layer.operators.size(); ++k) {
      auto& split = splits[layer.operators[k]];
      const bool lstm = layer.kind == LayerKind::lstm;
      if (lstm && graph.op(layer.operators[k]).type == "LSTM") {
        split = stacked(layer, factors, number++, devices);
        continue;
      }
      const IterationSpace space = iteration_space(graph, layer.operators[k]);
      const bool first = k == 0 && !layer.contiguous;
      split.factors = first ? factors : followed(space, layer.written[k], factors);
      const int32_t whole =
          lstm ? product(splits[layer.operators[k - 1]].factors) : product(factors);
      split.copies = std::max(1, whole / product(split.factors));
      split.devices.assign(devices.begin(), devices.end());
      if (lstm) split.devices = splits[layer.operators[k - 1]].devices;
    }
  }
  return splits;
}

}  // namespace trinity
