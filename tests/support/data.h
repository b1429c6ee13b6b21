/// Published data that lie beside the repository, where they are there.
#pragma once

#include <doctest/doctest.h>

#include <filesystem>
#include <string>

namespace trinity::test {

inline const std::string kShared = std::string(TRINITY_SOURCE_DIR) + "/../shared/data";

/// Whether a file or folder is not there, which is told: a test then does without it.
inline bool lacks(const std::string& path) {
  if (std::filesystem::exists(path)) return false;
  MESSAGE("skipped: no ", path);
  return true;
}

}  // namespace trinity::test
