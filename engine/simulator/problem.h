#pragma once

#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "cluster/cluster.h"
#include "graph/graph.h"
#include "simulator/device_tables.h"
#include "strategy/cost.h"

namespace trinity {

/// How device memory is modelled.
enum class MemoryModel : uint8_t {
  slots,         ///< live tensors by slots of execution (see simulator.h)
  outputs_only,  ///< published simulators: operator outputs, until 1 us before the last read
  none,          ///< not modelled: peaks are 0
};

/// Rules of a simulation.
struct SimulationRules {
  QueueModel queue = QueueModel::sender;
  MemoryModel memory = MemoryModel::slots;
  int64_t device_dead_ns = 0;    ///< pause of a device after an operator
  bool dead_after_free = false;  ///< also pause after operators that cost nothing
  int64_t link_dead_ns = 0;      ///< pause of a queue after a transfer (sender and pair queues)
  /// One transfer of a tensor serves its readers on all other devices (Placeto), instead of one
  /// transfer per destination.
  bool broadcast = false;
  /// The step ends with the last event, pauses included, instead of with the last operator.
  bool last_event = false;
  /// Ties at one instant follow the order of events (placeto_engine()) instead of the operators'
  /// numbers. Requires broadcast.
  bool event_order = false;
  /// Every edge is a transfer of its own, and ties follow the order in which events were scheduled
  /// (doppler_engine()). Requires queue model none and memory model none.
  bool edge_transfers = false;

  /// The cluster's queue model and defaults for the rest.
  static SimulationRules standard(const Cluster& cluster);
  /// The published Placeto / Trinity simulator (papers/notes.md): pauses of 5.7 us (device) and 25
  /// us (link).
  static SimulationRules compat();
  /// The same, event by event: a pause after every operator, and the step ends with the last
  /// operator. Reproduces the numbers of the published code.
  static SimulationRules placeto();
  /// The simulator of Doppler's authors, event by event (doppler_engine()).
  static SimulationRules doppler();
  /// Name of the published rules, or null. Published rules support one micro-batch, first in, first
  /// out.
  const char* published_name() const;
  bool operator==(const SimulationRules&) const = default;
};

/// A graph bound to a cluster: every cost in whole nanoseconds, in flat arrays in the order in
/// which the simulator walks them. Immutable and thread-safe.
///
/// Index spaces: operators as in the graph; outputs first_output(op) + output; edges first_edge(op)
/// + reader; devices as in the cluster.
class Problem {
 public:
  /// An edge: operator `op` reads output `output` (index within the producer's outputs).
  struct Reader {
    int32_t op;
    int32_t output;
  };

  /// `cost` replaces the cost model. It is called once per operator, device type and speed, and
  /// also applies to operators derived from these (Operator::stated, set in graph()). Throws
  /// LimitError if times could exceed the simulator's 64-bit clock, ArgumentError for contradictory
  /// rules or a cost that is negative or not a number.
  Problem(std::shared_ptr<const Graph> graph, std::shared_ptr<const Cluster> cluster,
          SimulationRules rules, const CostFunction& cost = {});
  /// For a graph derived from the graph of `like`: same cluster and rules, and shared tables of
  /// what depends on the cluster alone. Throws the same errors.
  Problem(std::shared_ptr<const Graph> graph, const Problem& like);

  const Graph& graph() const { return *graph_; }
  const Cluster& cluster() const { return *cluster_; }
  const std::shared_ptr<const Cluster>& shared_cluster() const { return cluster_; }
  const SimulationRules& rules() const { return rules_; }
  const DeviceTables& tables() const { return *tables_; }
  int32_t operators() const { return graph_->operator_count(); }
  int32_t devices() const { return cluster_->device_count(); }

  /// Time of `op` on `device`; 0 for members of collectives.
  int64_t cost_ns(int32_t device, int32_t op) const { return costs(device)[op]; }
  /// Times of all operators on a device.
  std::span<const int64_t> costs(int32_t device) const {
    const auto n = static_cast<size_t>(operators());
    return {cost_ns_.data() + n * static_cast<size_t>(cost_class(device)), n};
  }
  /// Part of cost_ns() that waits for copies to or from the host (strategy/offload.h).
  int64_t copies_ns(int32_t device, int32_t op) const {
    const auto n = static_cast<size_t>(operators());
    return copies_ns_.empty() ? 0 : copies_ns_[n * static_cast<size_t>(cost_class(device)) + static_cast<size_t>(op)];
  }
  int32_t cost_class(int32_t device) const { return tables_->cost_class(device); }
  /// Minimum time of `op` over all devices.
  int64_t least_cost_ns(int32_t op) const { return least_cost_ns_[op]; }
  /// Longest path from the end of `op` to the end of the step, at minimum costs and without
  /// communication.
  int64_t tail_ns(int32_t op) const { return tail_ns_[op]; }

