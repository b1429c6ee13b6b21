// The thread pool where threads interact: loops inside loops, loops of several threads, failures
// and stops in the midst of work. Meant for the thread sanitizer as much as for its own checks.
#include <doctest/doctest.h>

#include <atomic>
#include <numeric>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/stop.h"
#include "base/thread_pool.h"

using namespace trinity;

namespace {

/// Squares of 0 to count - 1 by way of a pool.
int64_t sum_of_squares(ThreadPool& pool, int count) {
  std::vector<int64_t> squares(static_cast<size_t>(count));
  pool.parallel_for(count, [&](int i, int) { squares[i] = int64_t{i} * i; });
  return std::accumulate(squares.begin(), squares.end(), int64_t{0});
}

int64_t closed_form(int64_t count) { return (count - 1) * count * (2 * count - 1) / 6; }

}  // namespace

TEST_CASE("a loop inside a loop runs in the item's thread, also through another pool") {
  ThreadPool pool(4), other(3);
  std::vector<int64_t> sums(200);
  pool.parallel_for(200, [&](int i, int thread) {
    const auto self = std::this_thread::get_id();
    int items = 0;
    pool.parallel_for(i, [&](int, int inner) {
      CHECK(inner == thread);
      CHECK(std::this_thread::get_id() == self);
      ++items;
    });
    CHECK(items == i);
    // Through the other pool's threads and back: those wait for their turn.
    if (i % 50 == 0) sums[i] = sum_of_squares(other, i);
  });
  for (int i = 0; i < 200; i += 50) CHECK(sums[i] == closed_form(i));
  CHECK_THROWS_WITH(pool.parallel_for(8,
                                      [&](int i, int) {
                                        pool.parallel_for(5, [i](int j, int) {
                                          if (i >= 2 && j >= 3)
                                            throw Error(fmt::format("item {} of {}", j, i));
                                        });
                                      }),
                    "item 3 of 2");
}

TEST_CASE("two threads run thousands of tiny loops at the same time") {
  ThreadPool pool(3);
  std::atomic<int> wrong{0};
  const auto many = [&](int first) {
    for (int i = 0; i < 3000; ++i) {
      const int count = (first + i) % 7;
      if (sum_of_squares(pool, count) != closed_form(count)) ++wrong;
    }
  };
  std::thread second([&] { many(3); });
  many(0);
  second.join();
  CHECK(wrong == 0);
}

TEST_CASE("failures of two threads' loops reach the thread that began them") {
  ThreadPool pool(4);
  std::atomic<int> wrong{0};
  const auto failing = [&](const std::string& name) {
    for (int i = 0; i < 500; ++i) {
      try {
        pool.parallel_for(20, [&](int item, int) {
          if (item >= i % 20) throw Error(fmt::format("{} {}", name, item));
        });
        ++wrong;
      } catch (const Error& error) {
        if (error.what() != fmt::format("{} {}", name, i % 20)) ++wrong;
      }
    }
  };
  std::thread second([&] { failing("second"); });
  failing("first");
  second.join();
  CHECK(wrong == 0);
  CHECK(sum_of_squares(pool, 100) == closed_form(100));
}

TEST_CASE("a stop in the midst of tasks ends the loop, and the pool works on") {
  ThreadPool pool(4);
  for (int round = 0; round < 200; ++round) {
    std::atomic<int> begun{0};
    const auto body = [&](int item, int) {
      while (item > round && !stop_flag()) std::this_thread::yield();
      poll_stop();
      ++begun;
      if (item == round) stop_flag() = true;
    };
    CHECK_THROWS_AS(pool.parallel_for(1000, body), Interrupted);
    CHECK(begun <= round + 1);
    CHECK(begun >= round + 1 - 3);  // items of the other threads may have been overtaken
    stop_flag() = false;
    CHECK(sum_of_squares(pool, 10) == closed_form(10));
  }
}

TEST_CASE("pools come and go in several threads") {
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&wrong, t] {
      for (int i = 0; i < 50; ++i) {
        std::atomic<int> started{0};
        ThreadPool pool(1 + (t + i) % 4, [&] { ++started; });
        if (started != pool.threads() - 1) ++wrong;
        if (sum_of_squares(pool, i) != closed_form(i)) ++wrong;
      }
    });
  for (auto& thread : threads) thread.join();
  CHECK(wrong == 0);
}
