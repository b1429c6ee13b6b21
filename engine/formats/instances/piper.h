#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace trinity {

/// One way to run a layer on the devices of one tensor-parallel group: Piper's TMPC ("tensor-model
/// parallelism configuration").
struct PiperConfiguration {
  std::string id;                ///< "vanilla" or "activation recomp"
  double time_per_sample_s = 0;  ///< forward and backward of one micro-batch
  int64_t parameter_bytes = 0;   ///< on every device of the group
  /// Memory of a device: bytes_per_batch * y + fixed_bytes, with y micro-batches in flight.
  int64_t bytes_per_batch = 0, fixed_bytes = 0;
  /// Bytes that the group exchanges for the edge from (forward) or to (backward) an operator.
  std::map<int32_t, int64_t> forward_sync_bytes, backward_sync_bytes;
};

/// An instance of Piper (Tarnawski, Narayanan, Phanishayee, "Piper: Multidimensional Planner for
/// DNN Parallelization", NeurIPS 2021): layers with costs for every degree of tensor parallelism.
///
/// The graph uses degree 1, "vanilla": extra_parameter_bytes is the parameter size, and each
/// distinct edge cost of a layer becomes one tensor of that many bytes. Files have one time for
/// forward and backward together, so measured_time_s is the total, measured_backward_time_s is 0,
/// and attribute time_includes_backward is 1. Attributes id (number in the file) and name keep the
/// file's values. Operators have the layer's name, or "<name>#<id>" if layers share it.
struct PiperInstance {
  Graph graph;
  int32_t max_devices = 0;
  int64_t device_memory_bytes = 0;
  double bandwidth_bytes_per_s = 0;    ///< of a device to other devices
  int64_t micro_batches = 0;           ///< per batch
  std::vector<int64_t> id;             ///< [operator]: the layer's number in the file
  std::vector<int32_t> file_position;  ///< [operator]: the layer's position in the file, from 0
  /// [operator]: configurations by degree of tensor parallelism.
  std::vector<std::map<int32_t, std::vector<PiperConfiguration>>> configurations;

  /// The configuration `id` of an operator at a degree, or null.
  const PiperConfiguration* find(int32_t op, int32_t degree, std::string_view id) const;
};

/// Reads an instance (JSON); unknown fields are ignored. The format states no unit of time; seconds
/// are assumed. The published bert32a100.json is in seconds; gnmt.json and resnet.json are in
/// milliseconds by their magnitude, although the planner adds bytes / bandwidth in seconds to them.
/// `source` is the file name in errors. Throws FileError with file, field, expected and actual
/// value; also for a repeated layer number or configuration, a layer without degree 1, a repeated
/// edge or one to an unknown layer, sync bytes for unknown edges or missing for known ones, and a
/// cycle.
PiperInstance parse_piper(std::string_view text, const std::string& source,
                          const std::string& graph_name);

}  // namespace trinity
