#include "simulator/pricer.h"

#include <algorithm>

#include "base/error.h"
#include "base/stop.h"

namespace trinity {

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
    : problem_(std::move(problem)), pool_(pool) {}

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
           : std::make_shared<const Problem>(graph, problem_->shared_cluster(), problem_->rules());
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
  const auto made = structure(strategy, bind);
  const auto arranged = arrange(*made->made, strategy);
  const auto schedule =
      bind_schedule(arranged.schedule, arranged.placement, *made->problem, on_contradiction);
  auto simulator = take_simulator(*made);
  simulate(*simulator, {arranged.placement, &schedule}, metrics, limit_ns, on_contradiction);
  give_back(*made, std::move(simulator));
  if (!metrics.rejected) keep_price(strategy, metrics);
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
