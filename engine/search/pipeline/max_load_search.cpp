#include "search/pipeline/max_load_search.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "base/index.h"
#include "base/random.h"
#include "base/stop.h"
#include "search/pipeline/max_load_dynamic_program.h"

namespace trinity {
namespace {

constexpr double kNoLoad = std::numeric_limits<double>::infinity();
/// Temperatures relative to the best load: a move that increases the largest load by this fraction
/// is accepted with probability 1/e.
constexpr double kHot = 0.05, kWarm = 0.01, kCold = 2e-5;

std::vector<std::vector<int32_t>> units_of(const LoadInstance& instance) {
  std::vector<int32_t> number(instance.nodes.size(), -1);
  std::vector<std::vector<int32_t>> units;
  for (size_t n = 0; n < instance.nodes.size(); ++n) {
    auto& unit = number[instance.nodes[n].unit];
    if (unit < 0) {
      unit = static_cast<int32_t>(units.size());
      units.emplace_back();
    }
    units[unit].push_back(static_cast<int32_t>(n));
  }
  return units;
}

/// Costs of units, shared by all chains.
struct Units {
  Units(const LoadInstance& from, std::vector<std::vector<int32_t>> nodes_of)
      : instance(from), groups(std::move(nodes_of)), nets(from, groups) {
    for (const auto& group : groups) {
      accelerator.push_back(0);
      cpu.push_back(0);
      memory_bytes.push_back(0);
      supported.push_back(true);
      for (const int32_t node : group) {
        const auto& about = from.nodes[node];
        accelerator.back() += about.accelerator_s;
        cpu.back() += about.cpu_s;
        memory_bytes.back() += about.memory_bytes;
        if (!about.supported) supported.back() = false;
      }
    }
  }

  int32_t count() const { return static_cast<int32_t>(groups.size()); }
  int32_t devices() const { return instance.accelerators + instance.cpus; }
  bool is_cpu(int32_t device) const { return device >= instance.accelerators; }

  const LoadInstance& instance;
  std::vector<std::vector<int32_t>> groups;
  LoadNets nets;
  std::vector<double> accelerator, cpu;
  std::vector<int64_t> memory_bytes;
  std::vector<bool> supported;
};

/// Clusters of units, merged along their most expensive nets (in a random order of similar ones)
/// until few are left or they would be too large to balance.
class Coarsening {
 public:
  Coarsening(const Units& units, int32_t target, RandomStream& random)
      : units_(units),
        leader_(at(units.count())),
        work_(units.accelerator),
        memory_bytes_(units.memory_bytes) {
    std::iota(leader_.begin(), leader_.end(), 0);
    for (const double work : work_) all_ += work;
    std::vector<std::pair<double, int32_t>> order;  // most expensive first
    for (size_t n = 0; n < units.nets.nets.size(); ++n)
      order.emplace_back(-units.nets.nets[n].transfer_s * std::exp(2 * random.uniform()),
                         static_cast<int32_t>(n));
    std::sort(order.begin(), order.end());
    int32_t left = units.count();
    for (const auto& [cost, number] : order) {
      const auto& net = units.nets.nets[number];
      for (const int32_t reader : net.readers)
        if (left > target && merge(net.source, reader)) --left;
    }
    number_.assign(at(units.count()), -1);
    for (int32_t u = 0; u < units.count(); ++u) {
      auto& cluster = number_[find(u)];
      if (cluster < 0) {
        cluster = static_cast<int32_t>(groups_.size());
        groups_.emplace_back();
      }
      auto& nodes = groups_[cluster];
      nodes.insert(nodes.end(), units.groups[u].begin(), units.groups[u].end());
    }
  }

  const std::vector<std::vector<int32_t>>& groups() const { return groups_; }
  /// Devices of units from the devices of clusters.
  std::vector<int32_t> project(const std::vector<int32_t>& device) const {
    std::vector<int32_t> projected;
    for (int32_t u = 0; u < units_.count(); ++u) projected.push_back(device[number_[find(u)]]);
    return projected;
  }

 private:
  int32_t find(int32_t unit) const {
    while (leader_[unit] != unit) unit = leader_[unit];
    return unit;
  }
  bool merge(int32_t a, int32_t b) {
    a = find(a);
    b = find(b);
    const double parts = 3.0 * std::max(1, units_.instance.accelerators);
    if (a == b || units_.supported[a] != units_.supported[b] ||
        work_[a] + work_[b] > all_ / parts ||
        static_cast<double>(memory_bytes_[a] + memory_bytes_[b]) >
            static_cast<double>(units_.instance.memory_bytes) / 3)
      return false;
    leader_[std::max(a, b)] = std::min(a, b);
    work_[std::min(a, b)] += work_[std::max(a, b)];
    memory_bytes_[std::min(a, b)] += memory_bytes_[std::max(a, b)];
    return true;
  }

