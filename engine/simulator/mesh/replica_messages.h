#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/index.h"
#include "cluster/collectives.h"
#include "simulator/mesh/unit_profile.h"
#include "simulator/problem.h"

namespace trinity {

/// Times of messages about weights that all replicas hold, and about experts.
struct MessageTime {
  double others_ns = 0, experts_ns = 0;
  friend MessageTime operator+(MessageTime a, MessageTime b) {
    return {a.others_ns + b.others_ns, a.experts_ns + b.experts_ns};
  }
};

/// The groups in which replicas of one mesh reduce gradients and gather weights. Immutable.
class ReplicaMessages {
 public:
  ReplicaMessages(const Problem& problem, const Mesh& mesh, CollectiveGroups& groups);

  /// True if messages of both kinds occupy a queue together on the first device of a stage.
  bool serial(int32_t stage) const { return stages_[at(stage)].serial; }
  /// Minimum time of all messages of a kind. bytes: of all of them; most: of one of them, by kind.
  MessageTime time(int32_t stage, CollectiveKind kind, CollectiveAlgorithm algorithm, const SpreadBytes& bytes,
                   const SpreadBytes& most) const;
  /// Minimum time from the first start of messages to the last end.
  double span(int32_t stage, const MessageTime& time) const {
    return serial(stage) ? time.others_ns + time.experts_ns : std::max(time.others_ns, time.experts_ns);
  }

 private:
  /// Alternatives: without the parts of the sequence, and with them.
  using Groups = std::vector<CollectiveGroup>;
  struct Stage {
    Groups others, experts;
    bool serial = true;
  };

  static double time(const Groups& groups, CollectiveKind kind, CollectiveAlgorithm algorithm, int64_t bytes,
                     int64_t most);

  std::vector<Stage> stages_;
};

}  // namespace trinity
