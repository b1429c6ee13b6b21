#include "search/piper_split.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <optional>

#include "base/error.h"
#include "base/stop.h"
#include "search/ideals.h"

namespace trinity {
namespace {

using Clock = std::chrono::steady_clock;
constexpr double kNone = std::numeric_limits<double>::infinity();
/// What Piper's code takes for nothing when it compares bytes.
constexpr double kByteSlack = 1e-9;

constexpr int32_t kMostWords = 16'000'000;  // of the bits of all down-sets

size_t at(int32_t i) { return static_cast<size_t>(i); }

const PiperProblem::Degree* find_degree(const PiperProblem::Layer& layer, int32_t degree) {
  for (const auto& entry : layer.degrees)
    if (entry.degree == degree) return &entry;
  return nullptr;
}

/// One way to run a layer in a stage of given degrees.
struct Choice {
  double time, bytes_per_batch, fixed_bytes;
  double bytes(double in_flight) const { return bytes_per_batch * in_flight + fixed_bytes; }
};

/// The choices for all layers of a stage, and which to take.
class StageChoices {
 public:
  void clear() {
    choices_.clear();
    first_.assign(1, 0);
  }
  void add(const Choice& choice) { choices_.push_back(choice); }
  void end_layer() { first_.push_back(choices_.size()); }

  /// The least time of choices that fit `memory_bytes`, as Piper's code finds it; kNone when none
  /// do. Fills `taken`.
  double choose(double in_flight, double memory_bytes, std::vector<int32_t>& taken) {
    const size_t count = first_.size() - 1;
    taken.assign(count, 0);
    double fastest_bytes = 0, fewest_bytes = 0;
    for (size_t i = 0; i < count; ++i) {
      size_t fastest = first_[i];
      double fewest = kNone;
      for (size_t c = first_[i]; c < first_[i + 1]; ++c) {
        if (choices_[fastest].time > choices_[c].time) fastest = c;
        fewest = std::min(fewest, choices_[c].bytes(in_flight));
      }
      taken[i] = static_cast<int32_t>(fastest - first_[i]);
      fastest_bytes += choices_[fastest].bytes(in_flight);
      fewest_bytes += fewest;
    }
    if (fewest_bytes > memory_bytes) return kNone;
    if (fastest_bytes > memory_bytes) save(in_flight, fastest_bytes - memory_bytes, taken);
    double time = 0;
    for (size_t i = 0; i < count; ++i) time += choices_[first_[i] + at(taken[i])].time;
    return time;
  }

 private:
  struct Change {
    double price;  // time per byte saved
    size_t layer, choice;
    auto operator<=>(const Change&) const = default;
  };

  /// Changes choices until `bytes` are saved, the cheapest first. Layers with two choices change
  /// once, in one sorted pass; with more, the cheapest change is found anew each time.
  void save(double in_flight, double bytes, std::vector<int32_t>& taken) {
    const bool pairs =
        std::all_of(first_.begin() + 1, first_.end(),
                    [this, i = size_t{0}](size_t last) mutable { return last - first_[i++] <= 2; });
    while (bytes > kByteSlack) {
      auto changes = possible(in_flight, pairs ? kNone : bytes, taken);
      if (changes.empty()) return;
      std::sort(changes.begin(), changes.end());
      for (const auto& change : changes) {
        bytes -= saved(in_flight, change, taken);
        taken[change.layer] = static_cast<int32_t>(change.choice);
        if (!pairs || bytes < kByteSlack) break;
      }
      if (pairs) return;
    }
  }

  double saved(double in_flight, const Change& change, const std::vector<int32_t>& taken) const {
    const auto first = first_[change.layer];
    return choices_[first + at(taken[change.layer])].bytes(in_flight) -
           choices_[first + change.choice].bytes(in_flight);
  }

