#include "simulator/symmetry.h"

#include <algorithm>
#include <bit>
#include <unordered_map>

#include "base/hash.h"
#include "base/index.h"
#include "cluster/collectives.h"

namespace trinity {
namespace {

/// Numbers for lists of numbers: equal ones for equal lists.
class Colours {
 public:
  int32_t of(const std::vector<uint64_t>& key) {
    return number_.emplace(key, static_cast<int32_t>(number_.size())).first->second;
  }
  size_t count() const { return number_.size(); }

 private:
  struct Hash {
    size_t operator()(const std::vector<uint64_t>& key) const {
      uint64_t hash = key.size();
      for (const uint64_t value : key) hash = mix64(hash ^ value);
      return hash;
    }
  };
  std::unordered_map<std::vector<uint64_t>, int32_t, Hash> number_;
};

/// Channels of routes, or pairs of devices, numbered as they are met.
struct QueueList {
  std::vector<int32_t> owner;               // the lane's copy whose transfers take it, or -1
  std::vector<int32_t> place;               // its place among that one's
  std::vector<std::vector<int32_t>> groups; // whose collectives take it
};

/// Colour refinement over the lanes' copies (lane x replicas + replica), the groups of collectives
/// (group x replicas + replica, then one for the copies of every device) and queues.
class Refinement {
 public:
  Refinement(const ReplicaLanes& lanes, const Mesh& mesh, const Problem& problem)
      : lanes_(lanes),
        problem_(problem),
        cluster_(problem.cluster()),
        width_(mesh.width()),
        replicas_(mesh.data),
        devices_(mesh.pipeline * mesh.width()),
        queued_(problem.rules().queue == QueueModel::pair ||
                problem.rules().queue == QueueModel::route) {
    for (int32_t u = 0; u < devices_; ++u)
      for (int32_t r = 0; r < replicas_; ++r)
        where_.push_back(mesh.device(u / width_, r, u % width_));
    copies_.resize(lanes.lanes().size() * at(replicas_));
    if (queued_) find_transfers();
  }

  bool lanes_share() const { return lanes_share_; }

  std::optional<Symmetry> run() {
    find_groups();
    if (queued_) find_collectives();
    alone_.assign(groups_.size(), false);
    apart_.resize(at(replicas_), false);
    if (queued_) set_apart();
    do refine();
    while (queued_ && part_equals());
    return result();
  }

 private:
  struct Copy {
    std::vector<int32_t> queues;  // that its transfers take, in order of the first
    int32_t colour = 0;
  };
  struct Group {
    std::vector<int32_t> members;  // devices of a replica
    int32_t replica = -1;          // -1: the copies of one device in all replicas
    int32_t price = 0;             // groups of one number cost the same
    std::vector<int32_t> queues;
    int32_t colour = 0;
  };

  int32_t where(int32_t device, int32_t replica) const {
    return where_[at(device) * at(replicas_) + at(replica)];
  }
  Copy& copy(int32_t lane, int32_t replica) {
    return copies_[at(lane) * at(replicas_) + at(replica)];
  }
  /// The group of copies of a device.
  size_t across(int32_t device) const {
    return lanes_.groups().size() * at(replicas_) + at(device);
  }

  /// Calls visit(queue) for what a transfer between two devices of the cluster occupies.
  template <class Visit>
  void for_path(int32_t from, int32_t to, Visit visit) {
    if (problem_.rules().queue == QueueModel::pair)
      return visit(queue_at(int64_t{from} * cluster_.device_count() + to));
    for (const int32_t channel : cluster_.route(from, to)) visit(queue_at(channel));
  }

  int32_t queue_at(int64_t key) {
    const auto [found, added] = queue_number_.emplace(key, queue_count());
    if (added) {
      queues_.owner.push_back(-1);
      queues_.place.push_back(0);
      queues_.groups.emplace_back();
    }
    return found->second;
  }
  int32_t queue_count() const { return static_cast<int32_t>(queues_.owner.size()); }

  void find_transfers() {
    apart_.assign(at(replicas_), false);
    for (size_t l = 0; l < lanes_.lanes().size(); ++l)
      for (int32_t r = 0; r < replicas_; ++r) {
        const auto id = static_cast<int32_t>(l * at(replicas_)) + r;
        auto& list = copies_[id].queues;
        for (const auto& [from, to] : lanes_.lanes()[l].sends)
          for_path(where(from, r), where(to, r), [&](int32_t queue) { own(queue, id, list); });
      }
  }

