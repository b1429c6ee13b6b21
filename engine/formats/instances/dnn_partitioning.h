#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace trinity {

/// An instance of the device placement problem of Tarnawski et al., "Efficient Algorithms for
/// Device Placement of DNN Graph Operators" (NeurIPS 2020): a graph with costs, to be divided among
/// accelerators and CPUs. Vectors have one entry per operator of the graph; times are in seconds.
///
/// The graph, as built for the simulator:
/// - measured_time_s is the time on an accelerator; `isBackwardNode` gives phase backward; the
///   field `colorClass` is the colocation unit. A backward operator serves the forward operator of
///   its class if the class has exactly one.
/// - The file has only one memory figure per node: weights plus what they need in training. It
///   becomes persistent_bytes: resident, not sent, not updated. The simulator adds outputs in
///   flight, so it is stricter than the instance's memory limit.
/// - Outputs: one tensor per distinct edge `size` of a node; edges without size get `cost` times
///   kDnnPartitioningBytesPerSecond. This equals size / cost in the published files, with two
///   exceptions. The layer graphs for throughput have costs in seconds but latencies in
///   milliseconds (the published objectives add them unconverted, and so does this code). On the
///   backward half of the layer graphs for training, sizes and costs come from different edges.
/// - Operators have their name in the file, or "<name>#<id>" if an earlier one has that name. The
///   type is derived from the name ("MatMul64_Grad/Transpose_0" is a Transpose) if that gives a
///   type with a rule, else it is "Operator".
/// - Attributes: id, name, layer (if given), cpu_time_s, transfer_time_s, and
///   supported_on_accelerator (0 or 1).
///
/// In the published layer graphs for training the backward half repeats the edges of the forward
/// half in the same direction, and no edge joins the halves. Loads are unaffected, but a simulated
/// step of such a graph is not a training step.
struct DnnPartitioning {
  Graph graph;
  int32_t max_accelerators = 0, max_cpus = 0;
  int64_t accelerator_memory_bytes = 0;  ///< sum of memory_bytes on one accelerator
  std::vector<int64_t> id;               ///< the node's number in the file
  std::vector<double> cpu_time_s, accelerator_time_s;
  std::vector<double> transfer_time_s;  ///< to move the output to or from an accelerator once
  std::vector<int64_t> memory_bytes;
  std::vector<bool> supported_on_accelerator;
  /// Times in the file's unit (see parse_dnn_partitioning()), and the operator's position in the
  /// file, from 0.
  std::vector<double> file_cpu_time, file_accelerator_time, file_transfer_time;
  std::vector<int32_t> file_position;

  /// Devices of a placement: accelerators from 0, then CPUs.
  int32_t device_count() const { return max_accelerators + max_cpus; }
};

/// Bandwidth between accelerator and host that underlies the published costs: 2 GiB/s.
inline constexpr double kDnnPartitioningBytesPerSecond = 2147483648.0;

/// Reads an instance (JSON). Unknown fields are ignored. Latencies and costs are taken as
/// milliseconds, as the files of the layer graphs state; the operator graphs' costs are sizes / 2
/// GiB/s in milliseconds. Throws FileError with file, field, expected and actual value; also for a
/// repeated node number, edges from one node whose costs differ by more than 1e-6 (the first
/// counts), an edge to an unknown node, and a cycle. `source` is the file name in errors.
DnnPartitioning parse_dnn_partitioning(std::string_view text, const std::string& source,
                                       const std::string& graph_name);

/// Reads a cut (`{"fpgas": [{"nodes": [ids]}, ...], "cpus": [...]}`; loads are ignored) as the
/// device of every operator. Nodes that the cut omits go to the device of their colocation class,
/// so that a cut of an inference graph applies to the training graph. Throws FileError for nodes
/// that do not exist, are repeated or missing, and for more devices than the instance has.
std::vector<int32_t> read_dnn_cut(const std::string& path, const DnnPartitioning& instance);
std::vector<int32_t> parse_dnn_cut(std::string_view text, const std::string& source,
                                   const DnnPartitioning& instance);

}  // namespace trinity
