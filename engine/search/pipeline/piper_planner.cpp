#include "search/pipeline/piper_planner.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "search/pipeline/ideals.h"
#include "search/pipeline/piper_stages.h"

namespace trinity {
namespace {

using namespace piper;

constexpr int32_t kMostSetWords = 16'000'000;  // bits of all down-sets

/// The last stages of a down-set: number of devices, and sum of replicas.
struct State {
  int32_t devices = 0;
  int64_t replicas = 0;
  // The first of these stages, and the state after it.
  int32_t behind = -1, behind_state = -1;
  int32_t stage_replicas = 0, stage_degree = 0;
};

/// Limits of stages, and minimum needs of layers.
struct Choices {
  Choices(const PiperProblem& problem, const PiperLimits& limits) {
    for (int64_t d = 1; d <= std::min<int64_t>(problem.devices, problem.micro_batches); ++d)
      if (problem.micro_batches % d == 0 && (d == 1 || limits.data_parallel))
        replicas.push_back(static_cast<int32_t>(d));
    for (const auto& layer : problem.layers) {
      double least_work = kNone, least_memory = kNone;
      for (const auto& entry : layer.degrees) {
        if (entry.degree > problem.devices || (entry.degree > 1 && !limits.tensor_parallel))
          continue;
        degrees.push_back(entry.degree);
        for (const auto& configuration : entry.configurations) {
          least_work = std::min(least_work, configuration.time * entry.degree);
          least_memory =
              std::min(least_memory,
                       (configuration.bytes_per_batch + configuration.fixed_bytes) * entry.degree);
        }
      }
      work.push_back(least_work);
      memory.push_back(least_memory);
    }
    std::sort(degrees.begin(), degrees.end());
    degrees.erase(std::unique(degrees.begin(), degrees.end()), degrees.end());
  }

  std::vector<int32_t> replicas, degrees;
  std::vector<double> work, memory;  // [layer]: device-seconds, device-bytes
};

/// Decides whether there is a pipeline within a time. Sets of layers that are closed under readers
/// grow from the end of the pipeline, because the memory of a stage depends on later stages.
class StageProgram {
 public:
  StageProgram(const PiperProblem& problem, const Ideals& ideals,
               const std::vector<int32_t>& layer_of, const Choices& choices,
               const Deadline& deadline)
      : problem_(problem),
        ideals_(ideals),
        layer_of_(layer_of),
        choices_(choices),
        poll_(deadline),
        pricer_(problem) {
    for (int32_t i = 0; i < ideals.count(); ++i) {
      double work = 0, memory = 0;
      poll_.step(static_cast<int64_t>(layer_of.size()));
      ideals.for_difference(i, 0, [&](int32_t e) {
        work += choices.work[at(layer_of_[at(e)])];
        memory += choices.memory[at(layer_of_[at(e)])];
      });
      work_.push_back(work);
      memory_.push_back(memory);
    }
  }

  double work() const { return work_.back(); }

  /// Stages in pipeline order, none of which takes longer than `limit`; none if impossible. Throws
  /// Interrupted, TimeIsUp.
  std::optional<std::vector<PiperStage>> run(double limit) {
    limit_ = limit;
    states_.assign(at(ideals_.count()), {});
    alive_.assign(1, 0);
    states_[0].emplace_back();
    for (int32_t ideal = 1; ideal < ideals_.count(); ++ideal) {
      poll_.step(static_cast<int64_t>(alive_.size()));
      if (visit(ideal)) alive_.push_back(ideal);
    }
    if (states_.back().empty()) return std::nullopt;
    return stages();
  }

 private:
  /// Minimum number of devices for this much work and memory.
  int32_t needed(double work, double memory_bytes, bool any) const {
    if (!any) return 0;
    const double by_work = limit_ > 0 ? work / limit_ : (work > 0 ? kNone : 0);
    const double by_memory = problem_.memory_bytes > 0 ? memory_bytes / problem_.memory_bytes
                                                       : (memory_bytes > 0 ? kNone : 0);
    const double most = std::ceil(std::max(by_work, by_memory) * (1 - 1e-9));
    return most > problem_.devices ? problem_.devices + 1 : std::max(1, static_cast<int32_t>(most));
  }

