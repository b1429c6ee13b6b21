// Subjects of the simulator's benchmark: graphs read or made, and placements of them.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "bench/textbook.h"
#include "simulator/simulator.h"
#include "support/build.h"

namespace trinity::bench {

constexpr int kDevices = 4, kGroups = 128;
constexpr double kBytesPerNs = 12, kLatencyNs = 5000;

using Edge = std::pair<int32_t, int32_t>;

/// Operators in topological order, each with one output tensor.
struct Shape {
  std::string name;
  std::vector<int64_t> cost_ns, bytes;
  std::vector<Edge> edges;  // sorted
};

/// Reads "N M", N lines "cost_ns output_bytes" and M lines "source target"; empty when absent.
inline Shape read_shape(const std::string& name, const std::string& path) {
  Shape shape{name, {}, {}, {}};
  std::FILE* pipe = popen(fmt::format("zcat '{}' 2>&1", path).c_str(), "r");
  if (!pipe) return shape;
  long long a = 0, b = 0, operators = 0, edges = 0;
  bool good = std::fscanf(pipe, "%lld %lld", &operators, &edges) == 2;
  for (long long o = 0; o < operators && good; ++o) {
    good = std::fscanf(pipe, "%lld %lld", &a, &b) == 2;
    shape.cost_ns.push_back(a);
    shape.bytes.push_back(b);
  }
  for (long long e = 0; e < edges && good; ++e) {
    good = std::fscanf(pipe, "%lld %lld", &a, &b) == 2;
    shape.edges.emplace_back(static_cast<int32_t>(a), static_cast<int32_t>(b));
  }
  if (pclose(pipe) != 0 || !good) return Shape{name, {}, {}, {}};
  return shape;
}

/// Operators in layers of 1 to 12, each of which reads at least one of the layer before.
inline std::set<Edge> layered_edges(RandomStream& random, int32_t operators, size_t edges) {
  std::vector<int32_t> first{0}, layer;  // of every layer; of every operator
  while (static_cast<int32_t>(layer.size()) < operators) {
    const auto left = static_cast<size_t>(operators) - layer.size();
    const auto width = std::min(left, size_t{1 + random.below(12)});
    layer.insert(layer.end(), width, static_cast<int32_t>(first.size()) - 1);
    first.push_back(static_cast<int32_t>(layer.size()));
  }
  const auto draw = [&](int32_t from, int32_t to) {
    return from + static_cast<int32_t>(random.below(static_cast<uint64_t>(to - from)));
  };
  std::set<Edge> result;
  for (int32_t o = first[1]; o < operators; ++o)
    result.emplace(draw(first[layer[o] - 1], first[layer[o]]), o);
  while (result.size() < edges) {
    const int32_t o = draw(first[2], operators);
    result.emplace(draw(first[layer[o] - 2], first[layer[o]]), o);
  }
  return result;
}

/// A training step: forward operators in layers; for each, in reverse, a backward one that reads
/// its output and its readers' gradients; updates after some of these.
inline Shape training_step(const std::string& name, int32_t operators, int32_t edges) {
  RandomStream random(1, "training step", static_cast<uint64_t>(operators));
  Shape shape{name, {}, {}, {}};
  const int32_t forward = operators * 9 / 20, updates = operators - 2 * forward;
  const int32_t layered = edges - forward - updates;  // forward and mirrored
  std::vector<int32_t> backward(forward);
  int32_t next = forward;
  for (int32_t f = forward - 1; f >= 0; --f) {
    backward[f] = next++;
    shape.edges.emplace_back(f, backward[f]);
    const auto before = int64_t{f} * updates / forward,
               after = (int64_t{f} + 1) * updates / forward;
    if (after > before) shape.edges.emplace_back(backward[f], next++);
  }
  for (const auto& [from, to] : layered_edges(random, forward, static_cast<size_t>(layered / 2))) {
    shape.edges.emplace_back(from, to);
    shape.edges.emplace_back(backward[to], backward[from]);
  }
  if (layered % 2 > 0) shape.edges.emplace_back(0, backward[1]);
  std::sort(shape.edges.begin(), shape.edges.end());
  for (int32_t o = 0; o < operators; ++o) {
    shape.cost_ns.push_back(std::llround(std::exp(9 + 1.2 * random.normal())) + 1);
    shape.bytes.push_back(std::llround(std::exp(10.5 + 2.5 * random.normal())));
  }
  return shape;
}

inline TextbookGraph textbook_graph(const Shape& shape) {
  const size_t n = shape.cost_ns.size();
  TextbookGraph graph{std::vector<std::vector<int>>(n), std::vector<int>(n), shape.cost_ns, {},
                      shape.bytes};
  for (const auto& [from, to] : shape.edges) {
    graph.readers[from].push_back(to);
    ++graph.inputs[to];
  }
  for (const int64_t bytes : shape.bytes)
    graph.wire_ns.push_back(static_cast<int64_t>(
        std::floor(kLatencyNs + static_cast<double>(bytes) / kBytesPerNs + 0.5)));
  return graph;
}

inline std::shared_ptr<const Graph> graph_of(const Shape& shape) {
  test::GraphMaker make(shape.name);
  std::vector<int> tensors;
  for (size_t o = 0; o < shape.cost_ns.size(); ++o) {
    const int op = make.op(fmt::format("op{}", o), static_cast<double>(shape.cost_ns[o]) * 1e-9);
    tensors.push_back(make.output(op, shape.bytes[o]));
  }
  for (const auto& [from, to] : shape.edges) make.read(to, tensors[from]);
  return make.share();
}

using Placement = std::vector<int32_t>;
using Placements = std::vector<Placement>;

inline int32_t some_device(RandomStream& random) {
  return static_cast<int32_t>(random.below(kDevices));
}

/// Each operator alone.
inline Placement scattered(RandomStream& random, size_t operators) {
  Placement placement(operators);
  for (auto& device : placement) device = some_device(random);
  return placement;
}

/// Contiguous groups of one size on random devices.
inline Placement grouped(RandomStream& random, size_t operators) {
  Placement group(kGroups), placement(operators);
  for (auto& device : group) device = some_device(random);
  for (size_t o = 0; o < operators; ++o) placement[o] = group[o * kGroups / operators];
  return placement;
}

/// One contiguous block a device; its bounds stray by up to a tenth of its size.
inline Placement blocks(RandomStream& random, size_t operators) {
  Placement placement(operators, kDevices - 1);
  const double size = static_cast<double>(operators) / kDevices;
  size_t o = 0;
  for (int32_t device = 0; device < kDevices - 1; ++device) {
    const double cut = size * (device + 1 + 0.2 * (random.uniform() - 0.5));
    for (; o < static_cast<size_t>(cut); ++o) placement[o] = device;
  }
  return placement;
}

struct Family {
  const char* name;
  Placement (*draw)(RandomStream&, size_t);

