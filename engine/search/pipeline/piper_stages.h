#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/index.h"
#include "search/pipeline/piper_planner.h"

// Costs of a stage, for Piper's planner (piper_planner.cpp).

namespace trinity::piper {

constexpr double kNone = std::numeric_limits<double>::infinity();
/// Tolerance of Piper's code when comparing bytes.
constexpr double kByteSlack = 1e-9;

inline const PiperProblem::Degree* find_degree(const PiperProblem::Layer& layer, int32_t degree) {
  for (const auto& entry : layer.degrees)
    if (entry.degree == degree) return &entry;
  return nullptr;
}

/// One way to run a layer in a stage of given degrees.
struct Choice {
  double time, bytes_per_batch, fixed_bytes;
  double bytes(double in_flight) const { return bytes_per_batch * in_flight + fixed_bytes; }
};

/// The choices for all layers of a stage, and their selection. Not thread-safe.
class StageChoices {
 public:
  void clear() {
    choices_.clear();
    first_.assign(1, 0);
  }
  void add(const Choice& choice) { choices_.push_back(choice); }
  void end_layer() { first_.push_back(choices_.size()); }

  /// Minimum time of choices that fit into `memory_bytes`, as found by Piper's code; kNone if none
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

  /// Changes choices until `bytes` are saved, cheapest first. Layers with two choices change once,
  /// in one sorted pass; with more, the cheapest change is searched each time.
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

  /// All changes that save bytes; savings are capped at `needed`.
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
  std::vector<size_t> first_;  // per layer
};

/// Computes times and memory of stages of one problem. Not thread-safe.
class Pricer {
 public:
  explicit Pricer(const PiperProblem& problem)
      : problem_(problem), inside_(problem.layers.size(), false) {}

  /// Sets the layers of the next stage.
  void set_layers(const std::vector<int32_t>& layers) {
    for (const int32_t layer : layers_) inside_[layer] = false;
    layers_ = layers;
    for (const int32_t layer : layers_) inside_[layer] = true;
    degree_ = replicas_ = 0;
  }
  const std::vector<int32_t>& layers() const { return layers_; }

  /// Returns false if a layer lacks the degree; `work` receives the minimum time of the stage on
  /// one replica without communication.
  bool set_degree(int32_t degree, double& work) {
    entries_.clear();
    work = 0;
    for (const int32_t layer : layers_) {
      const auto* entry = find_degree(problem_.layers[layer], degree);
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

  /// The time of the stage, kNone if it does not fit.
  double time(int32_t replicas, int64_t in_flight, std::vector<int32_t>& taken) {
    if (replicas_ != replicas) fill(replicas);
    return choices_.choose(static_cast<double>(in_flight), problem_.memory_bytes, taken);
  }

  /// The time of given configurations.
  Choice cost(size_t position, const PiperProblem::Configuration& configuration,
              int32_t replicas) const {
    const auto& layer = problem_.layers[layers_[position]];
    double edge_bytes = 0;
    for (size_t e = 0; e < layer.edges.size(); ++e) {
      const auto& edge = problem_.edges[layer.edges[e]];
      if (inside_[edge.from] && inside_[edge.to]) continue;
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

}  // namespace trinity::piper