  /// Finds the states of `ideal`; returns true if there is one.
  bool visit(int32_t ideal) {
    const size_t i = at(ideal);
    const bool whole = ideal + 1 == ideals_.count();
    const int32_t available =
        problem_.devices - needed(work_.back() - work_[i], memory_.back() - memory_[i], !whole);
    if (needed(work_[i], memory_[i], true) > available) return false;
    for (const int32_t sub : alive_) {
      const double work = work_[i] - work_[at(sub)];
      const int32_t own = needed(work, memory_[i] - memory_[at(sub)], true);
      if (fewest(sub) + own > available || !ideals_.holds(ideal, sub)) continue;
      add_stage(ideal, sub, available);
    }
    return !states_[i].empty();
  }

  int32_t fewest(int32_t ideal) const {
    int32_t fewest = std::numeric_limits<int32_t>::max();
    for (const auto& state : states_[at(ideal)]) fewest = std::min(fewest, state.devices);
    return fewest;
  }

  std::vector<int32_t> layers_between(int32_t ideal, int32_t sub) const {
    std::vector<int32_t> layers;
    ideals_.for_difference(ideal, sub, [&](int32_t e) { layers.push_back(layer_of_[at(e)]); });
    std::sort(layers.begin(), layers.end());
    return layers;
  }

  /// Adds the layers of ideal \ sub as a stage before all states of `sub`, in every way within the
  /// limit.
  void add_stage(int32_t ideal, int32_t sub, int32_t available) {
    constexpr int64_t kPriceSteps = 10;  // cost of one layer at one degree, in polling steps
    poll_.step(kPriceSteps * static_cast<int64_t>(layer_of_.size()));
    pricer_.set_layers(layers_between(ideal, sub));
    const int32_t behind = fewest(sub);
    for (const int32_t degree : choices_.degrees) {
      double work = 0;
      if (degree > available - behind || !pricer_.set_degree(degree, work)) continue;
      for (const int32_t replicas : choices_.replicas) {
        if (int64_t{replicas} * degree > available - behind) break;
        if (work / replicas > limit_) continue;
        extend(ideal, sub, degree, replicas, available);
      }
    }
  }

  void extend(int32_t ideal, int32_t sub, int32_t degree, int32_t replicas, int32_t available) {
    priced_.clear();
    const auto& behind = states_[at(sub)];
    for (size_t s = 0; s < behind.size(); ++s) {
      State state{behind[s].devices + replicas * degree,
                  behind[s].replicas + replicas,
                  sub,
                  static_cast<int32_t>(s),
                  replicas,
                  degree};
      if (state.devices > available || state.replicas > problem_.micro_batches) continue;
      if (is_beaten(ideal, state)) continue;
      const int64_t in_flight = (state.replicas + replicas - 1) / replicas;
      if (time_of(replicas, in_flight) > limit_) continue;
      insert(ideal, state);
    }
  }

  /// Time of the current stage, cached by micro-batches in flight.
  double time_of(int32_t replicas, int64_t in_flight) {
    for (const auto& [known, time] : priced_)
      if (known == in_flight) return time;
    priced_.emplace_back(in_flight, pricer_.time(replicas, in_flight, taken_));
    return priced_.back().second;
  }

  bool is_beaten(int32_t ideal, const State& state) const {
    const auto& list = states_[at(ideal)];
    return std::any_of(list.begin(), list.end(), [&](const State& other) {
      return other.devices <= state.devices && other.replicas <= state.replicas;
    });
  }
  void insert(int32_t ideal, const State& state) {
    auto& list = states_[at(ideal)];
    std::erase_if(list, [&](const State& other) {
      return other.devices >= state.devices && other.replicas >= state.replicas;
    });
    list.push_back(state);
  }

