#pragma once

#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "cluster/cluster.h"
#include "graph/graph.h"
#include "strategy/cost.h"

namespace trinity {

/// How device memory is accounted.
enum class MemoryModel : uint8_t {
  slots,         ///< live tensors by slots of execution (see simulator.h)
  outputs_only,  ///< the published simulator's: operator outputs, until 1 us before the last read
  none,          ///< not at all: peaks are 0
};

/// Which rules a simulation follows.
struct SimulationRules {
  QueueModel queue = QueueModel::sender;
  MemoryModel memory = MemoryModel::slots;
  int64_t device_dead_ns = 0;    ///< a device's pause after an operator
  bool dead_after_free = false;  ///< whether it pauses after operators that cost nothing too
  int64_t link_dead_ns = 0;      ///< a queue's pause after a transfer (sender and pair queues)
  /// One transfer of a tensor serves its readers on all other devices (Placeto) instead of one
  /// transfer per destination device.
  bool broadcast = false;
  /// The step ends with the last event, pauses included, instead of the last operator's end.
  bool last_event = false;
  /// What is ready at one instant follows the order of events (see PlacetoEngine) instead of the
  /// operators' numbers. Needs broadcast.
  bool event_order = false;
  /// Every edge is a transfer of its own, and what is due at one instant follows the order in
  /// which it was put off (see DopplerEngine). Needs queue model none and no memory.
  bool edge_transfers = false;

  /// The rules of a cluster: its queue model, everything else by default.
  static SimulationRules standard(const Cluster& cluster);
  /// The published Placeto / Trinity simulator (papers/notes.md "Trinity: the published
  /// simulator"): pauses of 5.7 us and 25 us.
  static SimulationRules compat();
  /// The same to the letter, event by event: a pause after every operator, the step ends with the
  /// last operator. Reproduces the numbers that its code gives.
  static SimulationRules placeto();
  /// The simulator of Doppler's authors to the letter (see DopplerEngine).
  static SimulationRules doppler();
  /// Whether these are published rules, which know one micro-batch, first in first out: their
  /// name, else null.
  const char* published_name() const;
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

  /// `cost` replaces the cost model; it is asked once per operator and device type and speed, and
  /// holds for what is made of the operators, too (Operator::stated, which graph() has). Throws
  /// LimitError when times could exceed the simulator's 64-bit clock, ArgumentError for rules that
  /// contradict each other or a cost that is negative or no number.
  Problem(std::shared_ptr<const Graph> graph, std::shared_ptr<const Cluster> cluster,
          SimulationRules rules, const CostFunction& cost = {});
  /// The same on the cluster and under the rules of another problem, of whose graph `graph` was made;
  /// what goes by the cluster alone they have together. Throws the same.
  Problem(std::shared_ptr<const Graph> graph, const Problem& like);

  const Graph& graph() const { return *graph_; }
  const Cluster& cluster() const { return *cluster_; }
  const std::shared_ptr<const Cluster>& shared_cluster() const { return cluster_; }
  const SimulationRules& rules() const { return rules_; }
  int32_t operators() const { return graph_->operator_count(); }
  int32_t devices() const { return cluster_->device_count(); }

  /// Time of `op` on `device`; 0 for members of collectives.
  int64_t cost_ns(int32_t device, int32_t op) const { return costs(device)[op]; }
  /// Times of all operators on a device. Devices of one type and speed share them.
  std::span<const int64_t> costs(int32_t device) const {
    return class_costs(cost_class(device));
  }
  std::span<const int64_t> class_costs(int32_t cost_class) const {
    const auto n = static_cast<size_t>(operators());
    return {cost_ns_.data() + n * static_cast<size_t>(cost_class), n};
  }
  int32_t cost_class(int32_t device) const { return cost_class_[device]; }
  /// Whether devices of a node slow each other down (see Contention).
  bool contends() const { return on_->contends; }
  int32_t cost_classes() const { return static_cast<int32_t>(on_->first.size()); }
  /// The least time of `op` over all devices.
  int64_t least_cost_ns(int32_t op) const { return least_cost_ns_[op]; }
  /// Longest path from the end of `op` to the end of the step, at least costs, wires free.
  int64_t tail_ns(int32_t op) const { return tail_ns_[op]; }

  struct Wire {
    int64_t latency_ns = 0;
    double bytes_per_ns = std::numeric_limits<double>::infinity();
  };
  Wire wire(int32_t from, int32_t to) const {
    if (!wires_) return found_wire(from, to);
    return wires_[static_cast<size_t>(from) * static_cast<size_t>(devices()) +
                  static_cast<size_t>(to)];
  }
  /// Latency plus bytes over bandwidth, rounded once.
  int64_t wire_ns(int32_t from, int32_t to, int64_t bytes) const {
    const Wire wire = this->wire(from, to);
    return wire.latency_ns +
           static_cast<int64_t>(static_cast<double>(bytes) / wire.bytes_per_ns + 0.5);
  }
  int64_t latency_ns(int32_t from, int32_t to) const { return wire(from, to).latency_ns; }
  /// Whether a transfer of so many bytes takes 0 ns between some two devices.
  bool takes_no_time(int64_t bytes) const {
    return on_->shortest_latency_ns == 0 &&
           static_cast<double>(bytes) / on_->most_bytes_per_ns < 0.5;
  }
  /// Wire times of all tensors (see first_output()) where every pair of devices has the same
  /// latency and bandwidth; empty otherwise.
  std::span<const int64_t> uniform_wires() const { return uniform_wire_ns_; }

