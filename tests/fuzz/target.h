#pragma once

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace trinity::fuzz {

/// What a target found wrong that neither crashed nor hung.
class Finding : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// How inputs are changed: as any bytes, as text of tokens and numbers, as a protobuf message.
enum class Grammar { bytes, text, protobuf };

/// A target in a process of its own, ready to run.
struct Session {
  /// Reads one input. trinity::Error is an answer; every other exception is a finding.
  std::function<void(std::string_view)> run;
  /// Inputs that the kept corpus cannot hold because this program must have written them.
  std::vector<std::string> seeds;
};

/// What is fuzzed under one name: one parser, or several that share one.
struct Target {
  const char* name;  ///< also the folder of its corpus, tests/fuzz/corpus/NAME
  const char* about;
  Grammar grammar;
  /// Begins a session; `folder` is empty and the session's own. `number` counts sessions from 1.
  std::function<Session(const std::string& folder, uint64_t number)> begin;
};

std::vector<Target> format_targets();  ///< of the importers in engine/formats
std::vector<Target> lua_targets();     ///< of what only scripts can read: tests/fuzz/lua

}  // namespace trinity::fuzz
