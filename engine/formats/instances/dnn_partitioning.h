#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace trinity {

/// An instance of the device placement problem of Tarnawski et al., "Efficient Algorithms for
/// Device Placement of DNN Graph Operators" (NeurIPS 2020): a graph with costs, to be cut over
/// accelerators and CPUs. Vectors have an entry per operator of the graph; times are in seconds.
///
/// The graph, made for the simulator:
/// - measured_time_s is the time on an accelerator, the phase backward for `isBackwardNode`, the
///   colocation unit the colour class. A backward operator serves the forward operator of its
///   class, where the class has exactly one.
/// - The file tells of a node's memory only the sum, weights and what they need in training. It
///   becomes persistent_bytes: resident all step, not sent, not updated. The simulator counts
///   outputs in flight on top, so it is stricter than the instance's memory limit.
/// - Outputs: a tensor per distinct edge `size` of a node; edges without it get `cost` times
///   kDnnPartitioningBytesPerSecond. That is size / cost in the published files, but in two places:
///   the layer graphs for throughput have costs in seconds beside latencies in milliseconds (the
///   published objectives add them as they are, and so does this), and on the backward half of the
///   layer graphs for training sizes and costs come from different edges.
/// - Operators are called by their name in the file, "<name>#<id>" where an earlier one has it
///   already. The type is read off the name ("MatMul64_Grad/Transpose_0" is a Transpose) where that
///   gives a type with a rule, and is "Operator" elsewhere.
/// - Attributes: id, name, layer (where given), cpu_time_s, transfer_time_s, and
///   supported_on_accelerator (0 or 1).
///
/// In the published layer graphs for training the backward half repeats the edges of the forward
/// half in the same direction, and no edge joins the halves. Loads are not concerned; a simulated
/// step of such a graph is none of training.
struct DnnPartitioning {
  Graph graph;
  int32_t max_accelerators = 0, max_cpus = 0;
  int64_t accelerator_memory_bytes = 0;  ///< sum of memory_bytes that an accelerator holds
  std::vector<int64_t> id;               ///< the node's number in the file
  std::vector<double> cpu_time_s, accelerator_time_s;
  std::vector<double> transfer_time_s;  ///< to move the output to or from an accelerator once
  std::vector<int64_t> memory_bytes;
  std::vector<bool> supported_on_accelerator;
  /// The times as the file has them (see parse_dnn_partitioning()), and the operator's place in it,
  /// from 0.
  std::vector<double> file_cpu_time, file_accelerator_time, file_transfer_time;
  std::vector<int32_t> file_position;

  /// Devices of a placement: accelerators from 0, then CPUs.
  int32_t device_count() const { return max_accelerators + max_cpus; }
};

/// The bandwidth between accelerator and host behind the published costs, 2 GiB/s.
inline constexpr double kDnnPartitioningBytesPerSecond = 2147483648.0;

/// Reads an instance (JSON). Fields that the format does not know are ignored. Latencies and costs
/// are taken as milliseconds: so the files of the layer graphs say, and the operator graphs' costs
/// are sizes over 2 GiB/s in milliseconds. Throws FileError naming file, field, what was expected
/// and what came; for a node number that stands twice, edges from one node whose costs differ by
/// more than 1e-6 (the first counts), an edge to nowhere, a cycle. `source` stands for the file
/// name in errors.
DnnPartitioning parse_dnn_partitioning(std::string_view text, const std::string& source,
                                       const std::string& graph_name);

/// Reads a cut (`{"fpgas": [{"nodes": [ids]}, ...], "cpus": [...]}`; loads are ignored) as the
/// device of every operator. A node that the cut leaves out goes where its colour class is, as a
/// cut of an inference graph applies to the training graph. Throws FileError for nodes that do
/// not exist, stand twice or are missing, more devices than the instance has.
std::vector<int32_t> read_dnn_cut(const std::string& path, const DnnPartitioning& instance);
std::vector<int32_t> parse_dnn_cut(std::string_view text, const std::string& source,
                                   const DnnPartitioning& instance);

}  // namespace trinity
