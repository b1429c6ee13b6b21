#include "search/pipeline/max_load_cut.h"

#include <algorithm>

#include "base/error.h"
#include "base/index.h"
#include "search/pipeline/ideals.h"
#include "search/pipeline/max_load_dynamic_program.h"
#include "search/pipeline/max_load_search.h"
#include "search/pipeline/pipeline_cuts.h"
#include "search/placement/task_graph.h"

namespace trinity {
namespace {

constexpr int32_t kMostUnits = 20000;
constexpr int64_t kMostEntries = 20'000'000;
constexpr int64_t kMostWords = 16'000'000;  // bits of all ideals

/// State shared by the steps below: the best cut so far, and the limits.
struct Run {
  const LoadInstance& instance;
  const MaxLoadLimits& limits;
  Deadline deadline;
  MaxLoadCut best;

  void take(MaxLoadCut cut) {
    if (!best.feasible || cut.load_s < best.load_s) best = std::move(cut);
  }
};

/// Fallback without a search: equal shares of work, of memory or of groups, or everything on a CPU;
/// the first that fits.
void take_any(Run& run, const LoadOrder& order) {
  for (const auto rule : {CutRule::balanced, CutRule::memory, CutRule::equal}) {
    auto device = cut_along(run.instance, order, rule);
    if (!is_feasible(run.instance, device)) continue;
    return run.take(priced_cut(run.instance, std::move(device)));
  }
  if (run.instance.cpus > 0)
    run.take(priced_cut(
        run.instance, std::vector<int32_t>(run.instance.nodes.size(), run.instance.accelerators)));
}

/// Cuts along several orders of the groups.
void cut_along_orders(Run& run, const LoadOrder& order) {
  LoadWindow window(run.instance, order.groups);
  for (int32_t i = 0; i < run.limits.orders; ++i) {
    if (i > 0 && order.is_chain()) return;
    const auto other = i == 0 ? order : reordered(order, static_cast<uint64_t>(i - 1));
    window.set_limit(run.best.feasible ? run.best.load_s : window.largest_limit());
    std::vector<int32_t> device;
    const auto outcome = cut_along_order(run.instance, other.groups, window, run.limits.most_pairs,
                                         run.deadline, device);
    if (outcome == LoadOutcome::found) run.take(priced_cut(run.instance, std::move(device)));
    if (outcome == LoadOutcome::stopped && i == 0)
      throw LimitError("max-load cut of {} units: more than {} pairs of ideals", order.groups.size(),
                       run.limits.most_pairs);
  }
}

/// Searches the optimum over all ideals for run.best; false if they are too many. Limits grow from
/// the minimum that the work allows: a cut found within one is optimal, and tighter limits involve
/// fewer ideals.
bool cut_over_ideals(Run& run, const LoadInstance& instance, const LoadOrder& order) {
  const int64_t width = int64_t{instance.accelerators + 1} * (instance.cpus + 1);
  const auto words = static_cast<int64_t>(order.groups.size()) / 64 + 1;
  const auto most =
      std::min<int64_t>({run.limits.most_ideals, kMostEntries / width, kMostWords / words});
  const auto ideals = Ideals::of_order(static_cast<int32_t>(order.groups.size()), order.edges,
                                       static_cast<int32_t>(most), run.deadline);
  if (!ideals) return false;
  LoadWindow window(instance, order.groups);
  const double last = run.best.feasible ? run.best.load_s * (1 + 1e-9) : window.largest_limit();
  double limit = window.least_limit(), step = 0.01;
  for (bool ended = false; !ended; step *= 2) {
    limit = ideals->count() > 2000 ? limit * (1 + step) : last;
    ended = !(limit < last);
    window.set_limit(std::min(limit, last));
    std::vector<int32_t> device;
    const auto outcome = cut_over_all(instance, order.groups, *ideals, window,
                                      run.limits.most_pairs, run.deadline, device);
    if (outcome == LoadOutcome::stopped) return false;
    if (outcome == LoadOutcome::none) continue;
    run.take(priced_cut(run.instance, std::move(device)));
    ended = true;
  }
  run.best.ideals = ideals->count();
  return true;
}

/// The optimum if nodes without time have no memory, which reduces the number of ideals. It is a
/// lower bound, and the optimum if its cut fits the true memory; then it replaces `best`.
bool cut_without_idle_memory(Run& run) {
  LoadInstance light = run.instance;
  for (auto& node : light.nodes)
    if (node.accelerator_s + node.cpu_s <= 0) node.memory_bytes = 0;
  Run lighter{light, run.limits, run.deadline, run.best};
  if (!cut_over_ideals(lighter, light, make_load_order(light, true))) return false;
  if (!lighter.best.feasible || !is_feasible(run.instance, lighter.best.device)) return false;
  run.best = lighter.best;
  return true;
}

}  // namespace

void check_load_instance(const LoadInstance& instance) {
  const auto count = static_cast<int32_t>(instance.nodes.size());
  if (count == 0 || instance.accelerators < 0 || instance.cpus < 0 ||
      instance.accelerators + instance.cpus < 1 || instance.accelerators > 1024 ||
      instance.cpus > 1024)
    throw ArgumentError("max-load cut: expected nodes and devices, got {} nodes, {} accelerators and {} CPUs", count,
                        instance.accelerators, instance.cpus);
  for (int32_t n = 0; n < count; ++n) {
    const auto& node = instance.nodes[n];
    if (!(node.accelerator_s >= 0 && node.cpu_s >= 0 && node.transfer_s >= 0) ||
        node.memory_bytes < 0 || node.unit < 0 || node.unit >= count)
      throw ArgumentError("max-load cut: node {}: expected times and sizes of at least 0 and a unit of the instance",
                          n);
  }
  for (const auto& [from, to] : instance.edges)
    if (from < 0 || from >= count || to < 0 || to >= count || from == to)
      throw ArgumentError("max-load cut: expected edges between existing nodes, got {} -> {}", from, to);
}

MaxLoadCut max_load_cut(const LoadInstance& instance, const MaxLoadLimits& limits) {
  check_load_instance(instance);
  const auto deadline = Deadline::in(limits.seconds);
  const auto order = make_load_order(instance, false);
  const auto groups = static_cast<int64_t>(order.groups.size());
  if (groups > kMostUnits)
    throw LimitError("max-load cut: {} units, more than the maximum of {}", groups, kMostUnits);
  const int64_t width = int64_t{instance.accelerators + 1} * (instance.cpus + 1);
  if ((groups + 1) * width > kMostEntries)
    throw LimitError("max-load cut: {} units on {} devices need a larger table than supported", groups,
                     instance.accelerators + instance.cpus);
  Run run{instance, limits, deadline, {}};
  try {
    cut_along_orders(run, order);
    run.best.exact =
        order.is_chain() || cut_over_ideals(run, instance, order) || cut_without_idle_memory(run);
  } catch (const TimeIsUp&) {
    if (!run.best.feasible) take_any(run, order);
  }
  return run.best;
}

std::vector<double> max_load_loads_s(const LoadInstance& instance,
                                     const std::vector<int32_t>& device) {
  const int32_t devices = instance.accelerators + instance.cpus;
  std::vector<double> loads(at(devices), 0);
  std::vector<std::vector<int32_t>> readers(instance.nodes.size());
  for (const auto& [from, to] : instance.edges) readers[from].push_back(device[to]);
  for (size_t n = 0; n < instance.nodes.size(); ++n) {
    const auto& node = instance.nodes[n];
    const bool cpu = device[n] >= instance.accelerators;
    loads[device[n]] += cpu ? node.cpu_s : node.accelerator_s;
    auto& elsewhere = readers[n];
    std::sort(elsewhere.begin(), elsewhere.end());
    elsewhere.erase(std::unique(elsewhere.begin(), elsewhere.end()), elsewhere.end());
    bool sent = false;
    for (const int32_t to : elsewhere) {
      if (to == device[n]) continue;
      sent = true;
      if (to < instance.accelerators) loads[to] += node.transfer_s;
    }
    if (sent && !cpu) loads[device[n]] += node.transfer_s;
  }
  return loads;
}

MaxLoadCut priced_cut(const LoadInstance& instance, std::vector<int32_t> device) {
  const auto loads = max_load_loads_s(instance, device);
  MaxLoadCut cut;
  cut.feasible = is_feasible(instance, device);
  cut.load_s = *std::max_element(loads.begin(), loads.end());
  cut.device = std::move(device);
  return cut;
}

LoadInstance make_load_instance(const Problem& problem) {
  const auto tasks = make_task_graph(problem);
  const auto& graph = problem.graph();
  LoadInstance instance;
  instance.accelerators = problem.devices();
  instance.memory_bytes = problem.cluster().room_bytes(0);
  for (int32_t d = 1; d < problem.devices(); ++d)
    instance.memory_bytes = std::min(instance.memory_bytes, problem.cluster().room_bytes(d));
  for (int32_t o = 0; o < problem.operators(); ++o) {
    LoadInstance::Node node;
    node.accelerator_s = node.cpu_s = tasks.mean_cost(o) / 1e9;
    node.memory_bytes = problem.fixed_bytes(o);
    node.unit = graph.op(o).unit;
    node.backward = graph.op(o).phase != Phase::forward;
    std::vector<bool> read(graph.op(o).outputs.size(), false), kept = read;
    for (const auto& reader : problem.readers(o)) {
      read[reader.output] = true;
      if (graph.op(reader.op).phase != Phase::forward) kept[reader.output] = true;
      if (instance.edges.empty() || instance.edges.back() != std::pair(o, reader.op))
        instance.edges.emplace_back(o, reader.op);
    }
    for (size_t i = 0; i < read.size(); ++i) {
      const int32_t output = problem.first_output(o) + static_cast<int32_t>(i);
      const int64_t bytes = problem.all_output_bytes()[output];
      if (read[i]) node.transfer_s += tasks.mean_wire(bytes) / 1e9;
      if (kept[i] && !node.backward) node.memory_bytes += problem.held_bytes()[output];
    }
    instance.nodes.push_back(node);
  }
  return instance;
}

}  // namespace trinity
