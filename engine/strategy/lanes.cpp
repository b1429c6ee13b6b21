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

constexpr int32_t kJoins = -1;  // a group that add_joined() finds

/// Ascending, each once.
std::vector<int32_t> devices_of(const LoweredReplica& replica, const Collective& collective) {
  std::vector<int32_t> devices;
  for (const int32_t member : collective.members) devices.push_back(replica.device_of(member));
  std::sort(devices.begin(), devices.end());
  devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
  return devices;
}

/// Devices of which one sends to the other, in order of the first operator that reads.
std::vector<std::pair<int32_t, int32_t>> find_sends(const LoweredReplica& replica) {
  std::vector<std::pair<int32_t, int32_t>> sends;
  std::unordered_set<uint64_t> seen;
  for (int32_t o = 0; o < replica.graph.operator_count(); ++o)
    for (const int32_t input : replica.graph.op(o).inputs) {
      const int32_t from = replica.device_of(replica.graph.tensor(input).producer);
      const int32_t to = replica.device_of(o);
      if (from != to && seen.insert(uint64_t{at(from)} << 32 | at(to)).second) sends.emplace_back(from, to);
    }
  return sends;
}

}  // namespace

ReplicaLanes::ReplicaLanes(const LoweredReplica& replica, bool whole) {
  find_lanes(replica, whole);
  repeats_ = !replica.lanes.empty();
  if (repeats_) {
    repeat_kinds(replica);
  } else {
    find_groups(replica);
    find_kinds(replica);
  }
  if (!replica.joined.empty()) find_joined_copies(replica);
}