  /// All changes that save bytes; savings above `needed` count as that.
  std::vector<Change> possible(double in_flight, double needed,
                               const std::vector<int32_t>& taken) const {
    std::vector<Change> changes;
    for (size_t i = 0; i + 1 < first_.size(); ++i)
      for (size_t c = 0; first_[i] + c < first_[i + 1]; ++c) {
        Change change{0, i, c};
        const double bytes = saved(in_flight, change, taken);
        if (!(bytes > kByteSlack)) continue;
        const double slower =
            choices_[first_[i] + c].time - choices_[first_[i] + at(taken[i])].time;
        change.price = slower / std::min(bytes, needed);
        changes.push_back(change);
      }
    return changes;
  }

  std::vector<Choice> choices_;
  std::vector<size_t> first_;  // of every layer
};

/// Prices stages of one problem.
class Pricer {
 public:
  explicit Pricer(const PiperProblem& problem)
      : problem_(problem), inside_(problem.layers.size(), false) {}

  /// Sets the layers of the stage that is priced next.
  void set_layers(const std::vector<int32_t>& layers) {
    for (const int32_t layer : layers_) inside_[at(layer)] = false;
    layers_ = layers;
    for (const int32_t layer : layers_) inside_[at(layer)] = true;
    degree_ = replicas_ = 0;
  }
  const std::vector<int32_t>& layers() const { return layers_; }

  /// Whether all layers know the degree; `work` is then the least time of the stage without any
  /// communication on one replica.
  bool set_degree(int32_t degree, double& work) {
    entries_.clear();
    work = 0;
    for (const int32_t layer : layers_) {
      const auto* entry = find_degree(problem_.layers[at(layer)], degree);
      if (!entry) return false;
      entries_.push_back(entry);
      double least = kNone;
      for (const auto& configuration : entry->configurations)
        least = std::min(least, configuration.time);
      work += least;
    }
    degree_ = degree;
    replicas_ = 0;
    return true;
  }

  /// The time of the stage, kNone when it does not fit.
  double time(int32_t replicas, int64_t in_flight, std::vector<int32_t>& taken) {
    if (replicas_ != replicas) fill(replicas);
    return choices_.choose(static_cast<double>(in_flight), problem_.memory_bytes, taken);
  }

  /// The time of given configurations.
  Choice cost(size_t position, const PiperProblem::Configuration& configuration,
              int32_t replicas) const {
    const auto& layer = problem_.layers[at(layers_[position])];
    double edge_bytes = 0;
    for (size_t e = 0; e < layer.edges.size(); ++e) {
      const auto& edge = problem_.edges[at(layer.edges[e])];
      if (inside_[at(edge.from)] && inside_[at(edge.to)]) continue;
      edge_bytes += 2 * (edge.bytes + configuration.sync_bytes[e]);
    }
    const double resync_bytes = 4.0 * (replicas - 1) * configuration.parameter_bytes / replicas /
                                static_cast<double>(problem_.micro_batches);
    return {(edge_bytes / replicas + resync_bytes) / problem_.bandwidth_bytes_per_s +
                configuration.time / replicas,
            configuration.bytes_per_batch, configuration.fixed_bytes};
  }

 private:
  void fill(int32_t replicas) {
    replicas_ = replicas;
    choices_.clear();
    for (size_t i = 0; i < layers_.size(); ++i) {
      for (const auto& configuration : entries_[i]->configurations)
        choices_.add(cost(i, configuration, replicas));
      choices_.end_layer();
    }
  }

