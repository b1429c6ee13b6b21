#include "search/pipeline/max_load_dynamic_program.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include "base/index.h"

namespace trinity {
namespace {

constexpr double kNone = std::numeric_limits<double>::infinity();
/// Tolerance for the order of additions.
constexpr double kSlack = 1 + 1e-9;

/// Neighbours of every node.
struct Links {
  explicit Links(const LoadInstance& instance)
      : inputs(instance.nodes.size()), readers(instance.nodes.size()) {
    for (const auto& [from, to] : instance.edges) {
      inputs[to].push_back(from);
      readers[from].push_back(to);
    }
  }
  std::vector<std::vector<int32_t>> inputs, readers;
};

/// Totals of a part.
struct Sums {
  double work = 0, cpu = 0;  // work: on accelerators, of groups that these support
  int64_t memory_bytes = 0;
  int32_t unsupported = 0;
};

Sums sums_of(const LoadInstance& instance, const std::vector<int32_t>& group) {
  Sums sums;
  for (const int32_t node : group) {
    const auto& about = instance.nodes[node];
    sums.work += about.accelerator_s;
    sums.cpu += about.cpu_s;
    sums.memory_bytes += about.memory_bytes;
    if (!about.supported) sums.unsupported = 1;
  }
  if (sums.unsupported > 0) sums.work = 0;
  return sums;
}

void add(Sums& sums, const Sums& more) {
  sums.work += more.work;
  sums.cpu += more.cpu;
  sums.memory_bytes += more.memory_bytes;
  sums.unsupported += more.unsupported;
}

/// Table of minimum loads, with back pointers.
class Table {
 public:
  Table(const LoadInstance& instance, int32_t ideals, double limit)
      : accelerators_(instance.accelerators),
        cpus_(instance.cpus),
        width_(at(instance.accelerators + 1) * at(instance.cpus + 1)),
        limit_(limit),
        least_(at(ideals) * width_, kNone),
        from_(at(ideals) * width_, {-1, false}) {
    std::fill(least_.begin(), least_.begin() + static_cast<std::ptrdiff_t>(width_), 0.0);
  }

  double least(int32_t ideal, int32_t a, int32_t c) const { return least_[slot(ideal, a, c)]; }
  std::pair<int32_t, bool> from(int32_t ideal, int32_t a, int32_t c) const {
    return from_[slot(ideal, a, c)];
  }

  /// Adds a part from `sub` to `ideal`; loads are kNone if it cannot be on such a device. With c
  /// CPUs, more than `most[c]` accelerators leave too little for the rest.
  void take(int32_t ideal, int32_t sub, double accelerator_s, double cpu_s,
            const std::vector<int32_t>& most) {
    for (int32_t c = 0; c <= cpus_; ++c)
      for (int32_t a = 0; a <= most[c]; ++a) {
        if (a > 0) improve(slot(ideal, a, c), slot(sub, a - 1, c), accelerator_s, sub, false);
        if (c > 0) improve(slot(ideal, a, c), slot(sub, a, c - 1), cpu_s, sub, true);
      }
  }

  /// Devices may stay empty. Returns true if anything is within the limit.
  bool finish(int32_t ideal) {
    bool any = false;
    for (int32_t a = 0; a <= accelerators_; ++a)
      for (int32_t c = 0; c <= cpus_; ++c) {
        if (a > 0) improve(slot(ideal, a, c), slot(ideal, a - 1, c), 0, ideal, false);
        if (c > 0) improve(slot(ideal, a, c), slot(ideal, a, c - 1), 0, ideal, true);
        any = any || least_[slot(ideal, a, c)] < kNone;
      }
    return any;
  }

  /// The largest load of `ideal` that an accelerator with the part from `sub` could still lower; 0
  /// if there is none.
  double lowerable(int32_t ideal, int32_t sub, const std::vector<int32_t>& most) const {
    double largest = 0;
    for (int32_t c = 0; c <= cpus_; ++c)
      for (int32_t a = 1; a <= most[c]; ++a) {
        const double known = std::min(least_[slot(ideal, a, c)], limit_);
        if (least_[slot(sub, a - 1, c)] < known) largest = std::max(largest, known);
      }
    return largest;
  }

 private:
  size_t slot(int32_t ideal, int32_t a, int32_t c) const {
    return at(ideal) * width_ + at(a) * at(cpus_ + 1) + at(c);
  }
  void improve(size_t target, size_t before, double load_s, int32_t sub, bool cpu) {
    const double largest = std::max(least_[before], load_s);
    if (largest < least_[target] && largest <= limit_) {
      least_[target] = largest;
      from_[target] = {sub, cpu};
    }
  }

