#pragma once

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "base/index.h"
#include "cluster/collectives.h"
#include "simulator/mesh/group_prices.h"
#include "simulator/mesh/queue_list.h"
#include "simulator/mesh/replicas_alike.h"
#include "simulator/symmetry.h"

namespace trinity {

/// The copies of pipeline groups (group x replicas + replica) with the groups of their collectives
/// (place()) and the queues that their transfers and collectives take. Either all replicas are
/// considered or, where any two may change places, only the first ones (`first_alone`). Not
/// thread-safe.
class LaneCopies {
 protected:
  using Among = LoweredGraph::Among;
  using Group = ReplicaGroup;

  LaneCopies(const ReplicaLanes& lanes, const Mesh& mesh, const Problem& problem, CollectiveGroups& prices,
             bool pieces_alike, bool first_alone)
      : lanes_(lanes),
        problem_(problem),
        cluster_(problem.cluster()),
        prices_(problem.cluster(), prices),
        pieces_alike_(pieces_alike),
        replicas_(mesh.data),
        experts_(mesh.expert),
        devices_(mesh.pipeline * mesh.width()),
        queued_(problem.rules().queue == QueueModel::pair || problem.rules().queue == QueueModel::route),
        where_(devices_of(mesh)) {
    copies_ = first_alone ? run_alike(mesh) : replicas_;
    if (copies_ == 0) return;
    if (problem.rules().queue == QueueModel::route) channel_queue_.assign(cluster_.channels().size(), -1);
    if (queued_) find_transfers();
  }

  /// True if replicas or groups are distinguished by their numbers, or the first replica differs
  /// from the others: then the first one alone is not enough.
  bool told_apart() const {
    const auto any = [](const auto& of) { return std::find(of.begin(), of.end(), true) != of.end(); };
    return copies_ == 0 || (copies_ < replicas_ && (any(alone_) || any(apart_)));
  }

  void find_meetings() {
    find_groups();
    if (queued_) find_collectives();
    alone_.assign(groups_.size(), false);
    apart_.resize(at(replicas_), false);
    if (queued_) set_apart();
  }

  bool queues_by_pair() const { return problem_.rules().queue == QueueModel::pair; }

  /// Size of the sets of consecutive replicas, with all their experts, that are interchangeable; 0: none. With a queue
  /// per pair of devices, rings must visit these sets one after the other: devices ascend with the ranks.
  int32_t run_alike(const Mesh& mesh) const {
    if (!pieces_alike_ || (queues_by_pair() && !std::is_sorted(mesh.devices.begin(), mesh.devices.end()))) return 0;
    const int32_t run = std::lcm(run_of_replicas(where_, replicas_, cluster_.routes()), experts_);
    const bool several = run > 0 && replicas_ > 2 * run;
    if (!several || (queues_by_pair() && !ascend_by_sets(run))) return 0;
    return replicas_alike(where_, replicas_, run, problem_) ? run : 0;
  }

  /// True if in every joined group the devices of `run` replicas precede the devices of the next ones.
  bool ascend_by_sets(int32_t run) const {
    for (auto g = at(lanes_.first_joined()); g < lanes_.groups().size(); ++g)
      for (int32_t r = run, last = -1; r <= replicas_; r += run) {
        int32_t first = std::numeric_limits<int32_t>::max(), most = -1;
        for (const int32_t u : lanes_.groups()[g])
          for (int32_t i = r - run; i < r; ++i) {
            first = std::min(first, where(u, i));
            most = std::max(most, where(u, i));
          }
        if (first < last) return false;
        last = most;
      }
    return true;
  }

  int32_t where(int32_t device, int32_t replica) const {
    return where_[at(device) * at(replicas_) + at(replica)];
  }
  /// Groups of the same devices: one of all replicas, one of each run of `expert` among the copies,
  /// one of those that hold the same experts.
  size_t ways() const { return experts_ > 1 ? 1 + at(copies_ / experts_) + at(experts_) : 1; }
  size_t way_of(Among among, int32_t replica) const {
    if (among == Among::all || experts_ == 1) return 0;
    return among == Among::run ? 1 + at(replica / experts_)
                               : 1 + at(copies_ / experts_) + at(replica % experts_);
  }
  /// A group of the pipeline groups in one replica, or in joined replicas.
  size_t place(int32_t group, int32_t replica, Among among = Among::all) const {
    const auto within = at(lanes_.first_joined());
    if (at(group) < within) return at(group) * at(copies_) + at(replica);
    return within * at(copies_) + (at(group) - within) * ways() + way_of(among, replica);
  }
  /// A device's copies in some.
  size_t across(int32_t device, int32_t replica, Among among = Among::all) const {
    return place(static_cast<int32_t>(lanes_.groups().size()), 0) + at(device) * ways() +
           way_of(among, replica);
  }
  /// Calls visit(group) for all groups that a copy may synchronize in.
  template <class Visit>
  void for_groups(const ReplicaLanes::Lane& lane, int32_t replica, Visit visit) const {
    const auto all = {Among::all, Among::run, Among::alike};
    for (const int32_t group : lane.groups)
      for (const Among among : all) {
        const bool joins = group >= lanes_.first_joined();
        if (among != Among::all && (!joins || experts_ == 1)) continue;
        visit(place(group, replica, among));
      }
    for (const int32_t u : lane.devices)
      for (const Among among : all)
        if ((among == Among::all || experts_ > 1) && lanes_.joins_copies(among)) visit(across(u, replica, among));
  }

