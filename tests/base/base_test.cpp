#include <doctest/doctest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <set>

#include "base/error.h"
#include "base/random.h"
#include "base/shared.h"
#include "base/thread_pool.h"
#include "base/units.h"

using namespace trinity;

TEST_CASE("suggestions name the nearest candidate, or none") {
  CHECK(suggestion("stepz", {"seed", "steps"}) == ", did you mean 'steps'?");
  CHECK(suggestion("quux", {"seed", "steps"}).empty());
  CHECK(suggestion("time", {"name", "time_s"}) == ", did you mean 'time_s'?");
  CHECK(suggestion("x", {}).empty());
  CHECK(suggestion("x", {"y"}).empty());
  CHECK(suggestion("budget", {"quiet", "seconds"}).empty());
  CHECK(suggestion("hidden_size", {"hidden_act"}).empty());
  CHECK(suggestion("evaluation_limits", {"evaluation_lim"}) == ", did you mean 'evaluation_lim'?");
}

TEST_CASE("checks say what failed, with both values") {
  const auto fails = [] { TRINITY_CHECK_EQ(1 + 1, 3); };
  CHECK_THROWS_WITH_AS(fails(), doctest::Contains("1 + 1 == 3 (2 against 3)"), Error);
}

TEST_CASE("random streams depend on seed, name and index alone") {
  RandomStream a(1, "x"), b(1, "x"), c(2, "x"), d(1, "y"), e(1, "x", 1);
  const auto first = a.next();
  CHECK(first == b.next());
  CHECK(std::set<uint64_t>{first, c.next(), d.next(), e.next()}.size() == 4);
  // Frozen: every saved result depends on these numbers.
  CHECK(RandomStream(1, "frozen").next() == 13577366815418162916u);
  double mean = 0;
  for (int i = 0; i < 10000; ++i) {
    const double u = a.uniform();
    CHECK(u >= 0);
    CHECK(u < 1);
    mean += u / 10000;
    CHECK(a.below(7) < 7);
  }
  CHECK(mean == doctest::Approx(0.5).epsilon(0.02));
}

TEST_CASE("a pool runs every item once and rethrows the first failing item's error") {
  for (const int threads : {1, 2, 7}) {
    ThreadPool pool(threads);
    CHECK(pool.threads() == threads);
    std::vector<std::atomic<int>> runs(100);
    pool.parallel_for(100, [&](int i, int thread) {
      CHECK(thread < threads);
      ++runs[i];
    });
    for (const auto& count : runs) CHECK(count == 1);
    CHECK_THROWS_WITH(pool.parallel_for(50,
                                        [](int i, int) {
                                          if (i >= 13) throw Error(fmt::format("item {}", i));
                                        }),
                      "item 13");
    pool.parallel_for(0, [](int, int) { FAIL("no items"); });
  }
}

TEST_CASE("a pool that the system refuses has run nothing on those threads that it got") {
  rlimit before{}, low{};
  REQUIRE(getrlimit(RLIMIT_AS, &before) == 0);
  long pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  low = {static_cast<rlim_t>(pages * sysconf(_SC_PAGESIZE)) + (rlim_t{256} << 20), before.rlim_max};
  std::atomic<int> started{0};
  REQUIRE(setrlimit(RLIMIT_AS, &low) == 0);
  std::string message;
  try {
    ThreadPool pool(4000, [&] { ++started; });
  } catch (const LimitError& error) {
    message = error.what();
  }
  setrlimit(RLIMIT_AS, &before);
  CHECK(message.find("4000 threads cannot be started, only ") == 0);
  CHECK(started == 0);
}

TEST_CASE("copies have a value together until one of them is written to") {
  SharedList<int64_t> shape = {8, 3, 4}, other = shape, empty;
  CHECK(&shape.get() == &other.get());
  other.edit()[0] = 9;
  CHECK(shape.get() == std::vector<int64_t>{8, 3, 4});
  CHECK(other.get() == std::vector<int64_t>{9, 3, 4});
  const auto* own = &other.get();
  other.push_back(5);
  CHECK(&other.get() == own);
  CHECK_FALSE(shape == other);
  CHECK(shape == SharedList<int64_t>{8, 3, 4});
  CHECK(empty.empty());
  CHECK(empty == SharedList<int64_t>(std::vector<int64_t>()));

  SharedMap<int64_t> one = {{"axis", 1}};
  const auto before = one;
  one["axis"] = 2;
  one.emplace("new", 3);
  one.emplace("axis", 4);
  CHECK(before.at("axis") == 1);
  CHECK_FALSE(before.contains("new"));
  CHECK(one.at("axis") == 2);
  one.erase("axis");
  CHECK(one.find("axis") == one.end());
  CHECK(one.size() == 1);
}

TEST_CASE("bytes are shown with three digits") {
  CHECK(format_bytes(0) == "0 B");
  CHECK(format_bytes(999) == "999 B");
  CHECK(format_bytes(12345) == "12.3 kB");
  CHECK(format_bytes(16000000000) == "16 GB");
}