  std::vector<PiperStage> stages() {
    std::vector<PiperStage> stages;
    int32_t ideal = ideals_.count() - 1;
    const State* state = &states_[at(ideal)][0];
    while (ideal > 0) {
      PiperStage stage;
      stage.layers = layers_between(ideal, state->behind);
      stage.replicas = state->stage_replicas;
      stage.degree = state->stage_degree;
      pricer_.set_layers(stage.layers);
      double work = 0;
      pricer_.set_degree(stage.degree, work);
      const int64_t in_flight = (state->replicas + stage.replicas - 1) / stage.replicas;
      pricer_.time(stage.replicas, in_flight, stage.configuration);
      stages.push_back(std::move(stage));
      ideal = state->behind;
      state = &states_[at(ideal)][at(state->behind_state)];
    }
    return stages;
  }

  const PiperProblem& problem_;
  const Ideals& ideals_;
  const std::vector<int32_t>& layer_of_;  // [element of the ideals]
  const Choices& choices_;
  DeadlinePoll poll_;
  Pricer pricer_;
  std::vector<double> work_, memory_;               // [ideal]
  std::vector<std::vector<State>> states_;          // [ideal]: undominated states
  std::vector<int32_t> alive_;                      // ideals with states
  std::vector<std::pair<int64_t, double>> priced_;  // by micro-batches in flight
  std::vector<int32_t> taken_;
  double limit_ = 0;
};

/// Upper bound on the time of every stage.
double longest_time(const PiperProblem& problem) {
  double sum = 0;
  for (const auto& layer : problem.layers) {
    double longest = 0;
    for (const auto& entry : layer.degrees)
      for (const auto& configuration : entry.configurations) {
        double bytes = 4 * configuration.parameter_bytes;
        for (size_t e = 0; e < layer.edges.size(); ++e)
          bytes += 2 * (problem.edges[at(layer.edges[e])].bytes + configuration.sync_bytes[e]);
        longest = std::max(longest, configuration.time + bytes / problem.bandwidth_bytes_per_s);
      }
    sum += longest;
  }
  return sum;
}

void check(const PiperProblem& problem) {
  const auto count = static_cast<int32_t>(problem.layers.size());
  if (count == 0 || problem.devices < 1 || problem.micro_batches < 1 ||
      !(problem.bandwidth_bytes_per_s > 0) || !(problem.memory_bytes >= 0))
    throw ArgumentError("Piper: expected at least 1 layer, device and micro-batch, memory of at least 0 and bandwidth "
                        "above 0, got {} layers, {} devices of {} bytes at {} bytes/s and {} micro-batches", count,
                        problem.devices, problem.memory_bytes, problem.bandwidth_bytes_per_s, problem.micro_batches);
  for (const auto& edge : problem.edges)
    if (edge.from < 0 || edge.from >= count || edge.to < 0 || edge.to >= count)
      throw ArgumentError("Piper: expected edges between existing layers, got {} -> {}", edge.from, edge.to);
}

/// A topological order of the layers.
std::vector<int32_t> topological(const PiperProblem& problem) {
  std::vector<int32_t> missing(problem.layers.size(), 0), order;
  for (const auto& edge : problem.edges) ++missing[at(edge.to)];
  std::vector<int32_t> ready;
  for (size_t l = problem.layers.size(); l-- > 0;)
    if (missing[l] == 0) ready.push_back(static_cast<int32_t>(l));
  while (!ready.empty()) {
    const int32_t layer = ready.back();
    ready.pop_back();
    order.push_back(layer);
    for (const int32_t e : problem.layers[at(layer)].edges) {
      const auto& edge = problem.edges[at(e)];
      if (edge.from == layer && --missing[at(edge.to)] == 0) ready.push_back(edge.to);
    }
  }
  if (order.size() != problem.layers.size()) throw ArgumentError("Piper: the layers form a cycle");
  return order;
}

/// Improves `pipeline` by searching for the smallest feasible limit.
void find_least(const PiperProblem& problem, StageProgram& program, PiperPipeline& pipeline) {
  const double longest = longest_time(problem);
  const bool given = pipeline.feasible;
  double low = program.work() / problem.devices, high = pipeline.feasible ? pipeline.time : kNone;
  const auto attempt = [&](double limit) {
    auto stages = program.run(limit);
    if (!stages) {
      low = limit;
      return false;
    }
    pipeline.time = high = std::min(high, piper_price(problem, *stages));
    pipeline.stages = std::move(*stages);
    pipeline.feasible = true;
    return true;
  };
  for (double step = 1.02; high == kNone; step *= step) {
    const double limit = std::min(longest, std::max(low, longest * 1e-12) * step);
    if (attempt(limit)) break;
    if (limit >= longest) return;  // proven infeasible
  }
  // A known pipeline is often optimal, and so is the last one near the end: try to refute a better
  // one.
  bool refute = given;
  while (low < high * (1 - 1e-12)) {
    const double gap = high - low;
    const double limit = refute || gap < 1e-4 * high ? high * (1 - 1e-12) : low + gap / 2;
    refute = false;
    attempt(limit);
  }
}

/// Plans without search: all stages have equal numbers of devices and are filled from the end of an
/// order within their memory and a time limit, the minimum one that covers all layers.
class SimplePipelines {
 public:
  SimplePipelines(const PiperProblem& problem, const Choices& choices,
                  const std::vector<int32_t>& from_end)
      : problem_(problem), choices_(choices), from_end_(from_end), pricer_(problem) {}

