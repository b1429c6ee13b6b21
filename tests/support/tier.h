// Amount of testing. For a commit, invariants use a tenth of their random cases, and some tests are
// left to `scripts/bootstrap test all` or `test touched`.
#pragma once

#include <doctest/doctest.h>
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <string_view>

#include "support/tier.h"

namespace trinity::test {

/// True if TRINITY_TIER, which tests/run sets, asks for a commit's tests only.
inline bool commit_tier() {
  const char* tier = std::getenv("TRINITY_TIER");
  return tier != nullptr && std::string_view(tier) == "commit";
}

/// Number of random cases of an invariant: n, or a tenth of them for a commit.
inline uint64_t draws(uint64_t n) {
  return commit_tier() ? std::max(uint64_t{1}, n / 10) : n;
}

/// Minimum number of cases of a type that an invariant must have generated, if it is n of all
/// cases. A tenth of the cases may lack rare types.
inline int least(int n) { return commit_tier() ? n / 30 : n; }

/// The random seed of invariants: TRINITY_SEED, which tests/run sets, or the date.
inline uint64_t law_seed() {
  static const uint64_t seed = [] {
    if (const char* given = std::getenv("TRINITY_SEED")) return std::strtoull(given, nullptr, 10);
    const std::time_t now = std::time(nullptr);
    std::tm day{};
    gmtime_r(&now, &day);
    return std::strtoull(fmt::format("{:%Y%m%d}", day).c_str(), nullptr, 10);
  }();
  return seed;
}

/// TEST_CASE("..." * test::all_tier), as the last decorator, is skipped for a commit.
struct AllTier {
  void fill(doctest::detail::TestCase& test) const {
    if (!commit_tier()) return;
    test.m_skip = true;
    test.m_description = nullptr;  // not among tests that lack something (main.cpp)
  }
};
inline constexpr AllTier all_tier;

}  // namespace trinity::test
