#include <doctest/doctest.h>

#include <algorithm>

#include "support/build.h"
#include "support/tier.h"

using namespace trinity;

namespace {

std::vector<std::string> route(const Cluster& cluster, int32_t from, int32_t to) {
  std::vector<std::string> names;
  for (const int32_t channel : cluster.route(from, to))
    names.push_back(cluster.channel_name(channel));
  return names;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("a route names a channel per link and direction") {
  const Cluster cluster(test::uniform_spec(3, 1e9, 2e-6));
  CHECK(cluster.channels().size() == 6);
  CHECK(route(cluster, 0, 2) == Names{"d0 -> switch", "switch -> d2"});
  CHECK(route(cluster, 2, 0) == Names{"d2 -> switch", "switch -> d0"});
  CHECK(cluster.route(1, 1).empty());
}

TEST_CASE("both directions of a half-duplex link are one channel") {
  auto spec = test::uniform_spec(2, 1e9, 2e-6);
  spec.links[1].half_duplex = true;
  const Cluster cluster(spec);
  CHECK(cluster.channels().size() == 3);
  CHECK(route(cluster, 0, 1) == Names{"d0 -> switch", "d1 - switch"});
  CHECK(route(cluster, 1, 0) == Names{"d1 - switch", "switch -> d0"});
  CHECK(cluster.bandwidth_bytes_per_s(0, 1) == 1e9);
}

TEST_CASE("a limited switch is a channel of every route through it") {
  auto spec = test::uniform_spec(3, 1e9, 2e-6);
  spec.switches = {{"switch", 4e8}};
  spec.links.push_back({"d0", "d1", 1e8, 0});
  const Cluster cluster(spec);
  CHECK(route(cluster, 0, 2) == Names{"d0 -> switch", "switch", "switch -> d2"});
  CHECK(route(cluster, 2, 1) == Names{"d2 -> switch", "switch", "switch -> d1"});
  CHECK(cluster.bandwidth_bytes_per_s(0, 2) == 4e8);
  CHECK(cluster.latency_s(0, 2) == doctest::Approx(2e-6));
  CHECK(route(cluster, 0, 1) == Names{"d0 -> d1"});
  CHECK(cluster.channels().back().bandwidth_bytes_per_s == 4e8);
}

TEST_CASE("routes avoid a narrow switch when another way is as short") {
  auto spec = test::uniform_spec(2, 1e9, 0);
  spec.switches = {{"switch", 1e8}};
  for (const char* device : {"d0", "d1"}) spec.links.push_back({device, "other", 5e8, 0});
  const Cluster cluster(spec);
  CHECK(route(cluster, 0, 1) == Names{"d0 -> other", "other -> d1"});
  CHECK(cluster.bandwidth_bytes_per_s(0, 1) == 5e8);
}

TEST_CASE("of parallel links a route takes the widest, the fastest, then the first") {
  auto spec = test::uniform_spec(2, 1e9, 0);
  spec.links = {{"d0", "d1", 1e9, 1e-6},
                {"d0", "d1", 2e9, 3e-6},
                {"d1", "d0", 2e9, 2e-6},
                {"d0", "d1", 2e9, 2e-6}};
  const Cluster cluster(spec);
  CHECK(cluster.latency_s(0, 1) == 2e-6);
  CHECK(cluster.bandwidth_bytes_per_s(0, 1) == 2e9);
  REQUIRE(cluster.channels().size() == 8);
  CHECK(Names{cluster.channel_name(0), cluster.channel_name(2)} ==
        Names{"d0 -> d1", "d0 -> d1 #2"});
  CHECK(std::vector<int32_t>(cluster.route(0, 1).begin(), cluster.route(0, 1).end()) ==
        std::vector<int32_t>{5});
  CHECK(std::vector<int32_t>(cluster.route(1, 0).begin(), cluster.route(1, 0).end()) ==
        std::vector<int32_t>{4});
}

TEST_CASE("equal ways: the one whose last link comes first in the description") {
  auto spec = test::uniform_spec(2, 1e9, 0);
  spec.links.push_back({"d0", "zebra", 1e9, 0});
  spec.links.insert(spec.links.begin(), {"d1", "zebra", 1e9, 0});
  const Cluster cluster(spec);
  CHECK(route(cluster, 0, 1) == Names{"d0 -> zebra", "zebra -> d1"});
}

TEST_CASE("every route's channels agree with its bandwidth, and reach from end to end") {
  RandomStream random(test::law_seed(), "routes");
  for (int round = 0; round < 30; ++round) {
    const int devices = 2 + static_cast<int>(random.below(6));
    auto spec = test::uniform_spec(devices, 1e9, 1e-6);
    for (int i = 0; i < devices; ++i) {
      const auto a = random.below(static_cast<uint64_t>(devices)),
                 b = random.below(static_cast<uint64_t>(devices));
      if (a == b) continue;
      spec.links.push_back({"d" + std::to_string(a), "d" + std::to_string(b),
                            1e8 * static_cast<double>(1 + random.below(20)), 1e-6,
                            random.below(2) == 1});
    }
    if (random.below(2)) spec.switches = {{"switch", 7e8}};
    const Cluster cluster(spec);
    for (int32_t from = 0; from < devices; ++from)
      for (int32_t to = 0; to < devices; ++to) {
        if (from == to) continue;
        double least = 1e30;
        for (const int32_t channel : cluster.route(from, to))
          least = std::min(least, cluster.channels()[channel].bandwidth_bytes_per_s);
        CHECK(least == cluster.bandwidth_bytes_per_s(from, to));
        CHECK(cluster.bandwidth_bytes_per_s(to, from) == cluster.bandwidth_bytes_per_s(from, to));
        const auto names = route(cluster, from, to);
        CHECK(names.front().find("d" + std::to_string(from)) != std::string::npos);
        CHECK(names.back().find("d" + std::to_string(to)) != std::string::npos);
      }
  }
}

namespace {

/// Machines of random kinds, equal and unequal, with cycles, parallel and half-duplex links,
/// limited switches and several ways to the net, which may be limited, too; or a net of no such
/// form.
ClusterSpec random_machines(RandomStream& random) {
  auto spec = test::uniform_spec(1, 1e9, 0);
  spec.devices.clear();
  spec.links.clear();
  const auto link = [&](const std::string& a, const std::string& b, RandomStream& draw) {
    spec.links.push_back({a, b, 1e8 * static_cast<double>(1 + draw.below(4)),
                          1e-7 * static_cast<double>(draw.below(4)) / 3, draw.below(5) == 0});
  };
  const auto kinds = 1 + random.below(3), machines = 1 + random.below(5);
  for (uint64_t m = 0; m < machines; ++m) {
    RandomStream kind(test::law_seed(), "kind", random.below(kinds));
    const auto name = [&](const char* part, uint64_t i) {
      return "n" + std::to_string(m) + "/" + part + std::to_string(i);
    };
    const auto devices = 1 + kind.below(4), switches = 1 + kind.below(3);
    const bool limits = kind.below(2) == 0;
    for (uint64_t d = 0; d < devices; ++d) {
      spec.devices.push_back({name("d", d), 0, 1.0, ""});
      for (uint64_t l = 0; l < 1 + kind.below(2); ++l)
        link(name("d", d), name("s", kind.below(switches)), kind);
      if (kind.below(3) == 0) link(name("d", d), "net", kind);
    }
    for (uint64_t s = 0; s < switches; ++s) {
      for (uint64_t l = 0; l < 1 + kind.below(2); ++l) link(name("s", s), "net", kind);
      if (limits && kind.below(2)) spec.switches.push_back({name("s", s), 2.5e8});
    }
  }
  if (random.below(4) == 0 && spec.devices.size() > 1)  // may join two machines, too
    link(spec.devices.front().name, spec.devices.back().name, random);
  if (random.below(3) == 0) spec.switches.push_back({"net", 1.5e8});
  return spec;
}

}  // namespace

TEST_CASE("routes of pieces are bit-identical to the routes of the whole") {
  RandomStream random(test::law_seed(), "pieces");
  int fewer = 0;
  for (uint64_t round = 0; round < test::draws(1500); ++round) {
    const auto spec = random_machines(random);
    const Routes pieces(spec), whole(spec, false);
    const auto devices = static_cast<int32_t>(spec.devices.size());
    bool same = true;
    for (int32_t from = 0; from < devices; ++from)
      for (int32_t to = 0; to < devices; ++to) {
        const Wire a = pieces.wire(from, to), b = whole.wire(from, to);
        const Route c = pieces.route(from, to), d = whole.route(from, to);
        same = same && a.latency_s == b.latency_s &&
               a.bandwidth_bytes_per_s == b.bandwidth_bytes_per_s && c.size() == d.size() &&
               std::equal(c.begin(), c.end(), d.begin());
      }
    REQUIRE(same);
    fewer += pieces.stored() < whole.stored() ? 1 : 0;
  }
  CHECK(fewer >= test::least(300));
}

TEST_CASE("what is stored of routes grows with the machines, not with the pairs") {
  const Routes small(test::rail_spec(32, 8)), large(test::rail_spec(256, 8));
  CHECK(small.stored() < 20 * 256);
  CHECK(large.stored() < 20 * 2048);
  CHECK(large.stored() < 8 * small.stored());
  CHECK(large.channels().size() == 2048 * 6);
  const Cluster cluster(test::rail_spec(256, 8));
  CHECK(route(cluster, 3, 2047) == Names{"n0/d3 -> n0/nic3", "n0/nic3 -> net", "net -> n255/nic7",
                                         "n255/nic7 -> n255/d7"});
  CHECK(route(cluster, 2040, 2047) == Names{"n255/d0 -> n255/switch", "n255/switch -> n255/d7"});
}