  /// Replaces `pipeline` by the best of them if that is better.
  void take(PiperPipeline& pipeline) {
    for (const int32_t degree : choices_.degrees) {
      entries_.clear();
      for (const auto& layer : problem_.layers) entries_.push_back(find_degree(layer, degree));
      if (std::find(entries_.begin(), entries_.end(), nullptr) != entries_.end()) continue;
      for (const int32_t replicas : choices_.replicas) {
        poll_stop();
        const auto most = std::min<int64_t>(problem_.devices / (int64_t{degree} * replicas),
                                            problem_.micro_batches / replicas);
        if (most > 0) take(least(replicas, most), degree, replicas, pipeline);
      }
    }
  }

 private:
  using Filled = std::vector<std::vector<int32_t>>;  // layers of stages, last stage first

  /// At most `most` stages; empty if layers are left.
  Filled fill(double limit, int32_t replicas, int64_t most) const {
    Filled stages(1);
    double time = 0, bytes = 0;
    for (size_t i = 0; i < from_end_.size();) {
      double least_time = kNone, least_bytes = kNone;
      for (const auto& way : entries_[at(from_end_[i])]->configurations) {
        least_time = std::min(least_time, way.time / replicas);
        const Choice choice{way.time, way.bytes_per_batch, way.fixed_bytes};
        least_bytes = std::min(least_bytes, choice.bytes(static_cast<double>(stages.size())));
      }
      const bool empty = stages.back().empty();
      if (bytes + least_bytes > problem_.memory_bytes || (time + least_time > limit && !empty)) {
        if (empty || static_cast<int64_t>(stages.size()) == most) return {};
        stages.emplace_back();
        time = bytes = 0;
        continue;
      }
      time += least_time;
      bytes += least_bytes;
      stages.back().push_back(from_end_[i++]);
    }
    return stages;
  }

  Filled least(int32_t replicas, int64_t most) const {
    constexpr int kSteps = 24;
    double low = 0, high = longest_time(problem_);
    auto best = fill(high, replicas, most);
    for (int step = 0; step < kSteps && !best.empty(); ++step) {
      const double middle = (low + high) / 2;
      auto stages = fill(middle, replicas, most);
      (stages.empty() ? low : high) = middle;
      if (!stages.empty()) best = std::move(stages);
    }
    return best;
  }

