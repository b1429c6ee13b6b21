#include "strategy/lanes.h"

#include <algorithm>
#include <numeric>
#include <unordered_set>

#include "base/index.h"
#include "graph/algorithms.h"
#include "graph/experts.h"
#include "graph/layers.h"
#include "graph/operator_types.h"

namespace trinity {
namespace {

/// Ascending, each once.
std::vector<int32_t> devices_of(const LoweredGraph& replica, const Collective& collective) {
  std::vector<int32_t> devices;
  for (const int32_t member : collective.members) devices.push_back(replica.device_of(member));
  std::sort(devices.begin(), devices.end());
  devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
  return devices;
}

/// Devices of which one sends to the other, in order of the first operator that reads. A device that is not made sends as
/// the one of its class.
std::vector<std::pair<int32_t, int32_t>> find_sends(const LoweredGraph& replica) {
  const auto width = static_cast<int32_t>(replica.lanes.size());
  std::vector<std::pair<int32_t, int32_t>> sends;
  std::unordered_set<uint64_t> seen;
  for (int32_t o = 0; o < replica.graph.operator_count(); ++o)
    for (const int32_t input : replica.graph.op(o).inputs) {
      const int32_t from = replica.device_of(replica.graph.tensor(input).producer);
      const int32_t to = replica.device_of(o), kind = to % width;
      if (from == to || !seen.insert(uint64_t{at(from)} << 32 | at(to)).second) continue;
      for (int32_t lane = 0; lane < width; ++lane)
        if (replica.lanes[at(lane)] == kind) sends.emplace_back(from - kind + lane, to - kind + lane);
    }
  return sends;
}

}  // namespace

ReplicaLanes::ReplicaLanes(const LoweredGraph& replica, bool whole) : kinds_(replica.lanes) {
  find_lanes(replica, whole);
  find_groups(replica);
  if (replica.joined.empty()) return;
  add_joined(replica);
  find_joined_copies(replica);
}

/// A collective that is made represents the collectives of its class.
void ReplicaLanes::find_groups(const LoweredGraph& replica) {
  over_.fill(std::vector<int32_t>(lane_of_.size(), -1));
  for (const auto& collective : replica.graph.collectives()) {
    exchanges_ = exchanges_ || collective.kind == CollectiveKind::all_to_all;
    const bool joins = !replica.joined.empty() && replica.joined[axes_.size()];
    axes_.push_back(joins ? kJoined : collective.axes);
    group_of_.push_back(joins                  ? -1
                        : collective.axes >= 0 ? add_over(replica.device_of(collective.members[0]), collective.axes)
                                               : add_alike(devices_of(replica, collective)));
  }
}

void ReplicaLanes::note(int32_t device, int32_t group) {
  auto& groups = lanes_[lane_of_[device]].groups;
  if (std::find(groups.begin(), groups.end(), group) == groups.end()) groups.push_back(group);
}

/// The number of a group; its pipeline groups get it.
int32_t ReplicaLanes::add_group(std::vector<int32_t> devices) {
  const auto [found, added] = known_.emplace(devices, static_cast<int32_t>(groups_.size()));
  if (!added) return found->second;
  for (const int32_t device : devices) note(device, found->second);
  groups_.push_back(std::move(devices));
  return found->second;
}

/// The group over axes of a device. All groups of its slot are added with the first one.
int32_t ReplicaLanes::add_over(int32_t device, int32_t axes) {
  auto& over = over_[at(axes)];
  const int32_t slot = device / place_ * place_;
  const bool known = over[at(device)] >= 0;
  for (int32_t lead = 0; lead < place_ && !known; ++lead) {
    if (first_over(axes, parts_, lead) != lead) continue;
    std::vector<int32_t> devices;
    for (int32_t offset = lead; offset < place_; ++offset)
      if (first_over(axes, parts_, offset) == lead) devices.push_back(slot + offset);
    const int32_t number = add_group(devices);
    for (const int32_t one : devices) over[at(one)] = number;
  }
  return over[at(device)];
}

/// A group of a pipeline group's collectives and the corresponding groups of its class.
int32_t ReplicaLanes::add_alike(const std::vector<int32_t>& group) {
  const int32_t own = group[0] % width_, kind = kinds_[at(own)];
  for (int32_t offset = kind; offset < width_; ++offset) {
    if (kinds_[at(offset)] != kind) continue;
    auto devices = group;
    for (int32_t& device : devices) device += offset - own;
    add_group(std::move(devices));
  }
  return known_.at(group);
}

int32_t ReplicaLanes::group_of(int32_t collective, int32_t device) const {
  const int32_t axes = axes_[at(collective)];
  if (axes == kJoined) return joined_of(device);
  if (axes >= 0) return over_[at(axes)][at(device)];
  const int32_t group = group_of_[at(collective)], lane = device % width_, kind = kinds_[at(lane)];
  if (lane == kind) return group;
  auto devices = groups_[at(group)];
  for (int32_t& one : devices) one += lane - kind;
  return known_.at(devices);
}

std::vector<int32_t> ReplicaLanes::outline() const {
  std::vector<int32_t> all = {exchanges_, first_joined(), static_cast<int32_t>(lanes_.size())};
  const auto add = [&all](const std::vector<int32_t>& list) {
    all.push_back(static_cast<int32_t>(list.size()));
    all.insert(all.end(), list.begin(), list.end());
  };
  for (const auto& lane : lanes_) {
    all.push_back(lane.kind);
    add(lane.devices);
    add(lane.groups);
    for (const auto& [from, to] : lane.sends) all.insert(all.end(), {from, to});
  }
  for (const auto& group : groups_) add(group);
  return all;
}

void ReplicaLanes::find_lanes(const LoweredGraph& replica, bool whole) {
  const auto& mesh = replica.of.mesh;
  width_ = mesh.width();
  parts_ = mesh.tensor;
  place_ = mesh.parts();
  std::vector<int32_t> root(at(mesh.pipeline * mesh.width()));
  std::iota(root.begin(), root.end(), 0);
  if (whole)
    for (size_t d = 1; d < root.size(); ++d) join_sets(root, 0, static_cast<int32_t>(d));
  const auto sends = find_sends(replica);
  for (const auto& [from, to] : sends) join_sets(root, from, to);
  lane_of_.assign(root.size(), -1);
  for (size_t d = 0; d < root.size(); ++d) {
    auto& lane = lane_of_[find_root(root, static_cast<int32_t>(d))];
    if (lane < 0) {
      lane = static_cast<int32_t>(lanes_.size());
      lanes_.emplace_back();
    }
    lane_of_[d] = lane;
    place_of_.push_back(static_cast<int32_t>(lanes_[lane].devices.size()));
    lanes_[lane].devices.push_back(static_cast<int32_t>(d));
  }
  for (const auto& send : sends) lanes_[lane_of_[send.second]].sends.push_back(send);
  for (auto& lane : lanes_) {
    const int32_t offset = lane.devices[0] % width_;
    lane.kind = lane_of_[lane.devices[0] - offset + kinds_[at(offset)]];
  }
}

/// Groups the devices that hold the same weights, per slot of a stage and part over `tensor`.
void ReplicaLanes::add_joined(const LoweredGraph& replica) {
  const auto& mesh = replica.of.mesh;
  first_joined_ = static_cast<int32_t>(groups_.size());
  for (int32_t place = 0; place < mesh.pipeline * mesh.placement; ++place)
    for (int32_t part = 0; part < parts_; ++part) {
      auto& group = groups_.emplace_back();
      for (int32_t d = part; d < place_; d += parts_) group.push_back(place * place_ + d);
      for (const int32_t device : group) {
        auto& groups = lanes_[lane_of_[device]].groups;
        const int32_t number = joined_of(device);
        if (groups.empty() || groups.back() != number) groups.push_back(number);
      }
    }
}

/// Exchanges of tokens, and what is gathered or reduced over replicas alone (Replication::is_reduced()).
void ReplicaLanes::find_joined_copies(const LoweredGraph& replica) {
  const auto& graph = replica.graph;
  const auto sums = [&](int32_t op) { return graph.op(op).phase == Phase::update && graph.op(op).collective >= 0; };
  std::vector<bool> meets(graph.tensors().size(), false);  // is reduced by a joined collective, or was
  const auto joins = [&](int32_t op) {
    return graph.op(op).collective >= 0 && replica.joined[at(graph.op(op).collective)];
  };
  const auto spread = [&](int32_t op, bool ahead) {
    const auto& about = graph.op(op);
    const auto &from = ahead ? about.outputs : about.inputs, &to = ahead ? about.inputs : about.outputs;
    for (size_t i = 0; i < to.size(); ++i)
      meets[at(to[i])] = meets[at(to[i])] || joins(op) || (sums(op) && i < from.size() && meets[at(from[i])]);
  };
  for (int32_t op = graph.operator_count() - 1; op >= 0; --op) spread(op, true);
  for (int32_t op = 0; op < graph.operator_count(); ++op) spread(op, false);
  joins_copies_.fill(false);
  const auto note_copies = [&](int32_t op) {
    const auto among = replica.roles[at(op)].spread > 1 ? LoweredGraph::Among::alike : LoweredGraph::Among::all;
    joins_copies_[static_cast<size_t>(among)] = true;
  };
  for (int32_t op = 0; op < graph.operator_count(); ++op) {
    if (is_exchange(graph.op(op))) joins_copies_[static_cast<size_t>(LoweredGraph::Among::run)] = true;
    if (replica.roles[at(op)].gathered > 0 && replica.roles[at(op)].together < 0) note_copies(op);
    for (const int32_t input : graph.op(op).inputs) {
      const int32_t from = graph.tensor(input).producer;
      const bool updates = graph.op(op).collective < 0 && graph.op(op).forward >= 0;
      if (graph.op(op).phase == Phase::update && !is_variable(graph.op(from)) && !meets[at(input)] &&
          (graph.op(from).phase == Phase::backward || updates))
        note_copies(from);
    }
  }
}

}  // namespace trinity