  const Units& units_;
  std::vector<int32_t> leader_, number_;
  std::vector<double> work_;
  std::vector<int64_t> memory_bytes_;
  std::vector<std::vector<int32_t>> groups_;
  double all_ = 0;
};

/// A cut with incremental loads.
class Parts {
 public:
  Parts(const Units& units, std::vector<int32_t> device)
      : units_(units),
        device_(std::move(device)),
        readers_(units.nets.nets.size() * at(units.devices()), 0),
        load_(at(units.devices()), 0),
        memory_bytes_(at(units.devices()), 0) {
    for (size_t n = 0; n < units.nets.nets.size(); ++n)
      for (const int32_t reader : units.nets.nets[n].readers) ++readers(n, device_[reader]);
    recount();
  }

  const std::vector<int32_t>& devices() const { return device_; }
  int32_t device(int32_t unit) const { return device_[unit]; }
  double load(int32_t device) const { return load_[device]; }
  double largest() const { return *std::max_element(load_.begin(), load_.end()); }
  int64_t memory_bytes(int32_t device) const { return memory_bytes_[device]; }
  bool fits() const {
    return std::all_of(memory_bytes_.begin(), memory_bytes_.begin() + units_.instance.accelerators,
                       [&](int64_t bytes) { return bytes <= units_.instance.memory_bytes; });
  }

  /// Recomputes all loads, to remove accumulated rounding.
  void recount() {
    std::fill(load_.begin(), load_.end(), 0.0);
    std::fill(memory_bytes_.begin(), memory_bytes_.end(), 0);
    for (int32_t u = 0; u < units_.count(); ++u) {
      load_[device(u)] += work(u, device(u));
      memory_bytes_[device(u)] += units_.memory_bytes[u];
    }
    for (size_t n = 0; n < units_.nets.nets.size(); ++n)
      for (int32_t d = 0; d < units_.instance.accelerators; ++d)
        if (charged(n, d)) load_[d] += units_.nets.nets[n].transfer_s;
  }

  /// Changes of the loads of a unit's device and of `to` if it moved.
  std::pair<double, double> change(int32_t unit, int32_t to) const {
    const int32_t from = device(unit);
    double here = -work(unit, from), there = work(unit, to);
    for (const int32_t number : units_.nets.touching[unit]) {
      const auto& net = units_.nets.nets[number];
      const auto n = at(number);
      const auto total = static_cast<int32_t>(net.readers.size());
      const bool is_source = net.source == unit;
      const int32_t source = device(net.source);
      // Readers on both devices after the move, and the source's device then.
      const int32_t on_from = readers(n, from) - (is_source ? 0 : 1);
      const int32_t on_to = readers(n, to) + (is_source ? 0 : 1);
      const int32_t after = is_source ? to : source;
      if (!units_.is_cpu(from))
        here += net.transfer_s * ((after == from ? on_from < total : on_from > 0) -
                                  static_cast<int>(charged(n, from)));
      if (!units_.is_cpu(to))
        there += net.transfer_s *
                 ((after == to ? on_to < total : on_to > 0) - static_cast<int>(charged(n, to)));
    }
    return {here, there};
  }

  void move(int32_t unit, int32_t to, const std::pair<double, double>& grown) {
    const int32_t from = device(unit);
    load_[from] += grown.first;
    load_[to] += grown.second;
    memory_bytes_[from] -= units_.memory_bytes[unit];
    memory_bytes_[to] += units_.memory_bytes[unit];
    for (const int32_t net : units_.nets.touching[unit])
      if (units_.nets.nets[net].source != unit) {
        --readers(at(net), from);
        ++readers(at(net), to);
      }
    device_[unit] = to;
  }

 private:
  int32_t& readers(size_t net, int32_t device) {
    return readers_[net * at(units_.devices()) + at(device)];
  }
  int32_t readers(size_t net, int32_t device) const {
    return readers_[net * at(units_.devices()) + at(device)];
  }
  bool charged(size_t net, int32_t d) const {
    const auto& about = units_.nets.nets[net];
    return device(about.source) == d ? readers(net, d) < static_cast<int32_t>(about.readers.size())
                                     : readers(net, d) > 0;
  }
  double work(int32_t unit, int32_t d) const {
    return units_.is_cpu(d) ? units_.cpu[unit] : units_.accelerator[unit];
  }

