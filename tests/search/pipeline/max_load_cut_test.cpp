// The exact max-load cut against enumeration and the published instances.
#include "search/pipeline/max_load_cut.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "search/pipeline/ideals.h"
#include "strategy/strategy.h"
#include "support/cases.h"
#include "support/tier.h"

using namespace trinity;

namespace {

LoadInstance random_instance(RandomStream& random) {
  LoadInstance instance;
  const auto count = 2 + static_cast<int32_t>(random.below(7));
  instance.accelerators = 1 + static_cast<int32_t>(random.below(3));
  instance.cpus = static_cast<int32_t>(random.below(2));
  instance.memory_bytes = random.below(3) ? 1000 : 12;
  for (int32_t n = 0; n < count; ++n) {
    const auto time = [&] { return static_cast<double>(random.below(9)); };
    instance.nodes.push_back({time(), time() * 3, time() / 2, static_cast<int64_t>(random.below(9)),
                              n, false, random.below(10) > 0});
    for (int32_t reads = static_cast<int32_t>(random.below(3)); reads > 0 && n > 0; --reads)
      instance.edges.emplace_back(static_cast<int32_t>(random.below(static_cast<uint64_t>(n))), n);
  }
  std::sort(instance.edges.begin(), instance.edges.end());
  instance.edges.erase(std::unique(instance.edges.begin(), instance.edges.end()),
                       instance.edges.end());
  // The backward half of some: mirrored, each node with its forward node.
  if (random.below(2)) {
    const auto edges = instance.edges;
    for (int32_t n = 0; n < count; ++n) {
      auto node = instance.nodes[n];
      node.backward = true;
      instance.nodes.push_back(node);
    }
    for (const auto& [from, to] : edges) instance.edges.emplace_back(count + to, count + from);
    for (int32_t n = 0; n < count; ++n) instance.edges.emplace_back(n, count + n);
  }
  return instance;
}

/// Whether the forward nodes of every device lie between two down-sets: no path leaves a device and
/// comes back.
bool contiguous(const LoadInstance& instance, const std::vector<int32_t>& device) {
  const auto count = instance.nodes.size();
  std::vector<std::set<int32_t>> left(count);  // devices that a path to here has been on and left
  std::vector<std::set<int32_t>> on(count);
  auto edges = instance.edges;
  for (size_t n = 0; n < count; ++n) on[n].insert(device[n]);
  for (const auto& [from, to] : edges) {  // sorted: sources come before their readers
    const auto f = static_cast<size_t>(from), t = static_cast<size_t>(to);
    if (instance.nodes[f].backward || instance.nodes[t].backward) continue;
    left[t].insert(left[f].begin(), left[f].end());
    if (device[f] != device[t]) left[t].insert(device[f]);
  }
  for (size_t n = 0; n < count; ++n)
    if (!instance.nodes[n].backward && left[n].count(device[n])) return false;
  return true;
}

/// The least largest load over all sequences of down-sets, each difference on some device.
double exhaustive(const LoadInstance& instance) {
  const auto count = instance.nodes.size();
  const auto forward = static_cast<size_t>(std::count_if(
      instance.nodes.begin(), instance.nodes.end(), [](const auto& n) { return !n.backward; }));
  const int32_t devices = instance.accelerators + instance.cpus;
  double best = 1e300;
  std::vector<int32_t> device(count, -1);
  const auto closed = [&](uint32_t set) {
    return std::all_of(instance.edges.begin(), instance.edges.end(), [&](const auto& edge) {
      const auto [from, to] = edge;
      return static_cast<size_t>(to) >= forward || !(set >> to & 1) || (set >> from & 1);
    });
  };
  const auto extend = [&](auto&& self, uint32_t done, uint32_t used) -> void {
    if (done + 1 == 1u << forward) {
      const auto loads = max_load_loads_s(instance, device);
      std::vector<int64_t> memory(loads.size(), 0);
      for (size_t n = 0; n < count; ++n) {
        memory[device[n]] += instance.nodes[n].memory_bytes;
        if (device[n] < instance.accelerators && !instance.nodes[n].supported) return;
      }
      for (int32_t d = 0; d < instance.accelerators; ++d)
        if (memory[d] > instance.memory_bytes) return;
      best = std::min(best, *std::max_element(loads.begin(), loads.end()));
      return;
    }
    for (int32_t d = 0; d < devices; ++d) {
      if (used >> d & 1) continue;
      for (uint32_t set = done + 1; set < 1u << forward; ++set) {
        if ((set & done) != done || !closed(set)) continue;
        for (size_t n = 0; n < count; ++n)
          if ((set & ~done) >> (n % forward) & 1) device[n] = d;
        self(self, set, used | 1u << d);
      }
    }
  };
  extend(extend, 0, 0);
  return best;
}

}  // namespace

