#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "simulator/problem.h"

namespace trinity {

/// What list schedulers work on: tasks with a cost on every processor and data that flow between
/// them, as plain arrays. Costs and wire times are in one unit (nanoseconds when made from a
/// Problem). Tasks are numbered in a topological order: edges lead from lower to higher numbers.
struct TaskGraph {
  /// A tensor that one task writes and another reads. `tensor` tells tensors apart: two readers of
  /// one tensor on one processor share a copy where an algorithm knows copies.
  struct Edge {
    int32_t from, to;
    int32_t tensor;
    int64_t bytes;
  };

  int32_t tasks = 0, processors = 0;
  std::vector<int64_t> cost;        ///< [task * processors + processor]
  std::vector<Edge> edges;          ///< sorted by (from, to, tensor), distinct
  std::vector<int64_t> latency;     ///< [from * processors + to]
  std::vector<double> rate;         ///< bytes per unit of time, as `latency`
  std::vector<int32_t> group;       ///< tasks of one group share a processor
  std::vector<int32_t> in;          ///< edge numbers by reader, in order of edges
  std::vector<int32_t> in_first;    ///< tasks + 1 positions in `in`
  std::vector<int32_t> out_first;   ///< tasks + 1 positions in `edges`
  /// Tasks that cost nothing anywhere and depend on nothing that does: weights, constants, data.
  /// They are no decision of a scheduler's: they go where their group is, or with their first
  /// reader. Deciding by them would put every unit whose first operator is its weights on whatever
  /// processor is first.
  std::vector<bool> follows;

  /// Fills group (one a task where it is empty) and what follows from the rest, sorts the edges.
  /// Throws ArgumentError for sizes that do not fit each other, edges out of order, negative costs
  /// or bytes, rates that are not positive.
  void index();

  int64_t cost_of(int32_t task, int32_t processor) const {
    return cost[static_cast<size_t>(task) * static_cast<size_t>(processors) +
                static_cast<size_t>(processor)];
  }
  double mean_cost(int32_t task) const;
  /// The mean of latency plus bytes over rate over all ordered pairs of different processors; 0 when
  /// there is only one.
  double mean_wire(int64_t bytes) const {
    return mean_latency_ + mean_inverse_rate_ * static_cast<double>(bytes);
  }
  std::span<const Edge> readers(int32_t task) const;
  std::span<const int32_t> inputs(int32_t task) const;

 private:
  void check() const;
  void find_followers();
  double mean_latency_ = 0, mean_inverse_rate_ = 0;
};

/// The operators of a problem on its devices, tensors as edges, colocation units as groups. What a
/// collective costs depends on the placement: its members cost nothing here.
TaskGraph make_task_graph(const Problem& problem);

}  // namespace trinity
