#include "search/placement/moves.h"

#include <algorithm>
#include <cmath>

namespace trinity {

Moves::Moves(const PlacementSpace& space, RandomStream random, const MoveMix& mix)
    : space_(space), random_(random), mix_(mix), simulator_(space.problem()) {
  if (mix.groups) groups_.emplace(space);
  if (groups_ && groups_->levels() == 0) groups_.reset();
  const auto n = static_cast<size_t>(space.units());
  before_.resize(n);
  after_.resize(n);
  for (const auto& edge : space.graph().edges) {
    after_[edge.from].push_back(edge.to);
    before_[edge.to].push_back(edge.from);
  }
  in_picked_.assign(n, false);
}

void Move::apply(Assignment& assignment) const {
  if (kind == Kind::swap) return std::swap(assignment[units[0]], assignment[units[1]]);
  for (const int32_t unit : units) assignment[unit] = device;
}

Blame Moves::blame(const Assignment& assignment) {
  const auto placement = space_.placement(assignment);
  Metrics metrics;
  Timeline timeline;
  simulator_.run(placement, metrics, &timeline);
  const auto path = critical_path(space_.problem(), placement, timeline);
  return {space_.problem(), placement, timeline, path, by_start(timeline), space_.units()};
}

void Moves::focus(const Blame& blame) {
  blame_.resize(static_cast<size_t>(space_.units()));
  double sum = 0;
  for (size_t unit = 0; unit < blame_.size(); ++unit)
    blame_[unit] = sum += blame.total(static_cast<int32_t>(unit));
  if (sum <= 0) blame_.clear();
}

int32_t Moves::draw_seed() {
  const auto n = static_cast<uint64_t>(space_.units());
  const auto evenly_one_in = static_cast<uint64_t>(mix_.evenly_one_in);
  if (blame_.empty() || random_.below(evenly_one_in) == 0)
    return static_cast<int32_t>(random_.below(n));
  const double point = random_.uniform() * blame_.back();
  const auto at = std::upper_bound(blame_.begin(), blame_.end(), point) - blame_.begin();
  return std::min(static_cast<int32_t>(at), space_.units() - 1);
}

int32_t Moves::draw_size(int32_t most) {
  const double size = std::exp(random_.uniform() * std::log(static_cast<double>(most) + 1));
  return std::clamp(static_cast<int32_t>(size), 1, most);
}

/// A device other than `home`: the device of a neighbour of a chosen unit, or any.
int32_t Moves::draw_device(const Assignment& assignment, int32_t home) {
  if (random_.below(2) == 0) {
    const int32_t unit = move_.units[random_.below(move_.units.size())];
    const auto neighbours = space_.neighbours(unit);
    if (!neighbours.empty()) {
      const int32_t other = neighbours[random_.below(neighbours.size())].unit;
      const int32_t device = assignment[other];
      if (device != home) return device;
    }
  }
  const auto other = random_.below(static_cast<uint64_t>(space_.devices()) - 1);
  const auto device = static_cast<int32_t>(other);
  return device < home ? device : device + 1;
}

void Moves::cluster(int32_t seed, int32_t size, const Assignment& assignment) {
  const int32_t home = assignment[seed];
  auto& edge = beside_;
  edge.clear();
  const auto pick = [&](int32_t unit) {
    move_.units.push_back(unit);
    in_picked_[unit] = true;
    for (const auto& next : space_.neighbours(unit))
      if (assignment[next.unit] == home && !in_picked_[next.unit]) edge.push_back(next);
  };
  pick(seed);
  while (static_cast<int32_t>(move_.units.size()) < size && !edge.empty()) {
    // The heaviest of a few random ones, so that one seed unit gives different clusters.
    size_t chosen = random_.below(edge.size());
    for (int draw = 0; draw < 2; ++draw) {
      const size_t other = random_.below(edge.size());
      if (edge[other].bytes > edge[chosen].bytes) chosen = other;
    }
    const int32_t unit = edge[chosen].unit;
    edge[chosen] = edge.back();
    edge.pop_back();
    if (!in_picked_[unit]) pick(unit);
  }
  for (const int32_t unit : move_.units) in_picked_[unit] = false;
}

void Moves::chain(int32_t seed, int32_t size, const Assignment& assignment) {
  const int32_t home = assignment[seed];
  move_.units.push_back(seed);
  const auto follow = [&](const auto& forward, const auto& back) {
    int32_t unit = seed;
    while (static_cast<int32_t>(move_.units.size()) < size) {
      const auto& next = forward[unit];
      if (next.size() != 1 || back[next[0]].size() != 1) break;
      unit = next[0];
      if (assignment[unit] != home || unit == seed) break;
      move_.units.push_back(unit);
    }
  };
  follow(after_, before_);
  follow(before_, after_);
}

void Moves::range(int32_t seed, int32_t size) {
  const int32_t end = std::min(space_.units(), seed + size);
  for (int32_t unit = seed; unit < end; ++unit) move_.units.push_back(unit);
}

bool Moves::swap(int32_t seed, const Assignment& assignment) {
  for (int draw = 0; draw < 8; ++draw) {
    const size_t other = random_.below(assignment.size());
    if (assignment[other] == assignment[seed]) continue;
    move_.kind = Move::Kind::swap;
    move_.units = {seed, static_cast<int32_t>(other)};
    move_.device = assignment[other];
    return true;
  }
  return false;
}

/// Returns false if the group has more units.
bool Moves::pick_group(int32_t seed, int32_t most) {
  const auto level = static_cast<int32_t>(random_.below(static_cast<uint64_t>(groups_->levels())));
  const auto group = groups_->around(level, seed);
  if (std::ssize(group) > most) return false;
  move_.kind = Move::Kind::group;
  move_.units.assign(group.begin(), group.end());
  return true;
}

void Moves::pick(int32_t seed, const Assignment& assignment, int32_t most) {
  const int32_t half = std::min(most, std::max(1, space_.units() / 2));
  const uint64_t kind = random_.below(100);  // percent; the mix is not critical
  move_.units.clear();
  if (groups_ && random_.below(8) == 0 && pick_group(seed, most)) return;
  if (kind < 20) {
    move_.kind = Move::Kind::unit;
    move_.units.push_back(seed);
  } else if (kind < 60) {
    move_.kind = Move::Kind::cluster;
    cluster(seed, draw_size(half), assignment);
  } else if (kind < 85) {
    move_.kind = Move::Kind::chain;
    chain(seed, draw_size(half), assignment);
  } else {
    move_.kind = Move::Kind::range;
    range(seed, draw_size(half));
  }
}

/// True if the mix has a source that proposes a move.
bool Moves::from_source(int32_t seed, const Assignment& assignment) {
  if (!mix_.source || !mix_.source->draw(seed, assignment, move_)) return false;
  move_.kind = move_.units.size() == 1 ? Move::Kind::unit : Move::Kind::group;
  return true;
}

const Move& Moves::set_around(int32_t seed, const Assignment& assignment, int32_t most) {
  pick(seed, assignment, most);
  move_.device = draw_device(assignment, assignment[seed]);
  return move_;
}

const Move& Moves::draw(const Assignment& assignment) {
  move_.units.clear();
  if (space_.devices() < 2) return move_;
  const int32_t seed = draw_seed();
  if (from_source(seed, assignment)) return move_;
  if (random_.below(20) == 0 && swap(seed, assignment)) return move_;
  return set_around(seed, assignment, space_.units());
}

const Move& Moves::draw_set(const Assignment& assignment, int32_t most) {
  move_.units.clear();
  if (space_.devices() < 2) return move_;
  const int32_t seed = draw_seed();
  return from_source(seed, assignment) ? move_ : set_around(seed, assignment, most);
}

}  // namespace trinity
