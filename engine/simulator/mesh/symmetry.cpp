#include "simulator/symmetry.h"

#include <array>
#include <bit>
#include <limits>

#include "simulator/mesh/colours.h"
#include "simulator/mesh/lane_copies.h"

namespace trinity {
namespace {

/// Colour refinement over copies, groups of collectives and queues.
///
/// Where any two replicas may change places, or any two runs of those that have their devices in the
/// same pieces of the cluster, colours of theirs are equal: it is enough to look at the first one's
/// copies, and at what its transfers and collectives queue for in its own pieces (`first_alone`).
class Refinement : LaneCopies {
 public:
  Refinement(const ReplicaLanes& lanes, const Mesh& mesh, const Problem& problem, CollectiveGroups& prices,
             bool pieces_alike, bool first_alone)
      : LaneCopies(lanes, mesh, problem, prices, pieces_alike, first_alone) {
    colour_.resize(lanes.lanes().size() * at(copies_));
  }

  bool lanes_share() const { return lanes_share_; }
  using LaneCopies::told_apart;

  std::optional<Symmetry> run() {
    find_meetings();
    begin();
    do {
      if (told_apart()) return std::nullopt;
      refine();
    } while ((queued_ && (part_equals() || part_meetings())) || part_groups());
    return result();
  }

 private:
  int32_t& colour(int32_t lane, int32_t replica) {
    return colour_[at(lane) * at(copies_) + at(replica % copies_)];
  }
  /// Classes to start with.
  void begin() {
    Colours first;
    for (size_t l = 0; l < lanes_.lanes().size(); ++l)
      for (int32_t r = 0; r < copies_; ++r) begin(static_cast<int32_t>(l), r, first);
    for (auto& group : groups_)
      group.colour = first.of(std::array{uint64_t{1}, uint64_t{!group.inner}, static_cast<uint64_t>(group.price),
                                         static_cast<uint64_t>(group.step), static_cast<uint64_t>(group.count)});
    queue_colour_.assign(at(queue_count()), 0);
  }

  /// Splits classes until none changes. Groups that were distinguished since the last call split them further.
  void refine() {
    for (size_t before = known_ + 1; known_ != before;) {
      before = known_;
      known_ = step();
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
    colour(lane, replica) = colours.of(key);
  }

  /// One round of refinement; returns the number of classes.
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
      key = {1, static_cast<uint64_t>(groups_[g].colour), alone_[g] ? uint64_t{g} + 1 : 0};
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

  /// Class of a queue: its owner's, its index there and its groups'; most have one group.
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

  /// Distinguishes two groups of one class that use the same queue. Returns true if there were
  /// any.
  bool part_equals() {
    bool found = false;
    const size_t colours = colour_.size() + groups_.size() + at(queue_count());
    std::vector<std::pair<size_t, int32_t>> first(colours);  // [class]: a queue + 1, its group
    for (size_t queue = 0; queue < queues_.groups.count(); ++queue)
      for (const int32_t group : queues_.groups[queue]) {
        auto& [seen, other] = first[at(groups_[group].colour)];
        if (seen == queue + 1) alone_[group] = alone_[other] = found = true;
        seen = queue + 1, other = group;
      }
    return found;
  }

  /// Distinguishes two groups of one class that a copy takes part in, whose queues would be
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

  /// Finds the first copy of every class, which is simulated: of the first replica that has any.
  void find_first() {
    first_.assign(colour_.size() + groups_.size() + at(queue_count()), -1);
    for (int32_t r = 0; r < copies_; ++r)
      for (size_t l = 0; l < lanes_.lanes().size(); ++l) {
        const auto id = static_cast<int32_t>(l) * copies_ + r;
        if (int32_t& first = first_[at(colour_[at(id)])]; first < 0) first = id;
      }
  }

  int32_t first_of(int32_t lane, int32_t replica) const {
    return first_[at(colour_[at(lane) * at(copies_) + at(replica % copies_)])];
  }
  bool simulated(int32_t lane, int32_t replica) const {
    return first_of(lane, replica) == lane * copies_ + replica;
  }

  /// A group with a simulated member needs one member of every class that its collectives wait
  /// for; otherwise it is distinguished. Returns true if there were any.
  bool part_groups() {
    find_first();
    bool found = false;
    std::vector<size_t> seen(colour_.size() + groups_.size() + at(queue_count()), 0);
    for (size_t g = 0; g < groups_.size(); ++g) {
      const auto& group = groups_[g];
      if (!group.meets) continue;
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
    std::vector<bool> lane(lanes_.lanes().size(), false);
    for (int32_t r = 0; r < copies_; ++r) {
      bool any = false;
      for (size_t l = 0; l < lane.size(); ++l) {
        if (!simulated(static_cast<int32_t>(l), r)) continue;
        any = lane[l] = true;
      }
      if (!any) continue;
      position[r] = static_cast<int32_t>(result.replicas.size());
      result.replicas.push_back(r);
    }
    for (int32_t u = 0; u < devices_; ++u) result.devices.push_back(lane[at(lanes_.lane_of(u))]);
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
      for (size_t k = 0; k < made; ++k) {
        if (!simulated(lanes_.lane_of(u), result.replicas[k])) continue;
        result.number[at(u) * made + k] = static_cast<int32_t>(quotient.devices.size());
        quotient.devices.push_back(where(u, result.replicas[k]));
      }
    quotient.of.assign(at(cluster_.device_count()), -1);
    quotient.copies.assign(quotient.devices.size(), 0);
    for (int32_t u = 0; u < devices_; ++u)
      for (int32_t r = 0; r < replicas_; ++r) {
        const int32_t first = first_of(lanes_.lane_of(u), r);
        const int32_t same = lanes_.lanes()[at(first / copies_)].devices[lanes_.place_of(u)];
        const int32_t number = result.number[at(same) * made + at(position[first % copies_])];
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
        for (const int32_t r : result.replicas) {
          const bool meets = lanes_.joins_copies(among) && simulated(lanes_.lane_of(u), r);
          across_them.push_back(meets ? add(across(u, r, among)) : -1);
        }
    }
  }

  /// Merges queues of one class.
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
      for (size_t k = 0; k < made; ++k)
        for (const auto& [from, to] : lane.sends) {
          if (result.number[at(from) * made + k] < 0) break;
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

  static constexpr uint64_t kSeveral = uint64_t{1} << 32;  // above all classes

  std::vector<int32_t> colour_;  // of every copy
  size_t known_ = 0;             // classes
  std::vector<size_t> listed_;   // of the representatives' groups the number in groups_
  Colours colours_;              // of copies and groups
  Colours group_sets_;           // the groups of a queue that has none or several
  Colours queue_colours_;
  std::vector<int32_t> queue_colour_;
  std::vector<int32_t> first_;   // [class]: its first copy; find_first()
};

bool takes(const Problem& problem) {
  const auto& rules = problem.rules();
  return !problem.tables().contends() && !rules.published_name() && rules.queue != QueueModel::fair;
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