/// For lowering with one pipeline group per class: its collectives represent its class.
void ReplicaLanes::repeat_kinds(const LoweredReplica& replica) {
  const auto& kinds = replica.lanes;
  for (auto& lane : lanes_) {
    const int32_t offset = lane.devices[0] % width_, kind = kinds[at(offset)];
    lane.kind = lane_of_[lane.devices[0] - offset + kind];
    if (offset == kind) continue;
    lane.sends.clear();
    for (const auto& [from, to] : lanes_[lane.kind].sends)
      lane.sends.emplace_back(from - kind + offset, to - kind + offset);
  }
  for (const auto& collective : replica.graph.collectives()) {
    const auto number = group_of_.size();
    exchanges_ = exchanges_ || collective.kind == CollectiveKind::all_to_all;
    const int32_t device = replica.device_of(collective.members[0]);
    if (!replica.joined.empty() && replica.joined[number])
      group_of_.push_back(kJoins);
    else if (collective.axes >= 0)
      group_of_.push_back(add_over(device, collective.axes));
    else
      group_of_.push_back(add_alike(devices_of(replica, collective), kinds));
  }
  if (!replica.joined.empty()) add_joined(replica);
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

/// All groups over axes in a device's stage, and the group of the device.
int32_t ReplicaLanes::add_over(int32_t device, int32_t axes) {
  const int32_t stage = device / width_ * width_;
  const auto first = [&](int32_t offset) {  // of its group
    const int32_t part = (axes & kOverTensor) != 0 ? 0 : offset % parts_;
    return part + ((axes & kOverContext) != 0 ? 0 : offset / parts_ * parts_);
  };
  int32_t own = -1;
  for (int32_t lead = 0; lead < width_; ++lead) {
    if (first(lead) != lead) continue;
    std::vector<int32_t> devices;
    for (int32_t offset = lead; offset < width_; ++offset)
      if (first(offset) == lead) devices.push_back(stage + offset);
    const int32_t number = add_group(std::move(devices));
    if (first(device - stage) == lead) own = number;
  }
  return own;
}

/// A group of a pipeline group's collectives and the corresponding groups of its class.
int32_t ReplicaLanes::add_alike(const std::vector<int32_t>& group,
                                const std::vector<int32_t>& kinds) {
  const int32_t own = group[0] % width_, kind = kinds[at(own)];
  for (int32_t offset = kind; offset < width_; ++offset) {
    if (kinds[at(offset)] != kind) continue;
    auto devices = group;
    for (int32_t& device : devices) device += offset - own;
    add_group(std::move(devices));
  }
  return known_.at(group);
}

int32_t ReplicaLanes::group_of(int32_t collective, int32_t device) const {
  const int32_t group = group_of_[collective];
  if (!repeats_) return group;
  if (group >= first_joined()) return joined_of(device);
  const auto &own = lanes_[lane_of_[device]].groups, &made = lanes_[lanes_[lane_of_[device]].kind].groups;
  return own[at(std::find(made.begin(), made.end(), group) - made.begin())];
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

void ReplicaLanes::find_lanes(const LoweredReplica& replica, bool whole) {
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
    const auto offset = static_cast<int32_t>(d) % width_;
    const int32_t kind = replica.lanes.empty() ? offset : replica.lanes[at(offset)];
    if (kind != offset)  // as the device of its stage that is made
      root[d] = find_root(root, static_cast<int32_t>(d) - offset + kind) - kind + offset;
    auto& lane = lane_of_[find_root(root, static_cast<int32_t>(d))];
    if (lane < 0) {
      lane = static_cast<int32_t>(lanes_.size());
      lanes_.emplace_back();
    }
    lane_of_[d] = lane;
    place_of_.push_back(static_cast<int32_t>(lanes_[lane].devices.size()));
    lanes_[lane].devices.push_back(static_cast<int32_t>(d));
  }
  for (int32_t o = 0; o < replica.graph.operator_count(); ++o) {
    auto& operators = lanes_[lane_of_[replica.device_of(o)]].operators;
    number_.push_back(static_cast<int32_t>(operators.size()));
    operators.push_back(o);
  }
  for (const auto& send : sends) lanes_[lane_of_[send.second]].sends.push_back(send);
}

void ReplicaLanes::find_groups(const LoweredReplica& replica) {
  collectives_.resize(lanes_.size());
  rank_.assign(replica.roles.size(), -1);
  for (const auto& collective : replica.graph.collectives()) {
    auto devices = devices_of(replica, collective);
    const auto number = static_cast<int32_t>(group_of_.size());
    const bool joins = !replica.joined.empty() && replica.joined[at(number)];
    exchanges_ = exchanges_ || collective.kind == CollectiveKind::all_to_all;
    for (const int32_t device : devices) {
      auto& list = collectives_[lane_of_[device]];
      if (list.empty() || list.back() != number) list.push_back(number);
    }
    group_of_.push_back(joins ? kJoins : add_group(std::move(devices)));
    for (const int32_t member : collective.members)
      rank_[member] =
          static_cast<int32_t>(collectives_[lane_of_[replica.device_of(member)]].size()) - 1;
  }
  if (!replica.joined.empty()) add_joined(replica);
}

/// Groups the devices that hold the same weights, per slot of a stage and part over `tensor`.
void ReplicaLanes::add_joined(const LoweredReplica& replica) {
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
  for (size_t c = 0; c < group_of_.size(); ++c)
    if (group_of_[c] == kJoins)
      group_of_[c] = joined_of(replica.device_of(replica.graph.collectives()[c].members[0]));
}

/// Exchanges of tokens, and what is gathered or reduced over replicas alone (Replication::is_reduced()).
void ReplicaLanes::find_joined_copies(const LoweredReplica& replica) {
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

void ReplicaLanes::find_kinds(const LoweredReplica& replica) {
  for (size_t l = 0; l < lanes_.size(); ++l) {
    lanes_[l].kind = static_cast<int32_t>(l);
    for (size_t first = 0; first < l; ++first)
      if (at(lanes_[first].kind) == first && alike(replica, lanes_[first], lanes_[l])) {
        lanes_[l].kind = static_cast<int32_t>(first);
        break;
      }
  }
}

bool ReplicaLanes::same_operator(const LoweredReplica& replica, int32_t a, int32_t b) const {
  const auto &graph = replica.graph;
  const auto &x = graph.op(a), &y = graph.op(b);
  if (place_of_[replica.device_of(a)] != place_of_[replica.device_of(b)] ||
      replica.roles[a].stage != replica.roles[b].stage || !same_work(x, y) || rank_[a] != rank_[b] ||
      x.inputs.size() != y.inputs.size() || x.outputs.size() != y.outputs.size())
    return false;
  if (replica.roles[a].gathered != replica.roles[b].gathered) return false;
  for (size_t i = 0; i < x.inputs.size(); ++i) {
    const int32_t p = graph.tensor(x.inputs[i]).producer, q = graph.tensor(y.inputs[i]).producer;
    if (number_[p] != number_[q] || x.inputs[i] - graph.op(p).outputs.front() !=
                                        y.inputs[i] - graph.op(q).outputs.front())
      return false;
  }
  for (size_t i = 0; i < x.outputs.size(); ++i)
    if (!same_tensor(graph.tensor(x.outputs[i]), graph.tensor(y.outputs[i]))) return false;
  return true;
}

bool ReplicaLanes::alike(const LoweredReplica& replica, const Lane& a, const Lane& b) const {
  const auto& first = collectives_[at(lane_of_[a.devices[0]])];
  const auto& second = collectives_[at(lane_of_[b.devices[0]])];
  if (a.devices.size() != b.devices.size() || a.operators.size() != b.operators.size() ||
      first.size() != second.size())
    return false;
  const auto place = [this](const Lane& lane, int32_t collective) {
    return std::find(lane.groups.begin(), lane.groups.end(), group_of_[collective]) -
           lane.groups.begin();
  };
  for (size_t i = 0; i < first.size(); ++i) {
    const auto &x = replica.graph.collectives()[first[i]],
               &y = replica.graph.collectives()[second[i]];
    if (x.kind != y.kind || x.algorithm != y.algorithm || x.bytes != y.bytes ||
        place(a, first[i]) != place(b, second[i]))
      return false;
  }
  for (size_t i = 0; i < a.operators.size(); ++i)
    if (!same_operator(replica, a.operators[i], b.operators[i])) return false;
  return true;
}

}  // namespace trinity