  /// Calls visit(queue) for what a transfer between two devices of the cluster occupies.
  template <class Visit>
  void for_path(int32_t from, int32_t to, Visit visit) {
    if (queues_by_pair())
      return visit(queue_at(pair_queue_.of(static_cast<uint64_t>(from), static_cast<uint64_t>(to))));
    for (const int32_t channel : cluster_.route(from, to)) visit(queue_of(channel));
  }

  int32_t queue_of(int32_t channel) {
    int32_t& number = channel_queue_[at(channel)];
    if (number < 0) number = queue_count();
    return queue_at(number);
  }
  /// The queue of that number, which is added if it is the next one.
  int32_t queue_at(int32_t number) {
    if (number < queue_count()) return number;
    queues_.owner.push_back(-1);
    queues_.place.push_back(0);
    queues_.group.push_back(-1);
    return number;
  }
  int32_t queue_count() const { return static_cast<int32_t>(queues_.owner.size()); }

  void find_transfers() {
    apart_.assign(at(replicas_), false);
    for (size_t l = 0; l < lanes_.lanes().size(); ++l)
      for (int32_t r = 0; r < copies_; ++r) {
        const auto id = static_cast<int32_t>(l * at(copies_)) + r;
        for (const auto& [from, to] : lanes_.lanes()[l].sends)
          for_path(where(from, r), where(to, r), [&](int32_t queue) { own(queue, id); });
        copy_queues_.end();
      }
  }

  /// Appends to the last list of copy_queues_, which belongs to copy `id`.
  void own(int32_t queue, int32_t id) {
    auto& owner = queues_.owner[queue];
    if (owner == id) return;
    if (owner >= 0) {
      apart_[owner % copies_] = apart_[id % copies_] = true;
      lanes_share_ = lanes_share_ || lanes_.lanes().size() > 1;
    }
    owner = id;
    queues_.place[queue] = static_cast<int32_t>(copy_queues_.all.size() - copy_queues_.first.back());
    copy_queues_.all.push_back(queue);
  }

  /// Groups of collectives with what they cost.
  void find_groups() {
    groups_.reserve(across(devices_, 0));
    each_.resize(at(devices_));
    std::iota(each_.begin(), each_.end(), 0);
    std::vector<int32_t> devices;
    const auto add = [&](Group group) {
      if (!group.meets) return groups_.push_back(group);
      members_of(group, devices);
      const bool run_of_experts = experts_ > 1 && group.step == 1 && group.count == experts_;
      const bool exchanges = group.inner ? lanes_.exchanges() : run_of_experts;
      group.price = pieces_alike_ ? prices_.of_alike(devices, exchanges) : prices_.of(devices, exchanges);
      groups_.push_back(group);
    };
    const auto add_ways = [&](std::span<const int32_t> members, std::span<const uint64_t> places, bool copies) {
      const auto group = [&](Among among, int32_t first, int32_t step, int32_t count) {
        Group made{members, places, first, step, count};
        made.meets = !copies || lanes_.joins_copies(among);
        add(made);
      };
      group(Among::all, 0, 1, replicas_);
      if (experts_ == 1) return;
      for (int32_t r = 0; r < copies_; r += experts_) group(Among::run, r, 1, experts_);
      for (int32_t i = 0; i < experts_; ++i) group(Among::alike, i, experts_, replicas_ / experts_);
    };
    find_places();
    for (size_t g = 0; g < lanes_.groups().size(); ++g) {
      const auto& members = lanes_.groups()[g];
      const bool joins = g >= at(lanes_.first_joined());
      for (int32_t r = 0; r < copies_ && !joins; ++r) add({members, places_[g], r, 1, 1, true});
      if (joins) add_ways(members, places_[g], false);
    }
    for (int32_t u = 0; u < devices_; ++u) add_ways(std::span(each_).subspan(at(u), 1), {}, true);
  }

  /// For every group the index of its members in their pipeline group, and its own index there.
  void find_places() {
    places_.resize(lanes_.groups().size());
    for (size_t g = 0; g < places_.size(); ++g)
      for (const int32_t u : lanes_.groups()[g]) {
        const auto& groups = lanes_.lanes()[at(lanes_.lane_of(u))].groups;
        const auto place = std::find(groups.begin(), groups.end(), static_cast<int32_t>(g));
        places_[g].push_back(static_cast<uint64_t>(lanes_.place_of(u)) << 48 |
                             static_cast<uint64_t>(place - groups.begin()) << 32);
      }
  }

