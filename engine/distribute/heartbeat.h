#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

// Detection of ranks that die, hang or leave. Every rank writes a heartbeat twice per second into
// the job's store; a judge (rank 0, else rank 1) reads all of them.

namespace trinity {

/// Set of ranks of a collective.
enum class Scope : uint8_t {
  world,    ///< all
  node,     ///< the ranks of one node
  across,   ///< the ranks with equal local rank, one per node
  meeting,  ///< all, through the store
};
inline constexpr int kScopes = 4;

/// Throws ArgumentError that names the accepted values ("world", "node", "across").
Scope parse_scope(std::string_view name);
const char* scope_name(Scope scope);

/// State that a rank publishes.
struct Heartbeat {
  int64_t beat = 0;  ///< increases with every heartbeat
  int node = 0, local_rank = 0;
  std::string host = "-";                   ///< name of the machine
  bool has_left = false;                    ///< it closed the job
  std::array<int64_t, kScopes> begun = {};  ///< number of collectives started, by scope
  /// The collective that its script waits for: `number` in `scope`; 0: none.
  int64_t number = 0;
  Scope scope = Scope::world;
  double waiting_s = 0;
  std::string what;    ///< "all_reduce"
  std::string broken;  ///< low-level failure, spaces replaced; empty: none

  std::string text() const;
  /// Throws Error for text that was not written by text().
  static Heartbeat parse(const std::string& text);
};

/// A rank as seen by its judge.
struct Seen {
  Heartbeat heartbeat;
  double silent_s = 0;  ///< time since its heartbeat last changed
};

struct Timeouts {
  double silent_s = 10;   ///< a rank without a heartbeat for this long is dead
  double waiting_s = 20;  ///< a rank that others wait for this long hangs
};

/// "rank 3", in a job of several nodes "rank 3 (node 1)", on several machines "rank 3 (node 1,
/// host)". The node of a rank without a heartbeat is unknown.
std::string name_rank(const std::vector<Seen>& ranks, size_t rank);

/// The message that ends the job, naming the rank at fault; nullopt if all is well.
std::optional<std::string> judge(const std::vector<Seen>& ranks, const Timeouts& timeouts);

}  // namespace trinity
