#pragma once

#include <doctest/doctest.h>

#include <filesystem>
#include <string>

namespace trinity::test {

/// The path of the data folder next to the repository, if it exists.
inline std::string shared_data(const std::string& path = "") {
  return TRINITY_SOURCE_DIR "/../shared/data/" + path;
}

/// TEST_CASE("..." * test::shared) reads data of ../shared. Without it the test is skipped by name;
/// `scripts/bootstrap test shared` runs these tests only.
struct Shared {
  void fill(doctest::detail::TestCase& test) const {
    test.m_test_suite = "shared";
    test.m_description = "../shared";
    test.m_skip = !std::filesystem::exists(shared_data());
  }
};
inline constexpr Shared shared;

/// A small instance of a published format, written for the tests.
inline std::string data(const std::string& path) {
  return std::string(TRINITY_SOURCE_DIR) + "/tests/data/" + path;
}

}  // namespace trinity::test
