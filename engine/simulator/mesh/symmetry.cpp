#include "simulator/symmetry.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <numeric>
#include <unordered_map>

#include "base/index.h"
#include "cluster/collectives.h"
#include "simulator/mesh/colours.h"
#include "simulator/mesh/group_prices.h"
#include "simulator/mesh/queue_list.h"
#include "simulator/mesh/replicas_alike.h"

namespace trinity {
namespace {

/// Colour refinement over copies of pipeline groups (group * replicas + replica), groups of
/// collectives (place()) and queues.
///
/// If any two replicas are interchangeable, or any two runs of replicas whose devices are in the
/// same pieces of the cluster, they have equal colours. Then only the copies of the first one are
/// refined, with the queues of their transfers and collectives in their own pieces (`first_alone`).
class Refinement {
 public:
  Refinement(const ReplicaLanes& lanes, const Mesh& mesh, const Problem& problem,
             CollectiveGroups& prices, bool pieces_alike, bool first_alone)
      : lanes_(lanes),
        problem_(problem),
        cluster_(problem.cluster()),
        prices_(problem.cluster(), prices),
        pieces_alike_(pieces_alike),
        width_(mesh.width()),
        replicas_(mesh.data),
        experts_(mesh.expert),
        devices_(mesh.pipeline * mesh.width()),
        queued_(problem.rules().queue == QueueModel::pair ||
                problem.rules().queue == QueueModel::route),
        where_(devices_of(mesh)) {
    copies_ = replicas_;
    if (first_alone && (copies_ = run_alike()) == 0) return;
    colour_.resize(lanes.lanes().size() * at(copies_));
    if (problem.rules().queue == QueueModel::route)
      channel_queue_.assign(cluster_.channels().size(), -1);
    if (queued_) find_transfers();
  }

  bool lanes_share() const { return lanes_share_; }
  /// True if replicas or groups are distinguished by their numbers, or if the first replica differs
  /// from the others: then all must be refined.
  bool told_apart() const {
    const auto any = [](const auto& of) { return std::find(of.begin(), of.end(), true) != of.end(); };
    return copies_ == 0 || (copies_ < replicas_ && (any(alone_) || any(apart_)));
  }

  std::optional<Symmetry> run() {
    find_groups();
    if (queued_) find_collectives();
    alone_.assign(groups_.size(), false);
    apart_.resize(at(replicas_), false);
    if (queued_) set_apart();
    do {
      if (told_apart()) return std::nullopt;
      refine();
    } while ((queued_ && (part_equals() || part_meetings() || part_copies())) || part_groups());
    return result();
  }

 private:
  using Among = LoweredCopies::Among;
  using Group = ReplicaGroup;

  /// Number of replicas, with all their experts, in an interchangeable run; 0: none.
  int32_t run_alike() const {
    if (problem_.rules().queue == QueueModel::pair || !pieces_alike_) return 0;
    const int32_t run = std::lcm(run_of_replicas(where_, replicas_, cluster_.routes()), experts_);
    const bool several = run > 0 && replicas_ > 2 * run;
    return several && replicas_alike(where_, replicas_, run, problem_) ? run : 0;
  }

  int32_t where(int32_t device, int32_t replica) const {
    return where_[at(device) * at(replicas_) + at(replica)];
  }
  int32_t& colour(int32_t lane, int32_t replica) {
    return colour_[at(lane) * at(copies_) + at(replica % copies_)];
  }
  /// Groups over the same devices: one of all replicas, one per run of `expert` among the copies,
  /// one per set of replicas that hold the same experts.
  size_t ways() const { return experts_ > 1 ? 1 + at(copies_ / experts_) + at(experts_) : 1; }
  size_t way_of(Among among, int32_t replica) const {
    if (among == Among::all || experts_ == 1) return 0;
    return among == Among::run ? 1 + at(replica / experts_)
                               : 1 + at(copies_ / experts_) + at(replica % experts_);
  }
  /// A collective group of a replica, or over the replicas that it joins.
  size_t place(int32_t group, int32_t replica, Among among = Among::all) const {
    const auto within = at(lanes_.first_joined());
    if (at(group) < within) return at(group) * at(copies_) + at(replica);
    return within * at(copies_) + (at(group) - within) * ways() + way_of(among, replica);
  }
  /// A device's copies in several replicas.
  size_t across(int32_t device, int32_t replica, Among among = Among::all) const {
    return place(static_cast<int32_t>(lanes_.groups().size()), 0) + at(device) * ways() +
           way_of(among, replica);
  }
  /// Calls visit(group) for all groups that a copy may take part in.
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
        if (among == Among::all || experts_ > 1) visit(across(u, replica, among));
  }

