#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "cluster/collectives.h"
#include "cluster/library.h"
#include "support/build.h"
#include "support/cases.h"
#include "support/tier.h"

using namespace trinity;

namespace {

using Kind = CollectiveKind;
using Algorithm = CollectiveAlgorithm;

constexpr Kind kKinds[] = {Kind::all_reduce, Kind::reduce_scatter, Kind::all_gather,
                           Kind::broadcast, Kind::all_to_all};
constexpr Algorithm kAlgorithms[] = {Algorithm::ring, Algorithm::halving_doubling, Algorithm::tree,
                                     Algorithm::hierarchical, Algorithm::leader};

std::vector<int32_t> first(int32_t count) {
  std::vector<int32_t> devices(static_cast<size_t>(count));
  std::iota(devices.begin(), devices.end(), 0);
  return devices;
}

CollectiveCost cost(const Cluster& cluster, Kind kind, Algorithm algorithm, int64_t bytes) {
  return collective_cost(cluster, kind, algorithm, first(cluster.device_count()), bytes);
}

void check_cost(const CollectiveCost& found, double latency_s, double transfer_s) {
  CHECK(found.latency_s == doctest::Approx(latency_s).epsilon(1e-12));
  CHECK(found.transfer_s == doctest::Approx(transfer_s).epsilon(1e-12));
  CHECK(found.time_s() == found.latency_s + found.transfer_s);
}

void check_same(const CollectiveCost& a, const CollectiveCost& b) {
  check_cost(a, b.latency_s, b.transfer_s);
  CHECK(a.sent_bytes == b.sent_bytes);
}

}  // namespace

TEST_CASE("ring formulas on four devices around a switch") {
  const Cluster cluster(test::uniform_spec(4, 1e9, 2e-6));
  const auto ring = [&](Kind kind) { return cost(cluster, kind, Algorithm::ring, 4'000'000); };
  check_cost(ring(Kind::all_reduce), 6 * 2e-6, 1.5 * 4e-3);
  check_cost(ring(Kind::reduce_scatter), 3 * 2e-6, 0.75 * 4e-3);
  check_cost(ring(Kind::all_gather), 3 * 2e-6, 0.75 * 4e-3);
  check_cost(ring(Kind::broadcast), 3 * 2e-6, 4e-3);
  check_cost(ring(Kind::all_to_all), 3 * 2e-6, 0.75 * 4e-3);
  CHECK(ring(Kind::all_reduce).sent_bytes == 6e6);
  CHECK(ring(Kind::reduce_scatter).sent_bytes == 3e6);
  CHECK(ring(Kind::all_gather).sent_bytes == 3e6);
  CHECK(ring(Kind::broadcast).sent_bytes == 4e6);
  CHECK(ring(Kind::all_to_all).sent_bytes == 3e6);
}

TEST_CASE("halving-doubling and tree formulas") {
  const Cluster flat(test::uniform_spec(8, 1e9, 2e-6));  // one node: devices without a slash
  const auto halving = [&](Kind kind) {
    return cost(flat, kind, Algorithm::halving_doubling, 8'000'000);
  };
  check_cost(halving(Kind::all_reduce), 6 * 2e-6, 1.75 * 8e-3);
  check_cost(halving(Kind::reduce_scatter), 3 * 2e-6, 0.875 * 8e-3);
  check_cost(halving(Kind::all_gather), 3 * 2e-6, 0.875 * 8e-3);
  check_cost(cost(flat, Kind::all_reduce, Algorithm::tree, 9'000'000), 2 * 7 * 2e-6, 2 * 1e-2);

  // Three nodes of two: latency 1 us inside; between nodes 0.5 + 10 + 0.5. Every node's link to
  // the net carries one edge of the flat ring a direction.
  const Cluster nodes(test::node_spec(3, 2, 1e9, 1e9, 1e-6, 1e-5));
  check_cost(cost(nodes, Kind::all_reduce, Algorithm::tree, 9'000'000), 2 * (1e-6 + 2 * 1.1e-5),
             2 * 1e-2);
  const int32_t uneven[] = {0, 1, 2};
  check_cost(collective_cost(nodes, Kind::all_reduce, Algorithm::tree, uneven, 9'000'000),
             2 * 2 * 1.1e-5, 2 * 1e-2);
}

