#include "search/max_load_split.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "base/error.h"
#include "base/stop.h"
#include "search/ideals.h"
#include "search/task_graph.h"

namespace trinity {
namespace {

constexpr double kNone = std::numeric_limits<double>::infinity();
constexpr int32_t kMostUnits = 20000;
constexpr int64_t kMostEntries = 20'000'000;

size_t at(int32_t i) { return static_cast<size_t>(i); }

/// The load of a set of nodes that grows and shrinks by groups.
class Part {
 public:
  Part(const LoadInstance& instance, const std::vector<std::vector<int32_t>>& groups)
      : instance_(instance),
        groups_(groups),
        inputs_(instance.nodes.size()),
        readers_(instance.nodes.size(), 0),
        readers_inside_(instance.nodes.size(), 0),
        inside_(instance.nodes.size(), false) {
    for (const auto& [from, to] : instance.edges) {
      inputs_[at(to)].push_back(from);
      ++readers_[at(from)];
    }
  }

  void add(int32_t group) { change(group, true); }
  void remove(int32_t group) { change(group, false); }
  double accelerator_s() const {
    return unsupported_ > 0 || memory_ > instance_.memory_bytes ? kNone : accelerator_ + transfers_;
  }
  double cpu_s() const { return cpu_; }
  /// Takes away what rounding has left of an empty part.
  void clear() { accelerator_ = cpu_ = transfers_ = 0; }
  /// Whether no larger part has a load of at most `limit` on any device.
  bool hopeless(double limit) const {
    const bool accelerator = instance_.accelerators > 0 && unsupported_ == 0 &&
                             memory_ <= instance_.memory_bytes && accelerator_ <= limit;
    return !accelerator && !(instance_.cpus > 0 && cpu_ <= limit);
  }

 private:
  double transfer(int32_t node) const {
    const bool crosses = inside_[at(node)] ? readers_inside_[at(node)] < readers_[at(node)]
                                           : readers_inside_[at(node)] > 0;
    return crosses ? instance_.nodes[at(node)].transfer_s : 0;
  }

  void change(int32_t group, bool into) {
    const int sign = into ? 1 : -1;
    for (const int32_t node : groups_[at(group)]) {
      const auto& about = instance_.nodes[at(node)];
      accelerator_ += sign * about.accelerator_s;
      cpu_ += sign * about.cpu_s;
      memory_ += sign * about.memory_bytes;
      unsupported_ += about.supported ? 0 : sign;
      transfers_ -= transfer(node);
      inside_[at(node)] = into;
      transfers_ += transfer(node);
      for (const int32_t from : inputs_[at(node)]) {
        transfers_ -= transfer(from);
        readers_inside_[at(from)] += sign;
        transfers_ += transfer(from);
      }
    }
  }

  const LoadInstance& instance_;
  const std::vector<std::vector<int32_t>>& groups_;
  std::vector<std::vector<int32_t>> inputs_;
  std::vector<int32_t> readers_, readers_inside_;
  std::vector<bool> inside_;
  double accelerator_ = 0, cpu_ = 0, transfers_ = 0;
  int64_t memory_ = 0;
  int32_t unsupported_ = 0;
};

/// The dynamic programme: least[ideal][accelerators][cpus] is the least largest load of that ideal
/// on so many devices.
class Programme {
 public:
  Programme(const LoadInstance& instance, const std::vector<std::vector<int32_t>>& groups,
            const Ideals& ideals)
      : instance_(instance),
        groups_(groups),
        ideals_(ideals),
        width_(at(instance.accelerators + 1) * at(instance.cpus + 1)),
        least_(at(ideals.count()) * width_, kNone),
        from_(at(ideals.count()) * width_, {-1, false}),
        seen_(at(ideals.count()), -1) {
    std::fill(least_.begin(), least_.begin() + static_cast<int64_t>(width_), 0.0);
  }

