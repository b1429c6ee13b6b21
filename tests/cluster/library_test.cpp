#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "cluster/collectives.h"
#include "cluster/library.h"
#include "support/build.h"
#include "support/cases.h"

using namespace trinity;

namespace {

using Kind = CollectiveKind;
using Algorithm = CollectiveAlgorithm;

std::vector<int32_t> first(int32_t count) {
  std::vector<int32_t> devices(static_cast<size_t>(count));
  std::iota(devices.begin(), devices.end(), 0);
  return devices;
}

/// `nodes` machines of `g` devices behind a switch (1e9 B/s, 1 us a link), with a card a device
/// (1e8 B/s, 4 us) to one network.
ClusterSpec machines(int32_t nodes, int32_t g, const CollectiveLibrary& library) {
  ClusterSpec spec = test::uniform_spec(nodes * g, 1e9, 0);
  spec.links.clear();
  spec.switches.clear();
  for (int32_t d = 0; d < nodes * g; ++d) {
    auto& device = spec.devices[static_cast<size_t>(d)];
    device.node = "n" + std::to_string(d / g);
    if (g > 1) spec.links.push_back({device.name, device.node + "/switch", 1e9, 1e-6, false});
    if (nodes > 1) {
      spec.links.push_back({device.name, device.name + "/card", 1e8, 0, false});
      spec.links.push_back({device.name + "/card", "net", 1e8, 4e-6, false});
    }
  }
  spec.collectives = library;
  return spec;
}

double time_s(const Cluster& cluster, Kind kind, Algorithm algorithm, int64_t bytes) {
  return collective_cost(cluster, kind, algorithm, first(cluster.device_count()), bytes).time_s();
}

/// In chunks, with pipelining 0.25.
double chunks(double call_s, double latency_s, double transfer_s) {
  return call_s + latency_s + transfer_s + std::sqrt(latency_s * transfer_s);
}

CollectiveLibrary plain_library() {
  CollectiveLibrary library;
  library.call_s = 1e-5;
  library.pipelining = 0.25;
  return library;
}

}  // namespace

TEST_CASE("a library's ring and tree within a node and between nodes") {
  const Cluster node(machines(1, 8, plain_library()));
  const auto near = [](double a, double b) { return a == doctest::Approx(b).epsilon(1e-12); };
  CHECK(near(time_s(node, Kind::all_reduce, Algorithm::ring, 8'000'000),
             chunks(1e-5, 14 * 2e-6, 14e-3)));
  CHECK(near(time_s(node, Kind::all_gather, Algorithm::ring, 8'000'000),
             chunks(1e-5, 7 * 2e-6, 7e-3)));
  CHECK(near(time_s(node, Kind::broadcast, Algorithm::ring, 8'000'000),
             chunks(1e-5, 7 * 2e-6, 8e-3)));
  // 4 nodes of 2: of 14 steps 8 cross the network; two cards a node
  const Cluster four(machines(4, 2, plain_library()));
  CHECK(near(time_s(four, Kind::all_reduce, Algorithm::ring, 8'000'000),
             chunks(1e-5, 6 * 2e-6 + 8 * 8e-6, 14e6 / 2e8)));
  CHECK(near(time_s(four, Kind::all_reduce, Algorithm::tree, 8'000'000),
             chunks(1e-5, 2 * 2e-6 + 4 * 8e-6, 2 * 8e6 / 2e8)));
  // between two nodes each byte of a tree crosses once each way
  const Cluster two(machines(2, 2, plain_library()));
  CHECK(near(time_s(two, Kind::all_reduce, Algorithm::tree, 8'000'000),
             chunks(1e-5, 2 * 2e-6 + 2 * 8e-6, 8e6 / 2e8)));
}

TEST_CASE("small packets, switches that add up, and cards in use") {
  CollectiveLibrary library = plain_library();
  library.low_latency_hop = 0.5;
  library.low_latency_bandwidth = 0.25;
  library.multicast_bandwidth = 0.8;
  library.multicast_s = 3e-5;
  const Cluster node(machines(1, 8, library));
  const auto near = [](double a, double b) { return a == doctest::Approx(b).epsilon(1e-12); };
  CHECK(near(time_s(node, Kind::all_reduce, Algorithm::ring, 800),
             1e-5 + 7 * 2e-6 + 1400 / (0.25 * 1e9)));
  CHECK(near(time_s(node, Kind::all_reduce, Algorithm::multicast, 8'000'000),
             chunks(1e-5, 3e-5, 9e6 / 0.8e9)));
  CHECK(collective_cost(node, Kind::all_reduce, Algorithm::automatic, first(8), 80'000'000)
            .algorithm == Algorithm::multicast);
  CHECK(collective_cost(node, Kind::all_reduce, Algorithm::automatic, first(8), 80).algorithm ==
        Algorithm::ring);
  library.rails = 1;
  const Cluster four(machines(4, 2, library));
  CHECK(near(time_s(four, Kind::all_reduce, Algorithm::multicast, 8'000'000),
             chunks(1e-5, 3e-5 + 4 * 8e-6, 2 * 8e6 / 1e8)));
  library.in_network = true;
  library.rails = 2;
  const Cluster sharp(machines(4, 2, library));
  CHECK(near(time_s(sharp, Kind::all_reduce, Algorithm::in_network, 8'000'000),
             chunks(1e-5, 2 * 2e-6 + 2 * 8e-6, 2 * 8e6 / 2e8)));
}