  void own(int32_t queue, int32_t id, std::vector<int32_t>& list) {
    auto& owner = queues_.owner[queue];
    if (owner == id) return;
    if (owner >= 0) {
      apart_[owner % replicas_] = apart_[id % replicas_] = true;
      lanes_share_ = lanes_share_ || lanes_.lanes().size() > 1;
    }
    owner = id;
    queues_.place[queue] = static_cast<int32_t>(list.size());
    list.push_back(queue);
  }

  /// Groups of collectives with what they cost.
  void find_groups() {
    CollectiveGroups prices(cluster_);
    std::vector<CollectiveGroup> known;
    std::vector<int32_t> devices;
    const auto add = [&](Group group) {
      members_of(group, devices);
      const auto& price = prices.find(devices, lanes_.exchanges() && group.replica >= 0);
      const auto found = std::find(known.begin(), known.end(), price);
      group.price = static_cast<int32_t>(found - known.begin());
      if (found == known.end()) known.push_back(price);
      groups_.push_back(std::move(group));
    };
    for (const auto& members : lanes_.groups())
      for (int32_t r = 0; r < replicas_; ++r) add({members, r, 0, {}, 0});
    for (int32_t u = 0; u < devices_; ++u) add({{u}, -1, 0, {}, 0});
  }

  /// The cluster's devices of a group, ascending.
  void members_of(const Group& group, std::vector<int32_t>& devices) const {
    devices.clear();
    if (group.replica < 0)
      for (int32_t r = 0; r < replicas_; ++r) devices.push_back(where(group.members[0], r));
    else
      for (const int32_t u : group.members) devices.push_back(where(u, group.replica));
    std::sort(devices.begin(), devices.end());
  }

  void find_collectives() {
    std::vector<int32_t> ring;
    for (size_t g = 0; g < groups_.size(); ++g) {
      members_of(groups_[g], ring);
      const auto number = static_cast<int32_t>(g);
      for (size_t i = 0; i < ring.size() && ring.size() > 1; ++i)
        for_path(ring[i], ring[(i + 1) % ring.size()], [&](int32_t queue) {
          auto& list = queues_.groups[queue];
          if (!list.empty() && list.back() == number) return;
          list.push_back(number);
          groups_[g].queues.push_back(queue);
        });
    }
  }

  /// Whether a lane's copy takes part in both.
  bool meet(const Group& a, const Group& b) const {
    if (a.replica >= 0 && b.replica >= 0 && a.replica != b.replica) return false;
    for (const int32_t u : a.members)
      for (const int32_t v : b.members)
        if (lanes_.lane_of(u) == lanes_.lane_of(v)) return true;
    return false;
  }

  /// Groups that queue for the same without a lane that tells their order, and what queues behind
  /// a lane that is not in them, have to be told apart.
  void set_apart() {
    for (int32_t queue = 0; queue < queue_count(); ++queue) {
      const auto& list = queues_.groups[queue];
      const int32_t owner = queues_.owner[queue];
      for (size_t i = 0; i < list.size(); ++i) {
        if (owner >= 0 && !holds(groups_[list[i]], owner)) {
          alone_[list[i]] = true;
          apart_[owner % replicas_] = true;
        }
        for (size_t j = 0; j < i; ++j)
          if (list.size() > kMostCompared || !meet(groups_[list[i]], groups_[list[j]]))
            alone_[list[i]] = alone_[list[j]] = true;
      }
    }
  }

  bool holds(const Group& group, int32_t owner) const {
    if (group.replica >= 0 && group.replica != owner % replicas_) return false;
    return std::any_of(group.members.begin(), group.members.end(), [&](int32_t u) {
      return lanes_.lane_of(u) == owner / replicas_;
    });
  }

