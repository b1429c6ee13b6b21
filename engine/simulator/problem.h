#pragma once

#include <memory>
#include <span>
#include <vector>

#include "cluster/cluster.h"
#include "graph/graph.h"

namespace trinity {

/// Which published rules a simulation follows.
struct SimulationRules {
  QueueModel queue = QueueModel::sender;
  int64_t device_dead_ns = 0;    ///< a device's pause after an operator
  bool dead_after_free = false;  ///< whether it pauses after operators that cost nothing too
  int64_t link_dead_ns = 0;      ///< a send queue's pause after a transfer
  /// One transfer of a tensor serves its readers on all other devices (Placeto) instead of one
  /// transfer per destination device.
  bool broadcast = false;
  /// The step ends with the last event, pauses included, instead of the last operator's end.
  bool last_event = false;
  /// Peak memory counts operator outputs only, until one microsecond before the last reader ends.
  bool outputs_only_memory = false;

  /// The rules of a cluster: its queue model, everything else by default.
  static SimulationRules standard(const Cluster& cluster);
  /// The published Placeto / Trinity simulator (papers.md 1.6): pauses of 5.7 us and 25 us.
  static SimulationRules compat();
  bool operator==(const SimulationRules&) const = default;
};

/// A graph bound to a cluster: every cost in whole nanoseconds, flat arrays in the order in which
/// the simulator walks them. Immutable, shared by all threads.
class Problem {
 public:
  /// An edge as the simulator sees it. `output` numbers the tensor among its producer's outputs.
  struct Reader {
    int32_t op;
    int32_t output;
  };

  /// Throws LimitError when times could exceed the simulator's 64-bit keys.
  Problem(std::shared_ptr<const Graph> graph, std::shared_ptr<const Cluster> cluster,
          SimulationRules rules);

  const Graph& graph() const { return *graph_; }
  const Cluster& cluster() const { return *cluster_; }
  const SimulationRules& rules() const { return rules_; }
  int32_t operators() const { return graph_->operator_count(); }
  int32_t devices() const { return cluster_->device_count(); }

  int64_t cost_ns(int32_t device, int32_t op) const {
    return cost_ns_[static_cast<size_t>(device) * static_cast<size_t>(operators()) +
                    static_cast<size_t>(op)];
  }
  /// Latency plus bytes over bandwidth, rounded once.
  int64_t wire_ns(int32_t from, int32_t to, int64_t bytes) const;

  /// Readers of all outputs of `op`, ascending by operator; edge numbers start at first_edge(op).
  std::span<const Reader> readers(int32_t op) const {
    const auto first = static_cast<size_t>(first_edge(op));
    return {readers_.data() + first, static_cast<size_t>(first_edge(op + 1)) - first};
  }
  int32_t first_edge(int32_t op) const { return reader_offsets_[static_cast<size_t>(op)]; }
  int32_t edges() const { return static_cast<int32_t>(readers_.size()); }
  /// Number of edges into `op`.
  int32_t missing(int32_t op) const { return missing_[static_cast<size_t>(op)]; }
  /// Bytes of output number `output` of `op`.
  int64_t output_bytes(int32_t op, int32_t output) const {
    return output_bytes_[static_cast<size_t>(first_output(op) + output)];
  }
  int32_t first_output(int32_t op) const { return output_offsets_[static_cast<size_t>(op)]; }
  int32_t max_outputs() const { return max_outputs_; }
  /// Weights and optimiser state resident on the operator's device.
  int64_t fixed_bytes(int32_t op) const { return fixed_bytes_[static_cast<size_t>(op)]; }
  /// Bits that an operator number takes in a packed key.
  int key_bits() const { return key_bits_; }

  /// Throws LimitError when no placement can fit: the fixed bytes exceed all devices together, or
  /// one unit's fixed bytes, or one operator's inputs and outputs, exceed every device.
  void check_memory() const;

  /// No placement's step can be shorter: the larger of the longest path with every operator on its
  /// fastest device and free wires, and the least total work divided by the number of devices.
  int64_t lower_bound_ns() const { return lower_bound_ns_; }

 private:
  void bind_costs();
  void bind_edges();
  void bind_wires();
  void check_range() const;
  int64_t compute_lower_bound() const;

  std::shared_ptr<const Graph> graph_;
  std::shared_ptr<const Cluster> cluster_;
  SimulationRules rules_;
  std::vector<int64_t> cost_ns_, output_bytes_, fixed_bytes_, latency_ns_;
  std::vector<double> ns_per_byte_;
  std::vector<Reader> readers_;
  std::vector<int32_t> reader_offsets_, output_offsets_, missing_;
  int32_t max_outputs_ = 0;
  int key_bits_ = 0;
  int64_t lower_bound_ns_ = 0;
};

}  // namespace trinity
