#include "search/placement/move_features.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "base/index.h"

namespace trinity {

/// Sums over the units that a move changes.
struct MoveFeatures::Sums {
  double home_ns = 0, there_ns = 0;
  double computation_ns = 0, queue_ns = 0, transfer_ns = 0;
  double wait_ns = 0, slack_ns = 0, tight_ns = 0;
  double collision_there_ns = 0, collision_home_ns = 0, crowd_there_ns = 0, crowd_home_ns = 0;
  double saved_ns = 0, added_ns = 0, critical_saved_ns = 0, tight_saved_ns = 0;
  double exposed_ns = 0, exposed_largest_ns = 0;
  double busy_home_ns = 0;  // of the source devices, per unit
  double home_bytes = 0;    // the same
  double moved_bytes = 0;
  int32_t units = 0, uncut = 0, cut = 0;
  bool beside = false;  // a neighbour is on the destination device
};

MoveFeatures::MoveFeatures(const StepState& state, std::optional<double> memory_share)
    : state_(state),
      memory_share_(memory_share),
      more_bytes_(at(state.space().devices()), 0),
      moves_in_(at(state.space().units()), 0) {}

void MoveFeatures::add_unit(int32_t unit, int32_t home, Sums& sums) const {
  const auto& space = state_.space();
  const auto& blame = state_.blame().of(unit);
  const auto& times = state_.unit(unit);
  ++sums.units;
  sums.home_ns += static_cast<double>(space.cost_ns(unit, home));
  sums.there_ns += static_cast<double>(space.cost_ns(unit, device_));
  sums.computation_ns += blame.computation_ns;
  sums.queue_ns += blame.queue_ns;
  sums.transfer_ns += blame.transfer_ns;
  sums.wait_ns += times.wait_ns;
  sums.slack_ns = sums.units == 1 ? times.slack_ns : std::min(sums.slack_ns, times.slack_ns);
  sums.tight_ns += times.tight_ns;
  sums.collision_there_ns += state_.collision_ns(unit, device_);
  sums.collision_home_ns += state_.collision_ns(unit, home);
  sums.crowd_there_ns += state_.crowd_ns(unit, device_);
  sums.crowd_home_ns += state_.crowd_ns(unit, home);
  sums.busy_home_ns += state_.device(home).busy_ns;
}

void MoveFeatures::add_memory(int32_t unit, int32_t home, Sums& sums) {
  const double bytes = state_.unit(unit).peak_bytes;
  sums.home_bytes += state_.device(home).memory_bytes;
  sums.moved_bytes += bytes;
  more_bytes_[home] -= bytes;
  more_bytes_[device_] += bytes;
}

/// Edges between two moved units count once, for the writing one.
void MoveFeatures::add_edges(int32_t unit, const Assignment& assignment, Sums& sums) const {
  const int32_t home = assignment[unit];
  for (const auto& beside : state_.incident(unit)) {
    const bool comes = moves_in_[beside.unit] == number_;
    const int32_t other = assignment[beside.unit];
    if (comes && (!beside.out || other == home)) continue;
    const int32_t after = comes ? device_ : other;
    sums.beside |= after == device_ && !comes;
    const auto& edge = state_.edge(beside.edge);
    if (other != home) {
      const double wire_ns = beside.out ? state_.wire_ns(beside.edge, home, other)
                                        : state_.wire_ns(beside.edge, other, home);
      sums.saved_ns += wire_ns;
      sums.critical_saved_ns += edge.critical_ns;
      if (edge.room_ns - wire_ns < 0.01 * state_.step_ns()) sums.tight_saved_ns += wire_ns;
    }
    if (after != device_) {
      const double wire_ns = beside.out ? state_.wire_ns(beside.edge, device_, after)
                                        : state_.wire_ns(beside.edge, after, device_);
      const double exposed_ns = std::max(0.0, wire_ns - std::max(0.0, edge.room_ns));
      sums.added_ns += wire_ns;
      sums.exposed_ns += exposed_ns;
      sums.exposed_largest_ns = std::max(sums.exposed_largest_ns, exposed_ns);
    }
    sums.uncut += other != home && after == device_;
    sums.cut += other == home && after != device_;
  }
}

namespace {

/// log2 from the number's bits and a polynomial: equal on all CPUs, accurate to 1e-6.
float log2_of(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  const auto exponent = static_cast<float>(static_cast<int32_t>(bits >> 23) - 127);
  const float m = std::bit_cast<float>((bits & 0x007fffffu) | 0x3f800000u) - 1.0f;
  const float p =
      m * (1.4426565f +
           m * (-0.7204034f +
                m * (0.4725156f +
                     m * (-0.3230860f + m * (0.1903428f + m * (-0.0767854f + m * 0.0147600f))))));
  return exponent + p;
}

/// Writes consecutive numbers.
struct Writer {
  float* to;
  float per_step;
  void time(double ns) {
    const auto share = static_cast<float>(ns) * per_step;
    *to++ = share < 0 ? -log2_of(1 - share) : log2_of(1 + share);
  }
  void share(double value) {
    const auto hundredths = static_cast<float>(100 * value);
    *to++ = hundredths < 0 ? -log2_of(1 - hundredths) : log2_of(1 + hundredths);
  }
  void plain(double value) { *to++ = static_cast<float>(value); }
  void flag(bool value) { *to++ = value ? 1.0f : 0.0f; }
  void count(int32_t n) {
    const auto size = log2_of(1 + static_cast<float>(std::abs(n)));
    *to++ = n < 0 ? -size : size;
  }
};

}  // namespace

/// Restores more_bytes_ to 0.
void MoveFeatures::write_memory(const Sums& sums, float* to) {
  double largest = 1, after = 0;
  for (int32_t d = 0; d < state_.space().devices(); ++d) {
    const double bytes = state_.device(d).memory_bytes;
    largest = std::max(largest, bytes);
    after = std::max(after, bytes + std::exchange(more_bytes_[d], 0));
  }
  const double gain = (largest - after) / largest;
  Writer w{to, 0};
  w.plain(*memory_share_);
  w.plain(sums.home_bytes / sums.units / largest);
  w.plain(state_.device(device_).memory_bytes / largest);
  w.share(sums.moved_bytes / largest);
  w.share(gain);
  w.share(*memory_share_ * gain);
}

bool MoveFeatures::write(const Move& move, const Assignment& assignment, double temperature_ns,
                         float* to) {
  device_ = move.device;
  ++number_;
  Sums sums;
  for (const int32_t unit : move.units) {
    if (assignment[unit] == device_) continue;
    moves_in_[unit] = number_;
    add_unit(unit, assignment[unit], sums);
    if (memory_share_) add_memory(unit, assignment[unit], sums);
  }
  if (sums.units == 0) return false;
  for (const int32_t unit : move.units)
    if (moves_in_[unit] == number_) add_edges(unit, assignment, sums);
  const double step_ns = state_.step_ns();
  const double blame_ns = sums.computation_ns + sums.queue_ns;
  const double busy_home = sums.busy_home_ns / sums.units / step_ns;
  const double busy_there = state_.device(device_).busy_ns / step_ns;
  const double time_ns = std::max(sums.home_ns, 1e-4 * step_ns);
  Writer w{to, static_cast<float>(100 / step_ns)};
  w.time(sums.home_ns);
  w.time(sums.there_ns);
  w.time(sums.home_ns - sums.there_ns);
  w.time(sums.computation_ns);
  w.time(sums.queue_ns);
  w.time(sums.transfer_ns);
  w.time(sums.wait_ns);
  w.time(sums.slack_ns);
  w.time(sums.tight_ns);
  w.time(sums.collision_there_ns);
  w.time(sums.collision_home_ns);
  w.time(sums.crowd_there_ns);
  w.time(sums.crowd_home_ns);
  w.time(sums.crowd_home_ns - sums.crowd_there_ns);
  w.time(sums.saved_ns);
  w.time(sums.added_ns);
  w.time(sums.saved_ns - sums.added_ns);
  w.time(sums.critical_saved_ns);
  w.time(sums.exposed_ns);
  w.time(sums.exposed_largest_ns);
  w.time(sums.tight_saved_ns);
  w.time(sums.tight_saved_ns - sums.exposed_ns);
  w.time(sums.critical_saved_ns - sums.exposed_largest_ns);
  w.plain(busy_home);
  w.plain(busy_there);
  w.plain(busy_home - busy_there);
  w.plain(busy_there + sums.there_ns / step_ns);
  w.plain(state_.mean_busy_ns() / step_ns);
  w.count(sums.units);
  w.flag(move.kind == Move::Kind::unit);
  w.flag(move.kind == Move::Kind::cluster);
  w.flag(move.kind == Move::Kind::chain);
  w.flag(move.kind == Move::Kind::range || move.kind == Move::Kind::group);
  w.time(temperature_ns);
  w.count(sums.uncut - sums.cut);
  const int64_t capacity_bytes = state_.space().problem().cluster().capacity_bytes(device_);
  w.plain(state_.device(device_).memory_bytes / std::max(1.0, static_cast<double>(capacity_bytes)));
  w.time(blame_ns - sums.collision_there_ns);
  w.plain(std::min(2.0, sums.collision_there_ns / time_ns));
  w.plain(std::min(2.0, blame_ns / time_ns));
  w.flag(sums.beside);
  if (memory_share_) write_memory(sums, w.to);
  return true;
}

}  // namespace trinity
