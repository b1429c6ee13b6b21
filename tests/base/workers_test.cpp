#include "base/workers.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <vector>

#include "base/stop.h"
#include "base/thread_pool.h"

namespace trinity {
namespace {

size_t open_files() {
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    static_cast<void>(entry);
    ++count;
  }
  return count;
}

/// Runs a job and returns all replies by item.
std::map<int, WorkerReply> replies(int items, int workers,
                                   const std::function<std::string(int)>& work) {
  std::map<int, WorkerReply> all;
  run_workers({items, workers, work, [&](WorkerReply reply) {
                 CHECK(all.count(reply.item) == 0);
                 all[reply.item] = std::move(reply);
                 return items;
               }});
  return all;
}

}  // namespace

TEST_CASE("workers run every item once and return bytes and output") {
  const auto before = open_files();
  for (const int workers : {1, 2, 7}) {
    const auto all = replies(300, workers, [](int item) {
      if (!in_worker()) return std::string("not in a worker");
      fmt::print("item {}\n", item);
      std::string payload(static_cast<size_t>(item) * 1000, 'x');
      payload += '\0';
      return payload;
    });
    REQUIRE(all.size() == 300);
    for (const auto& [item, reply] : all) {
      CHECK(reply.payload.size() == static_cast<size_t>(item) * 1000 + 1);
      CHECK(reply.output.text() == fmt::format("item {}\n", item));
      CHECK(reply.death.empty());
    }
  }
  CHECK(replies(0, 4, [](int) { return std::string(); }).empty());
  CHECK(!in_worker());
  CHECK(open_files() == before);
  CHECK(waitpid(-1, nullptr, WNOHANG) == -1);  // nobody left to wait for
}

TEST_CASE("a worker that dies is a reply, and another takes its place") {
  const auto before = open_files();
  auto all = replies(12, 2, [](int item) {
    fmt::print("begin {}\n", item);
    if (item % 3 == 0) {
      std::fflush(stdout);
      raise(SIGKILL);
    }
    if (item == 4) _exit(3);
    if (item == 5) throw Error("a worker's own failure (expected here)");
    return fmt::format("{}", item);
  });
  REQUIRE(all.size() == 12);
  for (const auto& [item, reply] : all) {
    const std::string death = item % 3 == 0 ? "signal 9 (Killed)"
                              : item == 4   ? "exit status 3"
                              : item == 5   ? "exit status 70"
                                            : "";
    CHECK(reply.death == death);
    CHECK(reply.payload == (death.empty() ? fmt::format("{}", item) : ""));
    if (item != 4) CHECK(reply.output.text() == fmt::format("begin {}\n", item));
  }
  all.clear();  // what was printed is in a file as long as somebody wants it
  CHECK(open_files() == before);
}

TEST_CASE("items that are no longer wanted do not run on") {
  std::vector<int> ended;
  run_workers({1000, 4,
               [](int item) {
                 if (item > 10) sleep(60);
                 return std::string();
               },
               [&](WorkerReply reply) {
                 ended.push_back(reply.item);
                 return reply.item == 10 ? 11 : 1000;
               }});
  CHECK(ended.size() == 11);
}

TEST_CASE("stopping and failing ends the workers") {
  const auto before = open_files();
  const auto sleeping = [](int) {
    sleep(60);
    return std::string();
  };
  stop_flag() = true;
  CHECK_THROWS_AS(replies(4, 2, sleeping), Interrupted);
  stop_flag() = false;
  const auto failing = [](WorkerReply) -> int { throw Error("the receiver fails"); };
  CHECK_THROWS_WITH(run_workers({4, 2, [](int) { return std::string(); }, failing}),
                    "the receiver fails");
  CHECK(open_files() == before);
  CHECK(waitpid(-1, nullptr, WNOHANG) == -1);
}

TEST_CASE("thread pools survive a fork") {
  auto pool = std::make_unique<ThreadPool>(4);
  std::vector<int> squares(100);
  const auto square = [&](int i, int) { squares[i] = i * i; };
  pool->parallel_for(100, square);
  const auto all = replies(4, 2, [&](int item) {
    squares.assign(100, 0);
    std::string text;
    ThreadPool fresh(3);
    for (auto* one : {pool.get(), &fresh}) {
      one->parallel_for(100, square);
      for (const int value : squares) text += fmt::format("{} ", value);
      try {
        one->parallel_for(50, [](int i, int) {
          if (i >= 13) throw Error(fmt::format("item {}", i));
        });
      } catch (const Error& error) {
        text += error.what();
      }
    }
    if (item == 3) pool.reset();  // the last one: nobody asks for it again
    return text;
  });
  std::string expected;
  for (int i = 0; i < 100; ++i) expected += fmt::format("{} ", i * i);
  expected += "item 13";
  REQUIRE(all.size() == 4);
  for (const auto& [item, reply] : all) {
    CHECK(reply.death.empty());
    CHECK(reply.payload == expected + expected);
  }
  pool->parallel_for(100, square);
  CHECK(squares[99] == 99 * 99);
}

}  // namespace trinity