TEST_CASE("hierarchical and leader formulas on two nodes of four") {
  const Cluster cluster(test::node_spec(2, 4, 10e9, 2e9, 2e-6, 2e-5));
  const double alpha = 2e-5 + 2e-6, n = 8e6;
  const auto price = [&](Algorithm algorithm) {
    return cost(cluster, Kind::all_reduce, algorithm, 8'000'000);
  };
  // Four rings between the nodes share each node's link: 0.5e9 each.
  check_cost(price(Algorithm::hierarchical), 2 * 3 * 2e-6 + 2 * alpha,
             2 * 0.75 * n / 10e9 + 2 * 0.5 * (n / 4) / 0.5e9);
  check_cost(price(Algorithm::leader), 2 * 3 * 2e-6 + 2 * alpha, 2 * n / 10e9 + 2 * 0.5 * n / 2e9);
  check_cost(price(Algorithm::ring), 14 * alpha, 1.75 * n / 2e9);
  CHECK(price(Algorithm::hierarchical).sent_bytes == 14e6);
  CHECK(price(Algorithm::leader).sent_bytes == 14e6);

  const int32_t uneven[] = {0, 1, 2, 4};
  check_cost(collective_cost(cluster, Kind::all_reduce, Algorithm::leader, uneven, 8'000'000),
             2 * 2 * 2e-6 + 2 * alpha, 2 * n / 10e9 + 2 * 0.5 * n / 2e9);
}

TEST_CASE("the parts of hierarchical, leader and tree all-reduces on two nodes of four") {
  const Cluster cluster(test::node_spec(2, 4, 10e9, 2e9, 2e-6, 2e-5));
  const double alpha = 2e-5 + 2e-6, n = 8e6;
  for (const Kind kind : {Kind::reduce_scatter, Kind::all_gather}) {
    const auto price = [&](Algorithm algorithm) {
      return cost(cluster, kind, algorithm, 8'000'000);
    };
    check_cost(price(Algorithm::hierarchical), 3 * 2e-6 + alpha,
               0.75 * n / 10e9 + 0.5 * (n / 4) / 0.5e9);
    check_cost(price(Algorithm::leader), 2 * 3 * 2e-6 + alpha,
               3.0 / 8 * n / 10e9 + n / 10e9 + 0.5 * n / 2e9);
    check_cost(price(Algorithm::tree), 2 * (3 * 2e-6 + alpha), n / (0.9 * 2e9));
    CHECK(price(Algorithm::hierarchical).sent_bytes == 7e6);

    const int32_t uneven[] = {0, 1, 2, 4};  // three bring 3/4 of n; one node lacks 3/4, one 1/4
    check_cost(collective_cost(cluster, kind, Algorithm::leader, uneven, 8'000'000),
               2 * 2 * 2e-6 + alpha, 0.5 * n / 10e9 + n / 10e9 + 0.75 * n / 2e9);
  }
  const auto price = [&](Algorithm algorithm) {
    return cost(cluster, Kind::broadcast, algorithm, 8'000'000);
  };
  check_cost(price(Algorithm::hierarchical), 2 * 3 * 2e-6 + alpha,
             2 * 0.75 * n / 10e9 + n / 4 / 0.5e9);
  check_cost(price(Algorithm::leader), 3 * 2e-6 + alpha, n / 10e9 + n / 2e9);
  check_cost(price(Algorithm::tree), 3 * 2e-6 + alpha, n / (0.9 * 2e9));
  check_cost(price(Algorithm::halving_doubling), 2 * 3 * alpha, 2 * 0.875 * n / 2e9);
}

