#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/graph.h"

namespace trinity {

/// Assignment and order of tasks on workers, and slots for tensors during a step. A task is
/// (micro-batch, operator), numbered micro-batch * operators + operator as in the simulator;
/// updates run once, in the last micro-batch. Immutable and thread-safe.
class RunLayout {
 public:
  /// Storage for a tensor, one per micro-batch: on its producer's device, and on other devices with
  /// readers, which hold copies.
  struct Slot {
    int32_t tensor = -1, device = -1;
    int32_t readers = 0;       ///< reads per micro-batch, including copies made of it
    int32_t last_readers = 0;  ///< the same in the last micro-batch, where updates also read
    int32_t readers_there = 0;  ///< operators that read a copy
    /// For a copy: its only reader; -1: several.
    int32_t reader = -1;
  };

  /// placement: [operator] device. order: [task] key by which a device sorts its tasks (a simulated
  /// start time; entries of tasks that do not run are ignored). Equal keys, and an empty order, go
  /// by number, after their inputs. Members of a collective run when the last of them would.
  /// stream: every micro-batch is a mini-batch with an update of its own. Throws ArgumentError for
  /// wrong lengths, devices out of range, operators of a colocation unit on two devices and an
  /// order in which an operator precedes one of its inputs; LimitError for more than 2^26 tasks.
  RunLayout(const Graph& graph, std::span<const int32_t> placement, int32_t devices,
            int32_t micro_batches, std::span<const double> order, bool stream = false);

  int32_t devices() const { return static_cast<int32_t>(queues_.size()); }
  int32_t micro_batches() const { return micro_batches_; }
  bool is_stream() const { return stream_; }
  int32_t tasks() const { return operators_ * micro_batches_; }
  int32_t operator_of(int32_t task) const { return task % operators_; }
  int32_t micro_batch_of(int32_t task) const { return task / operators_; }
  int32_t task(int32_t micro_batch, int32_t op) const { return micro_batch * operators_ + op; }
  int32_t device_of(int32_t op) const { return placement_[op]; }
  /// Tensors that an operator reads on its device. Usually its inputs; for a member of a collective
  /// the contributions of all members (for the first output the inputs of all, then for the next),
  /// then its own further inputs.
  const std::vector<int32_t>& reads(int32_t op) const { return reads_[op]; }
  /// The tasks of a device in order.
  const std::vector<int32_t>& queue(int32_t device) const { return queues_[device]; }
  /// Slots of all tensors, each tensor's producer slot first.
  std::span<const Slot> slots() const { return slots_; }
  int32_t home_slot(int32_t tensor) const { return first_slot_[tensor]; }
  int32_t end_slot(int32_t tensor) const { return first_slot_[static_cast<size_t>(tensor) + 1]; }
  /// The slot from which an operator on a device reads a tensor.
  int32_t slot(int32_t tensor, int32_t device) const;
  /// Number of reads of a slot in a micro-batch.
  int32_t readers(int32_t slot, int32_t micro_batch) const {
    const Slot& of = slots_[slot];
    return micro_batch + 1 == micro_batches_ ? of.last_readers : of.readers;
  }

 private:
  void check_placement(const Graph& graph, std::span<const double> order) const;
  bool once(const Operator& op) const;
  void make_reads(const Graph& graph);
  std::vector<double> joined_keys(const Graph& graph, std::span<const double> order) const;
  int32_t missing_before(const Graph& graph, int32_t task, const std::vector<bool>& placed) const;
  void make_queues(const Graph& graph, std::span<const double> order);
  void make_slots(const Graph& graph);

  std::vector<int32_t> placement_;
  int32_t operators_, micro_batches_;
  bool stream_;
  std::vector<std::vector<int32_t>> queues_, reads_;
  std::vector<Slot> slots_;
  std::vector<int32_t> first_slot_;  // per tensor, and the end
};

/// True if a member of a collective needs only parts of the other members' contributions.
bool needs_part(const Operator& member);

/// The executed program as a graph and an order for the simulator. Members of collectives are
/// ordinary operators that read the others' contributions, so only operators, copies and their
/// order take time.
struct WrittenOut {
  Graph graph;
  std::vector<int32_t> origin;              ///< [operator]: its index in the executor's graph
  std::vector<std::vector<int32_t>> order;  ///< [device]: its tasks, in the new graph's numbers
};

/// Requires the layout of `graph`. If a device gets only a part of a tensor (needs_part()), the
/// tensor is written twice, in full and as that part.
WrittenOut write_out(const Graph& graph, const RunLayout& layout);

}  // namespace trinity