  int32_t accelerators_, cpus_;
  size_t width_;
  double limit_;
  std::vector<double> least_;
  std::vector<std::pair<int32_t, bool>> from_;
};

/// Walks the table back from `ideal` and calls place(sub, ideal, device) for every part.
template <class Place>
void read_back(const LoadInstance& instance, const Table& table, int32_t ideal, Place place) {
  int32_t a = instance.accelerators, c = instance.cpus;
  std::vector<std::array<int32_t, 2>> parts[2];  // on accelerators and CPUs, last part first
  while (ideal > 0) {
    const auto [below, cpu] = table.from(ideal, a, c);
    if (below != ideal) parts[cpu ? 1 : 0].push_back({below, ideal});
    (cpu ? c : a) -= 1;
    ideal = below;
  }
  int32_t device = 0;
  for (const auto& kind : parts) {
    for (auto part = kind.rbegin(); part != kind.rend(); ++part, ++device)
      place((*part)[0], (*part)[1], device);
    device = instance.accelerators;
  }
}

/// [CPUs used]: maximum number of accelerators that may be used.
std::vector<int32_t> most_used(const LoadInstance& instance, const LoadWindow& window,
                               const Sums& all, const Sums& done) {
  std::vector<int32_t> most;
  for (int32_t c = 0; c <= instance.cpus; ++c)
    most.push_back(window.most_used(all.work - done.work, all.memory_bytes - done.memory_bytes,
                                    all.unsupported - done.unsupported, instance.cpus - c));
  return most;
}

/// Load of a set of nodes that grows by groups.
class GrowingPart {
 public:
  GrowingPart(const LoadInstance& instance, const std::vector<std::vector<int32_t>>& groups,
              const Links& links)
      : instance_(instance),
        groups_(groups),
        links_(links),
        readers_inside_(instance.nodes.size(), 0),
        inside_(instance.nodes.size(), false) {}

  void add(int32_t group) {
    for (const int32_t node : groups_[group]) {
      const auto& about = instance_.nodes[node];
      accelerator_ += about.accelerator_s;
      cpu_ += about.cpu_s;
      memory_bytes_ += about.memory_bytes;
      unsupported_ = unsupported_ || !about.supported;
      transfers_ -= transfer(node);
      inside_[node] = true;
      transfers_ += transfer(node);
      for (const int32_t from : links_.inputs[node]) {
        transfers_ -= transfer(from);
        ++readers_inside_[from];
        transfers_ += transfer(from);
      }
    }
    added_.push_back(group);
  }
  void clear() {
    for (const int32_t group : added_)
      for (const int32_t node : groups_[group]) {
        inside_[node] = false;
        for (const int32_t from : links_.inputs[node]) readers_inside_[from] = 0;
      }
    added_.clear();
    accelerator_ = cpu_ = transfers_ = 0;
    memory_bytes_ = 0;
    unsupported_ = false;
  }
  double accelerator_s() const {
    return unsupported_ || memory_bytes_ > instance_.memory_bytes ? kNone
                                                                  : accelerator_ + transfers_;
  }
  double cpu_s() const { return cpu_; }
  /// True if no larger part has a load of at most `limit` on any device.
  bool hopeless(double limit) const {
    const bool accelerator = instance_.accelerators > 0 && !unsupported_ &&
                             memory_bytes_ <= instance_.memory_bytes && accelerator_ <= limit;
    return !accelerator && !(instance_.cpus > 0 && cpu_ <= limit);
  }

 private:
  double transfer(int32_t node) const {
    const auto readers = static_cast<int32_t>(links_.readers[node].size());
    const bool crosses =
        inside_[node] ? readers_inside_[node] < readers : readers_inside_[node] > 0;
    return crosses ? instance_.nodes[node].transfer_s : 0;
  }