  const Units& units_;
  std::vector<int32_t> device_;
  std::vector<int32_t> readers_;  // of a net on a device
  std::vector<double> load_;
  std::vector<int64_t> memory_bytes_;
};

/// One annealing chain.
class Chain {
 public:
  Chain(const Units& units, std::vector<int32_t> start, double reference, RandomStream random)
      : units_(units), parts_(units, std::move(start)), random_(random), scale_(1 / reference) {
    if (parts_.fits()) keep();
  }

  void run(int64_t trials, double hot, const Deadline& end, const std::atomic<bool>& stop) {
    const double cooling = std::log(kCold / hot);
    for (int64_t trial = 0; trial < trials; ++trial) {
      if ((trial & 1023) == 0) {
        if (stop || end.passed()) break;
        temperature_ =
            12 * hot * std::exp(cooling * static_cast<double>(trial) / static_cast<double>(trials));
        parts_.recount();
      }
      const auto kind = random_.below(16);
      if (kind == 0)
        try_cluster();
      else if (kind < 4)
        try_swap();
      else
        try_move();
    }
  }

  double best() const { return best_; }
  const std::vector<int32_t>& best_devices() const { return best_devices_; }

 private:
  void keep() {
    best_ = parts_.largest();
    best_devices_ = parts_.devices();
  }

  int32_t draw(size_t count) { return static_cast<int32_t>(random_.below(count)); }

  /// Energy of a device; excess memory counts like load.
  double energy(double load, int64_t excess_bytes) const {
    double x = load * scale_;
    if (excess_bytes > 0)
      x += 0.1 + 4 * static_cast<double>(excess_bytes) /
                     std::max(1.0, static_cast<double>(units_.instance.memory_bytes));
    const double x2 = x * x, x4 = x2 * x2;
    return x4 * x4 * x4;
  }
  int64_t excess_with(int32_t device, int64_t more) const {
    return units_.is_cpu(device) ? 0
                                 : std::max<int64_t>(0, parts_.memory_bytes(device) + more -
                                                            units_.instance.memory_bytes);
  }

  bool may_be(int32_t unit, int32_t device) const {
    return units_.supported[unit] || units_.is_cpu(device);
  }

  /// Change of the energy if a unit moves.
  double growth(int32_t unit, int32_t to, const std::pair<double, double>& grown) const {
    const int32_t from = parts_.device(unit);
    const int64_t bytes = units_.memory_bytes[unit];
    return energy(parts_.load(from) + grown.first, excess_with(from, -bytes)) +
           energy(parts_.load(to) + grown.second, excess_with(to, bytes)) -
           energy(parts_.load(from), excess_with(from, 0)) -
           energy(parts_.load(to), excess_with(to, 0));
  }
  bool accept(double growth) {
    return growth <= 0 || random_.uniform() < std::exp(-growth / temperature_);
  }
  void note() {
    if (parts_.largest() < best_ * (1 - 1e-12) && parts_.fits()) {
      parts_.recount();
      if (parts_.largest() < best_) keep();
    }
  }

  /// Moves a unit to the device of a neighbour, or to any.
  void try_move() {
    int32_t unit = draw(at(units_.count())), to = draw(at(units_.devices()));
    const auto& touching = units_.nets.touching[unit];
    if (!touching.empty() && random_.below(3) > 0) {
      const auto& net = units_.nets.nets[touching[draw(touching.size())]];
      const int32_t other = net.source == unit ? net.readers[draw(net.readers.size())] : net.source;
      to = parts_.device(other);
    }
    if (to == parts_.device(unit) || !may_be(unit, to)) return;
    const auto grown = parts_.change(unit, to);
    if (!accept(growth(unit, to, grown))) return;
    parts_.move(unit, to, grown);
    note();
  }

  /// Moves a few connected units of one device to another: in a graph of many small operators
  /// single moves rarely help.
  void try_cluster() {
    const int32_t first = draw(at(units_.count())), from = parts_.device(first);
    const int32_t to = draw(at(units_.devices()));
    const size_t most = 2 + random_.below(14);
    if (to == from) return;
    cluster_.assign(1, first);
    for (size_t next = 0; next < cluster_.size() && cluster_.size() < most; ++next)
      for (const int32_t number : units_.nets.touching[cluster_[next]]) {
        const auto& net = units_.nets.nets[number];
        join(net.source, from, most);
        for (const int32_t reader : net.readers) join(reader, from, most);
      }
    double grown = 0;
    moved_.clear();
    for (const int32_t unit : cluster_) {
      if (!may_be(unit, to)) continue;
      moved_.emplace_back(unit, parts_.change(unit, to));
      grown += growth(unit, to, moved_.back().second);
      parts_.move(unit, to, moved_.back().second);
    }
    if (accept(grown)) return note();
    for (auto last = moved_.rbegin(); last != moved_.rend(); ++last)
      parts_.move(last->first, from, {-last->second.second, -last->second.first});
  }