  /// Latency plus bytes / bandwidth, rounded once.
  int64_t wire_ns(int32_t from, int32_t to, int64_t bytes) const {
    const size_t pair = static_cast<size_t>(from) * static_cast<size_t>(devices()) + static_cast<size_t>(to);
    const auto wire = wires_ ? wires_[pair] : tables_->wire(from, to);
    return wire.latency_ns +
           static_cast<int64_t>(static_cast<double>(bytes) / wire.bytes_per_ns + 0.5);
  }
  /// Transfer times of all outputs (see first_output()) if every pair of devices has the same
  /// latency and bandwidth; empty otherwise.
  std::span<const int64_t> uniform_wires() const { return uniform_wire_ns_; }

  /// Readers of all outputs of `op`, ascending by operator; edge indices start at first_edge(op).
  std::span<const Reader> readers(int32_t op) const {
    const auto first = static_cast<size_t>(first_edge(op));
    return {readers_.data() + first, static_cast<size_t>(first_edge(op + 1)) - first};
  }
  /// Readers of all operators, by edge index.
  std::span<const Reader> all_readers() const { return readers_; }
  int32_t first_edge(int32_t op) const { return reader_offsets_[op]; }
  int32_t edges() const { return static_cast<int32_t>(readers_.size()); }
  /// An input: output `output` (index within the producer's outputs) of operator `op`.
  using Source = Reader;
  /// Inputs of `op`, in its order.
  std::span<const Source> sources(int32_t op) const {
    const auto first = static_cast<size_t>(source_offsets_[op]);
    return {sources_.data() + first, static_cast<size_t>(source_offsets_[op + 1]) - first};
  }
  /// The collective that `op` is a member of; -1: none.
  int32_t collective_of(int32_t op) const { return collective_of_[op]; }
  /// Number of edges into `op`.
  int32_t missing(int32_t op) const { return missing_[op]; }
  int32_t most_missing() const { return most_missing_; }

  /// Bytes of output `output` of `op`.
  int64_t output_bytes(int32_t op, int32_t output) const {
    return output_bytes_[first_output(op) + output];
  }
  /// Bytes that a copy of it occupies on a device that received it.
  int64_t copied_bytes(int32_t op, int32_t output) const {
    return output_bytes(op, output) - graph_->tensor(graph_->op(op).outputs[static_cast<size_t>(output)]).host_bytes;
  }
  std::span<const int64_t> all_output_bytes() const { return output_bytes_; }
  /// Bytes that each output occupies on its producer's device: 0 for a Variable's weights and for
  /// resident gradients (both are fixed bytes), its size without what the host keeps otherwise.
  std::span<const int64_t> held_bytes() const { return held_bytes_; }
  int32_t first_output(int32_t op) const { return output_offsets_[op]; }
  int32_t outputs() const { return static_cast<int32_t>(output_bytes_.size()); }
  int32_t max_outputs() const { return max_outputs_; }
  /// For a view (Reshape, Flatten, ...) or an in-place operator: index of the output whose storage
  /// its first output shares if both are on one device. -1 for other operators.
  int32_t alias(int32_t op) const { return alias_[op]; }

  /// Weights and optimiser state resident on the operator's device, plus gradient buffers that it
  /// writes there if all device types keep gradients between steps (DeviceType::keeps_gradients).
  int64_t fixed_bytes(int32_t op) const { return fixed_bytes_[op]; }
  bool keeps_gradients() const { return !gradient_bytes_.empty(); }
  int64_t gradient_bytes(int32_t op) const { return gradient_bytes_.empty() ? 0 : gradient_bytes_[op]; }
  /// Memory that the training software takes on a device on which anything runs.
  int64_t framework_bytes(int32_t device) const {
    return rules_.memory == MemoryModel::slots ? cluster_->type_of(device).framework_bytes : 0;
  }
  /// Minimum over all devices.
  int64_t framework_bytes() const;
  bool has_workspace() const { return has_workspace_; }
  /// True if `op` runs once per step, whatever the number of micro-batches.
  bool once(int32_t op) const { return once_[op]; }

  /// Upper bound on a step of one micro-batch on one copy of the graph, whatever the plan.
  double longest_step_ns() const { return longest_step_ns_; }

 private:
  /// first: first problem bound to its cluster.
  void bind(bool first);
  void bind_costs();
  void bind_edges();
  void bind_gradients();
  void check_range();

  std::shared_ptr<const Graph> graph_;
  std::shared_ptr<const Cluster> cluster_;
  SimulationRules rules_;
  std::shared_ptr<const DeviceTables> tables_;
  const DeviceTables::Wire* wires_ = nullptr;  // of tables_: wire_ns() is called for every transfer
  std::vector<int64_t> cost_ns_, least_cost_ns_, tail_ns_, copies_ns_;
  std::vector<int64_t> output_bytes_, held_bytes_, fixed_bytes_, uniform_wire_ns_;
  std::vector<int64_t> gradient_bytes_;  // empty: gradients are not resident
  std::vector<Reader> readers_;
  std::vector<Source> sources_;
  std::vector<int32_t> reader_offsets_, source_offsets_, output_offsets_, missing_, alias_;
  std::vector<int32_t> collective_of_;
  std::vector<bool> once_;
  bool has_workspace_ = false;
  int32_t max_outputs_ = 0, most_missing_ = 0;
  double longest_step_ns_ = 0;
};

}  // namespace trinity
