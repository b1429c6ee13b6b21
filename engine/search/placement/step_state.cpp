#include "search/placement/step_state.h"

#include <algorithm>
#include <map>

#include "base/index.h"

namespace trinity {
namespace {

constexpr double kTightShare = 0.01;  // of the step: less slack counts as none
// limit of cached times of edges by class of device pairs
constexpr size_t kMostWires = size_t{1} << 20;

double ns(int64_t time) { return static_cast<double>(time); }

}  // namespace

StepState::StepState(const PlacementSpace& space, bool with_memory)
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

void StepState::bind_edges() {
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

void StepState::bind_wires() {
  const auto& problem = space_.problem();
  std::map<std::pair<int64_t, double>, uint32_t> known;
  std::vector<std::pair<int32_t, int32_t>> of_kind;
  for (int32_t from = 0; from < space_.devices(); ++from)
    for (int32_t to = 0; to < space_.devices(); ++to) {
      const auto wire = problem.wire(from, to);
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

void StepState::refresh(const Assignment& assignment) {
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

void StepState::sort_tasks(std::span<const int32_t> placement) {
  order_ = by_start(timeline_);
  next_.assign(placement.size(), -1);
  std::vector<int32_t> later(devices_.size(), -1);
  for (auto op = order_.rbegin(); op != order_.rend(); ++op) {
    next_[*op] = later[placement[*op]];
    later[placement[*op]] = *op;
  }
}

void StepState::index_transfers() {
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
int32_t StepState::transfer(int32_t output, int32_t to) const {
  int32_t i = first_transfer_[output];
  if (space_.problem().rules().broadcast) return i;
  while (i >= 0 && timeline_.transfers[i].to != to) i = next_transfer_[i];
  return i;
}

/// Backwards over readers (including transfers) and the next task of the device.
void StepState::read_slack(std::span<const int32_t> placement) {
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

void StepState::read_units(std::span<const int32_t> placement) {
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

/// Memory of an operator at the peak: its weights, and outputs that a reader on any device still
/// needs.
void StepState::read_memory(std::span<const int32_t> placement) {
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

void StepState::read_busy(std::span<const int32_t> placement) {
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

StepState::Point StepState::point(double time_ns) const {
  const double in_bins = time_ns / step_ns_ * kBins;
  const auto bin = std::clamp(static_cast<int32_t>(in_bins), 0, kBins - 1);
  return {bin, static_cast<float>(std::clamp(in_bins - bin, 0.0, 1.0))};
}

float StepState::busy_until(int32_t device, Point point) const {
  const auto* bins = busy_.data() + at(device) * (at(kBins) + 1) + point.bin;
  return bins[0] + point.share * (bins[1] - bins[0]);
}

void StepState::read_shares(std::span<const int32_t> placement) {
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

void StepState::read_critical_transfers(const CriticalPath& path) {
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

}  // namespace trinity
