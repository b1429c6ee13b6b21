#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace trinity {

/// One way to run a layer on the devices of one tensor-parallel group: a TMPC ("tensor-model
/// parallelism configuration") of Piper.
struct PiperConfiguration {
  std::string id;                ///< "vanilla" or "activation recomp"
  double time_per_sample_s = 0;  ///< forward and backward of one micro-batch
  int64_t parameter_bytes = 0;   ///< on every device of the group
  /// Memory of a device is bytes_per_batch * y + fixed_bytes, with y the micro-batches in flight.
  int64_t bytes_per_batch = 0, fixed_bytes = 0;
  /// Bytes that the group exchanges for the edge from (forward) and to (backward) an operator.
  std::map<int32_t, int64_t> forward_sync_bytes, backward_sync_bytes;
};

/// An instance of Piper (Tarnawski, Narayanan, Phanishayee, "Piper: Multidimensional Planner for
/// DNN Parallelization", NeurIPS 2021): layers with costs for every degree of tensor parallelism.
///
/// The graph takes degree 1, "vanilla": extra_parameter_bytes is the parameter size, and a tensor
/// per distinct edge cost of a layer carries it as bytes. Files give the time of forward and
/// backward together; nothing tells its parts, so measured_time_s is the whole,
/// measured_backward_time_s 0, and attribute time_includes_backward 1. Attributes id (the number in
/// the file) and name keep what the file says; operators are called by the name, "<name>#<id>"
/// where layers share it.
struct PiperInstance {
  Graph graph;
  int32_t max_devices = 0;
  int64_t device_memory_bytes = 0;
  double bandwidth_bytes_per_s = 0;    ///< of a device to the outside
  int64_t micro_batches = 0;           ///< in a batch
  std::vector<int64_t> id;             ///< per operator: the layer's number in the file
  std::vector<int32_t> file_position;  ///< per operator: the layer's place in the file, from 0
  /// Per operator: configurations by degree of tensor parallelism.
  std::vector<std::map<int32_t, std::vector<PiperConfiguration>>> configurations;

  /// The configuration called `id` of an operator at a degree, or null.
  const PiperConfiguration* find(int32_t op, int32_t degree, std::string_view id) const;
};

/// Reads an instance (JSON); fields that the format does not know are ignored. The format states no
/// unit of time: they are taken as seconds. The published bert32a100.json is in seconds, gnmt.json
/// and resnet.json are in milliseconds by their magnitude, although the planner adds bytes over
/// bandwidth in seconds to them. `source` stands for the file name in errors. Throws FileError
/// naming file, field, what was expected and what came; for a layer number or configuration that
/// stands twice, a layer without degree 1, an edge that stands twice or leads nowhere, sync bytes
/// for edges that do not exist or missing for those that do, a cycle.
PiperInstance parse_piper(std::string_view text, const std::string& source,
                          const std::string& graph_name);

}  // namespace trinity