TEST_CASE("all pairs of an all-to-all share their channels") {
  const Cluster cluster(test::node_spec(2, 4, 10e9, 2e9, 2e-6, 2e-5));
  const double alpha = 2e-5 + 2e-6, n = 8e6;
  const auto price = [&](Algorithm algorithm) {
    return cost(cluster, Kind::all_to_all, algorithm, 8'000'000);
  };
  // Every device of a node sends an eighth of n to each of the four of the other one.
  check_cost(price(Algorithm::ring), 7 * alpha, 16 * (n / 8) / 2e9);
  check_cost(price(Algorithm::hierarchical), 3 * 2e-6 + alpha, 0.75 * n / 10e9 + 4 * (n / 2) / 2e9);
  CHECK(price(Algorithm::ring).sent_bytes == 7e6);
}

TEST_CASE("what several edges of a ring cross is divided among them") {
  auto spec = test::uniform_spec(4, 1e9, 0);
  spec.switches = {{"switch", 2e9}};  // four edges: 0.5e9 each
  CHECK(cost(Cluster(spec), Kind::all_gather, Algorithm::ring, 4'000'000).transfer_s ==
        doctest::Approx(0.75 * 4e6 / 0.5e9));
  spec.switches[0].bandwidth_bytes_per_s = 8e9;  // wider than the links together
  CHECK(cost(Cluster(spec), Kind::all_gather, Algorithm::ring, 4'000'000).transfer_s ==
        doctest::Approx(0.75 * 4e6 / 1e9));
  spec.links[2].half_duplex = true;  // d2's link: one edge in, one out
  CHECK(cost(Cluster(spec), Kind::all_gather, Algorithm::ring, 4'000'000).transfer_s ==
        doctest::Approx(0.75 * 4e6 / 0.5e9));
}

TEST_CASE("rings run in order of device number, whatever the order given") {
  // A line d0 - d1 - d2 - d3: the edge from d3 back to d0 crosses every link.
  auto spec = test::uniform_spec(4, 1e9, 0);
  spec.links = {{"d0", "d1", 1e9, 1e-6}, {"d1", "d2", 1e9, 1e-6}, {"d2", "d3", 1e9, 1e-6}};
  const Cluster cluster(spec);
  const int32_t order[] = {2, 0, 3, 1};
  const auto found =
      collective_cost(cluster, Kind::reduce_scatter, Algorithm::ring, order, 4'000'000);
  check_cost(found, 3 * 3e-6, 0.75 * 4e-3);
  check_same(found, cost(cluster, Kind::reduce_scatter, Algorithm::ring, 4'000'000));
}

TEST_CASE("one device costs nothing") {
  const Cluster cluster(test::uniform_spec(3, 1e9, 2e-6));
  const int32_t one[] = {1};
  for (const Kind kind : kKinds)
    for (const Algorithm algorithm : {Algorithm::automatic, Algorithm::ring}) {
      const auto found = collective_cost(cluster, kind, algorithm, one, 1000);
      CHECK(found.time_s() == 0);
      CHECK(found.sent_bytes == 0);
      CHECK(found.algorithm == Algorithm::ring);
    }
  for (const Algorithm algorithm : kAlgorithms) {
    const auto found = collective_cost(cluster, Kind::all_reduce, algorithm, one, 1000);
    CHECK(found.time_s() == 0);
    CHECK(found.algorithm == algorithm);
  }
}

