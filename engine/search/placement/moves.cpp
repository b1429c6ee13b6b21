#include "search/placement/moves.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "simulator/analysis.h"

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

namespace {

/// How long every unit holds up a step.
class Blame {
 public:
  Blame(const Problem& problem, std::span<const int32_t> placement, const Timeline& timeline,
        size_t units)
      : problem_(problem), timeline_(timeline), time_ns_(units, 0) {
    tasks_.resize(static_cast<size_t>(problem.devices()));
    for (int32_t task = 0; task < problem.operators(); ++task)
      tasks_[placement[task]].push_back(task);
    for (auto& list : tasks_)
      std::sort(list.begin(), list.end(), [&](int32_t a, int32_t b) {
        return std::pair(timeline_.start_ns[a], a) < std::pair(timeline_.start_ns[b], b);
      });
  }

  void follow(const CriticalPath& path) {
    int32_t reader = -1;
    for (auto step = path.steps.rbegin(); step != path.steps.rend(); ++step) {
      if (step->kind == PathStep::Kind::collective) continue;
      const int64_t length_ns = step->end_ns - step->ready_ns;
      if (step->kind == PathStep::Kind::compute) {
        reader = step->index;
        add(reader, length_ns);
        add_queue(*step);
        continue;
      }
      add(timeline_.transfers[step->index].task, length_ns);
      if (reader >= 0) add(reader, length_ns);
    }
  }

  std::vector<double> cumulative() const {
    std::vector<double> sums(time_ns_.size());
    std::partial_sum(time_ns_.begin(), time_ns_.end(), sums.begin());
    return sums;
  }

 private:
  void add(int32_t task, int64_t time_ns) {
    const int32_t unit = problem_.graph().units()[task];
    time_ns_[unit] += static_cast<double>(time_ns);
  }

  /// What ran on the device while the task waited for it.
  void add_queue(const PathStep& step) {
    const auto device = timeline_.device[step.index];
    const auto& list = tasks_[device];
    const auto first = std::partition_point(list.begin(), list.end(), [&](int32_t task) {
      return timeline_.end_ns[task] <= step.ready_ns;
    });
    for (auto task = first; task != list.end(); ++task) {
      const auto at = static_cast<size_t>(*task);
      if (timeline_.start_ns[at] >= step.start_ns) break;
      add(*task, timeline_.end_ns[at] - std::max(step.ready_ns, timeline_.start_ns[at]));
    }
  }

  const Problem& problem_;
  const Timeline& timeline_;
  std::vector<std::vector<int32_t>> tasks_;  // of every device, in order of their start
  std::vector<double> time_ns_;
};

}  // namespace

void Moves::focus(const Assignment& assignment) {
  const auto& problem = space_.problem();
  const auto placement = space_.placement(assignment);
  Metrics metrics;
  Timeline timeline;
  simulator_.run(placement, metrics, &timeline);
  Blame blame(problem, placement, timeline, static_cast<size_t>(space_.units()));
  blame.follow(critical_path(problem, placement, timeline));
  blame_ = blame.cumulative();
  if (blame_.back() <= 0) blame_.clear();
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

/// A device other than `home`: that of a neighbour of a picked unit, or any.
int32_t Moves::draw_device(const Assignment& assignment, int32_t home) {
  if (random_.below(2) == 0) {
    const int32_t unit = picked_[random_.below(picked_.size())];
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
  std::vector<PlacementSpace::Neighbour> edge;  // units beside the picked ones
  const auto pick = [&](int32_t unit) {
    picked_.push_back(unit);
    in_picked_[unit] = true;
    for (const auto& next : space_.neighbours(unit))
      if (assignment[next.unit] == home && !in_picked_[next.unit]) edge.push_back(next);
  };
  pick(seed);
  while (static_cast<int32_t>(picked_.size()) < size && !edge.empty()) {
    // The heaviest of a few drawn at random, so that the same seed gives different clusters.
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
  for (const int32_t unit : picked_) in_picked_[unit] = false;
}

void Moves::chain(int32_t seed, int32_t size, const Assignment& assignment) {
  const int32_t home = assignment[seed];
  picked_.push_back(seed);
  const auto follow = [&](const auto& forward, const auto& back) {
    int32_t unit = seed;
    while (static_cast<int32_t>(picked_.size()) < size) {
      const auto& next = forward[unit];
      if (next.size() != 1 || back[next[0]].size() != 1) break;
      unit = next[0];
      if (assignment[unit] != home || unit == seed) break;
      picked_.push_back(unit);
    }
  };
  follow(after_, before_);
  follow(before_, after_);
}

void Moves::range(int32_t seed, int32_t size) {
  const int32_t end = std::min(space_.units(), seed + size);
  for (int32_t unit = seed; unit < end; ++unit) picked_.push_back(unit);
}

bool Moves::swap(int32_t seed, Assignment& assignment) {
  for (int draw = 0; draw < 8; ++draw) {
    const size_t other = random_.below(assignment.size());
    if (assignment[other] == assignment[seed]) continue;
    std::swap(assignment[other], assignment[seed]);
    return true;
  }
  return false;
}

void Moves::pick(int32_t seed, const Assignment& assignment) {
  const int32_t half = std::max(1, space_.units() / 2);
  const uint64_t kind = random_.below(100);  // percent; the mix is not critical
  picked_.clear();
  if (groups_ && random_.below(8) == 0) {
    const auto level =
        static_cast<int32_t>(random_.below(static_cast<uint64_t>(groups_->levels())));
    const auto group = groups_->around(level, seed);
    picked_.assign(group.begin(), group.end());
  } else if (kind < 20) {
    picked_.push_back(seed);
  } else if (kind < 60) {
    cluster(seed, draw_size(half), assignment);
  } else if (kind < 85) {
    chain(seed, draw_size(half), assignment);
  } else {
    range(seed, draw_size(half));
  }
}

void Moves::apply(Assignment& assignment) {
  if (space_.devices() < 2) return;
  const int32_t seed = draw_seed();
  if (random_.below(20) == 0 && swap(seed, assignment)) return;
  pick(seed, assignment);
  const int32_t device = draw_device(assignment, assignment[seed]);
  for (const int32_t unit : picked_) assignment[unit] = device;
}

}  // namespace trinity
