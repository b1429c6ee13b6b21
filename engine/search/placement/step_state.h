#pragma once

#include <algorithm>
#include <map>

#include "base/index.h"
#include "search/placement/blame.h"
#include "search/placement/placement_space.h"
#include "simulator/simulator.h"

namespace trinity {

/// Analysis of the step of one assignment, as input for shortening it: per unit, per unit and
/// device, per edge between units, per device. All times in ns. Simulated first in, first out, with
/// one micro-batch. Not thread-safe.
class StepState {
 public:
  /// with_memory: compute Unit::peak_bytes.
  explicit StepState(const PlacementSpace& space, bool with_memory = false)
      : space_(space),
        with_memory_(with_memory),
        simulator_(space.problem()),
        units_(at(space.units())),
        edges_(space.graph().edges.size()),
        devices_(at(space.devices())),
        shares_(at(space.units()) * at(space.devices())) {
    bind_edges();
    bind_wires();
  }

  /// Simulates `assignment` once; all other members then describe it.
  void refresh(const Assignment& assignment) {
    const auto& problem = space_.problem();
    const auto placement = space_.placement(assignment);
    simulator_.run(placement, metrics_, &timeline_);
    step_ns_ = std::max(1.0, ns(metrics_.step_time_ns));
    const auto path = critical_path(problem, placement, timeline_);
    sort_tasks(placement);
    blame_ = Blame(problem, placement, timeline_, path, order_, space_.units());
    index_transfers();
    std::fill(edges_.begin(), edges_.end(), Edge{step_ns_, 0});
    read_slack(placement);
    read_units(placement);
    if (with_memory_) read_memory(placement);
    read_busy(placement);
    read_shares(placement);
    read_critical_transfers(path);
  }

  struct Unit {
    double wait_ns = 0;   ///< sum over its operators of start minus ready time
    double slack_ns = 0;  ///< minimum slack of its operators, all else unchanged
    double tight_ns = 0;  ///< time of its operators with a slack below 1 % of the step
    double peak_bytes = 0;  ///< bytes held at its device's memory peak, without copies
  };
  struct Edge {
    double room_ns = 0;      ///< slack: additional transfer time without effect
    double critical_ns = 0;  ///< of its transfers on the critical path, including queueing
  };
  struct Device {
    double busy_ns = 0;
    double memory_bytes = 0;  ///< peak
  };

  double step_ns() const { return step_ns_; }
  const Blame& blame() const { return blame_; }
  /// Time by which an operator may end later without effect, all else unchanged.
  int64_t slack_ns(int32_t op) const { return latest_ns_[op] - timeline_.end_ns[op]; }
  const Unit& unit(int32_t u) const { return units_[u]; }
  const Device& device(int32_t d) const { return devices_[d]; }
  double mean_busy_ns() const { return mean_busy_ns_; }
  /// The unit's time on `device` x the fraction of the time for which that device is busy: while
  /// the unit runs (collision), and from when its operators are ready to when they must have ended
  /// (crowd).
  double collision_ns(int32_t unit, int32_t device) const { return shares(unit, device).collision; }
  double crowd_ns(int32_t unit, int32_t device) const { return shares(unit, device).crowd; }

  /// An edge of the unit graph as seen from one end.
  struct Incident {
    int32_t unit;  ///< the other end
    int32_t edge;
    bool out;  ///< the other end reads
  };
  std::span<const Incident> incident(int32_t unit) const {
    const auto first = static_cast<size_t>(first_incident_[unit]);
    const auto last = static_cast<size_t>(first_incident_[static_cast<size_t>(unit) + 1]);
    return {incidents_.data() + first, last - first};
  }
  const Edge& edge(int32_t edge) const { return edges_[edge]; }
  /// Time of a transfer of the edge's bytes without contention.
  double wire_ns(int32_t edge, int32_t from, int32_t to) const {
    const size_t pair = static_cast<size_t>(from) * devices_.size() + static_cast<size_t>(to);
    if (wire_ns_.empty())
      return static_cast<double>(
          space_.problem().wire_ns(from, to, space_.graph().edges[edge].bytes));
    return wire_ns_[static_cast<size_t>(edge) * wire_kinds_ + wire_kind_[pair]];
  }

  const PlacementSpace& space() const { return space_; }