  void refine() {
    Colours first;
    for (size_t l = 0; l < lanes_.lanes().size(); ++l)
      for (int32_t r = 0; r < replicas_; ++r) begin(static_cast<int32_t>(l), r, first);
    for (size_t g = 0; g < groups_.size(); ++g)
      groups_[g].colour = first.of({uint64_t{1}, groups_[g].replica < 0,
                                    static_cast<uint64_t>(groups_[g].price),
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
    for (const int32_t u : about.devices)
      key.push_back(static_cast<uint64_t>(problem_.cost_class(where(u, replica))));
    for (const auto& [from, to] : about.sends) {
      const Wire wire = cluster_.wire(where(from, replica), where(to, replica));
      key.push_back(std::bit_cast<uint64_t>(wire.latency_s));
      key.push_back(std::bit_cast<uint64_t>(wire.bandwidth_bytes_per_s));
    }
    copy(lane, replica).colour = colours.of(key);
  }

  /// One round of refinement: the number of colours after it.
  size_t step() {
    Colours colours;
    std::vector<uint64_t> key;
    const auto take = [&](int32_t colour) { key.push_back(static_cast<uint64_t>(colour)); };
    const auto sorted_from = [&](size_t begin) {
      std::sort(key.begin() + static_cast<std::ptrdiff_t>(begin), key.end());
    };
    std::vector<int32_t> queue_colour, copy_colour, group_colour;
    for (int32_t queue = 0; queue < queue_count(); ++queue) {
      const int32_t owner = queues_.owner[queue];
      key = {2, owner < 0 ? 0 : 1 + static_cast<uint64_t>(copies_[owner].colour),
             static_cast<uint64_t>(queues_.place[queue])};
      for (const int32_t group : queues_.groups[queue]) take(groups_[group].colour);
      sorted_from(3);
      queue_colour.push_back(colours.of(key));
    }
    for (size_t id = 0; id < copies_.size(); ++id) {
      const auto& lane = lanes_.lanes()[id / at(replicas_)];
      const size_t r = id % at(replicas_);
      key = {0, static_cast<uint64_t>(copies_[id].colour)};
      for (const int32_t group : lane.groups) take(groups_[at(group) * at(replicas_) + r].colour);
      for (const int32_t u : lane.devices) take(groups_[across(u)].colour);
      for (const int32_t queue : copies_[id].queues) take(queue_colour[queue]);
      copy_colour.push_back(colours.of(key));
    }
    for (const auto& group : groups_) {
      key = {1, static_cast<uint64_t>(group.colour)};
      add_members(group, key);
      sorted_from(2);
      const size_t end = key.size();
      for (const int32_t queue : group.queues) take(queue_colour[queue]);
      sorted_from(end);
      group_colour.push_back(colours.of(key));
    }
    for (size_t id = 0; id < copies_.size(); ++id) copies_[id].colour = copy_colour[id];
    for (size_t g = 0; g < groups_.size(); ++g) groups_[g].colour = group_colour[g];
    queue_colour_ = std::move(queue_colour);
    return colours.count();
  }

  /// The colours of a group's members, each with its place in its lane.
  void add_members(const Group& group, std::vector<uint64_t>& key) {
    for (const int32_t u : group.members) {
      const uint64_t place = static_cast<uint64_t>(lanes_.place_of(u)) << 32;
      const int32_t lane = lanes_.lane_of(u);
      if (group.replica >= 0)
        key.push_back(place | static_cast<uint64_t>(copy(lane, group.replica).colour));
      else
        for (int32_t r = 0; r < replicas_; ++r)
          key.push_back(place | static_cast<uint64_t>(copy(lane, r).colour));
    }
  }

  /// Two groups of one colour that queue for the same are told apart. Whether there were any.
  bool part_equals() {
    bool found = false;
    for (const auto& list : queues_.groups)
      for (size_t i = 0; i < list.size(); ++i)
        for (size_t j = 0; j < i; ++j)
          if (groups_[list[i]].colour == groups_[list[j]].colour) {
            alone_[list[i]] = alone_[list[j]] = true;
            found = true;
          }
    return found;
  }

  /// The first of those with equal lists of colours, for each.
  template <class Key>
  static std::vector<int32_t> first_alike(int32_t count, Key key_of) {
    Colours colours;
    std::vector<int32_t> first, result;
    for (int32_t i = 0; i < count; ++i) {
      const int32_t colour = colours.of(key_of(i));
      if (at(colour) == first.size()) first.push_back(i);
      result.push_back(first[colour]);
    }
    return result;
  }

  std::optional<Symmetry> result() {
    const auto lanes = static_cast<int32_t>(lanes_.lanes().size());
    const auto colour = [this](int32_t lane, int32_t r) {
      return static_cast<uint64_t>(copy(lane, r).colour);
    };
    const auto replica_for = first_alike(replicas_, [&](int32_t r) {
      std::vector<uint64_t> key;
      for (int32_t l = 0; l < lanes; ++l) key.push_back(colour(l, r));
      return key;
    });
    const auto lane_for = first_alike(lanes, [&](int32_t l) {
      std::vector<uint64_t> key;
      for (int32_t r = 0; r < replicas_; ++r) key.push_back(colour(l, r));
      return key;
    });
    Symmetry result;
    std::vector<int32_t> position(at(replicas_), -1);
    for (int32_t r = 0; r < replicas_; ++r)
      if (replica_for[r] == r) {
        position[r] = static_cast<int32_t>(result.replicas.size());
        result.replicas.push_back(r);
      }
    for (int32_t u = 0; u < devices_; ++u) {
      const int32_t lane = lanes_.lane_of(u);
      result.devices.push_back(lane_for[lane] == lane);
    }
    const auto kept = std::count(result.devices.begin(), result.devices.end(), true);
    if (kept == devices_ && result.replicas.size() == at(replicas_)) return std::nullopt;
    number_devices(result, replica_for, lane_for, position);
    list_groups(result);
    if (queued_) list_queues(result);
    return result;
  }

  void number_devices(Symmetry& result, const std::vector<int32_t>& replica_for,
                      const std::vector<int32_t>& lane_for,
                      const std::vector<int32_t>& position) const {
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
        const int32_t lane = lane_for[lanes_.lane_of(u)];
        const int32_t same = lanes_.lanes()[lane].devices[lanes_.place_of(u)];
        const int32_t number = result.number[at(same) * made + at(position[replica_for[r]])];
        quotient.of[where(u, r)] = number;
        ++quotient.copies[number];
      }
  }

  /// The groups whose collectives simulated devices take part in.
  void list_groups(Symmetry& result) {
    auto& quotient = result.quotient;
    const auto add = [&](size_t g) {
      auto& devices = quotient.members.emplace_back();
      members_of(groups_[g], devices);
      listed_.push_back(g);
      return static_cast<int32_t>(quotient.members.size()) - 1;
    };
    for (size_t g = 0; g < lanes_.groups().size(); ++g)
      for (const int32_t r : result.replicas) result.inner.push_back(add(g * at(replicas_) + at(r)));
    for (int32_t u = 0; u < devices_; ++u)
      result.across.push_back(result.devices[u] ? add(across(u)) : -1);
  }

  /// Queues of one colour are one.
  void list_queues(Symmetry& result) {
    auto& quotient = result.quotient;
    std::vector<int32_t> number(copies_.size() + groups_.size() + at(queue_count()), -1);
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
      for (const int32_t queue : groups_[g].queues) add(queue, list);
    }
  }

