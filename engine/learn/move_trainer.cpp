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

constexpr double kLeastGain = 1e-6;   // what counts as better
constexpr int32_t kBatchRows = 512;   // of a gradient of imitate()
constexpr int32_t kBatchTrials = 64;  // ... of reinforce()

/// Reward of a trial: 0.3 for any improvement, plus the gain in thousandths.
double worth(double gain) { return gain > kLeastGain ? 0.3 + std::min(5.0, gain * 1000) : 0; }

}  // namespace

namespace {

double mean_share(const std::vector<MoveTrainer::Episode>& episodes) {
  if (episodes.empty()) throw ArgumentError("expected at least one episode");
  double sum = 0;
  for (const auto& episode : episodes) sum += std::log(episode.share);
  return std::exp(sum / static_cast<double>(episodes.size()));
}

}  // namespace

struct MoveTrainer::Task {
  explicit Task(std::shared_ptr<const Problem> bound)
      : problem(std::move(bound)), space(*problem) {}
  std::shared_ptr<const Problem> problem;
  PlacementSpace space;
  std::vector<Assignment> starts;
};

MoveTrainer::MoveTrainer(std::shared_ptr<MoveNetwork> network, const MoveTrainingOptions& options,
                         ThreadPool& pool)
    : network_(std::move(network)), options_(options), pool_(pool) {
  adam_.reset(network_->parameters().size());
  const float* scale = network_->parameters().data("scale");
  standardised_ = std::any_of(scale, scale + network_->inputs(), [](float s) { return s != 1; });
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

std::vector<MoveTrainer::Episode> MoveTrainer::run(int32_t episodes) const {
  if (tasks_.empty()) throw ArgumentError("expected a problem to train on");
  std::vector<Episode> list(at(episodes));
  pool_.parallel_for(episodes, [&](int item, int) {
    list[item] = run_one(static_cast<uint64_t>(episodes_ + item));
  });
  return list;
}

/// One step of Adam along `gradient` x scale; the features' shift and scale stay.
void MoveTrainer::step(std::vector<float>& gradient, double scale) {
  ++adam_.steps;
  auto& values = network_->parameters().values;
  const auto t = static_cast<double>(adam_.steps);
  const double rate =
      options_.learning_rate * std::sqrt(1 - std::pow(0.999, t)) / (1 - std::pow(0.9, t));
  for (size_t i = 2 * at(network_->inputs()); i < values.size(); ++i) {
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
    throw FileError("{}: {}", path, reason);
  };
  if (!saved.state) refuse("expected a training to resume, got a ranker without its training "
                           "state");
  if (saved.network->reads_memory_features() != network_->reads_memory_features())
    refuse("expected a training with the same features, got one with others");
  if (saved.network->hidden() != network_->hidden())
    refuse(fmt::format("a training with hidden layers [{}], expected [{}]",
                       fmt::join(saved.network->hidden(), ", "),
                       fmt::join(network_->hidden(), ", ")));
  if (saved.state->seed != options_.seed ||
      saved.state->problems != static_cast<int64_t>(tasks_.size()))
    refuse(fmt::format("a training with seed {} on {} problems, expected seed {} and {} problems",
                       saved.state->seed, saved.state->problems, options_.seed, tasks_.size()));
  network_->parameters().values = saved.network->parameters().values;
  adam_ = std::move(saved.state->adam);
  episodes_ = saved.state->episodes;
  standardised_ = saved.state->standardised;
  return saved.notes;
}

namespace {

constexpr auto kWidth = kMoveFeatures.size();

/// Moves that were tried, and by how much the value fell.
struct Tried {
  std::vector<float> rows;
  std::vector<double> gains;

  explicit Tried(const std::vector<MoveTrainer::Episode>& episodes) {
    for (const auto& episode : episodes)
      for (const auto& choice : episode.choices) add(choice);
  }
  size_t size() const { return gains.size(); }
  void add(const RankedMoves::Choice& choice) {
    if (choice.count == 0) return;
    const float* row = choice.features.data() + at(choice.chosen) * kWidth;
    rows.insert(rows.end(), row, row + kWidth);
    gains.push_back(choice.gain);
  }
  void copy(size_t k, std::vector<float>& to) const {
    const float* row = rows.data() + k * kWidth;
    to.insert(to.end(), row, row + kWidth);
  }
};

template <class List>
void shuffle(List& list, RandomStream& random) {
  for (size_t i = list.size(); i > 1; --i) std::swap(list[i - 1], list[random.below(i)]);
}

/// Cross-entropy of `score` for whether a move of this gain is better, weighted by the gain.
struct Entropy {
  double weight, loss, slope;
  Entropy(double score, double gain) {
    const bool better = gain > kLeastGain;
    const double chance = 1 / (1 + std::exp(-score));
    weight = better ? worth(gain) : 1;
    loss = -weight * std::log(std::max(1e-12, better ? chance : 1 - chance));
    slope = weight * (chance - (better ? 1 : 0));
  }
};

}  // namespace

/// A network that was never trained shifts and scales features by the first moves that it learns
/// from.
void MoveTrainer::standardise(const std::vector<float>& rows) {
  if (!standardised_) network_->standardise(rows.data(), rows.size() / kWidth);
  standardised_ = true;
}

MoveTrainer::Report MoveTrainer::imitate(int32_t episodes) { return imitate(run(episodes)); }

MoveTrainer::Report MoveTrainer::imitate(const std::vector<Episode>& episodes) {
  Report report;
  report.best_share = mean_share(episodes);
  episodes_ += std::ssize(episodes);
  const Tried tried(episodes);
  for (const double gain : tried.gains) report.improving += gain > kLeastGain;
  report.trials = static_cast<int64_t>(tried.size());
  standardise(tried.rows);
  std::vector<size_t> order(tried.size());
  std::iota(order.begin(), order.end(), size_t{0});
  RandomStream random(options_.seed, "order", static_cast<uint64_t>(episodes_));
  std::vector<float> gradient(at(network_->parameters().size()), 0), batch, scores, slopes;
  double weights = 0;
  for (int32_t epoch = 0; epoch < options_.epochs; ++epoch) {
    shuffle(order, random);
    for (size_t from = 0; from < order.size(); from += at(kBatchRows)) {
      const auto part =
          std::span(order).subspan(from).first(std::min(at(kBatchRows), order.size() - from));
      batch.clear();
      for (const size_t k : part) tried.copy(k, batch);
      scores.resize(part.size());
      slopes.clear();
      network_->score(batch.data(), static_cast<int32_t>(part.size()), scores.data());
      double sum = 0;
      for (size_t i = 0; i < part.size(); ++i) {
        const Entropy entropy(double{scores[i]}, tried.gains[part[i]]);
        slopes.push_back(static_cast<float>(entropy.slope));
        report.loss += entropy.loss;
        sum += entropy.weight;
      }
      weights += sum;
      network_->add_gradient(slopes.data(), gradient);
      step(gradient, 1 / sum);
    }
  }
  report.loss /= std::max(1.0, weights);
  return report;
}

/// A trial as the choice among candidates sees it.
struct MoveTrainer::Trial {
  const RankedMoves::Choice* choice;
  double advantage;
  double log_chance;  // when it was sampled
};

/// The trials of an episode with their advantages: discounted worth minus the mean around.
void MoveTrainer::add_trials(const std::vector<RankedMoves::Choice>& choices,
                             std::vector<Trial>& trials) const {
  const size_t n = choices.size();
  std::vector<double> returns(n + 1, 0), sums(n + 1, 0);
  for (size_t i = n; i-- > 0;)
    returns[i] = worth(choices[i].gain) + options_.discount * returns[i + 1];
  for (size_t i = 0; i < n; ++i) sums[i + 1] = sums[i] + returns[i];
  const size_t half = at(options_.baseline_trials) / 2;
  for (size_t i = 0; i < n; ++i) {
    if (choices[i].count < 2) continue;
    const size_t from = i > half ? i - half : 0, to = std::min(n, i + half);
    const double around = (sums[to] - sums[from]) / static_cast<double>(to - from);
    trials.push_back({&choices[i], returns[i] - around, 0});
  }
}

/// Log-probabilities of a trial's candidates by their scores.
std::vector<double> MoveTrainer::log_chances(const float* scores, int32_t count) const {
  std::vector<double> logs;
  for (int32_t c = 0; c < count; ++c) logs.push_back(options_.sharpness * double{scores[c]});
  const double best = *std::max_element(logs.begin(), logs.end());
  double sum = 0;
  for (const double log : logs) sum += std::exp(log - best);
  for (double& log : logs) log -= best + std::log(sum);
  return logs;
}

/// The slopes of the objective by a trial's scores: the clipped ratio of probabilities, and
/// entropy.
void MoveTrainer::add_slopes(const Trial& trial, const float* scores, std::vector<float>& slopes,
                             Report& report) const {
  const auto& choice = *trial.choice;
  const auto logs = log_chances(scores, choice.count);
  double entropy = 0;
  for (const double log : logs) entropy -= std::exp(log) * log;
  const bool ppo = options_.clip > 0;
  const double ratio = ppo ? std::exp(logs[choice.chosen] - trial.log_chance) : 1;
  const bool cut =
      ppo && (trial.advantage > 0 ? ratio > 1 + options_.clip : ratio < 1 - options_.clip);
  report.clipped += cut;
  report.entropy += entropy;
  report.loss -= ratio * trial.advantage + options_.entropy * entropy;
  for (int32_t c = 0; c < choice.count; ++c) {
    const double p = std::exp(logs[c]);
    const double toward = (c == choice.chosen ? 1 : 0) - p;
    const double slope =
        (cut ? 0 : -trial.advantage * ratio * toward) + options_.entropy * p * (logs[c] + entropy);
    slopes.push_back(static_cast<float>(options_.sharpness * slope));
  }
}

/// Calls use(trial, scores of its candidates) in batches, and `end` with their number after each.
template <class Use, class End>
void MoveTrainer::each_batch(std::vector<Trial>& trials, Use use, End end) {
  std::vector<float> batch, scores;
  for (size_t from = 0; from < trials.size(); from += at(kBatchTrials)) {
    poll_stop();
    const size_t to = std::min(trials.size(), from + at(kBatchTrials));
    batch.clear();
    for (size_t k = from; k < to; ++k)
      batch.insert(batch.end(), trials[k].choice->features.begin(),
                   trials[k].choice->features.end());
    scores.resize(batch.size() / kWidth);
    network_->score(batch.data(), static_cast<int32_t>(scores.size()), scores.data());
    const float* row = scores.data();
    for (size_t k = from; k < to; row += trials[k++].choice->count) use(trials[k], row);
    end(to - from);
  }
}

MoveTrainer::Report MoveTrainer::reinforce(int32_t episodes) { return reinforce(run(episodes)); }

MoveTrainer::Report MoveTrainer::reinforce(const std::vector<Episode>& episodes) {
  Report report;
  report.best_share = mean_share(episodes);
  episodes_ += std::ssize(episodes);
  if (!standardised_) standardise(Tried(episodes).rows);
  std::vector<Trial> trials;
  for (const auto& episode : episodes) add_trials(episode.choices, trials);
  report.trials = static_cast<int64_t>(trials.size());
  double squares = 0;
  for (const auto& trial : trials) squares += trial.advantage * trial.advantage;
  const double deviation = std::sqrt(squares / std::max(1.0, static_cast<double>(trials.size())));
  for (auto& trial : trials) {
    trial.advantage /= std::max(1e-9, deviation);
    report.improving += trial.choice->gain > kLeastGain;
  }
  each_batch(
      trials,
      [&](Trial& trial, const float* scores) {
        trial.log_chance = log_chances(scores, trial.choice->count)[trial.choice->chosen];
      },
      [](size_t) {});
  std::vector<float> slopes, gradient(at(network_->parameters().size()), 0);
  RandomStream random(options_.seed, "order", static_cast<uint64_t>(episodes_));
  const int32_t epochs = options_.clip > 0 ? options_.epochs : 1;
  for (int32_t epoch = 0; epoch < epochs; ++epoch) {
    shuffle(trials, random);
    each_batch(
        trials,
        [&](const Trial& trial, const float* scores) { add_slopes(trial, scores, slopes, report); },
        [&](size_t count) {
          network_->add_gradient(slopes.data(), gradient);
          slopes.clear();
          step(gradient, 1 / static_cast<double>(count));
        });
  }
  const auto seen = std::max(1.0, static_cast<double>(trials.size()) * epochs);
  report.loss /= seen;
  report.entropy /= seen;
  report.clipped /= seen;
  return report;
}

}  // namespace trinity
