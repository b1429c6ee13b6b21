#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "search/pipeline/pipeline_network.h"

namespace trinity {

/// A file of a network with costs, as a graph for the simulator and as a network to be cut, in file order. `source` is
/// the file name in errors.
struct PipelineFile {
  Graph graph;
  std::vector<int32_t> place;  ///< [operator of the graph]: its node in the network
  PipelineNetwork network;

  /// Fills the network's edges and units from the graph.
  void link();
};

/// Bandwidth between accelerator and host that underlies the published costs: 2 GiB/s.
inline constexpr double kDnnPartitioningBytesPerSecond = 2147483648.0;

/// An instance of the device placement problem of Tarnawski et al., "Efficient Algorithms for
/// Device Placement of DNN Graph Operators" (NeurIPS 2020): a graph with costs, to be divided among
/// accelerators and CPUs.
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
///
/// Reads an instance (JSON). Unknown fields are ignored. Latencies and costs are taken as
/// milliseconds, as the files of the layer graphs state; the operator graphs' costs are sizes / 2
/// GiB/s in milliseconds. Throws FileError with file, field, expected and actual value; also for a
/// repeated node number, edges from one node whose costs differ by more than 1e-6 (the first
/// counts), an edge to an unknown node, and a cycle.
PipelineFile parse_dnn_partitioning(std::string_view text, const std::string& source, const std::string& graph_name);

/// Reads a cut (`{"fpgas": [{"nodes": [ids]}, ...], "cpus": [...]}`; loads are ignored) as the device of every node of
/// an instance: accelerators from 0, then CPUs. Nodes that the cut omits go to the device of their colocation class,
/// so that a cut of an inference graph applies to the training graph. Throws FileError for nodes
/// that do not exist, are repeated or missing, and for more devices than the instance has.
std::vector<int32_t> parse_dnn_cut(std::string_view text, const std::string& source, const PipelineFile& instance);

/// An instance of Piper (Tarnawski, Narayanan, Phanishayee, "Piper: Multidimensional Planner for
/// DNN Parallelization", NeurIPS 2021): layers with costs for every degree of tensor parallelism.
///
/// The graph uses degree 1, "vanilla": extra_parameter_bytes is the parameter size, and each
/// distinct edge cost of a layer becomes one tensor of that many bytes. Files have one time for
/// forward and backward together, so measured_time_s is the total, measured_backward_time_s is 0,
/// and attribute time_includes_backward is 1. Attributes id (number in the file) and name keep the
/// file's values. Operators have the layer's name, or "<name>#<id>" if layers share it.
///
/// Reads an instance (JSON); unknown fields are ignored. The format states no unit of time; seconds
/// are assumed. The published bert32a100.json is in seconds; gnmt.json and resnet.json are in
/// milliseconds by their magnitude, although the planner adds bytes / bandwidth in seconds to them.
/// Throws FileError with file, field, expected and actual
/// value; also for a repeated layer number or configuration, a layer without degree 1, a repeated
/// edge or one to an unknown layer, sync bytes for unknown edges or missing for known ones, and a
/// cycle.
PipelineFile parse_piper(std::string_view text, const std::string& source, const std::string& graph_name);

/// Reads a file as a network for pipeline planners: a dnn-partitioning or Piper instance (.json), a
/// PipeDream or DAPPLE profile (.txt). Returns none for other files, which are models
/// (read_model()). Times stay in the file's unit: milliseconds for dnn-partitioning, seconds for
/// profiles. Piper's times are taken as seconds, although gnmt.json and resnet.json are in
/// milliseconds by their magnitude (their authors add transfer seconds to them, and so does this
/// code).
///
/// A profile's layer needs memory for its weights and one micro-batch's outputs; sources called
/// Input cost and send nothing, as in PipeDream. For methods without configurations, a Piper layer
/// has its plain configuration of degree 1, with one micro-batch in flight, and its largest edge as
/// output. Throws FileError as the readers of these formats do.
std::optional<PipelineNetwork> read_pipeline_network(const std::string& path);

/// parse_dnn_cut() of two files. Throws FileError for another type of instance, too.
std::vector<int32_t> read_pipeline_cut(const std::string& path, const std::string& instance_path);

}  // namespace trinity