  /// Calls visit(queue) for the queues of a transfer between two cluster devices.
  template <class Visit>
  void for_path(int32_t from, int32_t to, Visit visit) {
    if (problem_.rules().queue == QueueModel::pair)
      return visit(queue_at(int64_t{from} * cluster_.device_count() + to));
    for (const int32_t channel : cluster_.route(from, to)) visit(queue_at(channel));
  }

  int32_t queue_at(int64_t key) {
    int32_t& number = channel_queue_.empty() ? pair_queue_.emplace(key, -1).first->second
                                             : channel_queue_[static_cast<size_t>(key)];
    if (number < 0) {
      number = queue_count();
      queues_.owner.push_back(-1);
      queues_.place.push_back(0);
      queues_.group.push_back(-1);
    }
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

  /// Appends to the last list of copy_queues_, that of copy `id`.
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

  /// Finds groups of collectives and their costs.
  void find_groups() {
    groups_.reserve(across(devices_, 0));
    each_.resize(at(devices_));
    std::iota(each_.begin(), each_.end(), 0);
    std::vector<int32_t> devices;
    const auto add = [&](Group group) {
      members_of(group, devices);
      const bool run_of_experts = experts_ > 1 && group.step == 1 && group.count == experts_;
      const bool exchanges = group.inner ? lanes_.exchanges() : run_of_experts;
      const bool alike = copies_ < replicas_ || (pieces_alike_ && exchanges);
      group.price =
          alike ? prices_.of_alike(devices, exchanges) : prices_.of(devices, exchanges);
      groups_.push_back(group);
    };
    const auto add_ways = [&](std::span<const int32_t> members, std::span<const uint64_t> places) {
      add({members, places, 0, 1, replicas_});
      if (experts_ == 1) return;
      for (int32_t r = 0; r < copies_; r += experts_) add({members, places, r, 1, experts_});
      for (int32_t i = 0; i < experts_; ++i)
        add({members, places, i, experts_, replicas_ / experts_});
    };
    find_places();
    for (size_t g = 0; g < lanes_.groups().size(); ++g) {
      const auto& members = lanes_.groups()[g];
      const bool joins = g >= at(lanes_.first_joined());
      for (int32_t r = 0; r < copies_ && !joins; ++r) add({members, places_[g], r, 1, 1, true});
      if (joins) add_ways(members, places_[g]);
    }
    for (int32_t u = 0; u < devices_; ++u) add_ways(std::span(each_).subspan(at(u), 1), {});
  }

  /// Finds, per group member, its index in its pipeline group, and the group's index among the
  /// member's.
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

  /// The cluster devices of a group, ascending.
  void members_of(const Group& group, std::vector<int32_t>& devices) const {
    devices.clear();
    for (const int32_t u : group.members)
      group.for_replicas([&](int32_t r) { devices.push_back(where(u, r)); });
    if (!std::is_sorted(devices.begin(), devices.end())) std::sort(devices.begin(), devices.end());
  }

  /// Number of a group's replicas among the copies; others repeat these.
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
      if (goes_on(groups_[g])) {
        for_ways(groups_[g], add);
      } else {
        members_of(groups_[g], ring);
        for (size_t i = 0; i < ring.size() && ring.size() > 1; ++i)
          for_path(ring[i], ring[(i + 1) % ring.size()], add);
      }
      group_queues_.end();
    }
    queues_.groups = group_queues_.turned(at(queue_count()));
  }

  /// If only the first replicas are refined: channels of a ring over all replicas in their pieces.
  template <class Visit>
  void for_ways(const Group& group, Visit visit) {
    std::vector<InRun> ring;
    for (const int32_t u : group.members)
      for (auto r = group.first; r < copies_; r += group.step) ring.push_back({where(u, r), u, r});
    const bool one_way = for_ring(
        cluster_.routes(), std::move(ring),
        [&](const InRun& one, int32_t run) { return where(one.u, one.r + run * copies_); },
        [&](int32_t from, int32_t to) { for_path(from, to, visit); },
        [&](int32_t channel) { visit(queue_at(channel)); });
    if (!one_way) apart_[0] = true;
  }

