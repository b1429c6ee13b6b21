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

/// Time of an event that never has to be waited for.
inline constexpr double kNever = -std::numeric_limits<double>::infinity();

/// Minimum time in nanoseconds that one device of a stage takes for one unit in one pass. Units are
/// the operators before the layers, each layer, and the operators after the layers. A device
/// follows its sequence of operators (pipeline_schedule()) and collectives occupy no device, so all
/// values are longest paths. The next unit is the following one in the pass: the one after in
/// forward, the one before in backward.
struct UnitPass {
  double alone = 0;    ///< from the start of the first operator to the end of the last
  double to_next = 0;  ///< from there to the start of the next unit's first on the same device
  /// The same from the arrival of the last input from the previous unit; kNever if there is none.
  double alone_after = kNever, to_next_after = kNever;
  /// From the first start, and from that arrival, until the next unit's first input is ready;
  /// kNever if it reads nothing.
  double hands_on = kNever, hands_on_after = kNever;
  int64_t least_bytes = 0;  ///< smallest tensor that the next unit reads

  bool operator==(const UnitPass&) const = default;
};

/// Bytes on one device, and the part of them in weights sharded over `expert`.
struct SpreadBytes {
  int64_t all = 0, spread = 0;
  bool operator==(const SpreadBytes&) const = default;
};

/// Minimum time and memory of a unit on one device.
struct UnitProfile {
  UnitPass forward, backward;  ///< backward excludes delayed weight-gradient tasks
  /// backward of the first unit of a virtual stage: what reduces its input may have run on the stage that sends it.
  UnitPass first_backward;
  double weight_ns = 0;        ///< weight-gradient tasks that a zero-bubble schedule delays
  double update_ns = 0;        ///< updates of full weights
  double spread_update_ns = 0;  ///< updates of weights sharded over `expert`
  double host_update_ns = 0, spread_host_update_ns = 0;  ///< both if the host computes them (strategy/offload.h)
  /// Compute time alone, and its part that does not shrink with the operator (launches). Backward
  /// includes weight-gradient tasks.
  double forward_work_ns = 0, backward_work_ns = 0, forward_launch_ns = 0, backward_launch_ns = 0;
  /// Time in which the host dispatches these kernels (strategy/dispatch.h): no device is faster.
  double forward_dispatch_ns = 0, backward_dispatch_ns = 0;
  SpreadBytes weights, optimizer;  ///< resident
  SpreadBytes gradients;           ///< accumulated over micro-batches
  SpreadBytes trained;             ///< trained weights
  /// The largest of one operator, by kind: `all` excludes `spread`.
  SpreadBytes largest_gradient, largest_trained;
  int64_t kept_bytes = 0;          ///< written in forward and read in backward: per micro-batch
  int64_t delayed_bytes = 0;       ///< inputs of delayed weight-gradient tasks: per micro-batch

  bool operator==(const UnitProfile&) const = default;
};

/// Profiles of a network's units. They depend on the part of a strategy that decides what one
/// device does for one micro-batch: `tensor`, `context` and `expert` of the mesh, recomputation,
/// sequence parallelism, overlap_tp_grad_allreduce, and whether the schedule delays weight-gradient tasks. The first
/// device of a group of context x tensor devices represents its stage: the time of any device is a lower bound on a
/// step. Immutable after construction.
class UnitProfiler {
 public:
  /// The part of a strategy that decides its units.
  static Parallelism part_of(const Parallelism& given);

  /// Lowers the graph for one stage of one replica. part: from part_of(). Throws the errors of
  /// lower().
  UnitProfiler(const Parallelism& part, const Graph& graph, const Cluster& cluster);

  const Parallelism& of() const { return of_; }
  /// Profiles of the unit before the layers, each layer, and the unit after the layers, on a
  /// cluster device. groups: from groups_of().
  std::vector<UnitProfile> run(const Device& device, std::span<const CollectiveGroup> groups) const;
  /// Groups for the costs of collectives. devices: of a replica's stage, context x tensor,
  /// tensor innermost; ranks: the first of these in each replica that experts are sharded over,
  /// with which it exchanges tokens.
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
    int32_t collective = -1;       ///< index in messages_
    bool again = false;   ///< recomputed: needs no input from another stage
    bool before = false;  ///< reduces input from the next unit, on whose stage it may run
    bool spread = false;  ///< of weights sharded over `expert`
    double link_share = 0;  ///< of the first update of a weight: link_share()
    std::vector<int32_t> reads;    ///< producing tasks of its inputs
    std::vector<int64_t> bytes;    ///< of each of these inputs
  };
  static constexpr size_t kRanks = std::numeric_limits<size_t>::max();
  struct Message {
    CollectiveKind kind = CollectiveKind::all_reduce;
    CollectiveAlgorithm algorithm = CollectiveAlgorithm::automatic;
    int64_t bytes = 0;
    size_t group = 0;  ///< index in parts_; kRanks: the ranks that exchange tokens
    TokenRouting routing;
  };
  class Follower;

  void add_tasks(const LoweredGraph& replica, const Graph& original, std::span<const int32_t> spread, int32_t width);
  int32_t add_message(const LoweredGraph& replica, int32_t collective, int32_t width);
  int32_t add_exchange(const Graph& graph, const Operator& op);
  void find_costs(const Graph& graph, const Cluster& cluster);
  void count_bytes(const LoweredGraph& replica, std::span<const int32_t> spread);

  Parallelism of_;
  int32_t units_ = 0;
  std::vector<Task> tasks_;
  std::vector<Message> messages_;
  std::vector<std::vector<int32_t>> parts_;  // per group: places of its members in the stage
  std::vector<UnitProfile> bytes_;           // only the byte fields
  /// Per task, by type and speed of the device; 0 for collectives.
  struct Costs {
    std::vector<double> all_ns, launch_ns, dispatch_ns, waiting_ns, host_ns;  // per task
  };
  std::map<std::pair<int32_t, double>, Costs> costs_;
};

}  // namespace trinity