 private:
  static constexpr int32_t kBins = 128;  // per step
  static constexpr double kTightShare = 0.01;  // of the step: less slack counts as none
  // limit of cached times of edges by class of device pairs
  static constexpr size_t kMostWires = size_t{1} << 20;
  static double ns(int64_t time) { return static_cast<double>(time); }
  struct Shares {
    float collision = 0, crowd = 0;  // in ns
  };
  const Shares& shares(int32_t unit, int32_t device) const {
    return shares_[static_cast<size_t>(unit) * static_cast<size_t>(space_.devices()) +
                   static_cast<size_t>(device)];
  }

  void bind_edges() {
    const auto& edges = space_.graph().edges;
    first_incident_.assign(at(space_.units()) + 1, 0);
    for (const auto& edge : edges) {
      ++first_incident_[at(edge.from) + 1];
      ++first_incident_[at(edge.to) + 1];
    }
    for (size_t u = 1; u < first_incident_.size(); ++u) first_incident_[u] += first_incident_[u - 1];
    incidents_.resize(2 * edges.size());
    auto next = first_incident_;
    for (size_t e = 0; e < edges.size(); ++e) {
      const auto number = static_cast<int32_t>(e);
      incidents_[next[edges[e].from]++] = {edges[e].to, number, true};
      incidents_[next[edges[e].to]++] = {edges[e].from, number, false};
    }
    const auto& problem = space_.problem();
    const auto unit_of = problem.graph().units();
    edge_of_.assign(at(problem.edges()), -1);
    for (int32_t op = 0; op < problem.operators(); ++op) {
      int32_t number = problem.first_edge(op);
      for (const auto& reader : problem.readers(op)) {
        const std::pair ends(unit_of[op], unit_of[reader.op]);
        const auto found = std::lower_bound(
            edges.begin(), edges.end(), ends,
            [](const UnitGraph::Edge& edge, const std::pair<int32_t, int32_t>& wanted) {
              return std::pair(edge.from, edge.to) < wanted;
            });
        if (ends.first != ends.second) edge_of_[number] = static_cast<int32_t>(found - edges.begin());
        ++number;
      }
    }
  }

  void bind_wires() {
    const auto& problem = space_.problem();
    std::map<std::pair<int64_t, double>, uint32_t> known;
    std::vector<std::pair<int32_t, int32_t>> of_kind;
    for (int32_t from = 0; from < space_.devices(); ++from)
      for (int32_t to = 0; to < space_.devices(); ++to) {
        const auto wire = problem.tables().wire(from, to);
        const auto [kind, is_new] = known.try_emplace({wire.latency_ns, wire.bytes_per_ns},
                                                      static_cast<uint32_t>(known.size()));
        if (is_new) of_kind.emplace_back(from, to);
        wire_kind_.push_back(kind->second);
      }
    wire_kinds_ = of_kind.size();
    if (space_.graph().edges.size() > kMostWires / std::max<size_t>(1, wire_kinds_)) return;
    for (const auto& edge : space_.graph().edges)
      for (const auto& [from, to] : of_kind)
        wire_ns_.push_back(ns(problem.wire_ns(from, to, edge.bytes)));
  }

  void sort_tasks(std::span<const int32_t> placement) {
    order_ = by_start(timeline_);
    next_.assign(placement.size(), -1);
    std::vector<int32_t> later(devices_.size(), -1);
    for (auto op = order_.rbegin(); op != order_.rend(); ++op) {
      next_[*op] = later[placement[*op]];
      later[placement[*op]] = *op;
    }
  }

  void index_transfers() {
    const auto& problem = space_.problem();
    first_transfer_.assign(at(problem.outputs()), -1);
    next_transfer_.resize(timeline_.transfers.size());
    for (size_t i = 0; i < next_transfer_.size(); ++i) {
      const auto& sent = timeline_.transfers[i];
      auto& first = first_transfer_[problem.first_output(sent.task) + sent.output];
      next_transfer_[i] = first;
      first = static_cast<int32_t>(i);
    }
  }

  /// The transfer of an output to a device, or -1; with broadcast, the one to all.
  int32_t transfer(int32_t output, int32_t to) const {
    int32_t i = first_transfer_[output];
    if (space_.problem().rules().broadcast) return i;
    while (i >= 0 && timeline_.transfers[i].to != to) i = next_transfer_[i];
    return i;
  }

