#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "simulator/problem.h"

namespace trinity {

/// Input of list schedulers: tasks with a cost on every device and data that flows between them,
/// as plain arrays. Costs and transfer times have one unit (nanoseconds if made from a Problem).
/// Tasks are numbered in a topological order: edges go from lower to higher numbers.
struct TaskGraph {
  /// A tensor that one task writes and another reads. `tensor` identifies it: two readers of one
  /// tensor on one device share a copy in algorithms that support copies.
  struct Edge {
    int32_t from, to;
    int32_t tensor;
    int64_t bytes;
  };

  int32_t tasks = 0, processors = 0;
  std::vector<int64_t> cost;        ///< [task * processors + processor]
  std::vector<Edge> edges;          ///< sorted by (from, to, tensor), distinct
  std::vector<int64_t> latency;     ///< [from * processors + to]
  std::vector<double> rate;         ///< bytes per unit of time, indexed as `latency`
  std::vector<int32_t> group;       ///< tasks of one group share a processor
  std::vector<int32_t> in;          ///< edge numbers by reader, in order of edges
  std::vector<int32_t> in_first;    ///< tasks + 1 positions in `in`
  std::vector<int32_t> out_first;   ///< tasks + 1 positions in `edges`
  /// [task]: true if it costs nothing anywhere and depends on no task with a cost: weights,
  /// constants, data. Such tasks do not drive decisions but go where their group is, or with their
  /// first reader. Otherwise every unit whose first operator is its weights would go to the first
  /// device.
  std::vector<bool> follows;

  /// Sorts the edges and fills the fields that follow from them and from costs and links.
  void index();

  int64_t cost_of(int32_t task, int32_t processor) const {
    return cost[static_cast<size_t>(task) * static_cast<size_t>(processors) +
                static_cast<size_t>(processor)];
  }
  double mean_cost(int32_t task) const;
  /// Mean of latency plus bytes / rate over all ordered pairs of different devices; 0 if there is
  /// only one.
  double mean_wire(int64_t bytes) const {
    return mean_latency_ + mean_inverse_rate_ * static_cast<double>(bytes);
  }
  std::span<const int32_t> inputs(int32_t task) const;

 private:
  void find_followers();
  double mean_latency_ = 0, mean_inverse_rate_ = 0;
};

/// The operators of a problem on its devices, with tensors as edges and colocation units as groups.
/// The cost of a collective depends on the placement, so its members cost nothing here.
TaskGraph make_task_graph(const Problem& problem);

}  // namespace trinity
