#include "search/pipeline/pipedream_planner.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/index.h"

namespace trinity {
namespace {

constexpr double kNoTime = std::numeric_limits<double>::infinity();
constexpr int64_t kMostTableEntries = 32'000'000;
constexpr int32_t kMostWorkers = 1024;

/// The best solution of a part of the graph on some workers: its slowest stage, and the last cut.
struct Entry {
  double time_s = kNoTime;
  int32_t cut = -1;      // the state before the last stage; -1: one stage
  int32_t replicas = 0;  // of the last stage
  int32_t workers = -1;  // fewer than available (minus 1), if that is better
};

/// Precedence of states: a row of bits per state.
class Before {
 public:
  explicit Before(std::span<const PipedreamState> states)
      : words_(states.size() / 64 + 1), bits_(states.size() * words_, 0) {
    for (size_t s = 0; s < states.size(); ++s)
      for (const int32_t b : states[s].before)
        bits_[s * words_ + at(b) / 64] |= uint64_t{1} << (b % 64);
  }
  bool operator()(int32_t a, int32_t b) const {
    return bits_[at(b) * words_ + at(a) / 64] >> (a % 64) & 1;
  }

 private:
  size_t words_;
  std::vector<uint64_t> bits_;
};

/// Table of one level: [first state i - 1 (i = 0: the beginning)][last state j >= i][number of
/// workers m + 1].
class Level {
 public:
  Level(std::span<const PipedreamState> states, const Before& before, const PipedreamLevel& about,
        const PipedreamOptions& options, int32_t workers_below, const Level* below, bool last,
        const Deadline& deadline)
      : states_(states),
        before_(before),
        about_(about),
        options_(options),
        workers_below_(workers_below),
        below_(below),
        poll_(deadline),
        count_(static_cast<int32_t>(states.size())),
        starts_(last ? 1 : count_),
        table_(index(starts_, starts_, 0)) {
    for (int32_t i = 0; i < starts_; ++i) {
      deadline.poll();
      for (int32_t j = i; j < count_; ++j)
        if (i == 0 || before_(i - 1, j)) fill_one_stage(i, j);
      for (int32_t j = i + 1; j < count_ && about_.workers > 1; ++j)
        if (i == 0 || before_(i - 1, j)) fill_splits(i, j);
    }
  }

  const Entry& best(int32_t i, int32_t j, int32_t m) const { return table_[index(i, j, m)]; }
  const Entry& best(int32_t i, int32_t j) const { return best(i, j, about_.workers - 1); }
  int32_t workers() const { return about_.workers; }
  const Level* below() const { return below_; }

 private:
  /// Row i holds j = i .. count - 1.
  size_t index(int32_t i, int32_t j, int32_t m) const {
    const size_t row = at(i) * at(count_) - at(i) * (at(i) + 1) / 2 + at(i);
    return (row + at(j - i)) * at(about_.workers) + at(m);
  }
  double part(double PipedreamState::*field, int32_t i, int32_t j) const {
    return states_[j].*field - (i > 0 ? states_[i - 1].*field : 0);
  }
  /// Seconds of states i .. j as one stage of the level below.
  double compute_s(int32_t i, int32_t j) const {
    return below_ ? below_->best(i, j).time_s : part(&PipedreamState::time_s, i, j);
  }
  bool stashes_too_much(int32_t i, int32_t j, int32_t workers_left, int32_t replicas) const {
    if (options_.memory_bytes <= 0) return false;
    const double versions = std::ceil(static_cast<double>(workers_left) / replicas);
    return versions * (part(&PipedreamState::activation_bytes, i, j) +
                       part(&PipedreamState::parameter_bytes, i, j)) >
           options_.memory_bytes;
  }
  /// Seconds of a stage with this compute time and these weights on `replicas` workers. `shared`
  /// divides the bytes exchanged.
  double stage_s(double compute, double weights, int32_t replicas, double shared) const {
    if (options_.paper)
      return std::max(compute, 2.0 * (replicas - 1) * weights / about_.bandwidth_bytes_per_s) /
             replicas;
    const double exchange =
        4.0 * (replicas - 1) * weights / (about_.bandwidth_bytes_per_s * replicas) / shared;
    return (compute + exchange) / replicas;
  }
  double transfer_s(int32_t state, int32_t replicas) const {
    const double whole =
        2 * states_[state].output_bytes / (about_.bandwidth_bytes_per_s * options_.compression);
    return options_.paper ? whole : whole / replicas;
  }