TEST_CASE("direct links carry as many rings as the least cut") {
  // DGX-1: single and double NVLinks, six at every GPU (NCCL runs six rings)
  constexpr std::array<std::array<int, 3>, 16> kCube{{{0, 1, 1}, {0, 2, 1}, {0, 3, 2}, {0, 4, 2},
                                                      {1, 2, 2}, {1, 3, 1}, {1, 5, 2}, {2, 3, 2},
                                                      {2, 6, 1}, {3, 7, 1}, {4, 5, 1}, {4, 6, 1},
                                                      {4, 7, 2}, {5, 6, 2}, {5, 7, 1}, {6, 7, 2}}};
  ClusterSpec spec = test::uniform_spec(8, 1, 0);  // all to one slow switch
  for (const auto& [a, b, count] : kCube)
    spec.links.push_back({spec.devices[static_cast<size_t>(a)].name,
                          spec.devices[static_cast<size_t>(b)].name, 10.0 * count, 0, false});
  const Cluster cube(spec);
  const auto direct = [&](const std::vector<int32_t>& members) {
    return direct_bandwidth(cube, members);
  };
  CHECK(direct(first(8)) == 60);
  CHECK(direct({0, 3}) == 20);
  CHECK(direct({0, 1, 4, 5}) == 20);  // {0, 4} and {1, 5} are joined by two links
  CHECK(direct({0, 1, 2, 3}) == 40);
  CHECK(direct({0, 5}) == 0);
  CHECK(direct({0, 1, 7}) == 0);
  const Cluster star(test::uniform_spec(4, 1e9, 0));
  CHECK(direct_bandwidth(star, first(4)) == 0);
}

TEST_CASE("no part of a library's all-reduce takes longer than it") {
  CollectiveLibrary library = plain_library();
  library.low_latency_hop = 0.5;
  library.low_latency_bandwidth = 0.3;
  for (const double multicast : {0.0, 0.8})
    for (const bool in_network : {false, true})
      for (const int32_t nodes : {1, 2, 3, 16})
        for (const int32_t g : {1, 2, 8}) {
          if (nodes * g == 1) continue;
          library.multicast_bandwidth = multicast;
          library.in_network = in_network;
          const Cluster cluster(machines(nodes, g, library));
          for (int64_t bytes = 0; bytes < int64_t{1} << 40; bytes = 4 * bytes + 1) {
            const auto of = [&](Kind kind) {
              return time_s(cluster, kind, Algorithm::automatic, bytes);
            };
            const double whole = of(Kind::all_reduce);
            CHECK(of(Kind::broadcast) <= whole);
            CHECK(of(Kind::all_gather) <= whole);
            CHECK(of(Kind::reduce_scatter) + of(Kind::all_gather) >= whole);
          }
        }
}

TEST_CASE("what a library refuses") {
  const auto fails = [](const std::string& text, const auto& body) {
    CHECK_THROWS_WITH_AS(body(), doctest::Contains(text.c_str()), ArgumentError);
  };
  CollectiveLibrary library;
  library.pipelining = -1;
  fails("collectives: pipelining must lie in [0, 4], got -1",
        [&] { Cluster(machines(1, 2, library)); });
  library = {};
  library.rails = std::nan("");
  fails("collectives: rails must lie in [1, inf], got nan",
        [&] { Cluster(machines(1, 2, library)); });
  const Cluster cluster(machines(1, 2, {}));
  for (const auto algorithm : {Algorithm::multicast, Algorithm::in_network})
    fails("expects members whose switches add up",
          [&] { time_s(cluster, Kind::all_reduce, algorithm, 8); });
  fails("expects members whose switches add up", [&] {
    collective_cost(Cluster(test::uniform_spec(2, 1e9, 0)), Kind::all_reduce, Algorithm::multicast,
                    first(2), 8);
  });
}