  /// Loads above `limit` are not looked for. False when more pairs would be needed than `pairs`.
  bool run(double limit, int64_t pairs) {
    Part part(instance_, groups_);
    pairs_left_ = pairs;
    for (int32_t ideal = 1; ideal < ideals_.count(); ++ideal) {
      if (ideal % 64 == 0) poll_stop();
      if (!visit(ideal, limit, part)) return false;
    }
    return true;
  }

  MaxLoadSplit result() const {
    MaxLoadSplit split;
    split.ideals = ideals_.count();
    int32_t ideal = ideals_.count() - 1, accelerators = instance_.accelerators,
            cpus = instance_.cpus;
    split.load_s = least_[slot(ideal, accelerators, cpus)];
    split.feasible = split.load_s < kNone;
    if (!split.feasible) return split;
    split.device.assign(instance_.nodes.size(), -1);
    std::vector<std::vector<int32_t>> parts[2];  // on accelerators and CPUs, last part first
    while (ideal > 0) {
      const auto [below, cpu] = from_[slot(ideal, accelerators, cpus)];
      if (below != ideal) parts[cpu ? 1 : 0].push_back(ideals_.difference(ideal, below));
      (cpu ? cpus : accelerators) -= 1;
      ideal = below;
    }
    int32_t device = 0;
    for (const auto& kind : parts) {
      for (auto part = kind.rbegin(); part != kind.rend(); ++part, ++device)
        for (const int32_t group : *part)
          for (const int32_t node : groups_[at(group)]) split.device[at(node)] = device;
      device = instance_.accelerators;
    }
    const auto loads = max_load_loads_s(instance_, split.device);
    split.load_s = *std::max_element(loads.begin(), loads.end());
    return split;
  }

 private:
  struct Frame {
    int32_t ideal;
    size_t next;    // which of its immediate sub-ideals comes next
    int32_t group;  // that was added to the part to get here
  };

  size_t slot(int32_t ideal, int32_t accelerators, int32_t cpus) const {
    return at(ideal) * width_ + at(accelerators) * at(instance_.cpus + 1) + at(cpus);
  }

  /// Prices ideal \ sub for all sub-ideals, depth first, growing and shrinking one part.
  bool visit(int32_t ideal, double limit, Part& part) {
    std::vector<Frame> stack{{ideal, 0, -1}};
    while (!stack.empty()) {
      auto& frame = stack.back();
      const auto below = ideals_.below(frame.ideal);
      if (frame.next == below.size()) {
        if (frame.group >= 0) part.remove(frame.group);
        stack.pop_back();
        continue;
      }
      const auto [sub, group] = below[frame.next++];
      if (seen_[at(sub)] == ideal) continue;
      seen_[at(sub)] = ideal;
      if (--pairs_left_ < 0) return false;
      part.add(group);
      if (part.hopeless(limit)) {
        part.remove(group);
        continue;
      }
      update(ideal, sub, part.accelerator_s(), part.cpu_s());
      stack.push_back({sub, 0, group});
    }
    part.clear();
    update(ideal, ideal, 0, 0);  // devices may stay empty
    return true;
  }

  void update(int32_t ideal, int32_t sub, double accelerator_s, double cpu_s) {
    for (int32_t a = 0; a <= instance_.accelerators; ++a)
      for (int32_t c = 0; c <= instance_.cpus; ++c) {
        if (a > 0) improve(slot(ideal, a, c), slot(sub, a - 1, c), accelerator_s, sub, false);
        if (c > 0) improve(slot(ideal, a, c), slot(sub, a, c - 1), cpu_s, sub, true);
      }
  }

  void improve(size_t target, size_t before, double load_s, int32_t sub, bool cpu) {
    const double largest = std::max(least_[before], load_s);
    if (largest < least_[target]) {
      least_[target] = largest;
      from_[target] = {sub, cpu};
    }
  }