  void take(const Filled& filled, int32_t degree, int32_t replicas, PiperPipeline& pipeline) {
    std::vector<PiperStage> stages;
    for (size_t s = filled.size(); s-- > 0;) {
      PiperStage stage;
      stage.layers = filled[s];
      std::sort(stage.layers.begin(), stage.layers.end());
      stage.replicas = replicas;
      stage.degree = degree;
      pricer_.set_layers(stage.layers);
      double work = 0;
      pricer_.set_degree(degree, work);
      if (pricer_.time(replicas, static_cast<int64_t>(s) + 1, stage.configuration) == kNone) return;
      stages.push_back(std::move(stage));
    }
    const double time = stages.empty() ? kNone : piper_price(problem_, stages);
    if (time == kNone || (pipeline.feasible && pipeline.time <= time)) return;
    pipeline.feasible = true;
    pipeline.time = time;
    pipeline.stages = std::move(stages);
  }

  const PiperProblem& problem_;
  const Choices& choices_;
  const std::vector<int32_t>& from_end_;
  std::vector<const PiperProblem::Degree*> entries_;  // [layer], at the current degree
  Pricer pricer_;
};

}  // namespace

void PiperProblem::index() {
  for (auto& layer : layers) layer.edges.clear();
  for (size_t e = 0; e < edges.size(); ++e) {
    layers[at(edges[e].from)].edges.push_back(static_cast<int32_t>(e));
    layers[at(edges[e].to)].edges.push_back(static_cast<int32_t>(e));
  }
}

double piper_price(const PiperProblem& problem, std::vector<PiperStage>& stages) {
  int64_t behind = 0;
  for (const auto& stage : stages) behind += stage.replicas;
  double slowest = 0;
  Pricer pricer(problem);
  for (auto& stage : stages) {
    const int64_t in_flight = (behind + stage.replicas - 1) / stage.replicas;
    behind -= stage.replicas;
    pricer.set_layers(stage.layers);
    stage.time = stage.memory_bytes = 0;
    for (size_t i = 0; i < stage.layers.size(); ++i) {
      const auto* entry = find_degree(problem.layers[at(stage.layers[i])], stage.degree);
      const auto choice =
          pricer.cost(i, entry->configurations[at(stage.configuration[i])], stage.replicas);
      stage.time += choice.time;
      stage.memory_bytes += choice.bytes(static_cast<double>(in_flight));
    }
    slowest = std::max(
        slowest, stage.memory_bytes > problem.memory_bytes * (1 + 1e-12) ? kNone : stage.time);
  }
  return slowest;
}

PiperPipeline piper_pipeline(const PiperProblem& problem, const PiperLimits& limits) {
  check(problem);
  const auto deadline = Deadline::in(limits.seconds);
  const Choices choices(problem, limits);
  // Element e of the ideals is the layer at position e from the end of an order.
  auto layer_of = topological(problem);
  std::reverse(layer_of.begin(), layer_of.end());
  const auto count = static_cast<int32_t>(layer_of.size());
  std::vector<int32_t> element(layer_of.size());
  for (int32_t e = 0; e < count; ++e) element[at(layer_of[at(e)])] = e;
  std::vector<std::pair<int32_t, int32_t>> chain, order;
  for (int32_t e = 0; e + 1 < count; ++e) chain.emplace_back(e, e + 1);
  for (const auto& edge : problem.edges)
    order.emplace_back(element[at(edge.to)], element[at(edge.from)]);
  PiperPipeline pipeline;
  try {
    const auto along = Ideals::of_order(count, chain, count + 1, deadline);
    StageProgram first(problem, *along, layer_of, choices, deadline);
    find_least(problem, first, pipeline);
    const auto most = std::min(limits.most_ideals, kMostSetWords / (count / 64 + 1));
    const auto ideals = Ideals::of_order(count, order, most, deadline);
    if (!ideals) return pipeline;
    pipeline.ideals = ideals->count();
    StageProgram program(problem, *ideals, layer_of, choices, deadline);
    find_least(problem, program, pipeline);
    pipeline.exact = true;
  } catch (const TimeIsUp&) {
    SimplePipelines(problem, choices, layer_of).take(pipeline);
  }
  return pipeline;
}

}  // namespace trinity
