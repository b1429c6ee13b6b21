// Clocks of replicas: by hand, against a reference of two nodes, and what scaling must keep.
#include "strategy/replica_clock.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "base/error.h"
#include "base/random.h"

using namespace trinity;

namespace {

/// A random training of DASO's moves: calls of `clock`, times in whole numbers of 1/16 times
/// `unit`.
template <class Clock>
void drive(uint64_t seed, double unit, Clock& clock) {
  RandomStream random(seed, "moves");
  const auto drawn = [&] { return static_cast<double>(random.below(160)) / 16 * unit; };
  bool under_way = false;
  for (int batch = 0; batch < 40; ++batch) {
    const auto kind = random.below(4);
    kind == 0 ? clock.step_of_all(drawn()) : clock.step(kind == 1);
    bool sent = false;
    if (random.below(2)) {
      clock.add(drawn());
      clock.send(drawn());
      sent = true;
    }
    if (under_way && random.below(2)) {
      clock.wait_for_earlier();
      under_way = false;
    }
    if (sent && random.below(3) == 0) {
      clock.wait_for_sent();
      sent = false;
    }
    clock.end_batch();
    under_way = under_way || sent;
  }
}

/// Two nodes in the header's words.
struct Reference {
  double a = 0, b = 0, wire = 0, sent = 0, earlier = 0;
  bool has_sent = false;
  void step(bool together) { a += together ? 3 : 2, b += together ? 5 : 1; }
  void step_of_all(double s) { a = b = std::max(a, b) + s; }
  void add(double s) { a += s, b += s; }
  void send(double s) {
    const double start = std::max({a, b, wire});
    sent = wire = start + s;
    has_sent = true;
  }
  void wait(double until) { a = std::max(a, until), b = std::max(b, until); }
  void wait_for_earlier() { wait(earlier); }
  void wait_for_sent() {
    wait(sent);
    has_sent = false;
  }
  void end_batch() {
    if (has_sent) earlier = sent;
    has_sent = false;
  }
};

}  // namespace

TEST_CASE("epochs whose batches are alike are sums") {
  const ReplicaClock clock({2, 3, 1}, {});
  CHECK(clock.compute_s() == 3);
  CHECK(clock.local_sgd_epoch_s(10, 4, 7) == 30 + 3 * 7);  // after 4, 8 and 10 batches
  CHECK(clock.local_sgd_epoch_s(8, 4, 7) == 24 + 2 * 7);
  CHECK(clock.server_epoch_s(10, 4, 1, false) == 70);
  CHECK(clock.server_epoch_s(10, 4, 1.5, true) == 45);  // a replica's own round
  CHECK(clock.server_epoch_s(10, 9, 1.5, true) == 90);  // the servers' links
}

TEST_CASE("nodes go on while a sum is on the wire, which carries one at a time") {
  ReplicaClock clock({2, 3}, {4, 4});
  clock.step(false);
  clock.send(10);  // from 3 to 13
  clock.end_batch();
  clock.step(true);
  CHECK(clock.latest_s() == 7);
  clock.send(1);  // from 13 to 14
  clock.wait_for_earlier();
  CHECK(clock.latest_s() == 13);
  clock.wait_for_sent();
  CHECK(clock.latest_s() == 14);
  clock.step_of_all(1);
  clock.add(0.5);
  CHECK(clock.latest_s() == 15.5);
  CHECK_THROWS_AS(clock.wait_for_sent(), ArgumentError);
  CHECK_THROWS_AS(clock.wait_for_earlier(), ArgumentError);
  clock.end_batch();
  CHECK_THROWS_AS(clock.wait_for_earlier(), ArgumentError);
}

TEST_CASE("clocks agree with two nodes in words, and double with all times") {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    ReplicaClock clock({2, 1}, {3, 5}), twice({4, 2}, {6, 10});
    Reference reference;
    drive(seed, 1, clock);
    drive(seed, 1, reference);
    drive(seed, 2, twice);
    CHECK(clock.latest_s() == std::max(reference.a, reference.b));
    CHECK(twice.latest_s() == 2 * clock.latest_s());
  }
}

TEST_CASE("clocks refuse seconds that are none") {
  CHECK_THROWS_AS(ReplicaClock({}, {}), ArgumentError);
  CHECK_THROWS_AS(ReplicaClock({1, 2}, {1}), ArgumentError);
  CHECK_THROWS_AS(ReplicaClock({-1}, {}), ArgumentError);
  CHECK_THROWS_AS(ReplicaClock({1}, {}).step(true), ArgumentError);
}