  /// The cluster's devices of a group, ascending.
  void members_of(const Group& group, std::vector<int32_t>& devices) const {
    devices.clear();
    for (const int32_t u : group.members)
      group.for_replicas([&](int32_t r) { devices.push_back(where(u, r)); });
    if (!std::is_sorted(devices.begin(), devices.end())) std::sort(devices.begin(), devices.end());
  }

  /// Number of replicas of a group that are among the copies; whether it has others, which repeat these.
  int32_t once(const Group& group) const { return std::min(group.count, copies_ / group.step); }
  bool goes_on(const Group& group) const { return group.count > once(group); }

  void find_collectives() {
    std::vector<int32_t> ring;
    for (size_t g = 0; g < groups_.size(); ++g) {
      const auto add = [&](int32_t queue) {
        if (queues_.group[queue] == static_cast<int32_t>(g)) return;
        queues_.group[queue] = static_cast<int32_t>(g);
        group_queues_.all.push_back(queue);
      };
      if (goes_on(groups_[g]) && groups_[g].meets) {
        for_ways(groups_[g], add);
      } else if (groups_[g].meets) {
        members_of(groups_[g], ring);
        for (size_t i = 0; i < ring.size() && ring.size() > 1; ++i)
          for_path(ring[i], ring[(i + 1) % ring.size()], add);
      }
      group_queues_.end();
    }
    queues_.groups = group_queues_.turned(at(queue_count()));
  }

  /// For the first replicas only: the queues that a ring over all replicas uses in their pieces.
  template <class Visit>
  void for_ways(const Group& group, Visit visit) {
    std::vector<InRun> ring;
    for (const int32_t u : group.members)
      for (auto r = group.first; r < copies_; r += group.step) ring.push_back({where(u, r), u, r});
    std::sort(ring.begin(), ring.end(), [](auto& a, auto& b) { return a.here < b.here; });
    const auto like = [&](const InRun& one, int32_t run) { return where(one.u, one.r + run * copies_); };
    const auto path = [&](int32_t from, int32_t to) { for_path(from, to, visit); };
    if (queues_by_pair()) {  // no other ring takes the pair that leaves the first replicas
      for (size_t i = 1; i < ring.size(); ++i) path(ring[i - 1].here, ring[i].here);
      return path(ring.back().here, like(ring[0], 1));
    }
    const bool one_way = for_ring(cluster_.routes(), ring, like, path,
                                  [&](int32_t channel) { visit(queue_of(channel)); });
    if (!one_way) apart_[0] = true;
  }

  /// True if a copy of a pipeline group takes part in both.
  bool meet(const Group& a, const Group& b) const {
    for (const int32_t u : a.members)
      for (const int32_t v : b.members)
        if (lanes_.lane_of(u) == lanes_.lane_of(v)) return a.shares_replica(b);
    return false;
  }

  /// Distinguishes groups that queue for the same link without a common pipeline group that orders
  /// them, and work that queues after a pipeline group outside them.
  void set_apart() {
    for (int32_t queue = 0; queue < queue_count(); ++queue) {
      const auto list = queues_.groups[at(queue)];
      const int32_t owner = queues_.owner[queue];
      const bool many = list.size() > kMostCompared;  // none are compared
      for (size_t i = 0; i < list.size(); ++i) {
        if (many) alone_[list[i]] = true;
        if (owner >= 0 && !holds(groups_[list[i]], owner)) {
          alone_[list[i]] = true;
          apart_[owner % copies_] = true;
        }
        for (size_t j = 0; j < i && !many; ++j)
          if (!meet(groups_[list[i]], groups_[list[j]])) alone_[list[i]] = alone_[list[j]] = true;
      }
    }
  }

  bool holds(const Group& group, int32_t owner) const {
    if (!group.has(owner % copies_)) return false;
    return std::any_of(group.members.begin(), group.members.end(), [&](int32_t u) {
      return lanes_.lane_of(u) == owner / copies_;
    });
  }

  static constexpr size_t kMostCompared = 64;

  const ReplicaLanes& lanes_;
  const Problem& problem_;
  const Cluster& cluster_;
  GroupPrices prices_;
  bool pieces_alike_;
  int32_t replicas_, experts_, devices_;
  int32_t copies_ = 0;  // replicas whose copies are looked at: all, or the first; 0: the first are not as all
  bool queued_, lanes_share_ = false;
  std::vector<int32_t> where_;                 // [device][replica]
  std::vector<int32_t> each_;                  // devices, in order
  std::vector<std::vector<uint64_t>> places_;  // of the groups: find_places()
  Lists copy_queues_;                          // that their transfers take, in order of the first
  std::vector<Group> groups_;
  Lists group_queues_;
  QueueList queues_;
  std::vector<int32_t> channel_queue_;               // of every channel, or -1; under route alone
  Colours pair_queue_;                           // of every pair of devices; under pair alone
  std::vector<bool> alone_;  // per group: it is a class of its own
  std::vector<bool> apart_;  // per replica: the same for its pipeline groups
};

}  // namespace trinity
