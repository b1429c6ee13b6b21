#include <doctest/doctest.h>

#include <chrono>

#include "base/error.h"
#include "support/build.h"

using namespace trinity;

namespace {

std::vector<std::string> route(const Cluster& cluster, int32_t from, int32_t to) {
  std::vector<std::string> names;
  for (const int32_t channel : cluster.route(from, to))
    names.push_back(cluster.channels()[static_cast<size_t>(channel)].name);
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
  CHECK(Names{cluster.channels()[0].name, cluster.channels()[2].name} ==
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
  RandomStream random(5, "routes");
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
          least = std::min(least,
                           cluster.channels()[static_cast<size_t>(channel)].bandwidth_bytes_per_s);
        CHECK(least == cluster.bandwidth_bytes_per_s(from, to));
        CHECK(cluster.bandwidth_bytes_per_s(to, from) == cluster.bandwidth_bytes_per_s(from, to));
        const auto names = route(cluster, from, to);
        CHECK(names.front().find("d" + std::to_string(from)) != std::string::npos);
        CHECK(names.back().find("d" + std::to_string(to)) != std::string::npos);
      }
  }
}

TEST_CASE("a thousand devices around a switch are folded in two seconds") {
  const auto start = std::chrono::steady_clock::now();
  const Cluster cluster(test::uniform_spec(1024, 1e9, 2e-6));
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  CHECK(cluster.route(3, 1000).size() == 2);
  WARN(seconds.count() < 2);
}