  void fill_one_stage(int32_t i, int32_t j) {
    const double weights = part(&PipedreamState::parameter_bytes, i, j);
    for (int32_t m = 0; m < (options_.straight ? 1 : about_.workers); ++m) {
      if (stashes_too_much(i, j, about_.workers - m - 1, m + 1)) continue;
      const double time_s = stage_s(compute_s(i, j), weights, m + 1, workers_below_);
      if (time_s < kNoTime) table_[index(i, j, m)] = {time_s, -1, m + 1};
    }
  }

  void fill_splits(int32_t i, int32_t j) {
    Entry* best = &table_[index(i, j, 0)];
    for (const int32_t k : states_[j].before) {
      if (k < i || (i > 0 && !before_(i - 1, k))) continue;
      const double compute = compute_s(k + 1, j);
      const double weights = part(&PipedreamState::parameter_bytes, k + 1, j);
      const Entry* earlier = &table_[index(i, k, 0)];
      const int32_t most = options_.straight ? 1 : about_.workers - 1;
      poll_.step(1 + int64_t{most} * about_.workers / 2);
      for (int32_t replicas = 1; replicas <= most; ++replicas) {
        double time_s = stage_s(compute, weights, replicas, 1);
        if (options_.transfers) {
          time_s = std::max(time_s, transfer_s(k, replicas));
          if (j + 1 < count_) time_s = std::max(time_s, transfer_s(j, replicas));
        }
        for (int32_t m = replicas; m < about_.workers; ++m)
          improve(best[m], std::max(time_s, earlier[m - replicas].time_s), k, j, m, replicas);
      }
    }
    for (int32_t m = 1; options_.fewer && m < about_.workers; ++m)
      if (best[m - 1].time_s < best[m].time_s) {
        best[m] = best[m - 1];
        best[m].workers = best[m - 1].workers < 0 ? m - 1 : best[m - 1].workers;
      }
  }

  void improve(Entry& best, double time_s, int32_t k, int32_t j, int32_t m, int32_t replicas) {
    if (!(time_s < best.time_s) || stashes_too_much(k + 1, j, about_.workers - m - 1, replicas))
      return;
    best = {time_s, k, replicas};
  }

