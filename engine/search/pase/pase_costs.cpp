#include "search/pase/pase_costs.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "base/stop.h"

namespace trinity {
namespace {

constexpr size_t kMostConfigurations = size_t{1} << 20;
constexpr size_t kMostEntries = size_t{1} << 28;

std::vector<int32_t> factors_of(const Dimension& dimension, const PaseLayer& layer,
                                const PaseOptions& options) {
  const bool image = dimension.name == "h" || dimension.name == "w";
  if (!dimension.splits || (layer.type == "Conv" && image && !options.halo)) return {1};
  const int64_t most = std::min<int64_t>(dimension.size, options.devices);
  std::vector<int32_t> factors;
  for (int64_t c = 1; c <= most; ++c) {
    const bool fits = options.factors == PaseOptions::Factors::all ||
                      (options.factors == PaseOptions::Factors::divisors ? dimension.size % c == 0
                                                                         : (c & (c - 1)) == 0);
    if (fits && dimension.size >= c * options.cutoff) factors.push_back(static_cast<int32_t>(c));
  }
  if (factors.empty()) factors = {1};
  return factors;
}

/// True if blocks are contiguous: outer axes cut to single points, then one cut axis, inner axes
/// whole.
bool contiguous(const PaseLayer& layer, const Configuration& configuration) {
  size_t i = 0;
  while (i < configuration.size() && configuration[i] == layer.dimensions[i].size) ++i;
  for (++i; i < configuration.size(); ++i)
    if (configuration[i] != 1) return false;
  return true;
}

/// The blocks of one layer under one configuration.
struct Blocks {
  const PaseLayer& layer;
  const Configuration& factors;
  double flops_per_word;

