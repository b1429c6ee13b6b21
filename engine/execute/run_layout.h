#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/graph.h"

namespace trinity {

/// Which worker runs what in which order, and where tensors lie while a step runs. A task is
/// (micro-batch, operator), numbered micro-batch * operators + operator as in the simulator;
/// updates run once, in the last micro-batch.
class RunLayout {
 public:
  /// A place for a tensor, one a micro-batch: on its producer's device and on those of its readers
  /// elsewhere, which hold copies.
  struct Slot {
    int32_t tensor = -1, device = -1;
    int32_t readers = 0;       ///< how often it is read in each micro-batch; copies read too
    int32_t last_readers = 0;  ///< the same in the last one, where updates read as well
    int32_t readers_there = 0;  ///< operators that read a copy
    /// Of a copy the operator that reads it, where that is one alone; -1: there are more.
    int32_t reader = -1;
  };

  /// `placement` gives every operator's device, `order` a key per task by whose size a device runs
  /// its tasks (a simulated start time; entries of tasks that do not run are not looked at). Equal
  /// keys, and an empty order, go by number, behind what they read. Members of a collective run when the last of them
  /// would. Throws ArgumentError for counts that differ,
  /// devices out of range, operators of a colocation unit on two devices and an order in which an
  /// operator comes before one that it reads; LimitError for more than 2^26 tasks.
  /// stream: every micro-batch is a mini-batch with an update of its own.
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
  /// The tensors that an operator reads on its device: its inputs; of a member of a collective what
  /// all members hand in (of the first output the inputs of all, then of the next), then what else
  /// it reads itself.
  const std::vector<int32_t>& reads(int32_t op) const { return reads_[op]; }
  /// The tasks of a device in turn.
  const std::vector<int32_t>& queue(int32_t device) const { return queues_[device]; }
  /// Every tensor's slots, its producer's first.
  std::span<const Slot> slots() const { return slots_; }
  int32_t home_slot(int32_t tensor) const { return first_slot_[tensor]; }
  int32_t end_slot(int32_t tensor) const { return first_slot_[static_cast<size_t>(tensor) + 1]; }
  /// The slot that an operator on a device reads a tensor from.
  int32_t slot(int32_t tensor, int32_t device) const;
  /// How often a slot is read in a micro-batch.
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

/// Whether a member of a collective needs less than all of what others hand in.
bool needs_part(const Operator& member);

/// What an executor does, as a graph and an order that a simulator prices: members of collectives
/// are operators like any other, that read what they are handed, so that nothing but operators,
/// copies and their order takes time.
struct WrittenOut {
  Graph graph;
  std::vector<int32_t> origin;              ///< per operator: its number in the executor's graph
  std::vector<std::vector<int32_t>> order;  ///< the tasks of every device, in the new graph's numbers
};

/// `graph` and its `layout`. A tensor of which a device gets a part alone (needs_part()) is written
/// twice, whole and as that part.
WrittenOut write_out(const Graph& graph, const RunLayout& layout);

}  // namespace trinity
