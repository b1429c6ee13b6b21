#include "search/placement/annealing.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "search/placement/search_options.h"

namespace trinity {
namespace {

constexpr int kKnownSteps = 64;  // trials with a known score before the temperature doubles
constexpr int kMostKnownSteps = 20 * kKnownSteps;  // ... and before a known one is evaluated again

constexpr double kExcessGain = 0.01;

/// Reference value for relative changes.
double scale_of(const Score& score) { return std::max(std::abs(score.value), 1e-300); }

AnnealingOptions checked(const AnnealingOptions& options) {
  const auto expect = [](bool good, const char* what) {
    if (!good) throw ArgumentError("annealing: expected {}", what);
  };
  each_annealing_option(options, OptionRanges{});
  expect(options.evaluations >= 1, "at least 1 evaluation");
  expect(options.first_temperature >= options.last_temperature,
         "a first temperature no lower than the last");
  return options;
}

}  // namespace

Annealing::Annealing(const PlacementSpace& space, const AnnealingOptions& options)
    : MovingSearch(space, options.starts, RandomStream(options.seed, "annealing"), options.mix),
      options_(checked(options)) {
  look_every_ = options_.look_every;
  if (options_.ranking.ranker && space.devices() > 1)
    ranked_.emplace(space, moves_, options_.ranking);
}

void Annealing::begin_cooling() {
  cooling_ = true;
  first_evaluation_ = evaluations();
  take(best_assignment(), *best());
  scale_ = std::abs(score_.value) / space().units();
  if (ranked_) ranked_->begin_cooling();
}

bool Annealing::accepts(const Score& score, double threshold) const {
  if (score.excess_memory_bytes != score_.excess_memory_bytes)
    return score.excess_memory_bytes < score_.excess_memory_bytes;
  return score.value <= threshold;
}

/// Progress of the cooling.
double Annealing::progress() const {
  const double used = static_cast<double>(evaluations() - first_evaluation_) /
                      static_cast<double>(options_.evaluations);
  return std::min(1.0, std::max(progress_, used));
}

double Annealing::temperature() const {
  return scale_ * options_.first_temperature *
         std::pow(options_.last_temperature / options_.first_temperature, progress());
}

/// Acceptance threshold of a trial.
double Annealing::threshold(double hotter) {
  const double drawn = moves_.random().uniform();
  if (options_.accept)
    return score_.value + scale_ * hotter * options_.accept->rise(progress(), drawn);
  return score_.value - hotter * temperature() * std::log(1 - drawn);
}

/// The state after a move.
Assignment Annealing::moved(double temperature) {
  auto trial = state_;
  if (ranked_)
    ranked_->apply(trial, temperature / scale_of(score_));
  else
    moves_.apply(trial);
  return trial;
}

/// Adds a trial and its threshold. Returns false if the batch must end: a state with a known score
/// will be taken if no earlier trial is accepted.
bool Annealing::draw(std::vector<Assignment>& trials) {
  double hotter = 1;
  for (int step = 1;; ++step) {
    if (step % kKnownSteps == 0) hotter *= 2;
    auto trial = moved(hotter * temperature());
    const double threshold = this->threshold(hotter);
    const uint64_t key = space().key(trial);
    const auto* known = memo_.find(key);
    const bool take_it = known && accepts(known->score, threshold);
    if (!known || step == kMostKnownSteps || (take_it && !known->exact)) {
      trials.push_back(std::move(trial));
      keys_.push_back(key);
      thresholds_.push_back(threshold);
      return true;
    }
    if (ranked_) ranked_->drop();
    if (!take_it) continue;
    if (!trials.empty()) {
      next_ = std::move(trial);
      next_score_ = known->score;
      return false;
    }
    take(trial, known->score);
  }
}

void Annealing::prepare() {
  thresholds_.clear();
  keys_.clear();
  next_.clear();
  if (!cooling_ || evaluations() - first_evaluation_ >= options_.evaluations) begin_cooling();
}

/// From now on ranked moves are of the state.
void Annealing::begin_ranked() {
  if (!ranked_ || ranked_of_ == taken_) return;
  ranked_->begin(state_);
  ranked_of_ = taken_;
}

void Annealing::propose(int32_t most, std::vector<Assignment>& trials) {
  prepare();
  const auto batch = static_cast<size_t>(
      follow_path(most, ranked_ ? &*ranked_ : nullptr, options_.batch));
  begin_ranked();
  while (trials.size() < batch && draw(trials)) {
  }
}

double Annealing::limit() const {
  if (thresholds_.empty() || !score_.fits()) return std::numeric_limits<double>::infinity();
  return *std::max_element(thresholds_.begin(), thresholds_.end());
}

/// Reports the gains of the trials to the ranked moves; a change of the excess counts a little.
void Annealing::tell_gains(std::span<const Score> scores) {
  std::vector<double> gains;
  for (const auto& score : scores) {
    const auto excess = score.excess_memory_bytes <=> score_.excess_memory_bytes;
    gains.push_back(excess < 0   ? kExcessGain
                    : excess > 0 ? -kExcessGain
                                 : (score_.value - score.value) / scale_of(score_));
  }
  ranked_->told(gains);
}

Annealing::Flight Annealing::launch(int64_t most) {
  prepare();
  if (!looking_ && counts_look(most)) {
    looking_ = true;
    return {true, state_, 0, 0, 0, score_, taken_};
  }
  begin_ranked();
  std::vector<Assignment> trials;
  draw(trials);  // the first of a batch always exists
  count_evaluation();
  return {false, std::move(trials[0]), keys_[0], thresholds_[0], limit(), score_, taken_};
}

void Annealing::look(const Flight& flight) {
  if (ranked_)
    ranked_->look(flight.assignment);
  else
    seen_ = moves_.blame(flight.assignment);
}

void Annealing::land(const Flight& flight, const Score& score) {
  if (flight.is_look) {
    looking_ = false;
    return ranked_ ? ranked_->show() : moves_.focus(*seen_);
  }
  note(flight.assignment, score);
  memo_.add(flight.key, score, flight.limit);
  if (ranked_) tell_gains({&score, 1});
  const bool is_of_state = flight.taken == taken_;
  if ((is_of_state || score < flight.from) &&
      accepts(score, is_of_state ? flight.threshold : score_.value))
    take(flight.assignment, score);
}

std::vector<RankedMoves::Choice> Annealing::take_choices() {
  return ranked_ ? std::exchange(ranked_->choices(), {}) : std::vector<RankedMoves::Choice>{};
}

void Annealing::learn(std::span<const Assignment> trials, std::span<const Score> scores) {
  remember(trials, scores);
  if (thresholds_.empty()) return;
  if (ranked_) tell_gains(scores);
  bool moved = false;
  for (size_t i = 0; i < trials.size(); ++i) {
    if (!accepts(scores[i], moved ? score_.value : thresholds_[i])) continue;
    take(trials[i], scores[i]);
    moved = true;
  }
  if (!moved && !next_.empty()) take(next_, next_score_);
}

}  // namespace trinity