  const PiperProblem& problem_;
  std::vector<int32_t> layers_;
  std::vector<bool> inside_;
  std::vector<const PiperProblem::Degree*> entries_;
  StageChoices choices_;
  int32_t degree_ = 0, replicas_ = 0;
};

/// How a down-set's last stages can be: on so many devices, with so many replicas in sum.
struct State {
  int32_t devices = 0;
  int64_t replicas = 0;
  // The stage in front, and the state behind it.
  int32_t behind = -1, behind_state = -1;
  int32_t stage_replicas = 0, stage_degree = 0;
};

/// Whether there is a plan within a time. Sets of layers that are closed under readers grow from
/// the end of the pipeline, since the memory of a stage depends on the stages behind it.
class Programme {
 public:
  Programme(const PiperProblem& problem, const Ideals& ideals, const std::vector<int32_t>& layer_of,
            const PiperLimits& limits, Clock::time_point end)
      : problem_(problem),
        ideals_(ideals),
        layer_of_(layer_of),
        limits_(limits),
        end_(end),
        pricer_(problem) {
    for (int64_t d = 1; d <= std::min<int64_t>(problem.devices, problem.micro_batches); ++d)
      if (problem.micro_batches % d == 0 && (d == 1 || limits.data_parallel))
        replicas_.push_back(static_cast<int32_t>(d));
    for (const auto& layer : problem.layers) {
      double work = kNone, memory = kNone;
      for (const auto& entry : layer.degrees) {
        if (!allowed(entry.degree)) continue;
        degrees_.push_back(entry.degree);
        for (const auto& configuration : entry.configurations) {
          work = std::min(work, configuration.time * entry.degree);
          memory = std::min(
              memory, (configuration.bytes_per_batch + configuration.fixed_bytes) * entry.degree);
        }
      }
      work_of_.push_back(work);
      memory_of_.push_back(memory);
    }
    std::sort(degrees_.begin(), degrees_.end());
    degrees_.erase(std::unique(degrees_.begin(), degrees_.end()), degrees_.end());
    for (int32_t i = 0; i < ideals.count(); ++i) {
      double work = 0, memory = 0;
      ideals.for_difference(i, 0, [&](int32_t e) {
        work += work_of_[at(layer_of_[at(e)])];
        memory += memory_of_[at(layer_of_[at(e)])];
      });
      work_.push_back(work);
      memory_.push_back(memory);
    }
  }

  double work() const { return work_.back(); }
  bool stopped() const { return stopped_; }

  /// Stages in pipeline order, of which none takes longer than `limit`; nothing when there are
  /// none.
  std::optional<std::vector<PiperStage>> run(double limit) {
    limit_ = limit;
    states_.assign(at(ideals_.count()), {});
    alive_.assign(1, 0);
    states_[0].emplace_back();
    for (int32_t ideal = 1; ideal < ideals_.count(); ++ideal) {
      if (ideal % 16 == 0) {
        poll_stop();
        if (Clock::now() > end_) stopped_ = true;
      }
      if (stopped_) return std::nullopt;
      if (visit(ideal)) alive_.push_back(ideal);
    }
    if (states_.back().empty()) return std::nullopt;
    return stages();
  }

 private:
  bool allowed(int32_t degree) const {
    return degree <= problem_.devices && (degree == 1 || limits_.tensor_parallel);
  }

  /// Devices that so much work and memory need at least.
  int32_t needed(double work, double memory_bytes, bool any) const {
    if (!any) return 0;
    const double by_work = limit_ > 0 ? work / limit_ : (work > 0 ? kNone : 0);
    const double by_memory = problem_.memory_bytes > 0 ? memory_bytes / problem_.memory_bytes
                                                       : (memory_bytes > 0 ? kNone : 0);
    const double most = std::ceil(std::max(by_work, by_memory) * (1 - 1e-9));
    return most > problem_.devices ? problem_.devices + 1 : std::max(1, static_cast<int32_t>(most));
  }

  /// Whether `ideal` has a state.
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

