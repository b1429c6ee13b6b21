#include <doctest/doctest.h>

#include <limits>

#include "base/error.h"
#include "support/build.h"

using namespace trinity;

TEST_CASE("routes take the fewest links, then the widest, and fold to latency and bandwidth") {
  auto spec = test::uniform_spec(3, 1e9, 2e-6);
  spec.links.push_back({"d0", "d1", 5e9, 1e-6});    // one hop beats two
  spec.links.push_back({"d1", "fast", 8e9, 3e-6});  // two hops, wider than the switch
  spec.links.push_back({"fast", "d2", 4e9, 3e-6});
  const Cluster cluster(spec);
  CHECK(cluster.bandwidth_bytes_per_s(0, 1) == 5e9);
  CHECK(cluster.latency_s(1, 0) == doctest::Approx(1e-6));
  CHECK(cluster.bandwidth_bytes_per_s(1, 2) == 4e9);
  CHECK(cluster.latency_s(1, 2) == doctest::Approx(6e-6));
  CHECK(cluster.bandwidth_bytes_per_s(0, 2) == 1e9);
}

TEST_CASE("broken descriptions are refused by name") {
  const auto fails = [](ClusterSpec spec, const char* text) {
    CHECK_THROWS_WITH_AS(Cluster{spec}, doctest::Contains(text), ArgumentError);
  };
  auto spec = test::uniform_spec(2, 1e9, 0);
  spec.links.pop_back();
  fails(spec, "no route of links from 'd0' to 'd1'");
  spec = test::uniform_spec(2, 1e9, 0);
  spec.devices[1].name = "d0";
  fails(spec, "two devices are called 'd0'");
  spec.devices.clear();
  fails(spec, "has no devices");
  spec = test::uniform_spec(1, 1e9, 0);
  spec.device_types[0].peak_flops_per_s.clear();
  fails(spec, "needs an entry 'float32'");
}

TEST_CASE("rates that are no positive numbers and latencies that are none are refused") {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const auto fails = [](const char* text, auto change) {
    auto spec = test::uniform_spec(2, 1e9, 1e-6);
    change(spec);
    CHECK_THROWS_WITH_AS(Cluster{spec}, doctest::Contains(text), ArgumentError);
  };
  for (const double wrong : {0.0, -1.0, kNan, kInfinity, -kInfinity}) {
    fails("link 'd1' - 'switch': bandwidth_bytes_per_s must be a positive number",
          [=](ClusterSpec& s) { s.links[1].bandwidth_bytes_per_s = wrong; });
    fails("switch 'switch': bandwidth_bytes_per_s must be a positive number", [=](ClusterSpec& s) {
      s.switches.push_back({"switch", wrong});
    });
    fails("device 'd1': speed must be a positive number",
          [=](ClusterSpec& s) { s.devices[1].speed = wrong; });
    fails("device type 'unit': peak_flops_per_s.float32 must be a positive number",
          [=](ClusterSpec& s) { s.device_types[0].peak_flops_per_s[DType::float32] = wrong; });
    fails("memory_bandwidth_bytes_per_s must be a positive number",
          [=](ClusterSpec& s) { s.device_types[0].memory_bandwidth_bytes_per_s = wrong; });
    fails("compute_efficiency must be a positive number",
          [=](ClusterSpec& s) { s.device_types[0].compute_efficiency = wrong; });
    if (wrong == 0) continue;
    fails("half_width must not be negative",
          [=](ClusterSpec& s) { s.device_types[0].half_width = wrong; });
    fails("dispatch_s must not be negative",
          [=](ClusterSpec& s) { s.device_types[0].dispatch_s = wrong; });
    fails("device type 'unit': operators.Gemm: dispatch_s must not be negative",
          [=](ClusterSpec& s) { s.device_types[0].operators["Gemm"].dispatch_s = wrong; });
    fails("overlap must lie in [0, 1]",
          [=](ClusterSpec& s) { s.device_types[0].overlap = wrong; });
    fails("link 'd1' - 'switch': latency_s must not be negative",
          [=](ClusterSpec& s) { s.links[1].latency_s = wrong; });
    fails("launch_s must not be negative",
          [=](ClusterSpec& s) { s.device_types[0].launch_s = wrong; });
  }
}

TEST_CASE("broken switches are refused by name") {
  const auto fails = [](std::vector<Switch> switches, const char* text) {
    auto spec = test::uniform_spec(2, 1e9, 0);
    spec.switches = std::move(switches);
    CHECK_THROWS_WITH_AS(Cluster{spec}, doctest::Contains(text), ArgumentError);
  };
  fails({{"d1", 1e9}}, "switch 'd1' has the name of a device");
  fails({{"switch", 1e9}, {"switch", 1e9}}, "switch 'switch' is defined twice");
  fails({{"swich", 1e9}}, "switch 'swich' is not connected to any link, did you mean 'switch'?");
}

TEST_CASE("queue models have words") {
  for (const char* word : {"sender", "pair", "none", "route", "fair", "receiver"})
    CHECK(choice_name(parse_choice<QueueModel>(word)) == std::string(word));
  CHECK(parse_choice<QueueModel>("fair") == QueueModel::fair);
  CHECK_THROWS_WITH_AS(
      parse_choice<QueueModel>("rout"),
      doctest::Contains("unknown queue model 'rout', did you mean 'route'? (known: "
                        "sender, pair, none, route, fair, receiver)"),
      ArgumentError);
}

TEST_CASE("a device's node is the part of its name before the slash, unless stated") {
  auto spec = test::node_spec(2, 1, 1e9, 1e9, 0, 0);
  spec.devices.push_back({"alone", 0, 1.0, ""});
  spec.devices.push_back({"n7/d0", 0, 1.0, "n1"});
  spec.links.push_back({"alone", "net", 1e9, 0});
  spec.links.push_back({"n7/d0", "net", 1e9, 0});
  const Cluster cluster(spec);
  CHECK(cluster.device(0).node == "n0");
  CHECK(cluster.device(2).node.empty());
  CHECK(cluster.device(3).node == "n1");
}

TEST_CASE("the fingerprint notices what changes a result") {
  const auto spec = test::uniform_spec(2, 1e9, 1e-6);
  auto slower = spec, renamed = spec;
  slower.devices[0].speed = 0.5;
  renamed.name = "other";
  CHECK(Cluster(spec).fingerprint() != Cluster(slower).fingerprint());
  CHECK(Cluster(spec).fingerprint() == Cluster(renamed).fingerprint());

  const auto differs = [&](auto change) {
    auto changed = spec;
    change(changed);
    CHECK(Cluster(spec).fingerprint() != Cluster(changed).fingerprint());
  };
  differs([](ClusterSpec& s) { s.devices[1].node = "n1"; });
  differs([](ClusterSpec& s) { s.links[0].half_duplex = true; });
  differs([](ClusterSpec& s) { s.links[1].bandwidth_bytes_per_s = 2e9; });  // no bottleneck
  differs([](ClusterSpec& s) { s.switches.push_back({"switch", 4e9}); });   // not one either
  differs([](ClusterSpec& s) { s.queue = QueueModel::fair; });
}