TEST_CASE("the max-load cut is the best of all contiguous cuts of small graphs") {
  int feasible = 0, infeasible = 0;
  for (uint64_t seed = 0; seed < test::draws(150); ++seed) {
    CAPTURE(seed);
    RandomStream random(test::law_seed(), "instance", seed);
    const auto instance = random_instance(random);
    const double best = exhaustive(instance);
    const auto cut = max_load_cut(instance);
    CHECK(cut.exact);
    CHECK(cut.feasible == (best < 1e300));
    (cut.feasible ? feasible : infeasible) += 1;
    if (!cut.feasible) continue;
    CHECK(cut.load_s == doctest::Approx(best).epsilon(1e-12));
    CHECK(contiguous(instance, cut.device));
    CHECK(max_load_cut(instance).device == cut.device);
    const auto along = max_load_cut(instance, {.most_ideals = 1});
    CHECK((!along.feasible || along.load_s >= cut.load_s));
    if (along.feasible) CHECK(contiguous(instance, along.device));
  }
  CHECK(feasible >= test::least(50));
  CHECK(infeasible >= test::least(5));
}

TEST_CASE("ideals of a small order, and of one that has too many") {
  const std::vector<std::pair<int32_t, int32_t>> diamond{{0, 1}, {0, 2}, {1, 3}, {2, 3}};
  const auto ideals = Ideals::of_order(4, diamond, 100);
  REQUIRE(ideals);
  CHECK(ideals->count() == 6);  // {}, 0, 01, 02, 012, 0123
  CHECK(ideals->difference(5, 1) == std::vector<int32_t>{1, 2, 3});
  CHECK(ideals->holds(4, 2));
  CHECK(!ideals->holds(3, 2));
  CHECK(!Ideals::of_order(4, diamond, 5));
  CHECK(!Ideals::of_order(30, {}, 60000));
  // 100 elements, two chains side by side: (50 + 1)^2 sets, more than one word each.
  std::vector<std::pair<int32_t, int32_t>> chains;
  for (int32_t i = 0; i < 98; ++i) chains.emplace_back(i, i + 2);
  const auto wide = Ideals::of_order(100, chains, 100000);
  REQUIRE(wide);
  CHECK(wide->count() == 51 * 51);
  CHECK(wide->difference(wide->count() - 1, 0).size() == 100);
}

TEST_CASE("the max-load cut of a training problem keeps units together") {
  for (uint64_t index = 0; index < 20; ++index) {
    CAPTURE(index);
    const auto c = test::random_case(index, {.most_operators = 40, .most_devices = 3});
    const auto instance = make_load_instance(*c.problem);
    const auto cut = max_load_cut(instance, {.most_ideals = 2000, .most_pairs = 2'000'000});
    REQUIRE(cut.feasible);
    CHECK_NOTHROW(check_placement(cut.device, c.problem->graph(), c.problem->cluster()));
  }
}

TEST_CASE("what the max-load cut refuses") {
  LoadInstance instance;
  CHECK_THROWS_AS(max_load_cut(instance), ArgumentError);
  instance.nodes.resize(1);
  instance.accelerators = 1;
  instance.edges = {{0, 1}};
  CHECK_THROWS_WITH_AS(max_load_cut(instance), "max-load cut: expected edges between existing "
                                               "nodes, got 0 -> 1", ArgumentError);
  instance.edges.clear();
  instance.nodes[0].accelerator_s = -1;
  CHECK_THROWS_AS(max_load_cut(instance), ArgumentError);
}
