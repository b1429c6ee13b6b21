#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

// How a job notices that a rank died, hangs or left. Every rank writes a heartbeat twice a second
// into the job's store; whoever judges (rank 0, else rank 1) reads all of them.

namespace trinity {

/// Which ranks take part in a collective.
enum class Scope : uint8_t {
  world,    ///< all
  node,     ///< those of one node
  across,   ///< those with the same local rank, one a node
  meeting,  ///< all, through the store
};
inline constexpr int kScopes = 4;

/// Throws ArgumentError naming the accepted words ("world", "node", "across").
Scope parse_scope(std::string_view name);
const char* scope_name(Scope scope);

/// What a rank says of itself.
struct Heartbeat {
  int64_t beat = 0;  ///< grows with every heartbeat
  int node = 0, local_rank = 0;
  std::string host = "-";                   ///< the machine's name
  bool has_left = false;                    ///< it closed the job
  std::array<int64_t, kScopes> begun = {};  ///< collectives begun, by scope
  /// What its script waits for: collective number `number` of `scope`; 0 when it waits for none.
  int64_t number = 0;
  Scope scope = Scope::world;
  double waiting_s = 0;
  std::string what;    ///< "all_reduce"
  std::string broken;  ///< what failed below, without spaces replaced; empty when nothing did

  std::string text() const;
  /// Throws Error for anything that text() does not write.
  static Heartbeat parse(const std::string& text);
};

/// A rank as its judge sees it.
struct Seen {
  Heartbeat heartbeat;
  double silent_s = 0;  ///< since its heartbeat last changed
};

struct Timeouts {
  double silent_s = 10;   ///< without a heartbeat a rank is dead
  double waiting_s = 20;  ///< a rank that others wait for this long hangs
};

/// "rank 3", in a job of several nodes "rank 3 (node 1)", on several machines "rank 3 (node 1,
/// host)". What has not heartbeatd yet is on a node that nobody knows.
std::string name_rank(const std::vector<Seen>& ranks, size_t rank);

/// The sentence that ends the job, naming the rank at fault; nullopt while all is well.
std::optional<std::string> judge(const std::vector<Seen>& ranks, const Timeouts& timeouts);

}  // namespace trinity
