#include "search/placement/ranked_moves.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/hash.h"
#include "base/index.h"

namespace trinity {
namespace {

constexpr size_t kMostSeen = size_t{1} << 20;
constexpr int32_t kChoices = 1024, kFew = 200;  // kFew of kChoices counts as almost none
constexpr int32_t kLeastMost = 16;

/// Adds its lifetime to a total.
class Stopwatch {
 public:
  explicit Stopwatch(double& seconds) : seconds_(seconds) {}
  ~Stopwatch() { seconds_ += std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  double& seconds_;
  Clock::time_point start_ = Clock::now();
};

/// The key of an assignment is the sum of these terms over its units, so a move changes few terms.
uint64_t term(int32_t unit, int32_t device) {
  return mix64((static_cast<uint64_t>(unit) << 24) ^ static_cast<uint64_t>(device));
}

}  // namespace

void SetSizes::note(size_t units) {
  large_ += 2 * units > at(most_);
  if (++chosen_ < kChoices) return;
  if (large_ * kFew < chosen_) most_ = std::max(std::min(most_, kLeastMost), most_ / 2);
  chosen_ = large_ = 0;
}

RankedMoves::RankedMoves(const PlacementSpace& space, Moves& moves, const RankingOptions& options)
    : space_(space),
      moves_(moves),
      options_(options),
      candidates_(at(options.candidates)),
      keys_(at(options.candidates)),
      features_(at(options.candidates) * at(kMoveFeatureCount)),
      scores_(at(options.candidates)),
      sizes_(space.units()) {}

void RankedMoves::look(const Assignment& assignment) {
  if (!aside_) aside_ = std::make_unique<View>(space_, options_);
  aside_->seconds = 0;
  const Stopwatch stopwatch(aside_->seconds);
  aside_->state.refresh(assignment);
}

void RankedMoves::show() {
  std::swap(view_, aside_);
  report_.seconds += view_->seconds;
  moves_.focus(view_->state.blame());
}

void RankedMoves::begin(const Assignment& assignment) {
  key_ = 0;
  for (size_t unit = 0; unit < assignment.size(); ++unit)
    key_ += term(static_cast<int32_t>(unit), assignment[unit]);
}

void RankedMoves::told(std::span<const double> gains) {
  for (size_t i = 0; i < gains.size(); ++i) {
    const bool ranked = ranked_.front();
    ranked_.pop_front();
    ++(ranked ? report_.trials : report_.plain_trials);
    (ranked ? report_.improving : report_.plain_improving) += gains[i] > 0;
    if (options_.record) choices_[choices_.size() - gains.size() + i].gain = gains[i];
  }
}

uint64_t RankedMoves::key_after(const Move& move, const Assignment& assignment) const {
  uint64_t key = key_;
  for (const int32_t unit : move.units)
    if (assignment[unit] != move.device)
      key += term(unit, move.device) - term(unit, assignment[unit]);
  return key;
}

/// Generates new, distinct candidates with their features; returns their number.
int32_t RankedMoves::gather(const Assignment& assignment, double temperature) {
  int32_t count = 0;
  const double temperature_ns = temperature * view_->state.step_ns();
  const int32_t most = options_.fit_sizes ? sizes_.most() : space_.units();
  for (int32_t drawn = 0; drawn < 2 * options_.candidates && count < options_.candidates; ++drawn) {
    const Move& move = moves_.draw_set(assignment, most);
    const uint64_t key = key_after(move, assignment);
    if (key == key_ || seen_.contains(key)) continue;
    if (std::find(keys_.begin(), keys_.begin() + count, key) != keys_.begin() + count) continue;
    float* row = features_.data() + at(count) * at(kMoveFeatureCount);
    if (!view_->writer.write(move, assignment, temperature_ns, row)) continue;
    candidates_[count] = move;
    keys_[count++] = key;
  }
  return count;
}

/// Samples a candidate by softmax of its score.
int32_t RankedMoves::choose(const Assignment& assignment, int32_t count) {
  options_.ranker->show(std::span(candidates_).first(at(count)), assignment);
  options_.ranker->score(features_.data(), count, scores_.data());
  const float best = *std::max_element(scores_.begin(), scores_.begin() + count);
  double sum = 0;
  for (int32_t i = 0; i < count; ++i) {
    scores_[i] = static_cast<float>(std::exp(options_.sharpness * double{scores_[i] - best}));
    sum += double{scores_[i]};
  }
  double point = moves_.random().uniform() * sum;
  for (int32_t i = 0; i < count; ++i)
    if ((point -= double{scores_[i]}) < 0) return i;
  return count - 1;
}

void RankedMoves::plain(Assignment& trial, double temperature) {
  const Move& move = moves_.draw(trial);
  const bool has_row =
      options_.record && view_ && move.kind != Move::Kind::swap &&
      view_->writer.write(move, trial, temperature * view_->state.step_ns(), features_.data());
  ranked_.push_back(false);
  record(features_.data(), has_row ? 1 : 0, 0);
  move.apply(trial);
}

void RankedMoves::ranked(Assignment& trial, double temperature) {
  const Stopwatch stopwatch(report_.seconds);
  const int32_t count = gather(trial, temperature);
  if (count == 0) return plain(trial, temperature);
  const int32_t chosen = choose(trial, count);
  ranked_.push_back(true);
  sizes_.note(candidates_[chosen].units.size());
  if (seen_.size() < kMostSeen) seen_.insert(keys_[chosen]);
  record(features_.data(), count, chosen);
  candidates_[chosen].apply(trial);
}

void RankedMoves::apply(Assignment& trial, double temperature) {
  const auto plain_one_in = static_cast<uint64_t>(options_.plain_one_in);
  if (!view_ || moves_.random().below(plain_one_in) == 0) return plain(trial, temperature);
  ranked(trial, temperature);
}

void RankedMoves::record(const float* rows, int32_t count, int32_t chosen) {
  if (!options_.record) return;
  choices_.push_back({{rows, rows + at(count) * at(kMoveFeatureCount)}, count, chosen, 0});
}

}  // namespace trinity