  /// Backwards over readers (including transfers) and the next task of the device.
  void read_slack(std::span<const int32_t> placement) {
    const auto& problem = space_.problem();
    const int64_t end_ns = metrics_.step_time_ns;
    latest_ns_.assign(placement.size(), end_ns);
    const auto latest_start_ns = [&](int32_t op) {
      return latest_ns_[op] - (timeline_.end_ns[op] - timeline_.start_ns[op]);
    };
    for (auto at_op = order_.rbegin(); at_op != order_.rend(); ++at_op) {
      const int32_t op = *at_op;
      int64_t latest_ns = next_[op] >= 0 ? std::min(end_ns, latest_start_ns(next_[op])) : end_ns;
      int32_t number = problem.first_edge(op);
      for (const auto& reader : problem.readers(op)) {
        const int64_t start_ns = latest_start_ns(reader.op);
        const int32_t edge = edge_of_[number++];
        if (edge >= 0)
          edges_[edge].room_ns = std::min(edges_[edge].room_ns, ns(start_ns - timeline_.end_ns[op]));
        const int32_t sent =
            placement[op] == placement[reader.op]
                ? -1
                : transfer(problem.first_output(op) + reader.output, placement[reader.op]);
        const int64_t wire_ns =
            sent < 0 ? 0 : timeline_.transfers[sent].end_ns - timeline_.transfers[sent].start_ns;
        latest_ns = std::min(latest_ns, start_ns - wire_ns);
      }
      latest_ns_[op] = std::max(latest_ns, timeline_.end_ns[op]);
    }
  }

  void read_units(std::span<const int32_t> placement) {
    const auto unit_of = space_.problem().graph().units();
    for (auto& unit : units_) unit = {0, step_ns_, 0, 0};
    for (size_t op = 0; op < placement.size(); ++op) {
      auto& unit = units_[unit_of[op]];
      const double slack_ns = ns(latest_ns_[op] - timeline_.end_ns[op]);
      unit.wait_ns += ns(timeline_.start_ns[op] - timeline_.ready_ns[op]);
      unit.slack_ns = std::min(unit.slack_ns, slack_ns);
      if (slack_ns < kTightShare * step_ns_)
        unit.tight_ns += ns(timeline_.end_ns[op] - timeline_.start_ns[op]);
    }
  }

  void read_busy(std::span<const int32_t> placement) {
    const auto row = at(kBins) + 1;
    busy_.assign(devices_.size() * row, 0);
    const double bin_ns = step_ns_ / kBins;
    for (size_t op = 0; op < placement.size(); ++op) {
      const double start_ns = ns(timeline_.start_ns[op]), end_ns = ns(timeline_.end_ns[op]);
      auto* bins = busy_.data() + at(placement[op]) * row + 1;
      const auto first = std::clamp(static_cast<int32_t>(start_ns / bin_ns), 0, kBins - 1);
      const auto last = std::clamp(static_cast<int32_t>(end_ns / bin_ns), 0, kBins - 1);
      for (int32_t b = first; b <= last; ++b) {
        const double from = b == first ? start_ns : b * bin_ns;
        const double to = b == last ? end_ns : (b + 1) * bin_ns;
        bins[b] += static_cast<float>(to - from);
      }
    }
    double sum_ns = 0;
    for (size_t d = 0; d < devices_.size(); ++d) {
      auto* bins = busy_.data() + d * row;
      for (size_t b = 1; b < row; ++b) bins[b] += bins[b - 1];
      devices_[d] = {ns(metrics_.devices[d].compute_busy_ns),
                     ns(metrics_.devices[d].peak_memory_bytes)};
      sum_ns += devices_[d].busy_ns;
    }
    mean_busy_ns_ = sum_ns / static_cast<double>(devices_.size());
  }

  /// Memory of an operator at the peak: its weights, and outputs that a reader on any device still
  /// needs.
  void read_memory(std::span<const int32_t> placement) {
    const auto& problem = space_.problem();
    const auto unit_of = problem.graph().units();
    std::vector<int64_t> peaks_ns;
    for (const auto& levels : timeline_.memory) {
      const auto less = [](const MemoryLevel& a, const MemoryLevel& b) { return a.bytes < b.bytes; };
      const auto peak = std::max_element(levels.begin(), levels.end(), less);
      peaks_ns.push_back(peak == levels.end() ? -1 : peak->time_ns);
    }
    if (peaks_ns.empty()) return;
    std::vector<int64_t> until_ns;  // per output of an operator: end of its last reader
    for (int32_t op = 0; op < problem.operators(); ++op) {
      const int32_t first = problem.first_output(op), last = problem.first_output(op + 1);
      until_ns.assign(at(last - first), timeline_.end_ns[op]);
      for (const auto& reader : problem.readers(op))
        until_ns[reader.output] = std::max(until_ns[reader.output], timeline_.end_ns[reader.op]);
      int64_t bytes = problem.fixed_bytes(op);
      const int64_t peak_ns = peaks_ns[placement[op]];
      for (int32_t i = first; i < last; ++i)
        if (timeline_.start_ns[op] <= peak_ns && peak_ns < until_ns[i - first])
          bytes += problem.held_bytes()[i];
      units_[unit_of[op]].peak_bytes += static_cast<double>(bytes);
    }
  }

