#include "execute/team.h"

#include <doctest/doctest.h>

#include <atomic>
#include <set>
#include <thread>
#include <vector>

using namespace trinity;

TEST_CASE("a team runs every number on a thread of its own, the same in every run") {
  Team team;
  std::vector<std::thread::id> first(3), second(3);
  team.grow(2);
  team.run(2, [&](size_t i) { first[i] = std::this_thread::get_id(); });
  team.grow(3);
  team.run(3, [&](size_t i) { second[i] = std::this_thread::get_id(); });
  CHECK(first[0] == second[0]);
  CHECK(first[1] == second[1]);
  CHECK(std::set<std::thread::id>(second.begin(), second.end()).size() == 3);
  for (const auto& id : second) CHECK(id != std::this_thread::get_id());
  std::atomic<int> calls{0};
  for (int run = 0; run < 1000; ++run) team.run(run % 4, [&](size_t) { ++calls; });
  CHECK(calls == 1500);
}

TEST_CASE("a team looks about while it runs") {
  Team team;
  team.grow(1);
  std::atomic<bool> looked{false};
  team.run(
      1,
      [&](size_t) {
        while (!looked) std::this_thread::yield();
      },
      [&] { looked = true; });
  CHECK(looked);
}