  /// Puts the layers of ideal \ sub in front of all states of `sub`, in every way within the limit.
  void add_stage(int32_t ideal, int32_t sub, int32_t available) {
    pricer_.set_layers(layers_between(ideal, sub));
    const int32_t behind = fewest(sub);
    for (const int32_t degree : degrees_) {
      double work = 0;
      if (degree > available - behind || !pricer_.set_degree(degree, work)) continue;
      for (const int32_t replicas : replicas_) {
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

  /// The time of the stage at hand, kept by what is in flight.
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
  const std::vector<int32_t>& layer_of_;  // of every element of the ideals
  const PiperLimits& limits_;
  Clock::time_point end_;
  Pricer pricer_;
  std::vector<int32_t> replicas_, degrees_;         // that a stage may have
  std::vector<double> work_of_, memory_of_;         // of layers: device-seconds, device-bytes
  std::vector<double> work_, memory_;               // of ideals
  std::vector<std::vector<State>> states_;          // of ideals, none of which beats another
  std::vector<int32_t> alive_;                      // ideals with states
  std::vector<std::pair<int64_t, double>> priced_;  // by what is in flight
  std::vector<int32_t> taken_;
  double limit_ = 0;
  bool stopped_ = false;
};

/// No stage takes longer than this.
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
    throw ArgumentError(
        fmt::format("Piper: {} layers, {} devices of {} bytes at {} bytes/s, {} micro-batches",
                    count, problem.devices, problem.memory_bytes, problem.bandwidth_bytes_per_s,
                    problem.micro_batches));
  for (const auto& edge : problem.edges)
    if (edge.from < 0 || edge.from >= count || edge.to < 0 || edge.to >= count)
      throw ArgumentError(fmt::format("Piper: an edge from {} to {}", edge.from, edge.to));
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

/// Improves `plan` by a search for the least limit that has a plan. Returns false when time is up.
bool find_least(const PiperProblem& problem, Programme& programme, PiperPlan& plan) {
  const double longest = longest_time(problem);
  const bool given = plan.feasible;
  double low = programme.work() / problem.devices, high = plan.feasible ? plan.time : kNone;
  const auto attempt = [&](double limit) {
    auto stages = programme.run(limit);
    if (!stages) {
      low = limit;
      return false;
    }
    plan.time = high = std::min(high, piper_price(problem, *stages));
    plan.stages = std::move(*stages);
    plan.feasible = true;
    return true;
  };
  for (double step = 1.02; high == kNone; step *= step) {
    const double limit = std::min(longest, std::max(low, longest * 1e-12) * step);
    if (attempt(limit)) break;
    if (programme.stopped()) return false;
    if (limit >= longest) return true;  // proved infeasible
  }
  // A known plan is often the best, and so is the last near the end: try to refute a better one.
  bool refute = given;
  while (low < high * (1 - 1e-12)) {
    const double gap = high - low;
    const double limit = refute || gap < 1e-4 * high ? high * (1 - 1e-12) : low + gap / 2;
    refute = false;
    if (!attempt(limit) && programme.stopped()) return false;
  }
  return true;
}

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

PiperPlan piper_split(const PiperProblem& problem, const PiperLimits& limits) {
  check(problem);
  const auto seconds = std::chrono::duration<double>(std::clamp(limits.seconds, 0.0, 1e9));
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(seconds);
  // Element e of the ideals is the layer at place e from the end of an order.
  auto layer_of = topological(problem);
  std::reverse(layer_of.begin(), layer_of.end());
  const auto count = static_cast<int32_t>(layer_of.size());
  std::vector<int32_t> element(layer_of.size());
  for (int32_t e = 0; e < count; ++e) element[at(layer_of[at(e)])] = e;
  std::vector<std::pair<int32_t, int32_t>> chain, order;
  for (int32_t e = 0; e + 1 < count; ++e) chain.emplace_back(e, e + 1);
  for (const auto& edge : problem.edges)
    order.emplace_back(element[at(edge.to)], element[at(edge.from)]);
  PiperPlan plan;
  const auto along = Ideals::of_order(count, chain, count + 1);
  Programme first(problem, *along, layer_of, limits, Clock::time_point::max());
  find_least(problem, first, plan);
  const auto most = std::min(limits.most_ideals, kMostWords / (count / 64 + 1));
  const auto ideals = Ideals::of_order(count, order, most);
  if (!ideals) return plan;
  plan.ideals = ideals->count();
  Programme programme(problem, *ideals, layer_of, limits, end);
  plan.exact = find_least(problem, programme, plan);
  return plan;
}

}  // namespace trinity
