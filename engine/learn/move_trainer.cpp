#include "learn/move_trainer.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/index.h"
#include "base/stop.h"
#include "simulator/simulator.h"

namespace trinity {
namespace {

constexpr double kLeastGain = 1e-6;  // what counts as better
constexpr int32_t kBatchRows = 512;       // of a gradient of imitate()
constexpr int32_t kBatchTrials = 64;      // ... of reinforce()

/// What a trial is worth: a little for being better at all, and the gain in thousandths.
double worth(double gain) { return gain > kLeastGain ? 0.3 + std::min(5.0, gain * 1000) : 0; }

}  // namespace

struct MoveTrainer::Task {
  explicit Task(std::shared_ptr<const Problem> bound) : problem(std::move(bound)), space(*problem) {}
  std::shared_ptr<const Problem> problem;
  PlacementSpace space;
  std::vector<Assignment> starts;
};

MoveTrainer::MoveTrainer(std::shared_ptr<MoveNetwork> network, const MoveTrainingOptions& options,
                         ThreadPool& pool)
    : network_(std::move(network)), options_(options), pool_(pool) {
  adam_.reset(network_->parameters().size());
}

void MoveTrainer::add(std::shared_ptr<const Problem> problem,
                      std::span<const std::vector<int32_t>> starts) {
  if (starts.empty()) throw ArgumentError("expected at least one placement to start from");
  auto task = std::make_shared<Task>(std::move(problem));
  if (task->space.devices() < 2) throw ArgumentError("expected a cluster of two devices or more");
  for (const auto& placement : starts) task->starts.push_back(task->space.assignment(placement));
  tasks_.push_back(std::move(task));
}

MoveTrainer::Episode MoveTrainer::run_one(uint64_t number) const {
  RandomStream random(options_.seed, "episode", number);
  const auto& task = *tasks_[number % tasks_.size()];
  AnnealingOptions options;
  options.seed = random.next() >> 11;
  options.evaluations = options_.evaluations;
  options.first_temperature = options_.first_temperature;
  options.mix = {.evenly_one_in = 5, .groups = true};
  options.starts = {task.starts[random.below(task.starts.size())]};
  options.ranking = {std::make_shared<MoveNetwork>(*network_), options_.candidates,
                     options_.sharpness, options_.plain_one_in, true};
  Annealing search(task.space, options);
  Simulator simulator(*task.problem);
  Metrics metrics;
  std::vector<Score> scores;
  double start = 0;
  while (search.evaluations() < options_.evaluations) {
    poll_stop();
    const auto left = options_.evaluations - search.evaluations();
    const auto trials = search.ask(static_cast<int32_t>(std::min<int64_t>(left, 64)));
    if (trials.placements.empty()) break;
    scores.clear();
    for (const auto& placement : trials.placements) {
      const double limit_ns = std::min(trials.limit, 9e18);
      simulator.run(placement, metrics, nullptr, static_cast<int64_t>(limit_ns));
      scores.push_back({metrics.excess_memory_bytes, static_cast<double>(metrics.step_time_ns)});
    }
    if (start == 0) start = scores[0].value;
    search.tell(scores);
  }
  return {search.take_choices(), search.best()->value / start};
}

std::vector<MoveTrainer::Episode> MoveTrainer::run(int32_t episodes) {
  if (tasks_.empty()) throw ArgumentError("expected a problem to train on");
  std::vector<Episode> list(at(episodes));
  pool_.parallel_for(episodes, [&](int item, int) {
    list[item] = run_one(static_cast<uint64_t>(episodes_ + item));
  });
  episodes_ += episodes;
  return list;
}

/// One step of Adam along `gradient` x scale; the features' shift and scale stay.
void MoveTrainer::step(std::vector<float>& gradient, double scale) {
  ++adam_.steps;
  auto& values = network_->parameters().values;
  const auto t = static_cast<double>(adam_.steps);
  const double rate = options_.learning_rate * std::sqrt(1 - std::pow(0.999, t)) /
                      (1 - std::pow(0.9, t));
  for (size_t i = 2 * at(kMoveFeatureCount); i < values.size(); ++i) {
    const double g = double{gradient[i]} * scale;
    adam_.first[i] = static_cast<float>(0.9 * double{adam_.first[i]} + 0.1 * g);
    adam_.second[i] = static_cast<float>(0.999 * double{adam_.second[i]} + 0.001 * g * g);
    values[i] -= static_cast<float>(rate * double{adam_.first[i]} /
                                    (std::sqrt(double{adam_.second[i]}) + 1e-8));
  }
  std::fill(gradient.begin(), gradient.end(), 0.0f);
}

void MoveTrainer::save(const std::string& path,
                       const std::map<std::string, std::string>& notes) const {
  const MoveTrainingState state{adam_, episodes_, static_cast<int64_t>(tasks_.size()),
                                options_.seed, standardised_};
  save_move_network(*network_, path, notes, &state);
}

std::map<std::string, std::string> MoveTrainer::resume(const std::string& path) {
  auto saved = load_move_network(path);
  const auto refuse = [&](const std::string& reason) {
    throw FileError(fmt::format("{}: {}", path, reason));
  };
  if (!saved.state) refuse("a trained ranker without the state of a training");
  if (saved.network->hidden() != network_->hidden())
    refuse(fmt::format("a training of hidden layers [{}], this one has [{}]",
                       fmt::join(saved.network->hidden(), ", "), fmt::join(network_->hidden(), ", ")));
  if (saved.state->seed != options_.seed || saved.state->problems != static_cast<int64_t>(tasks_.size()))
    refuse(fmt::format("a training of seed {} on {} problems, this one has seed {} and {}",
                       saved.state->seed, saved.state->problems, options_.seed, tasks_.size()));
  network_->parameters().values = saved.network->parameters().values;
  adam_ = std::move(saved.state->adam);
  episodes_ = saved.state->episodes;
  standardised_ = saved.state->standardised;
  return saved.notes;
}

MoveTrainer::Report MoveTrainer::imitate(int32_t episodes) {
  const auto list = run(episodes);
  Report report;
  std::vector<float> rows;
  std::vector<double> gains;
  constexpr auto width = at(kMoveFeatureCount);
  for (const auto& episode : list) {
    report.best_share += std::log(episode.share) / episodes;
    for (const auto& choice : episode.choices) {
      if (choice.count == 0) continue;
      const float* row = choice.features.data() + at(choice.chosen) * width;
      rows.insert(rows.end(), row, row + width);
      gains.push_back(choice.gain);
      report.improving += choice.gain > kLeastGain;
    }
  }
  report.best_share = std::exp(report.best_share);
  report.trials = static_cast<int64_t>(gains.size());
  if (!standardised_) network_->standardise(rows.data(), gains.size());
  standardised_ = true;
  std::vector<size_t> order(gains.size());
  std::iota(order.begin(), order.end(), size_t{0});
  RandomStream random(options_.seed, "order", static_cast<uint64_t>(episodes_));
  std::vector<float> batch, scores(at(kBatchRows)), slopes(at(kBatchRows));
  std::vector<float> gradient(at(network_->parameters().size()), 0);
  double weights = 0;
  for (int32_t epoch = 0; epoch < options_.epochs; ++epoch) {
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
    for (size_t from = 0; from < order.size(); from += at(kBatchRows)) {
      const size_t count = std::min(at(kBatchRows), order.size() - from);
      batch.clear();
      for (size_t k = 0; k < count; ++k) {
        const float* row = rows.data() + order[from + k] * width;
        batch.insert(batch.end(), row, row + width);
      }
      network_->score(batch.data(), static_cast<int32_t>(count), scores.data());
      double sum = 0;
      for (size_t k = 0; k < count; ++k) {
        const double gain = gains[order[from + k]];
        const bool better = gain > kLeastGain;
        const double weight = better ? worth(gain) : 1;
        const double chance = 1 / (1 + std::exp(-double{scores[k]}));
        slopes[k] = static_cast<float>(weight * (chance - (better ? 1 : 0)));
        report.loss -= weight * std::log(std::max(1e-12, better ? chance : 1 - chance));
        sum += weight;
      }
      weights += sum;
      network_->add_gradient(slopes.data(), gradient);
      step(gradient, 1 / sum);
    }
  }
  report.loss /= std::max(1.0, weights);
  return report;
}

namespace {

/// A trial as the choice among candidates sees it.
struct Trial {
  const RankedMoves::Choice* choice;
  double advantage;
  double log_chance;  // when it was drawn
};

/// log of the chances of a choice; `scores` in, out.
void log_softmax(std::vector<double>& scores) {
  const double best = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (const double score : scores) sum += std::exp(score - best);
  for (double& score : scores) score -= best + std::log(sum);
}

/// The trials of an episode with their advantages: discounted worth minus the mean around.
void add_trials(const std::vector<RankedMoves::Choice>& choices, const MoveTrainingOptions& o,
                std::vector<Trial>& trials) {
  const size_t n = choices.size();
  std::vector<double> returns(n + 1, 0), sums(n + 1, 0);
  for (size_t i = n; i-- > 0;) returns[i] = worth(choices[i].gain) + o.discount * returns[i + 1];
  for (size_t i = 0; i < n; ++i) sums[i + 1] = sums[i] + returns[i];
  const size_t half = at(o.baseline_trials) / 2;
  for (size_t i = 0; i < n; ++i) {
    if (choices[i].count < 2) continue;
    const size_t from = i > half ? i - half : 0, to = std::min(n, i + half);
    const double around = (sums[to] - sums[from]) / static_cast<double>(to - from);
    trials.push_back({&choices[i], returns[i] - around, 0});
  }
}

}  // namespace

MoveTrainer::Report MoveTrainer::reinforce(int32_t episodes) {
  const auto list = run(episodes);
  Report report;
  std::vector<Trial> trials;
  for (const auto& episode : list) {
    report.best_share += std::log(episode.share) / episodes;
    add_trials(episode.choices, options_, trials);
  }
  report.best_share = std::exp(report.best_share);
  report.trials = static_cast<int64_t>(trials.size());
  double squares = 0;
  for (const auto& trial : trials) {
    squares += trial.advantage * trial.advantage;
    report.improving += trial.choice->gain > kLeastGain;
  }
  const double scale =
      1 / std::max(1e-9, std::sqrt(squares / std::max(1.0, static_cast<double>(trials.size()))));
  std::vector<float> batch, scores, slopes;
  std::vector<double> chances;
  std::vector<float> gradient(at(network_->parameters().size()), 0);
  RandomStream random(options_.seed, "order", static_cast<uint64_t>(episodes_));
  const bool ppo = options_.clip > 0;
  const int32_t epochs = ppo ? options_.epochs : 1;
  int64_t seen = 0;
  for (int32_t epoch = ppo ? -1 : 0; epoch < epochs; ++epoch) {  // -1: chances before any step
    if (epoch >= 0)
      for (size_t i = trials.size(); i > 1; --i) std::swap(trials[i - 1], trials[random.below(i)]);
    for (size_t from = 0; from < trials.size(); from += at(kBatchTrials)) {
      poll_stop();
      const size_t to = std::min(trials.size(), from + at(kBatchTrials));
      batch.clear();
      for (size_t k = from; k < to; ++k)
        batch.insert(batch.end(), trials[k].choice->features.begin(),
                     trials[k].choice->features.end());
      const size_t rows = batch.size() / at(kMoveFeatureCount);
      scores.resize(rows);
      slopes.assign(rows, 0);
      network_->score(batch.data(), static_cast<int32_t>(rows), scores.data());
      size_t row = 0;
      for (size_t k = from; k < to; ++k) {
        const auto& choice = *trials[k].choice;
        chances.clear();
        for (int32_t c = 0; c < choice.count; ++c)
          chances.push_back(options_.sharpness * double{scores[row + at(c)]});
        log_softmax(chances);
        const double log_chance = chances[choice.chosen];
        if (epoch < 0) trials[k].log_chance = log_chance;
        double entropy = 0;
        for (const double log_p : chances) entropy -= std::exp(log_p) * log_p;
        const double advantage = trials[k].advantage * scale;
        const double ratio = ppo ? std::exp(log_chance - trials[k].log_chance) : 1;
        const bool cut = ppo && (advantage > 0 ? ratio > 1 + options_.clip : ratio < 1 - options_.clip);
        report.clipped += cut;
        report.entropy += entropy;
        report.loss -= ratio * advantage + options_.entropy * entropy;
        ++seen;
        for (int32_t c = 0; c < choice.count; ++c) {
          const double p = std::exp(chances[c]);
          const double toward = (c == choice.chosen ? 1 : 0) - p;
          const double slope = (cut ? 0 : -advantage * ratio * toward) +
                               options_.entropy * p * (chances[c] + entropy);
          slopes[row + at(c)] = static_cast<float>(options_.sharpness * slope);
        }
        row += at(choice.count);
      }
      if (epoch < 0) continue;
      network_->add_gradient(slopes.data(), gradient);
      step(gradient, 1 / static_cast<double>(to - from));
    }
  }
  const auto counted = std::max(1.0, static_cast<double>(seen));
  report.loss /= counted;
  report.entropy /= counted;
  report.clipped /= counted;
  return report;
}

}  // namespace trinity
