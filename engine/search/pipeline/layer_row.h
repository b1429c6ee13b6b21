#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "search/pipeline/ideals.h"
#include "search/pipeline/pipeline_network.h"

namespace trinity {

/// A row of layers to be cut into pipeline stages, which are runs of neighbours. Contains
/// everything that such a cut is evaluated by, so planners need neither graph nor cluster.
///
/// Layers are numbered from 0. Cut c is before layer c: the run [first, last) has the cuts `first`
/// and `last`; cuts 0 and count() are the row's ends. Bytes are integers in rows of graphs.
///
/// Planners of graphs that are not rows use other types: LoadInstance, PipedreamLayers,
/// PiperProblem. Their stages are bounded by down-sets, which need an edge list instead of cuts.
struct LayerRow {
  /// Seconds of every layer on one class of equal devices.
  struct Kind {
    int32_t device = 0;  ///< the first device of this class
    std::vector<double> forward_s;
    std::vector<double> backward_s;  ///< including updates
    std::vector<double> update_s;    ///< the part of backward_s that runs once per step
  };
  struct Device {
    int32_t kind = 0;
    double capacity_bytes = 0;    ///< for tensors and weights
    double send_bytes_per_s = 0;  ///< its narrowest link; infinite for a single device
  };

  std::vector<int32_t> layer_of;         ///< [operator, or node of a network]
  std::vector<std::string> type;         ///< [layer]: type of its first forward operator
  std::vector<double> parameter_bytes;   ///< [layer], as the next ones
  std::vector<double> fixed_bytes;       ///< parameters and optimiser state
  std::vector<double> activation_bytes;  ///< forward outputs of one micro-batch
  std::vector<double> forward_bytes;     ///< [cut]: bytes of one micro-batch across it
  std::vector<double> backward_bytes;    ///< [cut]: the same in the other direction
  std::vector<Kind> kinds;               ///< in the order of their first devices
  std::vector<Device> devices;

  int32_t count() const { return static_cast<int32_t>(parameter_bytes.size()); }
  int32_t device_count() const { return static_cast<int32_t>(devices.size()); }
};

/// The row of a graph on a cluster. A layer is a colocation unit with forward operators; layers are
/// in the order of their first ones. Other operators belong to the layer of their forward operator,
/// or else to the previous operator's layer. A tensor crosses a cut once, whatever its number of
/// readers; over a chain none goes back in forward passes. Times are the simulator's for all
/// operators on one device; collectives take no time. Throws ArgumentError for a graph without
/// forward operators.
LayerRow layer_row_of(const Problem& problem);

/// The row of a network read from a file, for equal devices: its layers in file order, at most
/// 1,024 (longer networks merge neighbours). A layer's time is in forward_s, in the network's unit;
/// a cut sends the bytes that correspond to the transfer time of the layer before it.
LayerRow layer_row_of(const PipelineNetwork& network, const PipelineMachine& machine);

/// The row of groups of nodes in an order, for equal accelerators: times, and memory as
/// fixed_bytes. Cuts are empty, because transfers depend on more than the two neighbours.
LayerRow layer_row_of(const LoadInstance& instance, const LoadOrder& order);

}  // namespace trinity
