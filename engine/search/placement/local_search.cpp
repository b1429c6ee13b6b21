#include "search/placement/local_search.h"

#include <algorithm>

namespace trinity {
namespace {

constexpr uint64_t kMostKicks = 4;  // random moves of a perturbation
constexpr int kDraws = 64;          // random moves tried to find a new assignment
constexpr int kRandomDraws = 1000;  // random assignments tried to find a new one

}  // namespace

LocalSearch::LocalSearch(const PlacementSpace& space, const LocalSearchOptions& options)
    : MovingSearch(space, options.starts, RandomStream(options.seed, "local search"),
                   options.mix),
      patience_(static_cast<int32_t>(
          std::clamp<int64_t>(int64_t{space.units()} * (space.devices() - 1), 50, 1000))) {}

void LocalSearch::go_to(const Assignment& assignment, const Score& score) {
  take(assignment, score);
  failures_ = 0;
}

/// Shuffles all moves of one unit to one device.
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
    auto& device = trial[move / space().devices()];
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
      go_to(trial, known->score);
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

/// Adds a new random assignment, unless a reasonable number of samples finds none or all are known.
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

void LocalSearch::propose(int32_t most, std::vector<Assignment>& trials) {
  kicked_ = false;
  if (state_.empty()) {
    go_to(best_assignment(), *best());
    shuffle();
  }
  const int32_t batch = follow_path(most);
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
  remember(trials, scores);
  if (state_.empty()) return;
  if (kicked_) return go_to(trials[0], scores[0]);
  failures_ += static_cast<int32_t>(trials.size());
  const auto least = std::min_element(scores.begin(), scores.end()) - scores.begin();
  if (scores[least] < score_) go_to(trials[least], scores[least]);
}

}  // namespace trinity
