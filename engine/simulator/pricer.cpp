#include "simulator/pricer.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/stop.h"

namespace trinity {

namespace {

/// The mean of steps of which there are `counts`: times, bytes and copies; memory is the most of
/// any. Rounded up.
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

/// Says that a structure is being made, as long as it lives.
class StrategyPricer::Making {
 public:
  Making(StrategyPricer& pricer, const Strategy& of)
      : pricer_(pricer), at_(pricer.making_.insert(pricer.making_.end(), of)) {}
  ~Making() {
    const std::lock_guard lock(pricer_.mutex_);
    pricer_.making_.erase(at_);
    pricer_.made_.notify_all();
  }
  Making(const Making&) = delete;
  Making& operator=(const Making&) = delete;

 private:
  StrategyPricer& pricer_;
  std::list<Strategy>::iterator at_;
};

StrategyPricer::StrategyPricer(std::shared_ptr<const Problem> problem, ThreadPool& pool)
    : problem_(std::move(problem)), pool_(pool), symmetry_(problem_) {}

std::vector<int32_t> StrategyPricer::home(const Strategy& strategy, const BindGraph& bind) {
  if (!strategy.parallelism || bind || !copies_are_alike(*strategy.parallelism))
    return this->bind(strategy, bind).arranged.home;
  check_mesh(*strategy.parallelism, problem_->cluster());
  return symmetry_.home(strategy);
}

int32_t StrategyPricer::simulated_devices(const Strategy& strategy, const BindGraph& bind) {
  const auto& given = *strategy.parallelism;
  check_mesh(given, problem_->cluster());
  const bool folds = !bind && copies_are_alike(given);
  const int32_t found = folds ? symmetry_.simulated_devices(strategy) : -1;
  return found < 0 ? static_cast<int32_t>(given.mesh.device_count()) : found;
}

BoundStrategy StrategyPricer::bind(const Strategy& strategy, const BindGraph& bind) {
  const auto found = structure(strategy, bind);
  return {found->made, found->problem, arrange(*found->made, strategy)};
}

std::shared_ptr<StrategyPricer::Structure> StrategyPricer::structure(const Strategy& strategy,
                                                                     const BindGraph& bind) {
  if (strategy.parallelism) check_mesh(*strategy.parallelism, problem_->cluster());
  const Strategy of = structure_of(strategy);
  std::unique_lock lock(mutex_);
  made_.wait(lock, [&] { return std::find(making_.begin(), making_.end(), of) == making_.end(); });
  if (auto found = find(of)) return found;
  const Making making(*this, of);
  lock.unlock();
  auto made = make(strategy, bind);
  made->of = of;
  keep(made);
  return made;
}

std::shared_ptr<StrategyPricer::Structure> StrategyPricer::find(const Strategy& of) {
  const auto found = std::find_if(structures_.begin(), structures_.end(),
                                  [&](const auto& kept) { return kept->of == of; });
  if (found == structures_.end()) return nullptr;
  structures_.splice(structures_.begin(), structures_, found);
  return structures_.front();
}

std::shared_ptr<StrategyPricer::Structure> StrategyPricer::make(const Strategy& strategy,
                                                                const BindGraph& bind) const {
  auto result = std::make_shared<Structure>();
  result->made = std::make_shared<const LoweredGraph>(
      lower_graph(strategy, problem_->graph(), problem_->cluster()));
  const std::shared_ptr<const Graph> graph(result->made, &result->made->graph);
  result->problem =
      bind ? bind(graph)
           : std::make_shared<const Problem>(graph, *problem_);
  return result;
}

void StrategyPricer::keep(std::shared_ptr<Structure> made) {
  const std::lock_guard lock(mutex_);
  structures_.push_front(std::move(made));
  int64_t operators = 0;
  for (auto kept = structures_.begin(); kept != structures_.end();) {
    operators += (*kept)->problem->operators();
    const bool goes = operators > kMostOperators && kept != structures_.begin();
    kept = goes ? structures_.erase(kept) : std::next(kept);
  }
}

void StrategyPricer::run(std::span<const Strategy> strategies, std::vector<Metrics>& metrics,
                         int64_t limit_ns, OnContradiction on_contradiction, const BindGraph& bind,
                         std::span<const int64_t> entry) {
  metrics.resize(strategies.size());
  const auto price_one = [&](int item) {
    poll_stop();
    try {
      price(strategies[item], metrics[item], limit_ns, on_contradiction, bind);
    } catch (const ArgumentError& error) {
      if (entry.empty()) throw;
      throw ArgumentError(fmt::format("entry {}: {}", entry[item], error.what()));
    }
  };
  const auto count = static_cast<int>(strategies.size());
  if (bind)
    for (int item = 0; item < count; ++item) price_one(item);
  else
    pool_.parallel_for(count, [&](int item, int) { price_one(item); });
}

void StrategyPricer::price(const Strategy& strategy, Metrics& metrics, int64_t limit_ns,
                           OnContradiction on_contradiction, const BindGraph& bind) {
  const bool strict = on_contradiction == OnContradiction::fail;
  if (find_price(strategy, metrics) && !(strict && metrics.unscheduled)) {
    if (metrics.step_time_ns > limit_ns) metrics.reject(limit_ns);
    return;
  }
  if (strategy.parallelism && !bind && copies_are_alike(*strategy.parallelism)) {
    check_mesh(*strategy.parallelism, problem_->cluster());
    if (symmetry_.price(strategy, metrics, limit_ns)) {
      if (!metrics.rejected) keep_price(strategy, metrics);
      return;
    }
  }
  const auto cycle = cycle_of(strategy);
  if (cycle.size() == 1) {
    price_step(strategy, metrics, limit_ns, on_contradiction, bind);
  } else {
    std::vector<Metrics> steps;
    std::vector<int32_t> counts;
    for (const auto& step : cycle) {
      price_step(step.strategy, steps.emplace_back(), std::numeric_limits<int64_t>::max(),
                 on_contradiction, bind);
      counts.push_back(step.count);
    }
    metrics = mean_of(steps, counts);
    if (metrics.step_time_ns > limit_ns) metrics.reject(limit_ns);
  }
  if (!metrics.rejected) keep_price(strategy, metrics);
}

void StrategyPricer::price_step(const Strategy& strategy, Metrics& metrics, int64_t limit_ns,
                                OnContradiction on_contradiction, const BindGraph& bind) {
  const auto made = structure(strategy, bind);
  const auto arranged = arrange(*made->made, strategy);
  const auto schedule =
      bind_schedule(arranged.schedule, arranged.placement, *made->problem, on_contradiction);
  auto simulator = take_simulator(*made);
  simulate(*simulator, {arranged.placement, &schedule}, metrics, limit_ns, on_contradiction);
  give_back(*made, std::move(simulator));
}

bool StrategyPricer::find_price(const Strategy& strategy, Metrics& metrics) {
  const std::lock_guard lock(mutex_);
  const auto found = prices_.find(strategy);
  if (found == prices_.end()) return false;
  metrics = found->second;
  return true;
}

void StrategyPricer::keep_price(const Strategy& strategy, const Metrics& metrics) {
  const size_t bytes = sizeof(Strategy) + strategy.placement.size() * sizeof(int32_t) +
                       strategy.splits.size() * sizeof(OperatorSplit) +
                       metrics.devices.size() * sizeof(DeviceMetrics);
  const std::lock_guard lock(mutex_);
  if ((prices_.size() + 1) * bytes > kPriceBytes) prices_.clear();
  prices_.emplace(strategy, metrics);
}

std::unique_ptr<Simulator> StrategyPricer::take_simulator(Structure& structure) {
  {
    const std::lock_guard lock(mutex_);
    if (!structure.idle.empty()) {
      auto simulator = std::move(structure.idle.back());
      structure.idle.pop_back();
      return simulator;
    }
  }
  return std::make_unique<Simulator>(*structure.problem);
}

void StrategyPricer::give_back(Structure& structure, std::unique_ptr<Simulator> simulator) {
  const std::lock_guard lock(mutex_);
  structure.idle.push_back(std::move(simulator));
}

}  // namespace trinity