  const LoadInstance& instance_;
  const std::vector<std::vector<int32_t>>& groups_;
  const Ideals& ideals_;
  size_t width_;
  std::vector<double> least_;
  std::vector<std::pair<int32_t, bool>> from_;
  std::vector<int32_t> seen_;
  int64_t pairs_left_ = 0;
};

void check(const LoadInstance& instance) {
  const auto count = static_cast<int32_t>(instance.nodes.size());
  if (count == 0 || instance.accelerators < 0 || instance.cpus < 0 ||
      instance.accelerators + instance.cpus < 1 || instance.accelerators > 1024 ||
      instance.cpus > 1024)
    throw ArgumentError(fmt::format("max-load split: {} nodes on {} accelerators and {} CPUs",
                                    count, instance.accelerators, instance.cpus));
  for (int32_t n = 0; n < count; ++n) {
    const auto& node = instance.nodes[at(n)];
    if (!(node.accelerator_s >= 0 && node.cpu_s >= 0 && node.transfer_s >= 0) ||
        node.memory_bytes < 0 || node.unit < 0 || node.unit >= count)
      throw ArgumentError(
          fmt::format("max-load split: node {} has a time, a size or a unit that "
                      "cannot be",
                      n));
  }
  for (const auto& [from, to] : instance.edges)
    if (from < 0 || from >= count || to < 0 || to >= count || from == to)
      throw ArgumentError(fmt::format("max-load split: an edge from {} to {}", from, to));
}

/// The optimum over all ideals, or nothing when they are too many. `known` bounds the load.
std::optional<MaxLoadSplit> split_over_ideals(const LoadInstance& instance, const LoadOrder& order,
                                              const MaxLoadSplit& known,
                                              const MaxLoadLimits& limits) {
  const int64_t width = int64_t{instance.accelerators + 1} * (instance.cpus + 1);
  const auto most = std::min<int64_t>(limits.most_ideals, kMostEntries / width);
  const auto ideals = Ideals::of_order(static_cast<int32_t>(order.groups.size()), order.edges,
                                       static_cast<int32_t>(most));
  if (!ideals) return std::nullopt;
  // Sums differ in their last bits by the order of additions.
  const double limit = known.feasible ? known.load_s * (1 + 1e-9) : kNone;
  Programme programme(instance, order.groups, *ideals);
  if (!programme.run(limit, limits.most_pairs)) return std::nullopt;
  auto split = programme.result();
  split.exact = true;
  return split;
}

bool fits(const LoadInstance& instance, const std::vector<int32_t>& device) {
  std::vector<int64_t> bytes(at(instance.accelerators + instance.cpus), 0);
  for (size_t n = 0; n < device.size(); ++n) bytes[at(device[n])] += instance.nodes[n].memory_bytes;
  return std::all_of(bytes.begin(), bytes.begin() + instance.accelerators,
                     [&](int64_t sum) { return sum <= instance.memory_bytes; });
}

/// The optimum when nodes that take no time weigh nothing, which leaves fewer ideals. It is a bound
/// from below, and the optimum where its split fits the true memory; nothing otherwise.
std::optional<MaxLoadSplit> split_without_idle_memory(const LoadInstance& instance,
                                                      const MaxLoadSplit& known,
                                                      const MaxLoadLimits& limits) {
  LoadInstance light = instance;
  for (auto& node : light.nodes)
    if (node.accelerator_s + node.cpu_s <= 0) node.memory_bytes = 0;
  const auto split = split_over_ideals(light, make_load_order(light, true), known, limits);
  if (!split || !split->feasible || !fits(instance, split->device)) return std::nullopt;
  return split;
}

}  // namespace

MaxLoadSplit max_load_split(const LoadInstance& instance, const MaxLoadLimits& limits) {
  check(instance);
  const auto order = make_load_order(instance, false);
  const auto groups = static_cast<int32_t>(order.groups.size());
  if (groups > kMostUnits)
    throw LimitError(
        fmt::format("max-load split of {} units; at most {} are taken", groups, kMostUnits));
  const auto chain = Ideals::of_chain(groups);
  const int64_t width = int64_t{instance.accelerators + 1} * (instance.cpus + 1);
  if (chain.count() * width > kMostEntries)
    throw LimitError(fmt::format("max-load split of {} units on {} devices: too large a table",
                                 groups, instance.accelerators + instance.cpus));
  Programme along(instance, order.groups, chain);
  if (!along.run(kNone, limits.most_pairs))
    throw LimitError(fmt::format("max-load split of {} units: more than {} pairs of ideals", groups,
                                 limits.most_pairs));
  auto split = along.result();
  split.exact = order.is_chain();
  if (split.exact) return split;
  if (auto best = split_over_ideals(instance, order, split, limits)) return *best;
  return split_without_idle_memory(instance, split, limits).value_or(split);
}

std::vector<double> max_load_loads_s(const LoadInstance& instance,
                                     const std::vector<int32_t>& device) {
  const int32_t devices = instance.accelerators + instance.cpus;
  std::vector<double> loads(at(devices), 0);
  std::vector<std::vector<int32_t>> readers(instance.nodes.size());
  for (const auto& [from, to] : instance.edges) readers[at(from)].push_back(device[at(to)]);
  for (size_t n = 0; n < instance.nodes.size(); ++n) {
    const auto& node = instance.nodes[n];
    const bool cpu = device[n] >= instance.accelerators;
    loads[at(device[n])] += cpu ? node.cpu_s : node.accelerator_s;
    auto& elsewhere = readers[n];
    std::sort(elsewhere.begin(), elsewhere.end());
    elsewhere.erase(std::unique(elsewhere.begin(), elsewhere.end()), elsewhere.end());
    bool sent = false;
    for (const int32_t to : elsewhere) {
      if (to == device[n]) continue;
      sent = true;
      if (to < instance.accelerators) loads[at(to)] += node.transfer_s;
    }
    if (sent && !cpu) loads[at(device[n])] += node.transfer_s;
  }
  return loads;
}

LoadInstance make_load_instance(const Problem& problem) {
  const auto tasks = make_task_graph(problem);
  const auto& graph = problem.graph();
  LoadInstance instance;
  instance.accelerators = problem.devices();
  instance.memory_bytes = problem.cluster().capacity_bytes(0);
  for (int32_t d = 1; d < problem.devices(); ++d)
    instance.memory_bytes = std::min(instance.memory_bytes, problem.cluster().capacity_bytes(d));
  for (int32_t o = 0; o < problem.operators(); ++o) {
    LoadInstance::Node node;
    node.accelerator_s = node.cpu_s = tasks.mean_cost(o) / 1e9;
    node.memory_bytes = problem.fixed_bytes(o);
    node.unit = graph.op(o).unit;
    node.backward = graph.op(o).phase != Phase::forward;
    std::vector<bool> read(graph.op(o).outputs.size(), false), kept = read;
    for (const auto& reader : problem.readers(o)) {
      read[at(reader.output)] = true;
      if (graph.op(reader.op).phase != Phase::forward) kept[at(reader.output)] = true;
      if (instance.edges.empty() || instance.edges.back() != std::pair(o, reader.op))
        instance.edges.emplace_back(o, reader.op);
    }
    for (size_t i = 0; i < read.size(); ++i) {
      const int32_t output = problem.first_output(o) + static_cast<int32_t>(i);
      const int64_t bytes = problem.all_output_bytes()[at(output)];
      if (read[i]) node.transfer_s += tasks.mean_wire(bytes) / 1e9;
      if (kept[i] && !node.backward) node.memory_bytes += problem.held_bytes()[at(output)];
    }
    instance.nodes.push_back(node);
  }
  return instance;
}

}  // namespace trinity
