#include "search/local_search.h"

#include <algorithm>

#include "base/error.h"

namespace trinity {
namespace {

constexpr int32_t kBatch = 8;            // trials in flight
constexpr uint64_t kMostKicks = 4;       // random moves of a kick
constexpr int64_t kReplayInterval = 20;  // evaluations between two looks at the critical path
constexpr int kDraws = 64;               // random moves tried for one that gives something new
constexpr int kRandomDraws = 1000;       // random assignments tried for a new one

LocalSearchOptions checked(LocalSearchOptions options, const PlacementSpace& space) {
  if (options.starts.empty()) options.starts.emplace_back(static_cast<size_t>(space.units()), 0);
  for (const auto& start : options.starts) space.check(start);
  return options;
}

}  // namespace

LocalSearch::LocalSearch(const PlacementSpace& space, LocalSearchOptions options)
    : Searcher(space),
      options_(checked(std::move(options), space)),
      moves_(space, RandomStream(options_.seed, "local search")),
      memo_(space),
      patience_(static_cast<int32_t>(
          std::clamp<int64_t>(int64_t{space.units()} * (space.devices() - 1), 50, 1000))) {}

void LocalSearch::take(const Assignment& assignment, const Score& score) {
  state_ = assignment;
  score_ = score;
  failures_ = 0;
  stale_ = true;
}

/// A new order of all moves of one unit to one device.
void LocalSearch::shuffle() {
  if (round_.empty())
    for (int32_t move = 0; move < space().units() * space().devices(); ++move)
      round_.push_back(move);
  for (size_t i = round_.size(); i > 1; --i)
    std::swap(round_[i - 1], round_[moves_.random().below(i)]);
  next_move_ = 0;
}

/// The next move of the round that changes something; false at its end.
bool LocalSearch::next_single(Assignment& trial) {
  while (next_move_ < round_.size()) {
    const int32_t move = round_[next_move_++];
    auto& device = trial[static_cast<size_t>(move / space().devices())];
    if (device == move % space().devices()) continue;
    device = move % space().devices();
    return true;
  }
  return false;
}

bool LocalSearch::add_new(Assignment trial, std::vector<Assignment>& trials) {
  if (memo_.find(trial)) return false;
  const uint64_t key = space().key(trial);
  for (const auto& other : trials)
    if (space().key(other) == key) return false;
  trials.push_back(std::move(trial));
  return true;
}

void LocalSearch::descend(int32_t most, std::vector<Assignment>& trials) {
  for (int draw = 0; draw < kDraws && static_cast<int32_t>(trials.size()) < most; ++draw) {
    auto trial = state_;
    if (draw % 2 == 0) {
      moves_.apply(trial);
    } else if (!next_single(trial)) {
      shuffle();
      continue;
    }
    const auto* known = memo_.find(trial);
    const bool better = known && known->exact && known->score < score_;
    if (better && trials.empty()) {
      take(trial, known->score);
    } else {
      add_new(std::move(trial), trials);
    }
  }
}

void LocalSearch::kick(std::vector<Assignment>& trials) {
  kicked_ = true;
  for (int draw = 0; draw < kDraws && trials.empty(); ++draw) {
    auto trial = home_;
    const auto count = 1 + moves_.random().below(kMostKicks);
    for (uint64_t move = 0; move < count; ++move) moves_.apply(trial);
    add_new(std::move(trial), trials);
  }
  if (trials.empty()) add_random(trials);
}

/// A random assignment that is not known, where a reasonable number of draws finds one. None where
/// all are known.
void LocalSearch::add_random(std::vector<Assignment>& trials) {
  if (static_cast<double>(memo_.size()) >= space().choices()) return;
  Assignment trial(state_.size());
  for (int draw = 0; draw < kRandomDraws && trials.empty(); ++draw) {
    for (auto& device : trial)
      device =
          static_cast<int32_t>(moves_.random().below(static_cast<uint64_t>(space().devices())));
    add_new(trial, trials);
  }
  if (trials.empty()) trials.push_back(std::move(trial));
}

/// Looks at the critical path of a new state, now and then. Whether it did.
bool LocalSearch::follow_path() {
  if (!stale_) return false;
  if (last_replay_ > 0 && evaluations() - last_replay_ < kReplayInterval) return false;
  moves_.focus(state_);
  count_replay();
  stale_ = false;
  last_replay_ = evaluations();
  return true;
}

void LocalSearch::propose(int32_t most, std::vector<Assignment>& trials) {
  auto batch = std::min(most, kBatch);
  kicked_ = false;
  if (started_ < options_.starts.size()) {
    while (static_cast<int32_t>(trials.size()) < batch && started_ < options_.starts.size())
      trials.push_back(options_.starts[started_++]);
    return;
  }
  if (state_.empty()) {
    take(best_assignment(), *best());
    shuffle();
  }
  if (most > 1 && follow_path()) batch = std::min(most - 1, kBatch);
  if (failures_ < patience_) descend(batch, trials);
  if (!trials.empty()) return;
  if (home_.empty() || score_ <= home_score_) {
    home_ = state_;
    home_score_ = score_;
  }
  kick(trials);
}

double LocalSearch::limit() const {
  if (state_.empty() || kicked_ || !score_.fits()) return std::numeric_limits<double>::infinity();
  return score_.value;
}

void LocalSearch::learn(std::span<const Assignment> trials, std::span<const Score> scores) {
  for (size_t i = 0; i < trials.size(); ++i) memo_.add(trials[i], scores[i], limit());
  if (state_.empty()) return;
  if (kicked_) return take(trials[0], scores[0]);
  failures_ += static_cast<int32_t>(trials.size());
  const auto least = std::min_element(scores.begin(), scores.end()) - scores.begin();
  if (scores[static_cast<size_t>(least)] < score_)
    take(trials[static_cast<size_t>(least)], scores[static_cast<size_t>(least)]);
}

}  // namespace trinity