  double factor(size_t i) const { return factors[i]; }
  double size(size_t i) const { return static_cast<double>(layer.dimensions[i].size) / factor(i); }
  double elements() const {
    double product = 1;
    for (size_t i = 0; i < factors.size(); ++i) product *= size(i);
    return product;
  }
  /// Multiplies the sizes of the dimensions of a role.
  double sizes(DimensionRole role) const {
    double product = 1;
    for (size_t i = 0; i < factors.size(); ++i)
      if (layer.dimensions[i].role == role) product *= size(i);
    return product;
  }
  double parts(DimensionRole role) const {
    double product = 1;
    for (size_t i = 0; i < factors.size(); ++i)
      if (layer.dimensions[i].role == role) product *= factor(i);
    return product;
  }
  double all_reduce(double words, double devices) const {
    return flops_per_word * (words / devices * (2.0 * (devices - 1)));
  }
};

using Role = DimensionRole;

LayerCost matrix_cost(const Blocks& blocks, double m, double n, double k, int32_t pointwise) {
  const double batch = blocks.sizes(Role::batch);
  const double cm = blocks.parts(Role::rows), cn = blocks.parts(Role::columns),
               ck = blocks.parts(Role::reduced);
  LayerCost cost;
  cost.compute = batch * (3.0 * m * n * k + 3.0 * pointwise * m * n);
  cost.communication = batch * (blocks.all_reduce(m * n, ck) + blocks.all_reduce(m * k, cn) +
                                blocks.all_reduce(n * k, cm));
  return cost;
}

LayerCost product_cost(const Blocks& blocks) {
  return matrix_cost(blocks, blocks.sizes(Role::rows), blocks.sizes(Role::columns),
                     blocks.sizes(Role::reduced), blocks.layer.pointwise);
}

/// Dimensions are (l, s, b, n, c). A cell's matmul is [x, h] (2 c wide if the input is as wide as
/// the state) times four gates.
LayerCost lstm_cost(const Blocks& blocks) {
  const auto& d = blocks.layer.dimensions;
  const double hidden = static_cast<double>(d[3].size);
  const double inputs = static_cast<double>(blocks.layer.recurrent_inputs);
  LayerCost cost = matrix_cost(blocks, blocks.size(1) * blocks.size(2), 4 * blocks.size(3),
                               (inputs + hidden) / blocks.factor(4), 3 + blocks.layer.pointwise);
  const double b = blocks.size(2), n = blocks.size(3), c = hidden / blocks.factor(4);
  const bool more = blocks.factor(4) > blocks.factor(3);
  const double words = std::max(0.0, b * c - (more ? 0.0 : b * std::min(n, c)));
  cost.communication += static_cast<double>(d[0].size) * static_cast<double>(d[1].size) *
                        blocks.flops_per_word * words;
  return cost;
}

/// Words of the halo around an input block: kernel rows and columns along split axes.
double halo_words(const Blocks& blocks) {
  const auto& shape = blocks.layer.input_shape;
  const int32_t h = [&] {
    for (size_t i = 0; i < blocks.factors.size(); ++i)
      if (blocks.layer.dimensions[i].name == "h") return static_cast<int32_t>(i);
    return -1;
  }();
  if (h < 0 || shape.size() != 4) return 0;
  const auto at = static_cast<size_t>(h);
  const double ch = blocks.factor(at), cw = blocks.factor(at + 1);
  const double rows = static_cast<double>(shape[2]) / ch;
  const double columns = static_cast<double>(shape[3]) / cw;
  const double outer = (rows + (ch > 1 ? static_cast<double>(blocks.layer.window[0]) : 0.0)) *
                       (columns + (cw > 1 ? static_cast<double>(blocks.layer.window[1]) : 0.0));
  double others = static_cast<double>(shape[0]) * static_cast<double>(shape[1]);
  for (size_t i = 0; i < at && i < 2; ++i) others /= blocks.factor(i);
  return (outer - rows * columns) * others;
}

LayerCost pooling_cost(const Blocks& blocks) {
  return {blocks.elements(), blocks.flops_per_word * halo_words(blocks)};
}

LayerCost normalisation_cost(const Blocks& blocks) {
  const double e = blocks.elements();
  const double a = blocks.sizes(Role::coupled), ca = blocks.parts(Role::coupled);
  const double others = blocks.parts(Role::rows);
  return {16.0 * e, 4.0 * blocks.all_reduce(e / a, ca) + 4.0 * blocks.all_reduce(a, others)};
}

LayerCost softmax_cost(const Blocks& blocks) {
  const double e = blocks.elements();
  const double a = blocks.sizes(Role::coupled), ca = blocks.parts(Role::coupled);
  const double whole = a * ca, rest = e / a;
  return {4.0 * e + e * whole,
          2 * blocks.all_reduce(rest, ca) + blocks.all_reduce(rest * whole, ca)};
}

LayerCost loss_cost(const Blocks& blocks) {
  const double e = blocks.elements(), rest = e / blocks.sizes(Role::coupled);
  const bool split = blocks.parts(Role::coupled) > 1;
  return {4.0 * e + 2.0 * rest, split ? blocks.flops_per_word * 2.0 * rest : 0.0};
}

/// Blocks on one side of an edge: extents per axis, and their number.
struct Side {
  std::vector<double> extents;
  double parts = 1;
};

Side side_of(const PaseEdge& edge, const TensorAxes& axes, const Configuration& factors) {
  Side side;
  for (size_t i = 0; i < edge.shape.size(); ++i) {
    double cut = 1;
    for (const int32_t d : axes[i]) cut *= factors[d];
    side.extents.push_back(static_cast<double>(edge.shape[i]) / cut);
    side.parts *= cut;
  }
  return side;
}

double moved_words(const Side& from, const Side& to) {
  double needed = 1, overlap = 1;
  for (size_t i = 0; i < from.extents.size(); ++i) {
    needed *= to.extents[i];
    overlap *= std::min(from.extents[i], to.extents[i]);
  }
  if (to.parts > from.parts) overlap = 0;
  return 2.0 * std::max(0.0, needed - overlap);
}

std::vector<double> edge_table(const PaseEdge& edge, const std::vector<Configuration>& from,
                               const std::vector<Configuration>& to, double flops_per_word) {
  std::vector<Side> targets;
  for (const auto& c : to) targets.push_back(side_of(edge, edge.target, c));
  std::vector<double> table;
  table.reserve(from.size() * to.size());
  for (const auto& c : from) {
    const Side source = side_of(edge, edge.source, c);
    for (const auto& target : targets)
      table.push_back(flops_per_word * moved_words(source, target));
  }
  return table;
}

void check(const PaseOptions& options) {
  if (options.devices < 1 || options.devices > 4096)
    throw ArgumentError("pase: expected 1 to 4096 devices, got {}", options.devices);
  if (!(options.flops_per_word() > 0) || !std::isfinite(options.flops_per_word()))
    throw ArgumentError("pase: expected positive peak_flops, bandwidth and word_bytes");
  if (options.cutoff < 1)
    throw ArgumentError("pase: expected a cutoff from 1, got {}", options.cutoff);
}

void check_configuration(const PaseLayer& layer, const Configuration& configuration,
                         const PaseOptions& options) {
  if (configuration.size() != layer.dimensions.size())
    throw ArgumentError("layer '{}': expected {} factors ({}), got {}", layer.name, layer.dimensions.size(),
                        layer.dimension_names(), configuration.size());
  int64_t parts = 1;
  for (size_t i = 0; i < configuration.size(); ++i) {
    const auto& dimension = layer.dimensions[i];
    const int64_t most = dimension.splits ? dimension.size : 1;
    if (configuration[i] < 1 || configuration[i] > most)
      throw ArgumentError("layer '{}': dimension '{}': expected a factor from 1 to {}, got {}", layer.name,
                          dimension.name, most, configuration[i]);
    parts *= configuration[i];
    if (parts > options.devices)
      throw ArgumentError("layer '{}': expected factors with a product of at most {}", layer.name, options.devices);
  }
}

void add_edges(PaseProblem& problem) {
  std::map<std::pair<int32_t, int32_t>, std::vector<double>> tables;
  size_t entries = 0;
  for (const auto& edge : problem.graph.edges) {
    poll_stop();
    const auto& from = problem.configurations[edge.from];
    const auto& to = problem.configurations[edge.to];
    auto& table = tables[{edge.from, edge.to}];
    if (table.empty()) entries += from.size() * to.size();
    if (entries > kMostEntries)
      throw LimitError("pase: more than {} table entries for {} devices; a larger cutoff or other factors make fewer",
                       kMostEntries, problem.options.devices);
    auto added = edge_table(edge, from, to, problem.options.flops_per_word());
    if (!table.empty() && problem.options.sum_edges)
      std::transform(added.begin(), added.end(), table.begin(), added.begin(), std::plus<>());
    table = std::move(added);
  }
  for (const auto& [ends, table] : tables)
    problem.selection.add_edge(ends.first, ends.second, table);
}

}  // namespace

std::vector<Configuration> layer_configurations(const PaseLayer& layer,
                                                const PaseOptions& options) {
  std::vector<std::vector<int32_t>> factors;
  for (const auto& dimension : layer.dimensions)
    factors.push_back(factors_of(dimension, layer, options));
  std::vector<Configuration> found;
  Configuration current;
  const auto extend = [&](auto&& self, int64_t parts) -> void {
    const size_t i = current.size();
    if (i == factors.size()) {
      if (layer.contiguous && !contiguous(layer, current)) return;
      if (found.size() == kMostConfigurations)
        throw LimitError("pase: layer '{}' has more than {} configurations", layer.name, kMostConfigurations);
      found.push_back(current);
      return;
    }
    for (const int32_t factor : factors[i]) {
      if (parts * factor > options.devices) break;
      current.push_back(factor);
      self(self, parts * factor);
      current.pop_back();
    }
  };
  extend(extend, 1);
  return found;
}

LayerCost layer_cost(const PaseLayer& layer, const Configuration& configuration,
                     const PaseOptions& options) {
  const Blocks blocks{layer, configuration, options.flops_per_word()};
  LayerCost cost;
  switch (layer.kind) {
    case LayerKind::product:
      cost = product_cost(blocks);
      break;
    case LayerKind::pooling:
      return pooling_cost(blocks);
    case LayerKind::normalisation:
      return normalisation_cost(blocks);
    case LayerKind::mean:
      return {0, blocks.all_reduce(blocks.elements(), blocks.parts(Role::reduced))};
    case LayerKind::softmax:
      return softmax_cost(blocks);
    case LayerKind::loss:
      return loss_cost(blocks);
    case LayerKind::lstm:
      return lstm_cost(blocks);
    case LayerKind::elementwise:
      return {(1.0 + layer.pointwise) * blocks.elements(), 0};
    case LayerKind::movement:
      return {};
  }
  if (layer.type == "Conv" && options.halo)
    cost.communication += blocks.flops_per_word * halo_words(blocks);
  return cost;
}

double edge_cost(const PaseEdge& edge, const Configuration& from, const Configuration& to,
                 const PaseOptions& options) {
  return edge_table(edge, {from}, {to}, options.flops_per_word())[0];
}

int32_t PaseProblem::find(int32_t layer, const Configuration& configuration) const {
  const auto& list = configurations[layer];
  const auto found = std::find(list.begin(), list.end(), configuration);
  return found == list.end() ? -1 : static_cast<int32_t>(found - list.begin());
}

PaseCost price_strategy(const PaseProblem& problem, std::span<const Configuration> strategy) {
  const auto& layers = problem.graph.layers;
  if (strategy.size() != layers.size())
    throw ArgumentError("pase: expected configurations of {} layers, got {}", layers.size(), strategy.size());
  PaseCost cost;
  for (size_t i = 0; i < layers.size(); ++i) {
    check_configuration(layers[i], strategy[i], problem.options);
    const LayerCost own = layer_cost(layers[i], strategy[i], problem.options);
    cost.compute += own.compute;
    cost.communication += own.communication;
  }
  std::map<std::pair<int32_t, int32_t>, double> between;
  for (const auto& edge : problem.graph.edges) {
    const double words = edge_cost(edge, strategy[edge.from], strategy[edge.to], problem.options);
    auto& sum = between[{edge.from, edge.to}];
    sum = problem.options.sum_edges ? sum + words : words;
  }
  for (const auto& [ends, words] : between) cost.edges += words;
  return cost;
}

PaseProblem pase_problem(PaseGraph graph, const PaseOptions& options) {
  check(options);
  PaseProblem problem;
  problem.graph = std::move(graph);
  problem.options = options;
  problem.selection.name = fmt::format("{}-p{}", problem.graph.name, options.devices);
  for (const auto& layer : problem.graph.layers) {
    problem.configurations.push_back(layer_configurations(layer, options));
    std::vector<double> costs;
    for (const auto& configuration : problem.configurations.back())
      costs.push_back(layer_cost(layer, configuration, options).total());
    problem.selection.add_node(costs);
  }
  add_edges(problem);
  return problem;
}

}  // namespace trinity
