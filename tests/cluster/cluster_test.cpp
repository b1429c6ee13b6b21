#include <doctest/doctest.h>

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
  spec = test::uniform_spec(2, 0, 0);
  fails(spec, "bandwidth_bytes_per_s must be a positive number, got 0");
  spec = test::uniform_spec(2, 1e9, -1);
  fails(spec, "latency_s must not be negative");
  spec = test::uniform_spec(2, 1e9, 0);
  spec.devices[1].name = "d0";
  fails(spec, "two devices are called 'd0'");
  spec.devices.clear();
  fails(spec, "has no devices");
  spec = test::uniform_spec(1, 1e9, 0);
  spec.device_types[0].peak_flops_per_s.clear();
  fails(spec, "needs an entry 'float32'");
}

TEST_CASE("the fingerprint notices what changes a result") {
  const auto spec = test::uniform_spec(2, 1e9, 1e-6);
  auto slower = spec, renamed = spec;
  slower.devices[0].speed = 0.5;
  renamed.name = "other";
  CHECK(Cluster(spec).fingerprint() != Cluster(slower).fingerprint());
  CHECK(Cluster(spec).fingerprint() == Cluster(renamed).fingerprint());
}