  const LoadInstance& instance_;
  const std::vector<std::vector<int32_t>>& groups_;
  const Links& links_;
  std::vector<int32_t> readers_inside_, added_;
  std::vector<bool> inside_;
  double accelerator_ = 0, cpu_ = 0, transfers_ = 0;
  int64_t memory_bytes_ = 0;
  bool unsupported_ = false;
};

/// The program over all ideals. Ideals that end a part are sorted by work, so that few parts of an
/// ideal that fit a device must be examined.
class IdealProgram {
 public:
  IdealProgram(const LoadInstance& instance, const std::vector<std::vector<int32_t>>& groups,
               const Ideals& ideals, const LoadWindow& window, const Deadline& deadline)
      : instance_(instance),
        groups_(groups),
        ideals_(ideals),
        window_(window),
        nets_(instance, groups),
        poll_(deadline),
        table_(instance, ideals.count(), window.limit()),
        inside_(groups.size(), 0),
        counted_(nets_.nets.size(), 0) {
    std::vector<Sums> group_sums;
    for (const auto& group : groups) group_sums.push_back(sums_of(instance, group));
    for (int32_t i = 0; i < ideals.count(); ++i) {
      Sums sums;
      poll_.step(static_cast<int64_t>(groups.size()));
      ideals.for_difference(i, 0, [&](int32_t g) { add(sums, group_sums[g]); });
      sums_.push_back(sums);
    }
    buckets_.resize(kBuckets + 1);
    alive(0);
  }

  LoadOutcome run(int64_t pairs) {
    pairs_left_ = pairs;
    for (int32_t ideal = 1; ideal < ideals_.count(); ++ideal) {
      poll_.step(kPriceSteps);
      most_ = most_used(instance_, window_, sums_.back(), sums_[ideal]);
      if (*std::max_element(most_.begin(), most_.end()) < 0) continue;
      if (!visit(ideal)) return LoadOutcome::stopped;
      if (table_.finish(ideal)) alive(ideal);
    }
    const bool found =
        table_.least(ideals_.count() - 1, instance_.accelerators, instance_.cpus) < kNone;
    return found ? LoadOutcome::found : LoadOutcome::none;
  }

  std::vector<int32_t> devices() const {
    std::vector<int32_t> device(instance_.nodes.size(), -1);
    read_back(instance_, table_, ideals_.count() - 1,
              [&](int32_t sub, int32_t ideal, int32_t number) {
                ideals_.for_difference(ideal, sub, [&](int32_t group) {
                  for (const int32_t node : groups_[group]) device[node] = number;
                });
              });
    return device;
  }

 private:
  static constexpr size_t kBuckets = 256;
  static constexpr int64_t kPriceSteps = 100;  // cost of an evaluated part in polling steps
  struct Alive {
    int32_t ideal;
    double work;
  };

  size_t bucket_of(double work) const {
    const double all = sums_.back().work;
    return all > 0 ? static_cast<size_t>(std::clamp(work / all, 0.0, 1.0) * kBuckets) : 0;
  }
  void alive(int32_t ideal) {
    const double work = sums_[ideal].work;
    buckets_[bucket_of(work)].push_back({ideal, work});
    auto& first = first_.emplace_back();
    first.ideal = ideal;
    for (int32_t c = 0; c <= instance_.cpus; ++c) {
      int32_t a = 0;
      while (a <= instance_.accelerators && table_.least(ideal, a, c) == kNone) ++a;
      first.accelerators.push_back(a);
    }
    if (number_.size() <= at(ideal)) number_.resize(at(ideal) + 1, -1);
    number_[ideal] = static_cast<int32_t>(first_.size()) - 1;
  }

  /// Examines all parts that end at `ideal`.
  bool visit(int32_t ideal) {
    const auto& whole = sums_[ideal];
    const double widest = std::max(window_.limit(), window_.cpu_work());
    const size_t last = bucket_of(whole.work);
    for (size_t b = bucket_of(std::max(0.0, whole.work - widest * kSlack)); b <= last; ++b) {
      // Most candidates are not a part of this ideal, which is checked quickly.
      pairs_left_ -= static_cast<int64_t>(buckets_[b].size() / 32);
      poll_.step(static_cast<int64_t>(buckets_[b].size()));
      for (const auto& [sub, work] : buckets_[b]) {
        const auto& part = sums_[sub];
        bool accelerator = instance_.accelerators > 0 && whole.work - work <= window_.limit() &&
                           whole.unsupported == part.unsupported &&
                           whole.memory_bytes - part.memory_bytes <= instance_.memory_bytes;
        bool cpu = instance_.cpus > 0 && whole.cpu - part.cpu <= window_.limit() * kSlack;
        if (!accelerator && !cpu) continue;
        keep_useful(sub, accelerator, cpu);
        if ((!accelerator && !cpu) || !ideals_.holds(ideal, sub)) continue;
        if (--pairs_left_ < 0) return false;
        poll_.step(kPriceSteps);
        const double cpu_s = cpu ? std::max(0.0, whole.cpu - part.cpu) : kNone;
        const double enough = accelerator ? table_.lowerable(ideal, sub, most_) : 0;
        const double accelerator_s = enough > 0 ? price(ideal, sub, enough) : kNone;
        if (accelerator_s == kNone && !cpu) continue;
        table_.take(ideal, sub, accelerator_s, cpu_s, most_);
      }
    }
    return true;
  }