  std::span<const PipedreamState> states_;
  const Before& before_;
  PipedreamLevel about_;
  const PipedreamOptions& options_;
  int32_t workers_below_;
  const Level* below_;
  DeadlinePoll poll_;
  int32_t count_, starts_;
  std::vector<Entry> table_;
};

/// Appends the stages of states i .. j, solved by `level` on all its workers.
void collect(const Level& level, int32_t i, int32_t j, std::vector<int32_t> outer,
             std::vector<PipedreamStage>& stages) {
  std::vector<PipedreamStage> own;
  for (int32_t m = level.workers() - 1; j >= i;) {
    const Entry& entry = level.best(i, j, m);
    if (entry.workers >= 0) m = entry.workers;
    own.push_back({entry.cut < 0 ? i - 1 : entry.cut, j, {entry.replicas}});
    if (entry.cut < 0) break;
    j = entry.cut;
    m -= entry.replicas;
  }
  std::reverse(own.begin(), own.end());
  for (auto& stage : own) {
    auto replicas = outer;
    replicas.insert(replicas.begin(), stage.replicas[0]);
    if (level.below())
      collect(*level.below(), stage.first + 1, stage.last, replicas, stages);
    else
      stages.push_back({stage.first, stage.last, replicas});
  }
}

void check(std::span<const PipedreamState> states, std::span<const PipedreamLevel> levels) {
  if (states.empty() || levels.empty())
    throw ArgumentError("PipeDream's optimiser needs a state and a level");
  for (size_t l = 0; l < levels.size(); ++l) {
    const auto& [workers, bandwidth] = levels[l];
    if (workers < 1 || workers > kMostWorkers || !(bandwidth > 0))
      throw ArgumentError(fmt::format(
          "PipeDream's optimiser: a level of {} workers at {} bytes/s; expected 1 to {} at more "
          "than 0",
          workers, bandwidth, kMostWorkers));
    const auto count = static_cast<int64_t>(states.size());
    if ((l + 1 < levels.size() ? (count + 1) / 2 : 1) * count * workers > kMostTableEntries)
      throw LimitError(fmt::format(
          "PipeDream's optimiser: {} states and {} workers are more than its tables hold", count,
          workers));
  }
}

}  // namespace

PipedreamPipeline pipedream_pipeline(std::span<const PipedreamState> states,
                                     std::span<const PipedreamLevel> levels,
                                     const PipedreamOptions& options, const Deadline& deadline) {
  check(states, levels);
  std::vector<Level> solved;
  solved.reserve(levels.size());  // levels keep pointers to lower ones
  const Before before(states);
  PipedreamPipeline pipeline;
  pipeline.data_parallel_s = states.back().time_s;
  int32_t below = 1;
  for (size_t l = 0; l < levels.size(); ++l) {
    solved.emplace_back(states, before, levels[l], options, below, l > 0 ? &solved.back() : nullptr,
                        l + 1 == levels.size(), deadline);
    const int32_t workers = levels[l].workers;
    const double weights = states.back().parameter_bytes / levels[l].bandwidth_bytes_per_s;
    pipeline.data_parallel_s =
        options.paper
            ? std::max(pipeline.data_parallel_s, 2.0 * (workers - 1) * weights) / workers
            : (pipeline.data_parallel_s + 4.0 * (workers - 1) * weights / workers / below) /
                  workers;
    below = workers;
  }
  const auto last = static_cast<int32_t>(states.size()) - 1;
  pipeline.time_s = solved.back().best(0, last).time_s;
  pipeline.feasible = pipeline.time_s < kNoTime;
  if (pipeline.feasible) collect(solved.back(), 0, last, {}, pipeline.stages);
  return pipeline;
}

namespace {

/// Number of cuts whose tables take about this many nanoseconds to fill.
int32_t few_cuts(std::span<const PipedreamLevel> levels, const PipedreamOptions& options,
                 double most_steps) {
  double workers = 1, all = 1;
  for (const auto& level : levels) {
    workers = std::max(workers, static_cast<double>(level.workers));
    all *= level.workers;
  }
  const auto steps = [&](double cuts) {
    const double triples = cuts * cuts / 2 * (levels.size() > 1 ? cuts / 3 : 1);
    return triples * workers * (options.straight ? 1 : workers / 2);
  };
  double cuts = 1024;
  while (cuts > 1 && steps(cuts) > most_steps) cuts /= 2;
  // As many stages as workers need that number of cuts.
  if (options.straight && steps(all) <= 10 * most_steps) cuts = std::max(cuts, all);
  return static_cast<int32_t>(cuts);
}

}  // namespace

PipedreamFound find_pipedream_pipeline(const PipedreamLayers& layers,
                                       std::span<const PipedreamLevel> levels,
                                       const PipedreamOptions& options, const std::string& compress,
                                       double seconds) {
  const auto deadline = Deadline::in(seconds);
  PipedreamFound found;
  const auto pipeline = [&](const char* kind, auto states, const Deadline& until) {
    try {
      found.cuts = {states(), kind};
      found.pipeline = pipedream_pipeline(found.cuts.states, levels, options, until);
      return true;
    } catch (const LimitError&) {
      if (compress != "auto") throw;
      return false;
    }
  };
  const auto few = [&](double most_steps, const Deadline& until) {
    found.complete = false;
    const int32_t most = few_cuts(levels, options, most_steps);
    pipeline(
        "few of one order", [&] { return pipedream_few(layers, most); }, until);
  };
  try {
    const auto all = [&] { return pipedream_states(layers, deadline); };
    const auto fewer = [&] { return pipedream_states(compress_branches(layers), deadline); };
    const auto chain = [&] { return pipedream_chain(layers, deadline); };
    if (compress != "yes" && pipeline("antichains", all, deadline)) return found;
    if (pipeline("antichains of compressed branches", fewer, deadline)) return found;
    if (!pipeline("one order", chain, deadline)) few(2e9, deadline);
  } catch (const TimeIsUp&) {
    few(5e7, {});
  }
  return found;
}

}  // namespace trinity