TEST_CASE("laws: parts add up, levels collapse, more bytes take no less") {
  RandomStream random(test::law_seed(), "collectives");
  for (int round = 0; round < 40; ++round) {
    const int nodes = 1 + static_cast<int>(random.below(4)),
              members = 1 + static_cast<int>(random.below(4));
    auto spec = test::node_spec(nodes, members, 1e9 * static_cast<double>(1 + random.below(9)),
                                1e9 * static_cast<double>(1 + random.below(9)),
                                1e-6 * static_cast<double>(random.below(9)),
                                1e-6 * static_cast<double>(random.below(90)));
    if (random.below(2)) spec.switches = {{"net", 3e9}};
    for (auto& link : spec.links) link.half_duplex = random.below(4) == 0;
    if (nodes == 1) spec.switches.clear();
    const Cluster cluster(spec);
    const auto bytes = static_cast<int64_t>(random.below(1'000'000'000));
    const auto ring = cost(cluster, Kind::all_reduce, Algorithm::ring, bytes);
    const auto scatter = cost(cluster, Kind::reduce_scatter, Algorithm::ring, bytes);
    const auto gather = cost(cluster, Kind::all_gather, Algorithm::ring, bytes);
    check_cost(ring, scatter.latency_s + gather.latency_s, scatter.transfer_s + gather.transfer_s);
    CHECK(ring.sent_bytes == scatter.sent_bytes + gather.sent_bytes);
    if (nodes == 1 || members == 1)
      check_same(cost(cluster, Kind::all_reduce, Algorithm::hierarchical, bytes), ring);

    const bool power = (nodes * members & (nodes * members - 1)) == 0;
    CollectiveCost least = ring;
    for (const Algorithm algorithm : kAlgorithms) {
      if (algorithm == Algorithm::halving_doubling && !power) continue;
      const auto now = cost(cluster, Kind::all_reduce, algorithm, bytes);
      CHECK(now.algorithm == algorithm);
      CHECK(now.time_s() <= cost(cluster, Kind::all_reduce, algorithm, bytes + 1000).time_s());
      CHECK(cost(cluster, Kind::all_reduce, algorithm, 0).transfer_s == 0);
      if (now.time_s() < least.time_s()) least = now;
    }
    const auto automatic = cost(cluster, Kind::all_reduce, Algorithm::automatic, bytes);
    CHECK(automatic.algorithm == least.algorithm);
    check_same(automatic, least);
    for (const Kind kind : kKinds)
      CHECK(cost(cluster, kind, Algorithm::automatic, bytes).time_s() <=
            cost(cluster, kind, Algorithm::automatic, bytes + 1).time_s());
  }
}

TEST_CASE("laws: no part of an all-reduce takes longer, and two parts take no less") {
  RandomStream random(test::law_seed(), "parts");
  for (uint64_t round = 0; round < test::draws(600); ++round) {
    const auto below = [&](uint64_t bound) { return static_cast<int>(random.below(bound)); };
    auto spec = random.below(2)
                    ? test::random_cluster(random, 1 + below(9))
                    : test::node_spec(1 + below(5), 1 + below(5), 1e8 * (1 + below(99)),
                                      1e8 * (1 + below(99)), 1e-7 * below(99), 1e-6 * below(99));
    for (auto& link : spec.links) link.half_duplex = link.half_duplex || random.below(8) == 0;
    const Cluster cluster(spec);
    auto devices = first(cluster.device_count());
    for (size_t i = devices.size(); i-- > 1;)
      if (random.below(3) == 0) devices.erase(devices.begin() + static_cast<std::ptrdiff_t>(i));
    const auto bytes = static_cast<int64_t>(random.below(uint64_t{1} << random.below(48)));
    for (size_t a = 0; a <= std::size(kAlgorithms); ++a) {
      const Algorithm algorithm = a ? kAlgorithms[a - 1] : Algorithm::automatic;
      const auto time = [&](Kind kind) {
        return collective_cost(cluster, kind, algorithm, devices, bytes).time_s();
      };
      double whole = 0;
      try {
        whole = time(Kind::all_reduce);
      } catch (const ArgumentError&) {
        continue;  // nodes or a number of members that the algorithm does not take
      }
      CAPTURE(choice_name(algorithm));
      CHECK(time(Kind::reduce_scatter) <= whole);
      CHECK(time(Kind::all_gather) <= whole);
      CHECK(time(Kind::broadcast) <= whole);
      CHECK(time(Kind::reduce_scatter) + time(Kind::all_gather) >= whole);
    }
  }
}

TEST_CASE("what does not apply is refused by name") {
  const Cluster cluster(test::node_spec(2, 2, 1e9, 1e9, 0, 0));
  const auto fails = [&](Kind kind, Algorithm algorithm, std::vector<int32_t> devices,
                         int64_t bytes, const char* text) {
    CHECK_THROWS_WITH_AS(collective_cost(cluster, kind, algorithm, devices, bytes),
                         doctest::Contains(text), ArgumentError);
  };
  for (const Algorithm algorithm :
       {Algorithm::halving_doubling, Algorithm::tree, Algorithm::leader})
    fails(Kind::all_to_all, algorithm, {0, 1}, 8,
          "does not support all_to_all, expected all_reduce, reduce_scatter, all_gather or broa");
  fails(Kind::all_reduce, Algorithm::halving_doubling, {0, 1, 2}, 8,
        "'halving_doubling' expects a power of two of devices, got 3");
  fails(Kind::all_reduce, Algorithm::hierarchical, {0, 1, 2}, 8,
        "expects equal numbers of devices per node, got 2 in node 'n0' and 1 in node 'n1'");
  fails(Kind::all_reduce, Algorithm::ring, {}, 8, "needs at least one device");
  fails(Kind::all_reduce, Algorithm::ring, {0, 4}, 8, "names device 5, expected 1 to 4");
  fails(Kind::all_reduce, Algorithm::ring, {1, 1}, 8, "names device 'n0/d1' twice");
  fails(Kind::all_reduce, Algorithm::ring, {0, 1}, -1, "bytes must not be negative, got -1");
}

TEST_CASE("collectives have words") {
  for (const Kind kind : kKinds) CHECK(parse_choice<CollectiveKind>(choice_name(kind)) == kind);
  for (const Algorithm algorithm : kAlgorithms)
    CHECK(parse_choice<CollectiveAlgorithm>(choice_name(algorithm)) == algorithm);
  CHECK(parse_choice<CollectiveAlgorithm>("automatic") == Algorithm::automatic);
  CHECK_THROWS_WITH_AS(
      parse_choice<CollectiveKind>("allreduce"),
      doctest::Contains("unknown collective 'allreduce', did you mean 'all_reduce'?"),
      ArgumentError);
  CHECK_THROWS_WITH_AS(
      parse_choice<CollectiveAlgorithm>("rings"),
      doctest::Contains("unknown collective algorithm 'rings', did you mean 'ring'?"),
      ArgumentError);
}

namespace {

/// `nodes` machines of `g` devices on a switch (1e9 B/s, 1 us a link), with one NIC per device
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
  return cost(cluster, kind, algorithm, bytes).time_s();
}

bool near(double a, double b) { return a == doctest::Approx(b).epsilon(1e-12); }

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
  CHECK(near(time_s(node, Kind::all_reduce, Algorithm::ring, 8'000'000),
             chunks(1e-5, 14 * 2e-6, 14e-3)));
  CHECK(near(time_s(node, Kind::all_gather, Algorithm::ring, 8'000'000),
             chunks(1e-5, 7 * 2e-6, 7e-3)));
  CHECK(near(time_s(node, Kind::broadcast, Algorithm::ring, 8'000'000),
             chunks(1e-5, 7 * 2e-6, 8e-3)));
  // 4 nodes of 2: of 14 steps 8 cross the network; two NICs per node
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

TEST_CASE("small packets, switches that reduce, and NICs in use") {
  CollectiveLibrary library = plain_library();
  library.low_latency_hop = 0.5;
  library.low_latency_bandwidth = 0.25;
  library.multicast_bandwidth = 0.8;
  library.multicast_s = 3e-5;
  const Cluster node(machines(1, 8, library));
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

TEST_CASE("rails limit a node's NICs: all of them change nothing, half of them halve the bandwidth") {
  CollectiveLibrary library;
  for (const bool half_duplex : {false, true})
    for (const int32_t nodes : {2, 4}) {
      auto spec = machines(nodes, 8, library);
      std::erase_if(spec.links, [](const Link& link) {
        return link.to == "net" || link.to.ends_with("/card");
      });
      for (size_t d = 0; d < spec.devices.size(); ++d) {
        const Device& gpu = spec.devices[d];
        const char* card = d % 8 < 4 ? "/card0" : "/card1";
        spec.links.push_back({gpu.name, gpu.node + card, 1e9, 0, false});
      }
      for (int32_t n = 0; n < nodes; ++n)
        for (int32_t card = 0; card < 2; ++card)
          spec.links.push_back({fmt::format("n{}/card{}", n, card), "net", 1e8, 4e-6, half_duplex});
      const auto rate = [&](double rails) {
        spec.collectives->rails = rails;
        return 1 / time_s(Cluster(spec), Kind::all_reduce, Algorithm::ring, 1 << 30);
      };
      const double unlimited = rate(std::numeric_limits<double>::infinity());
      for (const double rails : {2.0, 3.0, 8.0, 8.31}) CHECK(rate(rails) == unlimited);
      CHECK(rate(1) == doctest::Approx(unlimited / 2).epsilon(1e-3));
      CHECK(rate(1.5) == doctest::Approx(unlimited * 0.75).epsilon(1e-3));
    }
}

TEST_CASE("a library's rings over unequal nodes carry what the narrowest node sends") {
  const Cluster cluster(machines(4, 8, plain_library()));
  const auto rate = [&](const std::vector<int32_t>& members) {
    const double part = 1 - 1 / static_cast<double>(members.size());
    return part / collective_cost(cluster, Kind::all_reduce, Algorithm::ring, members, 1 << 30)
                      .time_s();
  };
  CHECK(rate(first(31)) == doctest::Approx(rate(first(32)) * 7 / 8).epsilon(0.02));
  CHECK(rate(first(9)) == doctest::Approx(rate({0, 8})).epsilon(0.02));
}

TEST_CASE("a library may have no trees") {
  CollectiveLibrary library = plain_library();
  const auto taken = [&] {
    return collective_cost(Cluster(machines(16, 8, library)), Kind::all_reduce,
                           Algorithm::automatic, first(128), 1000)
        .algorithm;
  };
  CHECK(taken() == Algorithm::tree);
  library.trees = false;
  CHECK(taken() == Algorithm::ring);
}

TEST_CASE("a part of a node's devices shares its inside with others") {
  CollectiveLibrary library = plain_library();
  library.shared_bandwidth = 0.5;
  const Cluster node(machines(1, 8, library)), alone(machines(1, 4, library));
  CHECK(near(time_s(node, Kind::all_reduce, Algorithm::ring, 8'000'000),
             chunks(1e-5, 14 * 2e-6, 14e-3)));
  CHECK(near(collective_cost(node, Kind::all_reduce, Algorithm::ring, first(4), 8'000'000).time_s(),
             chunks(1e-5, 6 * 2e-6, 12e-3 / 0.5)));
  CHECK(near(time_s(alone, Kind::all_reduce, Algorithm::ring, 8'000'000),
             chunks(1e-5, 6 * 2e-6, 12e-3)));
}

TEST_CASE("a ring's last part is copied where nothing is sent, as is what an all-to-all keeps") {
  CollectiveLibrary library = plain_library();
  library.copy_bandwidth = 2e9;
  for (const int32_t n : {2, 8}) {
    const Cluster node(machines(1, n, library)), plain(machines(1, n, plain_library()));
    const double part_s = 8e6 / n / 1e9, copied_s = 8e6 / n / 2e9;
    CHECK(near(time_s(node, Kind::all_reduce, Algorithm::ring, 8'000'000),
               chunks(1e-5, 2 * (n - 1) * 2e-6, 2 * (n - 1) * part_s + copied_s)));
    for (const Kind half : {Kind::all_gather, Kind::reduce_scatter})
      CHECK(near(time_s(node, half, Algorithm::ring, 8'000'000),
                 chunks(1e-5, (n - 1) * 2e-6, (n - 1) * part_s + copied_s)));
    const auto exchanged =
        collective_cost(plain, Kind::all_to_all, Algorithm::automatic, first(n), 8'000'000);
    CHECK(time_s(node, Kind::all_to_all, Algorithm::automatic, 8'000'000) >
          exchanged.time_s() + copied_s * (1 - 1e-12));
    for (const auto algorithm : {Algorithm::ring, Algorithm::tree})
      CHECK(time_s(node, Kind::broadcast, algorithm, 8'000'000) ==
            time_s(plain, Kind::broadcast, algorithm, 8'000'000));
    CHECK(node.fingerprint() != plain.fingerprint());
  }
}

TEST_CASE("a library's all-to-all serves eight peers at a time") {
  for (const int32_t n : {2, 3, 9, 10, 17, 18}) {
    const Cluster node(machines(1, n, plain_library()));
    const double steps = n <= 9 ? 1 : n <= 17 ? 2 : 3;
    CHECK(collective_cost(node, Kind::all_to_all, Algorithm::automatic, first(n), 0).time_s() ==
          doctest::Approx(1e-5 + steps * 2e-6));
  }
  CollectiveLibrary half = plain_library(), whole = half;
  half.exchange_bandwidth = 0.5;
  half.pipelining = whole.pipelining = 0;
  const auto seconds = [](const CollectiveLibrary& library, Kind kind) {
    return time_s(Cluster(machines(1, 8, library)), kind, Algorithm::automatic, 8'000'000) - 1e-5;
  };
  CHECK(seconds(half, Kind::all_to_all) - 2e-6 ==
        doctest::Approx(2 * (seconds(whole, Kind::all_to_all) - 2e-6)));
  CHECK(seconds(half, Kind::all_reduce) == seconds(whole, Kind::all_reduce));
}

TEST_CASE("a token goes to the expected number of parts that hold random experts") {
  CHECK(TokenRouting{8, 1}.destinations(8) == doctest::Approx(1));
  CHECK(TokenRouting{8, 8}.destinations(4) == doctest::Approx(4));
  CHECK(TokenRouting{4, 2}.destinations(2) == doctest::Approx(2 * (1 - 2.0 / 4 * 1 / 3)));
  // two of four groups of two experts, and two of their four experts: of one group with probability 1/3
  const TokenRouting limited{8, 2, 4, 2};
  CHECK(limited.destinations(1) == doctest::Approx(1));
  CHECK(limited.destinations(4) == doctest::Approx(5.0 / 3));
  CHECK(limited.destinations(8) == doctest::Approx(2));
  // both groups in one half with probability 1/3
  CHECK(limited.destinations(2) == doctest::Approx(1.0 / 3 + 2.0 / 3 * 5 / 3));
  CHECK(TokenRouting{8, 2, 4, 4}.destinations(2) == doctest::Approx(TokenRouting{8, 2}.destinations(2)));
  const int64_t most = TokenRouting::kMost;  // with this number of groups, experts are nearly independent
  CHECK(TokenRouting{1 << 20, 8, most, most / 2}.destinations(2) == doctest::Approx(2 * (1 - 1.0 / 256)).epsilon(1e-3));
  CHECK(TokenRouting{1 << 20, most, most, most - 1}.destinations(most) > 0.6 * static_cast<double>(most));
}

TEST_CASE("a dispatcher sends a token once to every node and member, both ways at once") {
  CollectiveLibrary library;
  library.exchange_bandwidth = 0.5;
  library.sends_tokens_once = true;
  const TokenRouting routing{64, 8};
  const auto once = [&](int32_t nodes, int32_t g, int64_t bytes, const TokenRouting& how) {
    return collective_cost(Cluster(machines(nodes, g, library)), Kind::all_to_all, Algorithm::automatic,
                           first(nodes * g), bytes, how);
  };
  const int64_t bytes = 8'000'000;  // of which a copy of all tokens is an eighth
  const double node_s = 1e6 * routing.destinations(8) / 8 * 7 / 1e9 / 0.5;
  CHECK(once(1, 8, bytes, routing).transfer_s == doctest::Approx(node_s));
  CHECK(once(1, 8, bytes, routing).sent_bytes == doctest::Approx(1e6 * routing.destinations(8) * 7 / 8));
  const double network_s = 1e6 * routing.destinations(4) / 4 * 3 / 1e8;
  CHECK(once(4, 8, bytes, routing).transfer_s == doctest::Approx(network_s));
  CHECK(once(4, 8, 0, routing).latency_s == doctest::Approx(2e-6 + 8e-6));
  CHECK(once(1, 1, bytes, routing).time_s() == 0);
  for (const int32_t nodes : {1, 4}) {  // the library takes it where rows have a routing
    const Cluster cluster(machines(nodes, 8, library));
    CollectiveGroups groups(cluster);
    const auto& group = groups.find(first(8 * nodes), true);
    const double plain_s = group.cost(Kind::all_to_all, Algorithm::automatic, bytes).time_s();
    const double step_s = group.cost(Kind::all_to_all, Algorithm::automatic, bytes, routing).time_s();
    CHECK(step_s == (nodes == 1 ? plain_s : once(nodes, 8, bytes, routing).time_s()));  // limited by the network
    CHECK(plain_s > once(nodes, 8, bytes, routing).time_s());
  }
  library.call_s = 1e-5;
  library.pipelining = 0.5;
  library.copy_bandwidth = 1e12;
  for (const int64_t size : {int64_t{0}, int64_t{4096}, int64_t{1} << 20, int64_t{1} << 28})
    for (const int32_t g : {4, 8}) {  // more nodes take no less time
      double last_s = 0;
      for (const int32_t nodes : {1, 2, 4}) {
        const Cluster cluster(machines(nodes, g, library));
        CollectiveGroups groups(cluster);
        const double step_s =
            groups.find(first(g * nodes), true).cost(Kind::all_to_all, Algorithm::automatic, size, routing).time_s();
        CHECK(step_s >= last_s);
        last_s = step_s;
      }
    }
  const auto refused = [&](Kind kind, const TokenRouting& how, const char* message) {
    const Cluster cluster(machines(1, 8, library));
    CHECK_THROWS_WITH_AS(collective_cost(cluster, kind, Algorithm::automatic, first(8), bytes, how), message,
                         ArgumentError);
  };
  refused(Kind::all_gather, routing, "a routing of tokens expects all_to_all, got all_gather");
  refused(Kind::all_to_all, {8, 2, 8, 9}, "group_topk: expected 1 to 8 (groups of experts), got 9");
  refused(Kind::all_to_all, {8, 2, 8, 1}, "experts_per_token: expected 1 to 1 (experts that a token may use), got 2");
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
  library.shared_bandwidth = 0;
  fails("collectives: shared_bandwidth must lie in (0, 1], got 0",
        [&] { Cluster(machines(1, 2, library)); });
  library = {};
  library.exchange_bandwidth = 1.5;
  fails("collectives: exchange_bandwidth must lie in (0, 1], got 1.5",
        [&] { Cluster(machines(1, 2, library)); });
  library = {};
  library.rails = std::nan("");
  fails("collectives: rails must lie in [1, inf], got nan",
        [&] { Cluster(machines(1, 2, library)); });
  const Cluster cluster(machines(1, 2, {}));
  for (const auto algorithm : {Algorithm::multicast, Algorithm::in_network})
    fails("expects switches that reduce",
          [&] { time_s(cluster, Kind::all_reduce, algorithm, 8); });
  fails("expects switches that reduce", [&] {
    collective_cost(Cluster(test::uniform_spec(2, 1e9, 0)), Kind::all_reduce, Algorithm::multicast,
                    first(2), 8);
  });
}