  void join(int32_t unit, int32_t device, size_t most) {
    if (cluster_.size() < most && parts_.device(unit) == device &&
        std::find(cluster_.begin(), cluster_.end(), unit) == cluster_.end())
      cluster_.push_back(unit);
  }

  /// Swaps two units.
  void try_swap() {
    const int32_t a = draw(at(units_.count())), b = draw(at(units_.count()));
    const int32_t on_a = parts_.device(a), on_b = parts_.device(b);
    if (on_a == on_b || !may_be(a, on_b) || !may_be(b, on_a)) return;
    const auto first = parts_.change(a, on_b);
    double grown = growth(a, on_b, first);
    parts_.move(a, on_b, first);
    const auto second = parts_.change(b, on_a);
    grown += growth(b, on_a, second);
    if (accept(grown)) {
      parts_.move(b, on_a, second);
      note();
    } else {
      parts_.move(a, on_a, {-first.second, -first.first});
    }
  }

  const Units& units_;
  Parts parts_;
  RandomStream random_;
  double scale_, temperature_ = 1, best_ = kNoLoad;
  std::vector<int32_t> best_devices_, cluster_;
  std::vector<std::pair<int32_t, std::pair<double, double>>> moved_;
};

/// The rounds of a search.
class Search {
 public:
  Search(const LoadInstance& instance, const MaxLoadSearchOptions& options)
      : units_(instance, units_of(instance)),
        options_(options),
        bound_(max_load_bound_s(instance)),
        end_(Deadline::in(options.seconds)) {
    for (const auto& start : options.starts) {
      if (start.size() != instance.nodes.size())
        throw ArgumentError("max-load search: expected a start with one device per node, got {} of {}", start.size(),
                            instance.nodes.size());
      std::vector<int32_t> device;
      for (const auto& unit : units_.groups) device.push_back(start[unit[0]]);
      starts_.push_back(device);
      if (is_feasible(instance, start)) take(device);
    }
  }

  MaxLoadCut run(ThreadPool& pool) {
    for (int32_t round = 0; round < options_.rounds && !is_optimal() && !stop_flag(); ++round) {
      if (round > 0 && end_.passed()) break;
      run_round(options_.first_round + round, pool);
    }
    if (best_ == kNoLoad) poll_stop();
    MaxLoadCut cut;
    cut.feasible = best_ < kNoLoad;
    if (!cut.feasible) return cut;
    cut.device.assign(units_.instance.nodes.size(), 0);
    for (size_t u = 0; u < best_devices_.size(); ++u)
      for (const int32_t node : units_.groups[u]) cut.device[node] = best_devices_[u];
    const auto loads = max_load_loads_s(units_.instance, cut.device);
    cut.load_s = *std::max_element(loads.begin(), loads.end());
    cut.exact = is_optimal();
    return cut;
  }

 private:
  bool is_optimal() const { return best_ <= bound_ * (1 + 1e-12); }

  void take(const std::vector<int32_t>& device) {
    const double largest = Parts(units_, device).largest();
    if (largest >= best_) return;
    best_ = largest;
    best_devices_ = device;
  }

  static std::vector<int32_t> anywhere(const Units& units, RandomStream& random) {
    std::vector<int32_t> device;
    for (int32_t u = 0; u < units.count(); ++u) {
      const bool cpu_only = !units.supported[u] || units.instance.accelerators == 0;
      const auto first = cpu_only ? units.instance.accelerators : 0;
      const auto choices = cpu_only ? units.instance.cpus : units.instance.accelerators;
      device.push_back(first + static_cast<int32_t>(random.below(static_cast<uint64_t>(choices))));
    }
    return device;
  }

  /// A chain over clusters of units, from a random start; returns its best for the units.
  std::vector<int32_t> coarse_start(RandomStream& random, double reference) const {
    const auto target = 40 + static_cast<int32_t>(random.below(60));
    const Coarsening coarse(units_, target, random);
    const Units clusters(units_.instance, coarse.groups());
    auto start = anywhere(clusters, random);
    Chain chain(clusters, start, reference, RandomStream(random.next()));
    chain.run(options_.trials / 2, kHot, end_, stop_flag());
    return coarse.project(chain.best() < kNoLoad ? chain.best_devices() : start);
  }