  /// Readers of all outputs of `op`, ascending by operator; edge numbers start at first_edge(op).
  std::span<const Reader> readers(int32_t op) const {
    const auto first = static_cast<size_t>(first_edge(op));
    return {readers_.data() + first, static_cast<size_t>(first_edge(op + 1)) - first};
  }
  /// Those of all operators in turn: entry e is edge number e.
  std::span<const Reader> all_readers() const { return readers_; }
  int32_t first_edge(int32_t op) const { return reader_offsets_[op]; }
  int32_t edges() const { return static_cast<int32_t>(readers_.size()); }
  /// Number of edges into `op`.
  int32_t missing(int32_t op) const { return missing_[op]; }
  int32_t most_missing() const { return most_missing_; }

  /// Bytes of output number `output` of `op`.
  int64_t output_bytes(int32_t op, int32_t output) const {
    return output_bytes_[first_output(op) + output];
  }
  std::span<const int64_t> all_output_bytes() const { return output_bytes_; }
  /// What these outputs take on their producer's device: nothing for the weights of a Variable,
  /// which are among its fixed bytes, nor for gradients that are, their size for all others.
  std::span<const int64_t> held_bytes() const { return held_bytes_; }
  int32_t first_output(int32_t op) const { return output_offsets_[op]; }
  int32_t outputs() const { return static_cast<int32_t>(output_bytes_.size()); }
  int32_t max_outputs() const { return max_outputs_; }
  /// For a view (Reshape, Flatten, ...) or an in-place operator: the output (first_output() +
  /// index) of another operator whose storage its own first output shares when both are on one
  /// device. -1 for others.
  int32_t alias(int32_t op) const { return alias_[op]; }

  /// Weights and optimiser state resident on the operator's device, and buffers for gradients that
  /// it writes there, where these stay from step to step (DeviceType::keeps_gradients, of all types).
  int64_t fixed_bytes(int32_t op) const { return fixed_bytes_[op]; }
  bool keeps_gradients() const { return !gradient_bytes_.empty(); }
  int64_t gradient_bytes(int32_t op) const { return gradient_bytes_.empty() ? 0 : gradient_bytes_[op]; }
  /// What the training software holds on a device that anything runs on.
  int64_t framework_bytes(int32_t device) const {
    return rules_.memory == MemoryModel::slots ? cluster_->type_of(device).framework_bytes : 0;
  }
  /// The least of these.
  int64_t framework_bytes() const;
  int64_t workspace_bytes(int32_t op) const { return graph_->op(op).workspace_bytes; }
  bool has_workspace() const { return has_workspace_; }
  /// Whether `op` runs once a step, however many micro-batches there are.
  bool once(int32_t op) const { return once_[op]; }

  /// No step of one micro-batch on one copy of the graph takes longer, whatever the plan.
  double longest_step_ns() const { return longest_step_ns_; }

 private:
  /// A route's latency and rate; of a device to itself 0 and infinity.
  Wire found_wire(int32_t from, int32_t to) const;
  static Wire rounded(const trinity::Wire& wire);
  void check_latency(const trinity::Wire& wire, const std::string& route) const;
  void check_latencies() const;
  /// What goes by the cluster alone.
  struct Devices {
    std::vector<int32_t> cost_class;
    std::vector<int32_t> first;         // of every cost class its first device
    bool contends = false;
    /// Of all pairs; empty for more devices than kTabledDevices, whose wires are looked up as they
    /// are asked for.
    std::vector<Wire> wires;
    bool uniform = false;               // whether all of these are equal
    int64_t longest_latency_ns = 0;
    int64_t shortest_latency_ns = std::numeric_limits<int64_t>::max();
    double least_bytes_per_ns = std::numeric_limits<double>::infinity();
    double most_bytes_per_ns = 0;
  };
  /// first: of its cluster.
  void bind(bool first);
  std::shared_ptr<Devices> find_devices(bool own_costs) const;
  void find_classes(Devices& found, bool own_costs) const;
  void find_contention(Devices& found) const;
  void find_wires(Devices& found) const;
  void bind_costs();
  void check_contention() const;
  void bind_edges();
  void bind_uniform_wires();
  void bind_aliases();
  void bind_gradients();
  void bind_tails();
  void check_rules() const;
  void check_range();

  std::shared_ptr<const Graph> graph_;
  std::shared_ptr<const Cluster> cluster_;
  SimulationRules rules_;
  std::shared_ptr<const Devices> on_;
  const int32_t* cost_class_ = nullptr;  // on_'s
  const Wire* wires_ = nullptr;          // the same; nothing where there is no table
  std::vector<int64_t> cost_ns_, least_cost_ns_, tail_ns_;
  std::vector<int64_t> output_bytes_, held_bytes_, fixed_bytes_, uniform_wire_ns_;
  std::vector<int64_t> gradient_bytes_;  // empty: none stay
  std::vector<Reader> readers_;
  std::vector<int32_t> reader_offsets_, output_offsets_, missing_, alias_;
  std::vector<bool> once_;
  bool has_workspace_ = false;
  int32_t max_outputs_ = 0, most_missing_ = 0;
  double longest_step_ns_ = 0;
};

}  // namespace trinity