  /// True if `sub` has an entry from which a part on such a device leads to a useful one.
  void keep_useful(int32_t sub, bool& accelerator, bool& cpu) const {
    const auto& first = first_[number_[sub]].accelerators;
    bool any_accelerator = false, any_cpu = false;
    for (int32_t c = 0; c <= instance_.cpus; ++c) {
      any_accelerator = any_accelerator || first[c] + 1 <= most_[c];
      any_cpu = any_cpu || (c > 0 && first[c - 1] <= most_[c]);
    }
    accelerator = accelerator && any_accelerator;
    cpu = cpu && any_cpu;
  }

  /// The accelerator load of ideal \ sub; kNone if it is above `enough`.
  double price(int32_t ideal, int32_t sub, double enough) {
    double load = std::max(0.0, sums_[ideal].work - sums_[sub].work);
    if (load > enough * kSlack) return kNone;
    ++stamp_;
    ideals_.for_difference(ideal, sub, [&](int32_t group) { inside_[group] = stamp_; });
    ideals_.for_difference(ideal, sub, [&](int32_t group) {
      if (load > enough) return;
      for (const int32_t net : nets_.touching[group]) load += price_net(net);
    });
    return load > enough ? kNone : load;
  }

  /// Cost of a net that the part touches, counted once.
  double price_net(int32_t net) {
    if (counted_[net] == stamp_) return 0;
    counted_[net] = stamp_;
    const auto& about = nets_.nets[net];
    const auto outside = [&](int32_t group) { return inside_[group] != stamp_; };
    const bool crosses =
        outside(about.source) || std::any_of(about.readers.begin(), about.readers.end(), outside);
    return crosses ? about.transfer_s : 0;
  }