  struct Point {
    int32_t bin;
    float share;  // fraction of the bin before the point
  };

  Point point(double time_ns) const {
    const double in_bins = time_ns / step_ns_ * kBins;
    const auto bin = std::clamp(static_cast<int32_t>(in_bins), 0, kBins - 1);
    return {bin, static_cast<float>(std::clamp(in_bins - bin, 0.0, 1.0))};
  }

  float busy_until(int32_t device, Point point) const {
    const auto* bins = busy_.data() + at(device) * (at(kBins) + 1) + point.bin;
    return bins[0] + point.share * (bins[1] - bins[0]);
  }

  void read_shares(std::span<const int32_t> placement) {
    const auto& problem = space_.problem();
    const auto unit_of = problem.graph().units();
    std::fill(shares_.begin(), shares_.end(), Shares{});
    for (size_t op = 0; op < placement.size(); ++op) {
      const double start_ns = ns(timeline_.start_ns[op]), end_ns = ns(timeline_.end_ns[op]);
      const double ready_ns = ns(timeline_.ready_ns[op]), latest_ns = ns(latest_ns_[op]);
      const auto own_ns = static_cast<float>(end_ns - start_ns);
      if (own_ns <= 0) continue;
      const Point start = point(start_ns), end = point(end_ns);
      const Point ready = point(ready_ns), latest = point(latest_ns);
      auto* shares = shares_.data() + at(unit_of[op]) * devices_.size();
      for (int32_t d = 0; d < space_.devices(); ++d) {
        const float others_ns = d == placement[op] ? own_ns : 0;
        const auto time_ns = static_cast<float>(problem.cost_ns(d, static_cast<int32_t>(op)));
        const float running = busy_until(d, end) - busy_until(d, start) - others_ns;
        const float around = busy_until(d, latest) - busy_until(d, ready) - others_ns;
        shares[d].collision += time_ns * std::max(0.0f, running) / own_ns;
        shares[d].crowd +=
            time_ns * std::max(0.0f, around) / static_cast<float>(latest_ns - ready_ns);
      }
    }
  }

  void read_critical_transfers(const CriticalPath& path) {
    const auto unit_of = space_.problem().graph().units();
    int32_t reader = -1;
    for (auto step = path.steps.rbegin(); step != path.steps.rend(); ++step) {
      if (step->kind == PathStep::Kind::compute) reader = step->index;
      if (step->kind != PathStep::Kind::transfer || reader < 0) continue;
      const int32_t from = unit_of[timeline_.transfers[step->index].task];
      for (const auto& beside : incident(from))
        if (beside.out && beside.unit == unit_of[reader])
          edges_[beside.edge].critical_ns += ns(step->end_ns - step->ready_ns);
    }
  }

  const PlacementSpace& space_;
  bool with_memory_;
  Simulator simulator_;
  Metrics metrics_;
  Timeline timeline_;
  Blame blame_;
  double step_ns_ = 0, mean_busy_ns_ = 0;
  std::vector<Unit> units_;
  std::vector<Edge> edges_;
  std::vector<Device> devices_;
  std::vector<Shares> shares_;  // [unit][device]
  std::vector<Incident> incidents_;
  std::vector<int32_t> first_incident_, edge_of_;  // edge_of_: per edge of the problem, or -1
  size_t wire_kinds_ = 0;  // classes of device pairs by latency and bandwidth
  std::vector<uint32_t> wire_kind_;                // [from][to]
  std::vector<double> wire_ns_;                    // [edge][class]; empty: too many
  std::vector<int32_t> order_, next_;  // operators by start; next operator on the device
  std::vector<int64_t> latest_ns_;                 // per operator: latest end
  // per output; per transfer: next of its output
  std::vector<int32_t> first_transfer_, next_transfer_;
  std::vector<float> busy_;                              // [device][bin]: busy time until its start
};

}  // namespace trinity
