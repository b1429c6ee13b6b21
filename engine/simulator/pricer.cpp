#include "simulator/pricer.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/stop.h"
#include "strategy/mesh_schedule.h"

namespace trinity {

namespace {

/// Average of steps with these `counts`: times, bytes and copies, rounded up; memory is the
/// maximum.
Metrics mean_of(const std::vector<Metrics>& steps, const std::vector<int32_t>& counts) {
  int64_t all = 0;
  for (const int32_t count : counts) all += count;
  const auto mean = [&](auto field) {
    double sum = 0;
    for (size_t i = 0; i < steps.size(); ++i)
      sum += static_cast<double>(field(steps[i])) * static_cast<double>(counts[i]);
    return static_cast<int64_t>(std::ceil(sum / static_cast<double>(all)));
  };
  const auto most = [&](auto field) {
    int64_t found = field(steps[0]);
    for (const auto& step : steps) found = std::max(found, field(step));
    return found;
  };
  Metrics metrics = steps[0];
  metrics.step_time_ns = mean([](const Metrics& m) { return m.step_time_ns; });
  metrics.total_communication_bytes =
      mean([](const Metrics& m) { return m.total_communication_bytes; });
  metrics.transfers =
      static_cast<int32_t>(mean([](const Metrics& m) { return int64_t{m.transfers}; }));
  metrics.peak_memory_bytes = most([](const Metrics& m) { return m.peak_memory_bytes; });
  metrics.excess_memory_bytes = most([](const Metrics& m) { return m.excess_memory_bytes; });
  metrics.peak_communication_bytes = 0;
  for (size_t d = 0; d < metrics.devices.size(); ++d) {
    auto& device = metrics.devices[d];
    device.compute_busy_ns = mean([d](const Metrics& m) { return m.devices[d].compute_busy_ns; });
    device.send_busy_ns = mean([d](const Metrics& m) { return m.devices[d].send_busy_ns; });
    device.bytes_sent = mean([d](const Metrics& m) { return m.devices[d].bytes_sent; });
    device.bytes_received = mean([d](const Metrics& m) { return m.devices[d].bytes_received; });
    device.peak_memory_bytes =
        most([d](const Metrics& m) { return m.devices[d].peak_memory_bytes; });
    metrics.peak_communication_bytes =
        std::max(metrics.peak_communication_bytes, device.bytes_sent + device.bytes_received);
  }
  for (const auto& step : steps) metrics.unscheduled = metrics.unscheduled || step.unscheduled;
  return metrics;
}

}  // namespace

namespace {

/// The mesh of a strategy with one replica: with all its experts, on the first devices.
Strategy one_replica(const Strategy& strategy) {
  Strategy one = strategy;
  const auto& mesh = strategy.parallelism->mesh;
  auto& few = one.parallelism->mesh;
  few.data = mesh.expert;
  few.devices.clear();
  std::vector<int32_t> devices(static_cast<size_t>(few.device_count()));
  for (int32_t stage = 0; stage < mesh.pipeline; ++stage)
    for (int32_t rank = 0; rank < mesh.expert; ++rank)
      for (int32_t part = 0; part < mesh.width(); ++part)
        devices[static_cast<size_t>(few.device(stage, rank, part))] = mesh.device(stage, rank, part);
  few.devices = std::move(devices);
  return one;
}

size_t bytes_of(const Strategy& strategy, const Metrics& metrics) {
  size_t numbers = strategy.placement.size();
  if (strategy.parallelism)
    numbers += strategy.parallelism->mesh.devices.size() + strategy.parallelism->inside.size();
  return sizeof(Strategy) + sizeof(Metrics) + numbers * sizeof(int32_t) +
         strategy.splits.size() * sizeof(OperatorSplit) +
         metrics.devices.size() * sizeof(DeviceMetrics);
}

}  // namespace

bool PriceCache::find(const Strategy& strategy, Metrics& metrics) {
  const std::lock_guard lock(mutex_);
  const auto found = prices_.find(strategy);
  if (found == prices_.end()) return false;
  metrics = found->second;
  return true;
}

void PriceCache::add(const Strategy& strategy, const Metrics& metrics) {
  const std::lock_guard lock(mutex_);
  const auto [at, added] = prices_.emplace(strategy, metrics);
  if (!added) return;
  oldest_.push_back(&at->first);
  bytes_ += bytes_of(at->first, at->second);
  while (bytes_ > most_bytes_ && !oldest_.empty()) {
    const auto old = prices_.find(*oldest_.front());
    bytes_ -= bytes_of(old->first, old->second);
    oldest_.pop_front();
    prices_.erase(old);
  }
}

StrategyPricer::StrategyPricer(std::shared_ptr<const Problem> problem, ThreadPool& pool)
    : problem_(std::move(problem)),
      pool_(pool),
      symmetry_(problem_),
      structures_(kMostOperators,
                  [](const Structure& kept) -> int64_t { return kept.problem->operators(); }) {}

/// Throws the errors of lowering and binding one replica of a mesh, with operator names.
void StrategyPricer::check_replica(const Strategy& strategy) const {
  const auto low = lower(one_replica(strategy), problem_->graph(), problem_->cluster());
  const std::shared_ptr<const Graph> graph(std::shared_ptr<void>(), &low.made.graph);
  const Problem problem(graph, *problem_);
  bind_schedule(low.arranged.schedule, low.arranged.placement, problem, OnContradiction::fail);
}

/// run() on the graph of representative devices, which has no names: its errors are replaced by
/// the errors of one replica, if that has any, and never by errors of the full graph.
template <class Run>
auto StrategyPricer::of_symmetry(const Strategy& strategy, Run run) {
  check_mesh(*strategy.parallelism, problem_->cluster());
  check_stages(*strategy.parallelism);
  check_inside(*strategy.parallelism, problem_->graph());
  try {
    return run();
  } catch (const Interrupted&) {
    throw;
  } catch (const Error&) {
    check_replica(strategy);
    throw;
  }
}

std::vector<int32_t> StrategyPricer::home(const Strategy& strategy) {
  if (!strategy.parallelism || !copies_are_alike(*strategy.parallelism))
    return bind(strategy).arranged.home;
  return of_symmetry(strategy, [&] { return symmetry_.home(strategy); });
}

int32_t StrategyPricer::simulated_devices(const Strategy& strategy) {
  const auto& given = *strategy.parallelism;
  check_mesh(given, problem_->cluster());
  if (!copies_are_alike(given)) return static_cast<int32_t>(given.mesh.device_count());
  const int32_t found = of_symmetry(strategy, [&] { return symmetry_.simulated_devices(strategy); });
  return found < 0 ? static_cast<int32_t>(given.mesh.device_count()) : found;
}

std::vector<OwnedBytes> StrategyPricer::owners(const Strategy& strategy) {
  std::vector<OwnedBytes> found;
  if (copies_are_alike(*strategy.parallelism) &&
      of_symmetry(strategy, [&] { return symmetry_.own(strategy, found); }))
    return found;
  const auto bound = bind(cycle_of(strategy).front().strategy);
  const auto schedule = bind_schedule(bound.arranged.schedule, bound.arranged.placement,
                                      *bound.problem, OnContradiction::fail);
  Metrics metrics;
  Timeline timeline;
  timeline.wants_owners = true;
  Simulator(*bound.problem).run({bound.arranged.placement, &schedule}, metrics, &timeline);
  return std::move(timeline.owners);
}

BoundStrategy StrategyPricer::bind(const Strategy& strategy) {
  const auto found = structure(strategy);
  return {found->made, found->problem, arrange(*found->made, strategy)};
}

std::shared_ptr<StrategyPricer::Structure> StrategyPricer::structure(
    const Strategy& strategy) {
  if (strategy.parallelism) check_mesh(*strategy.parallelism, problem_->cluster());
  return structures_.find(structure_of(strategy), [&] {
    auto result = std::make_shared<Structure>();
    result->made = std::make_shared<const LoweredGraph>(
        lower_graph(strategy, problem_->graph(), problem_->cluster()));
    const std::shared_ptr<const Graph> graph(result->made, &result->made->graph);
    result->problem = std::make_shared<const Problem>(graph, *problem_);
    return result;
  });
}

void StrategyPricer::run(std::span<const Strategy> strategies, std::vector<Metrics>& metrics,
                         int64_t limit_ns, OnContradiction on_contradiction,
                         std::span<const int64_t> entry) {
  metrics.resize(strategies.size());
  const auto price_one = [&](int item) {
    poll_stop();
    try {
      price(strategies[item], metrics[item], limit_ns, on_contradiction);
    } catch (const ArgumentError& error) {
      if (entry.empty()) throw;
      throw ArgumentError("entry {}: {}", entry[item], error.what());
    }
  };
  pool_.parallel_for(static_cast<int>(strategies.size()), [&](int item, int) { price_one(item); });
}

void StrategyPricer::price(const Strategy& strategy, Metrics& metrics, int64_t limit_ns,
                           OnContradiction on_contradiction) {
  const bool strict = on_contradiction == OnContradiction::fail;
  if (prices_.find(strategy, metrics) && !(strict && metrics.unscheduled)) {
    if (metrics.step_time_ns > limit_ns) metrics.reject(limit_ns);
    return;
  }
  if (strategy.parallelism && copies_are_alike(*strategy.parallelism)) {
    if (price_symmetry(strategy, metrics, limit_ns, on_contradiction)) {
      if (!metrics.rejected) prices_.add(strategy, metrics);
      return;
    }
  }
  const auto cycle = cycle_of(strategy);
  if (cycle.size() == 1) {
    price_step(strategy, metrics, limit_ns, on_contradiction);
  } else {
    std::vector<Metrics> steps;
    std::vector<int32_t> counts;
    for (const auto& step : cycle) {
      price_step(step.strategy, steps.emplace_back(), std::numeric_limits<int64_t>::max(),
                 on_contradiction);
      counts.push_back(step.count);
    }
    metrics = mean_of(steps, counts);
    if (metrics.step_time_ns > limit_ns) metrics.reject(limit_ns);
  }
  if (!metrics.rejected) prices_.add(strategy, metrics);
}

bool StrategyPricer::price_symmetry(const Strategy& strategy, Metrics& metrics, int64_t limit_ns,
                                    OnContradiction on_contradiction) {
  const auto run = [&] { return symmetry_.price(strategy, metrics, limit_ns); };
  if (on_contradiction == OnContradiction::fail) return of_symmetry(strategy, run);
  try {
    return of_symmetry(strategy, run);
  } catch (const ScheduleError&) {
    return false;  // the full graph is simulated first in, first out
  }
}

void StrategyPricer::price_step(const Strategy& strategy, Metrics& metrics, int64_t limit_ns,
                                OnContradiction on_contradiction) {
  const auto made = structure(strategy);
  const auto arranged = arrange(*made->made, strategy);
  const auto schedule =
      bind_schedule(arranged.schedule, arranged.placement, *made->problem, on_contradiction);
  made->idle.with([&] { return std::make_unique<Simulator>(*made->problem); },
                  [&](Simulator& simulator) {
                    simulate(simulator, {arranged.placement, &schedule}, metrics, limit_ns,
                             on_contradiction);
                    return true;
                  });
}

}  // namespace trinity