  /// True if a copy takes part in both groups.
  bool meet(const Group& a, const Group& b) const {
    for (const int32_t u : a.members)
      for (const int32_t v : b.members)
        if (lanes_.lane_of(u) == lanes_.lane_of(v)) return a.shares_replica(b);
    return false;
  }

  /// Distinguishes groups that share a queue without a pipeline group that orders them, and queue
  /// users outside the pipeline group that owns the queue.
  void set_apart() {
    for (int32_t queue = 0; queue < queue_count(); ++queue) {
      const auto list = queues_.groups[at(queue)];
      const int32_t owner = queues_.owner[queue];
      const bool many = list.size() > kMostCompared;  // too many to compare
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

  void refine() {
    Colours first;
    for (size_t l = 0; l < lanes_.lanes().size(); ++l)
      for (int32_t r = 0; r < copies_; ++r) begin(static_cast<int32_t>(l), r, first);
    for (size_t g = 0; g < groups_.size(); ++g)
      groups_[g].colour = first.of(std::array{uint64_t{1}, uint64_t{!groups_[g].inner},
                                              static_cast<uint64_t>(groups_[g].price),
                                              static_cast<uint64_t>(groups_[g].step),
                                              static_cast<uint64_t>(groups_[g].count),
                                              alone_[g] ? uint64_t{g} + 1 : 0});
    queue_colour_.assign(at(queue_count()), 0);
    for (size_t known = first.count(), before = 0; known != before;) {
      before = known;
      known = step();
    }
  }

  void begin(int32_t lane, int32_t replica, Colours& colours) {
    const auto& about = lanes_.lanes()[lane];
    std::vector<uint64_t> key = {0, static_cast<uint64_t>(about.kind),
                                 apart_[replica] ? uint64_t{1} + static_cast<uint64_t>(replica) : 0};
    if (!lane_for_.empty())
      for (const int32_t first : {lane_for_[lane], replica_for_[replica]})
        key.push_back(static_cast<uint64_t>(first));
    for (const int32_t u : about.devices)
      key.push_back(static_cast<uint64_t>(problem_.cost_class(where(u, replica))));
    for (const auto& [from, to] : about.sends) {
      const Wire wire = cluster_.wire(where(from, replica), where(to, replica));
      key.push_back(std::bit_cast<uint64_t>(wire.latency_s));
      key.push_back(std::bit_cast<uint64_t>(wire.bandwidth_bytes_per_s));
    }
    colour(lane, replica) = colours.of(key);
  }

  /// One round of refinement; returns the number of colours.
  size_t step() {
    colours_.clear();
    ColourCounts counts(colour_.size() + groups_.size() + at(queue_count()));
    std::vector<uint64_t> key;
    const auto take = [&](int32_t colour) { key.push_back(static_cast<uint64_t>(colour)); };
    colour_queues(counts);
    std::vector<int32_t> copy_colour, group_colour;
    for (size_t id = 0; id < colour_.size(); ++id) {
      const auto& lane = lanes_.lanes()[id / at(copies_)];
      const auto r = static_cast<int32_t>(id % at(copies_));
      key = {0, static_cast<uint64_t>(colour_[id])};
      for_groups(lane, r, [&](size_t group) { take(groups_[group].colour); });
      if (queued_)
        for (const int32_t queue : copy_queues_[id]) take(queue_colour_[queue]);
      copy_colour.push_back(colours_.of(key));
    }
    for (size_t g = 0; g < groups_.size(); ++g) {
      key = {1, static_cast<uint64_t>(groups_[g].colour)};
      add_members(groups_[g], counts, key);
      if (queued_)
        for (const int32_t queue : group_queues_[g]) counts.add(queue_colour_[queue]);
      counts.take(key);
      group_colour.push_back(colours_.of(key));
    }
    colour_ = std::move(copy_colour);
    for (size_t g = 0; g < groups_.size(); ++g) groups_[g].colour = group_colour[g];
    return colours_.count() + queue_colours_.count();
  }

  /// Colour of a queue: its owner's, its index there and those of its groups; most have one group.
  void colour_queues(ColourCounts& counts) {
    queue_colours_.clear();
    group_sets_.clear();
    std::vector<uint64_t> key;
    for (int32_t queue = 0; queue < queue_count(); ++queue) {
      const int32_t owner = queues_.owner[queue];
      const auto list = queues_.groups[at(queue)];
      uint64_t groups = list.size() == 1 ? static_cast<uint64_t>(groups_[list[0]].colour) : 0;
      if (list.size() != 1) {
        key.clear();
        for (const int32_t group : list) counts.add(groups_[group].colour);
        counts.take(key);
        groups = kSeveral + static_cast<uint64_t>(group_sets_.of(key));
      }
      const uint64_t own = owner < 0 ? 0 : 1 + static_cast<uint64_t>(colour_[owner]);
      queue_colour_[queue] =
          queue_colours_.of(own << 32 | static_cast<uint64_t>(queues_.place[queue]), groups);
    }
  }

  /// Colours of a group's members, each with its index in its pipeline group and the group's index
  /// there.
  void add_members(const Group& group, ColourCounts& counts, std::vector<uint64_t>& key) {
    if (!group.inner && group.members.size() == 1) {
      const int32_t u = group.members[0];
      key.push_back(static_cast<uint64_t>(lanes_.place_of(u)));
      const int32_t seen = once(group);
      for (int32_t i = 0; i < seen; ++i)
        counts.add(colour(lanes_.lane_of(u), group.first + i * group.step), group.count / seen);
      counts.take(key);
      key.push_back(~uint64_t{0});  // end of a list
      return;
    }
    const auto begin = static_cast<std::ptrdiff_t>(key.size());
    for (size_t m = 0; m < group.members.size(); ++m)
      for (int32_t i = 0; i < once(group); ++i)
        key.push_back(group.places[m] |
                      static_cast<uint64_t>(colour(lanes_.lane_of(group.members[m]),
                                                   group.first + i * group.step)));
    std::sort(key.begin() + begin, key.end());
    key.push_back(~uint64_t{0});
  }

  /// Distinguishes two groups of one colour that use the same queue. Returns true if there were
  /// any.
  bool part_equals() {
    bool found = false;
    const size_t colours = colour_.size() + groups_.size() + at(queue_count());
    std::vector<std::pair<size_t, int32_t>> first(colours);  // [colour]: a queue + 1, its group
    for (size_t queue = 0; queue < queues_.groups.count(); ++queue)
      for (const int32_t group : queues_.groups[queue]) {
        auto& [seen, other] = first[at(groups_[group].colour)];
        if (seen == queue + 1) alone_[group] = alone_[other] = found = true;
        seen = queue + 1, other = group;
      }
    return found;
  }

  /// Distinguishes two groups of one colour that a copy takes part in, whose queues would be
  /// merged. Returns true if there were any.
  bool part_meetings() {
    bool found = false;
    constexpr size_t kNone = std::numeric_limits<size_t>::max();
    const size_t colours = colour_.size() + groups_.size() + at(queue_count());
    std::vector<std::pair<size_t, size_t>> last(colours, {kNone, kNone});  // a copy, its group
    for (size_t id = 0; id < colour_.size(); ++id)
      for_groups(lanes_.lanes()[id / at(copies_)], static_cast<int32_t>(id % at(copies_)),
                 [&](size_t group) {
                   if (group_queues_[group].empty()) return;
                   auto& [copy, other] = last[at(groups_[group].colour)];
                   if (copy == id && other != group) alone_[group] = alone_[other] = found = true;
                   copy = id, other = group;
                 });
    return found;
  }

  /// Finds, per pipeline group and replica, the first one whose copies have equal colours.
  void find_first() {
    const auto lanes = static_cast<int32_t>(lanes_.lanes().size());
    const auto of = [this](int32_t l, int32_t r) { return static_cast<uint64_t>(colour(l, r)); };
    std::vector<uint64_t> key;
    replica_for_ = first_alike(copies_, [&](int32_t r) {
      key.clear();
      for (int32_t l = 0; l < lanes; ++l) key.push_back(of(l, r));
      return std::span(key);
    });
    for (int32_t r = copies_; r < replicas_; ++r) replica_for_.push_back(replica_for_[r % copies_]);
    lane_for_ = first_alike(lanes, [&](int32_t l) {
      key.clear();
      for (int32_t r = 0; r < copies_; ++r) key.push_back(of(l, r));
      return std::span(key);
    });
  }

  /// Distinguishes copies that are both simulated because their groups or replicas differ
  /// elsewhere: they would use one queue in place of two. Returns true if there were any.
  bool part_copies() {
    find_first();
    std::vector<bool> seen(colour_.size() + groups_.size() + at(queue_count()), false);
    for (size_t l = 0; l < lane_for_.size(); ++l)
      for (int32_t r = 0; r < replicas_; ++r) {
        const auto lane = static_cast<int32_t>(l);
        if (!simulated(lane, r)) continue;
        if (seen[colour(lane, r)]) return true;
        seen[colour(lane, r)] = true;
      }
    return false;
  }

  bool simulated(int32_t lane, int32_t replica) const {
    return lane_for_[lane] == lane && replica_for_[replica] == replica;
  }

  /// A group with a simulated member needs one member of every colour that its collectives wait
  /// for; otherwise it is distinguished. Returns true if there were any.
  bool part_groups() {
    find_first();
    bool found = false;
    std::vector<size_t> seen(colour_.size() + groups_.size() + at(queue_count()), 0);
    for (size_t g = 0; g < groups_.size(); ++g) {
      const auto& group = groups_[g];
      bool any = false, all = true;
      const auto for_members = [&](auto visit) {
        for (const int32_t u : group.members)
          for (int32_t i = 0; i < once(group); ++i)
            visit(lanes_.lane_of(u), group.first + i * group.step);
      };
      for_members([&](int32_t lane, int32_t r) {
        if (!simulated(lane, r)) return;
        seen[colour(lane, r)] = g + 1;
        any = true;
      });
      for_members([&](int32_t lane, int32_t r) { all = all && seen[colour(lane, r)] == g + 1; });
      if (!any || all || alone_[g]) continue;
      alone_[g] = found = true;
    }
    return found;
  }

  Symmetry result() {
    find_first();
    Symmetry result;
    std::vector<int32_t> position(at(replicas_), -1);
    for (int32_t r = 0; r < replicas_; ++r)
      if (replica_for_[r] == r) {
        position[r] = static_cast<int32_t>(result.replicas.size());
        result.replicas.push_back(r);
      }
    for (int32_t u = 0; u < devices_; ++u) {
      const int32_t lane = lanes_.lane_of(u);
      result.devices.push_back(lane_for_[lane] == lane);
    }
    number_devices(result, position);
    list_groups(result);
    if (queued_) list_queues(result);
    return result;
  }

  void number_devices(Symmetry& result, const std::vector<int32_t>& position) const {
    const size_t made = result.replicas.size();
    auto& quotient = result.quotient;
    result.number.assign(at(devices_) * made, -1);
    for (int32_t u = 0; u < devices_; ++u)
      for (size_t k = 0; k < made && result.devices[u]; ++k) {
        result.number[at(u) * made + k] = static_cast<int32_t>(quotient.devices.size());
        quotient.devices.push_back(where(u, result.replicas[k]));
      }
    quotient.of.assign(at(cluster_.device_count()), -1);
    quotient.copies.assign(quotient.devices.size(), 0);
    for (int32_t u = 0; u < devices_; ++u)
      for (int32_t r = 0; r < replicas_; ++r) {
        const int32_t lane = lane_for_[lanes_.lane_of(u)];
        const int32_t same = lanes_.lanes()[lane].devices[lanes_.place_of(u)];
        const int32_t number = result.number[at(same) * made + at(position[replica_for_[r]])];
        quotient.of[where(u, r)] = number;
        ++quotient.copies[number];
      }
  }

  /// Lists the groups whose collectives simulated devices take part in.
  void list_groups(Symmetry& result) {
    auto& quotient = result.quotient;
    std::vector<int32_t> number(groups_.size(), -1);
    const auto add = [&](size_t g) {
      if (number[g] >= 0) return number[g];
      number[g] = static_cast<int32_t>(quotient.members.size());
      members_of(groups_[g], quotient.members.emplace_back());
      quotient.price.push_back(groups_[g].price);
      listed_.push_back(g);
      return number[g];
    };
    for (const Among among : {Among::all, Among::run, Among::alike}) {
      auto& inner = result.inner[static_cast<size_t>(among)];
      auto& across_them = result.across[static_cast<size_t>(among)];
      if (among != Among::all && experts_ == 1) break;
      for (int32_t g = 0; at(g) < lanes_.groups().size(); ++g)
        for (const int32_t r : result.replicas) inner.push_back(add(place(g, r, among)));
      for (int32_t u = 0; u < devices_; ++u)
        for (const int32_t r : result.replicas)
          across_them.push_back(result.devices[u] ? add(across(u, r, among)) : -1);
    }
  }

  /// Merges queues of one colour.
  void list_queues(Symmetry& result) {
    auto& quotient = result.quotient;
    std::vector<int32_t> number(colour_.size() + groups_.size() + at(queue_count()), -1);
    const auto add = [&](int32_t queue, std::vector<int32_t>& list) {
      auto& found = number[queue_colour_[queue]];
      if (found < 0) found = quotient.queues++;
      if (std::find(list.begin(), list.end(), found) == list.end()) list.push_back(found);
    };
    const size_t made = result.replicas.size();
    for (const auto& lane : lanes_.lanes())
      for (size_t k = 0; k < made && result.devices[lane.devices[0]]; ++k)
        for (const auto& [from, to] : lane.sends) {
          Quotient::Path path{result.number[at(from) * made + k], result.number[at(to) * made + k],
                              {}};
          for_path(where(from, result.replicas[k]), where(to, result.replicas[k]),
                   [&](int32_t queue) { add(queue, path.queues); });
          quotient.paths.push_back(std::move(path));
        }
    std::sort(quotient.paths.begin(), quotient.paths.end());
    for (const size_t g : listed_) {
      auto& list = quotient.group_queues.emplace_back();
      for (const int32_t queue : group_queues_[g]) add(queue, list);
    }
  }

  static constexpr size_t kMostCompared = 64;
  static constexpr uint64_t kSeveral = uint64_t{1} << 32;  // above all colours

  const ReplicaLanes& lanes_;
  const Problem& problem_;
  const Cluster& cluster_;
  GroupPrices prices_;
  bool pieces_alike_;
  int32_t width_, replicas_, experts_, devices_;
  int32_t copies_ = 0;  // replicas whose copies are refined: all, or the first
  bool queued_, lanes_share_ = false;
  std::vector<int32_t> where_;  // [device][replica]
  std::vector<int32_t> each_;   // devices, in order
  std::vector<std::vector<uint64_t>> places_;  // of the groups: find_places()
  std::vector<int32_t> colour_;  // [copy]
  Lists copy_queues_;            // queues of its transfers, in order of first use
  std::vector<Group> groups_;
  Lists group_queues_;
  std::vector<size_t> listed_;  // [quotient.members]: index in groups_
  QueueList queues_;
  std::vector<int32_t> channel_queue_;  // [channel], or -1; only for queue model route
  std::unordered_map<int64_t, int32_t> pair_queue_;  // the same for pairs
  Colours colours_;             // of copies and groups
  Colours group_sets_;          // groups of a queue that has none or several
  PairColours queue_colours_;
  std::vector<int32_t> queue_colour_;
  std::vector<bool> alone_;  // [group]: it has a colour of its own
  std::vector<bool> apart_;  // [replica]: its pipeline groups have colours of their own
  std::vector<int32_t> lane_for_, replica_for_;  // find_first()
};

bool takes(const Problem& problem) {
  const auto& rules = problem.rules();
  return !problem.contends() && !rules.published_name() && rules.queue != QueueModel::fair;
}

}  // namespace

SymmetrySearch find_symmetry(const ReplicaLanes& lanes, const Mesh& mesh, const Problem& problem,
                             CollectiveGroups& prices, bool pieces_alike) {
  if (!takes(problem)) return {};
  for (const bool first_alone : {true, false}) {
    Refinement refinement(lanes, mesh, problem, prices, pieces_alike, first_alone);
    if (refinement.lanes_share()) return {true, std::nullopt};
    if (refinement.told_apart()) continue;
    auto found = refinement.run();
    if (!refinement.told_apart()) return {false, std::move(found)};
  }
  return {};
}

}  // namespace trinity
