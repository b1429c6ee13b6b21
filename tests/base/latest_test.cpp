#include "base/thread_pool.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <stdexcept>
#include <thread>

namespace trinity {
namespace {

TEST_CASE("values of two keys are made concurrently, the value of one key once") {
  Latest<int, const int> latest(4);
  std::promise<void> first_makes, second_made;
  std::atomic<int> made = 0;
  const auto ask = [&](int key, auto wait) {
    return *latest.find(key, [&] {
      wait();
      return std::make_shared<const int>(10 * key + made++);
    });
  };
  int same[2] = {-1, -2};
  bool together = false;
  std::thread first([&] {
    same[0] = ask(1, [&] {
      first_makes.set_value();
      together = second_made.get_future().wait_for(std::chrono::seconds(20)) ==
                 std::future_status::ready;
    });
  });
  first_makes.get_future().wait();
  std::thread waits([&] { same[1] = ask(1, [] {}); });
  CHECK(ask(2, [] {}) == 20);
  second_made.set_value();
  first.join();
  waits.join();
  CHECK(together);
  CHECK(same[0] == 11);
  CHECK(same[1] == 11);
}

TEST_CASE("the latest values stay, and what fails is made again") {
  Latest<int, const int> latest(10, [](int value) -> int64_t { return value; });
  int made = 0;
  const auto ask = [&](int key) {
    latest.find(key, [&] {
      ++made;
      return std::make_shared<const int>(key);
    });
    return made;
  };
  CHECK(ask(4) == 1);
  CHECK(ask(5) == 2);
  CHECK(ask(4) == 2);
  CHECK(ask(3) == 3);  // 3, 4 and 5 are more than 10: 5 goes
  CHECK(ask(4) == 3);
  CHECK(ask(5) == 4);
  CHECK(ask(20) == 5);  // alone
  CHECK(ask(20) == 5);
  const auto fail = []() -> std::shared_ptr<const int> { throw std::runtime_error("no"); };
  CHECK_THROWS_AS(latest.find(7, fail), std::runtime_error);
  CHECK(ask(7) == 6);
}

}  // namespace
}  // namespace trinity
