#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <vector>

#include "cluster/cluster.h"
#include "cluster/collectives.h"
#include "graph/graph.h"
#include "strategy/lower.h"

namespace trinity {

/// The time of what never has to be waited for.
inline constexpr double kNever = -std::numeric_limits<double>::infinity();

/// How long one device of a stage takes at least for one unit (what stands before the layers, a
/// layer, what stands behind them) in one pass, in nanoseconds. A device keeps to its sequence of
/// operators (pipeline_schedule()) and collectives occupy none, so all are longest paths. The next
/// unit is the one whose turn follows in the pass: the one behind forwards, the one before
/// backwards.
struct UnitPass {
  double alone = 0;    ///< from the start of the first operator to the end of the last
  double to_next = 0;  ///< from there to the start of the next unit's first on the same device
  /// The same from the moment when the last comes that it reads of the unit before; kNever where it
  /// reads nothing of that.
  double alone_after = kNever, to_next_after = kNever;
  /// From the first start, and from that moment, until the first is there that the next unit reads;
  /// kNever where it reads nothing.
  double hands_on = kNever, hands_on_after = kNever;
  int64_t least_bytes = 0;  ///< of the tensors that the next unit reads: the smallest

  bool operator==(const UnitPass&) const = default;
};

/// Bytes on one device, and of these those of weights that are spread over ranks of `expert`.
struct SpreadBytes {
  int64_t all = 0, spread = 0;
  bool operator==(const SpreadBytes&) const = default;
};

/// What a unit takes on one device at least.
struct UnitProfile {
  UnitPass forward, backward;  ///< backward: without weight parts where they are delayed
  double weight_ns = 0;        ///< weight parts that a zero-bubble schedule delays
  double update_ns = 0;        ///< updates of whole weights, and of these
  double spread_update_ns = 0;  ///< those of weights that are spread over ranks of `expert`
  /// Computing alone, and of that what does not shrink with an operator: launches. Backwards with
  /// weight parts.
  double forward_work_ns = 0, backward_work_ns = 0, forward_launch_ns = 0, backward_launch_ns = 0;
  /// What the host needs to dispatch these kernels (strategy/dispatch.h): no device is faster.
  double forward_dispatch_ns = 0, backward_dispatch_ns = 0;
  SpreadBytes weights, optimizer;  ///< resident
  SpreadBytes gradients;           ///< what sums up over micro-batches
  SpreadBytes trained;             ///< weights that are trained
  int64_t kept_bytes = 0;          ///< written forwards, read backwards: of one micro-batch
  int64_t delayed_bytes = 0;       ///< what weight parts that are delayed read: of one micro-batch

  bool operator==(const UnitProfile&) const = default;
};

/// The units of a network under what of a strategy decides what one device does for one
/// micro-batch: `tensor`, `context` and `expert` of the mesh, recomputation, sequence parallelism,
/// and whether the schedule delays weight parts. The first device of a group of context x tensor
/// stands for its stage: what any device takes bounds a step from below.
class UnitProfiler {
 public:
  /// What of a strategy decides its units.
  static Parallelism part_of(const Parallelism& given);

  /// Lowers the graph for one stage of one replica. part: from part_of(). Throws what lower() throws.
  UnitProfiler(const Parallelism& part, const Graph& graph, const Cluster& cluster);

  const Parallelism& of() const { return of_; }
  /// What stands before the layers, the layers, what stands behind them, on a device of the
  /// cluster. groups: from groups_of().
  std::vector<UnitProfile> run(const Device& device, std::span<const CollectiveGroup> groups) const;
  /// What collectives go by. devices: those of a replica's stage, context x tensor, tensor innermost;
  /// ranks: the first of these in each replica that experts are spread over, with which it exchanges
  /// tokens.
  std::vector<CollectiveGroup> groups_of(std::span<const int32_t> devices,
                                         std::span<const int32_t> ranks,
                                         CollectiveGroups& groups) const;

 private:
  enum class Pass : uint8_t { forward, backward, weight, update };
  /// An operator of the device.
  struct Task {
    int32_t op = 0;
    int32_t unit = 0;
    Pass pass = Pass::forward;
    int32_t collective = -1;       ///< among messages_
    bool again = false;   ///< computed again: it need not wait for what comes from another stage
    bool before = false;  ///< sums up what comes from the unit behind, on whose stage it may run
    bool spread = false;  ///< of weights that are spread over ranks of `expert`
    std::vector<int32_t> reads;    ///< tasks that write what it reads
    std::vector<int64_t> bytes;    ///< of each of these tensors
  };
  static constexpr size_t kRanks = std::numeric_limits<size_t>::max();
  struct Message {
    CollectiveKind kind = CollectiveKind::all_reduce;
    CollectiveAlgorithm algorithm = CollectiveAlgorithm::automatic;
    int64_t bytes = 0;
    size_t group = 0;  ///< among parts_; kRanks: those that exchange tokens
  };
  class Follower;

  void add_tasks(const LoweredReplica& replica, std::span<const int32_t> spread, int32_t width);
  int32_t add_message(const LoweredReplica& replica, int32_t collective, int32_t width);
  int32_t add_exchange(const Graph& graph, const Operator& op);
  void find_costs(const Graph& graph, const Cluster& cluster);
  void count_bytes(const LoweredReplica& replica, std::span<const int32_t> spread);

  Parallelism of_;
  int32_t units_ = 0;
  std::vector<Task> tasks_;
  std::vector<Message> messages_;
  std::vector<std::vector<int32_t>> parts_;  // of every group: places of its members in the stage
  std::vector<UnitProfile> bytes_;           // bytes alone
  /// Of every task, by type and speed of the device; collectives 0.
  struct Costs {
    std::vector<double> all_ns, launch_ns, dispatch_ns;
  };
  std::map<std::pair<int32_t, double>, Costs> costs_;
};

}  // namespace trinity