  static constexpr size_t kMostCompared = 64;

  const ReplicaLanes& lanes_;
  const Problem& problem_;
  const Cluster& cluster_;
  int32_t width_, replicas_, devices_;
  bool queued_, lanes_share_ = false;
  std::vector<int32_t> where_;  // [device][replica]
  std::vector<Copy> copies_;
  std::vector<Group> groups_;
  std::vector<size_t> listed_;  // of quotient.members the number in groups_
  QueueList queues_;
  std::unordered_map<int64_t, int32_t> queue_number_;
  std::vector<int32_t> queue_colour_;
  std::vector<bool> alone_;  // per group: it has a colour of its own
  std::vector<bool> apart_;  // per replica: the same for its lanes
};

bool takes(const Problem& problem) {
  const auto& rules = problem.rules();
  return !problem.contends() && !rules.published_name() && rules.queue != QueueModel::fair;
}

}  // namespace

bool lanes_share_queues(const ReplicaLanes& lanes, const Mesh& mesh, const Problem& problem) {
  return takes(problem) && Refinement(lanes, mesh, problem).lanes_share();
}

std::optional<Symmetry> find_symmetry(const ReplicaLanes& lanes, const Mesh& mesh,
                                      const Problem& problem) {
  if (!takes(problem)) return std::nullopt;
  Refinement refinement(lanes, mesh, problem);
  if (refinement.lanes_share()) return std::nullopt;
  return refinement.run();
}

std::vector<int32_t> bind_symmetry(const LoweredCopies& copies, const Mesh& mesh,
                                   const Symmetry& symmetry, Quotient& quotient,
                                   const ReplicaLanes& lanes) {
  const auto made = static_cast<int32_t>(symmetry.replicas.size());
  const int32_t width = mesh.width();
  const auto device_of = [&](int32_t rank) {
    return rank / width / made * width + rank % width;
  };
  const auto copy_of = [&](int32_t rank) { return rank / width % made; };
  const auto& lowered = copies.lowered;
  std::vector<int32_t> placement;
  for (const int32_t rank : lowered.rank)
    placement.push_back(symmetry.number[at(device_of(rank)) * at(made) + at(copy_of(rank))]);
  quotient = symmetry.quotient;
  for (size_t c = 0; c < copies.collective.size(); ++c) {
    const int32_t rank = lowered.rank[lowered.graph.collectives()[c].members[0]];
    const int32_t inner = copies.collective[c];
    quotient.group.push_back(
        inner < 0 ? symmetry.across[device_of(rank)]
                  : symmetry.inner[at(lanes.group_of(inner)) * at(made) + at(copy_of(rank))]);
  }
  return placement;
}

}  // namespace trinity
