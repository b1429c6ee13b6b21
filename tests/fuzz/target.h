#pragma once

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace trinity::fuzz {

/// A fault that a target found and that neither crashed nor hung.
class Finding : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A target in a process of its own, ready to run.
struct Session {
  /// Reads one input. trinity::Error is an answer; every other exception is a finding.
  std::function<void(std::string_view)> run;
  /// Inputs that the kept corpus cannot hold because this program must have written them.
  std::vector<std::string> seeds;
};

/// Code fuzzed under one name: one parser, or several that share one.
struct Target {
  const char* name;  ///< also the folder of its corpus, tests/fuzz/corpus/NAME
  const char* about;
  /// Begins a session; `folder` is empty and the session's own, and the working directory.
  std::function<Session(const std::string& folder)> begin;
};

std::vector<Target> format_targets();  ///< of the importers in engine/formats
std::vector<Target> lua_targets();     ///< of what only scripts can read: tests/fuzz/lua

std::vector<Target> all_targets();
/// The target of a name; ArgumentError where there is none.
Target find_target(const std::string& name);
/// Runs one input; "" or why it is a finding. Ends the process by SIGABRT where the input takes
/// more than 10 s of CPU time or 2 minutes.
std::string run(const Session& session, std::string_view input);

std::string read_text(const std::string& path);
void write_text(const std::string& path, std::string_view text);

/// Called for lines of Lua that a campaign reaches; nullptr outside of campaigns.
inline void (*reach)(uintptr_t place) = nullptr;

/// Changes a protobuf message (a field left out, repeated, moved, another number or text, one of
/// `other`), with the lengths around it put right. Returns the input where it is no such message.
std::string mutate_protobuf(std::string_view message, std::string_view other, uint64_t seed);

}  // namespace trinity::fuzz