  Placements placements(size_t operators, size_t count) const {
    Placements result;
    for (size_t i = 0; i < count; ++i) {
      RandomStream random(2, name, i);
      result.push_back(draw(random, operators));
    }
    return result;
  }
};

constexpr Family kRandom{"random", scattered}, kGrouped{"groups", grouped},
    kBlocks{"blocks", blocks};

/// A graph in every form that is measured.
struct Subject {
  explicit Subject(const Shape& shape)
      : name(shape.name),
        operators(shape.cost_ns.size()),
        edges(shape.edges.size()),
        textbook(textbook_graph(shape)),
        graph(graph_of(shape)),
        plain(problem(QueueModel::sender, MemoryModel::none)),
        exact(problem(QueueModel::sender, MemoryModel::slots)) {}

  std::shared_ptr<const Problem> problem(QueueModel queue, MemoryModel memory) const {
    auto spec = test::uniform_spec(kDevices, kBytesPerNs * 1e9, kLatencyNs * 1e-9);
    spec.queue = queue;
    const auto cluster = std::make_shared<const Cluster>(spec);
    auto rules = SimulationRules::standard(*cluster);
    rules.memory = memory;
    return std::make_shared<const Problem>(graph, cluster, rules);
  }

  std::string name;
  size_t operators, edges;
  TextbookGraph textbook;
  std::shared_ptr<const Graph> graph;
  std::shared_ptr<const Problem> plain, exact;
};

/// The graph of that name in the shared data, or one of its size.
inline Shape published(const std::string& file, const std::string& name, int32_t operators,
                int32_t edges) {
  const std::string path =
      fmt::format("{}/../shared/data/synthetic/{}.txt.gz", TRINITY_SOURCE_DIR, file);
  auto shape = read_shape(name, path);
  if (!shape.edges.empty()) return shape;
  fmt::print("{} is not here: a synthetic training step of the same size instead\n", path);
  return training_step(name, operators, edges);
}

}  // namespace trinity::bench