  const LoadInstance& instance_;
  const std::vector<std::vector<int32_t>>& groups_;
  const Ideals& ideals_;
  const LoadWindow& window_;
  LoadNets nets_;
  DeadlinePoll poll_;
  Table table_;
  std::vector<Sums> sums_;  // [ideal]
  struct First {
    int32_t ideal;
    std::vector<int32_t> accelerators;  // minimum number, by CPUs used
  };
  std::vector<First> first_;     // ideals that end a part
  std::vector<int32_t> number_;  // [ideal]: index in first_
  std::vector<std::vector<Alive>> buckets_;
  std::vector<int32_t> most_;
  std::vector<int64_t> inside_, counted_;  // stamps of groups and nets
  int64_t stamp_ = 0, pairs_left_ = 0;
};

}  // namespace

LoadNets::LoadNets(const LoadInstance& instance, const std::vector<std::vector<int32_t>>& groups)
    : touching(groups.size()) {
  std::vector<int32_t> group_of(instance.nodes.size());
  for (size_t g = 0; g < groups.size(); ++g)
    for (const int32_t node : groups[g]) group_of[node] = static_cast<int32_t>(g);
  std::vector<std::vector<int32_t>> readers(instance.nodes.size());
  for (const auto& [from, to] : instance.edges)
    if (group_of[from] != group_of[to]) readers[from].push_back(group_of[to]);
  std::map<std::pair<int32_t, std::vector<int32_t>>, double> costs;
  for (size_t n = 0; n < readers.size(); ++n) {
    auto& list = readers[n];
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
    if (!list.empty() && instance.nodes[n].transfer_s > 0)
      costs[{group_of[n], list}] += instance.nodes[n].transfer_s;
  }
  for (const auto& [ends, transfer_s] : costs) {
    const auto number = static_cast<int32_t>(nets.size());
    nets.push_back({ends.first, ends.second, transfer_s});
    touching[ends.first].push_back(number);
    for (const int32_t reader : ends.second) touching[reader].push_back(number);
  }
}

LoadWindow::LoadWindow(const LoadInstance& instance,
                       const std::vector<std::vector<int32_t>>& groups)
    : instance_(instance) {
  double cpu = 0, accelerator = 0;
  for (const auto& group : groups) {
    const auto sums = sums_of(instance, group);
    work_ += sums.work;
    cpu += sums.cpu;
    if (sums.work > 0) works_.emplace_back(sums.work, sums.cpu);
  }
  for (const auto& node : instance.nodes) accelerator += node.accelerator_s + node.transfer_s;
  largest_ =
      std::max(instance.accelerators > 0 ? accelerator : 0, instance.cpus > 0 ? cpu : 0) * kSlack;
  std::sort(works_.begin(), works_.end(),
            [](const auto& a, const auto& b) { return a.second * b.first < b.second * a.first; });
}

double LoadWindow::work_of_cpu(double limit) const {
  double work = 0;
  for (const auto& [accelerator, cpu] : works_) {
    if (cpu > limit) return work + accelerator * (limit / cpu);
    work += accelerator;
    limit -= cpu;
  }
  return work;
}

double LoadWindow::least_limit() const {
  double low = 0, high = largest_;
  for (int step = 0; step < 60; ++step) {
    const double middle = (low + high) / 2;
    const bool enough =
        instance_.accelerators * middle + instance_.cpus * work_of_cpu(middle) >= work_;
    (enough ? high : low) = middle;
  }
  return high;
}

void LoadWindow::set_limit(double limit) {
  limit_ = limit;
  cpu_work_ = instance_.cpus > 0 ? work_of_cpu(limit) : 0;
}

int32_t LoadWindow::most_used(double work, int64_t memory_bytes, int32_t unsupported,
                              int32_t cpus_left) const {
  double needed = (work - cpus_left * cpu_work_) / (limit_ * kSlack);
  needed = needed > 1e-9 ? std::ceil(needed - 1e-9) : 0;
  if (cpus_left == 0) {
    if (unsupported > 0) return -1;
    const auto room = static_cast<double>(instance_.memory_bytes);
    if (memory_bytes > 0)
      needed = std::max(
          needed, room > 0 ? std::ceil(static_cast<double>(memory_bytes) / room - 1e-9) : kNone);
  }
  const double most = instance_.accelerators - needed;
  return most < 0 ? -1 : static_cast<int32_t>(most);
}

LoadOutcome cut_along_order(const LoadInstance& instance,
                            const std::vector<std::vector<int32_t>>& groups,
                            const LoadWindow& window, int64_t pairs, const Deadline& deadline,
                            std::vector<int32_t>& device) {
  const Links links(instance);
  const auto count = static_cast<int32_t>(groups.size());
  Table table(instance, count + 1, window.limit());
  std::vector<Sums> sums(1);
  for (const auto& group : groups) {
    sums.push_back(sums.back());
    add(sums.back(), sums_of(instance, group));
  }
  GrowingPart part(instance, groups, links);
  const int64_t entries = int64_t{instance.accelerators + 1} * (instance.cpus + 1);
  DeadlinePoll poll(deadline);
  for (int32_t ideal = 1; ideal <= count; ++ideal) {
    deadline.poll();
    const auto most = most_used(instance, window, sums.back(), sums[ideal]);
    if (*std::max_element(most.begin(), most.end()) < 0) continue;
    part.clear();
    for (int32_t sub = ideal - 1; sub >= 0; --sub) {
      part.add(sub);
      poll.step(entries);
      if (part.hopeless(window.limit())) break;
      if (--pairs < 0) return LoadOutcome::stopped;
      table.take(ideal, sub, part.accelerator_s(), part.cpu_s(), most);
    }
    table.finish(ideal);
  }
  if (table.least(count, instance.accelerators, instance.cpus) == kNone) return LoadOutcome::none;
  device.assign(instance.nodes.size(), -1);
  read_back(instance, table, count, [&](int32_t sub, int32_t ideal, int32_t number) {
    for (int32_t group = sub; group < ideal; ++group)
      for (const int32_t node : groups[group]) device[node] = number;
  });
  return LoadOutcome::found;
}

LoadOutcome cut_over_all(const LoadInstance& instance,
                         const std::vector<std::vector<int32_t>>& groups, const Ideals& ideals,
                         const LoadWindow& window, int64_t pairs, const Deadline& deadline,
                         std::vector<int32_t>& device) {
  IdealProgram program(instance, groups, ideals, window, deadline);
  const auto outcome = program.run(pairs);
  if (outcome == LoadOutcome::found) device = program.devices();
  return outcome;
}

}  // namespace trinity