  struct Found {
    double largest = kNoLoad;
    std::vector<int32_t> device;
  };

  /// Chain 0 continues from the best, 1 from clusters (with many units), 2 perturbs the best;
  /// others begin at a start, at clusters, or randomly.
  Found run_chain(int32_t round, int32_t number) const {
    const auto index = static_cast<uint64_t>(round) * 4096 + static_cast<uint64_t>(number);
    RandomStream random(options_.seed, "max-load search", index);
    const double reference = best_ < kNoLoad ? best_ : std::max(bound_, 1e-300);
    const bool known = best_<kNoLoad, many = units_.count()> 60;
    double hot = kHot;
    int64_t trials = options_.trials;
    std::vector<int32_t> start;
    if (number % 2 == 1 && many) {
      start = coarse_start(random, reference);
      hot = kWarm;
      trials /= 2;
    } else if (known && number % 4 == 0) {
      start = best_devices_;
      hot = kWarm;
    } else if (known && number % 4 == 2) {
      start = round % 2 == 0 || starts_.empty() ? best_devices_
                                                : starts_[at(round / 2) % starts_.size()];
    } else {
      start = anywhere(units_, random);
    }
    Chain chain(units_, std::move(start), reference, random);
    chain.run(trials, hot, end_, stop_flag());
    return {chain.best(), chain.best_devices()};
  }

  void run_round(int32_t round, ThreadPool& pool) {
    std::vector<Found> found(at(options_.chains));
    pool.parallel_for(options_.chains, [&](int c, int) { found[c] = run_chain(round, c); });
    for (const auto& one : found)
      if (one.largest < best_) take(one.device);
  }

  Units units_;
  const MaxLoadSearchOptions& options_;
  double bound_, best_ = kNoLoad;
  Deadline end_;
  std::vector<std::vector<int32_t>> starts_;
  std::vector<int32_t> best_devices_;
};

/// True if no cut can be feasible, whatever the loads.
bool cannot_fit(const LoadInstance& instance) {
  if (instance.cpus > 0) return false;
  double bytes = 0;
  for (const auto& node : instance.nodes) {
    if (!node.supported) return true;
    bytes += static_cast<double>(node.memory_bytes);
  }
  return bytes > static_cast<double>(instance.memory_bytes) * instance.accelerators;
}

}  // namespace

bool is_feasible(const LoadInstance& instance, const std::vector<int32_t>& device) {
  std::vector<int64_t> bytes(at(instance.accelerators + instance.cpus), 0);
  std::vector<int32_t> of_unit(instance.nodes.size(), -1);
  for (size_t n = 0; n < device.size(); ++n) {
    const auto& node = instance.nodes[n];
    auto& unit = of_unit[node.unit];
    if (unit < 0) unit = device[n];
    if (unit != device[n] || (device[n] < instance.accelerators && !node.supported)) return false;
    bytes[device[n]] += node.memory_bytes;
  }
  return std::all_of(bytes.begin(), bytes.begin() + instance.accelerators,
                     [&](int64_t sum) { return sum <= instance.memory_bytes; });
}

LoadInfeasibility infeasibility_of(const LoadInstance& instance,
                                   const std::vector<int32_t>& device) {
  LoadInfeasibility infeasibility;
  std::vector<int64_t> bytes(at(instance.accelerators + instance.cpus), 0);
  for (size_t n = 0; n < device.size(); ++n) {
    const bool on_accelerator = device[n] < instance.accelerators;
    if (on_accelerator && !instance.nodes[n].supported && infeasibility.node < 0)
      infeasibility.node = static_cast<int32_t>(n);
    bytes[device[n]] += instance.nodes[n].memory_bytes;
  }
  const auto end = bytes.begin() + instance.accelerators;
  const auto fullest = std::max_element(bytes.begin(), end);
  if (fullest == end || *fullest <= instance.memory_bytes) return infeasibility;
  infeasibility.device = static_cast<int32_t>(fullest - bytes.begin());
  infeasibility.needed_bytes = *fullest;
  return infeasibility;
}

double max_load_bound_s(const LoadInstance& instance) {
  return LoadWindow(instance, units_of(instance)).least_limit();
}

MaxLoadCut max_load_search(const LoadInstance& instance, const MaxLoadSearchOptions& options,
                           ThreadPool& pool) {
  check_load_instance(instance);
  if (cannot_fit(instance)) {
    MaxLoadCut cut;
    cut.exact = true;
    return cut;
  }
  return Search(instance, options).run(pool);
}

}  // namespace trinity
