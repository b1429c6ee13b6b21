#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "search/pipeline/ideals.h"
#include "search/pipeline/pipeline_network.h"

namespace trinity {

/// A row of layers: what is cut into pipeline stages where every stage is a run of neighbours. It
/// has all that such a cut is judged by, so that planners need neither graph nor cluster.
///
/// Layers count from 0. Cut c lies before layer c: the run [first, last) has the cuts `first` and
/// `last`, and cuts 0 and count() are the row's ends. Bytes are whole numbers in rows of graphs.
///
/// Planners of graphs that are no rows have types of their own: LoadInstance, PipedreamLayers,
/// PiperProblem. Their stages are bounded by down-sets, which have an edge list and no cuts.
struct LayerRow {
  /// Seconds of every layer on one kind of device.
  struct Kind {
    int32_t device = 0;  ///< the first of this kind
    std::vector<double> forward_s;
    std::vector<double> backward_s;  ///< with updates
    std::vector<double> update_s;    ///< of these the part that runs once a step
  };
  struct Device {
    int32_t kind = 0;
    double capacity_bytes = 0;    ///< for tensors and weights
    double send_bytes_per_s = 0;  ///< its narrowest wire; infinite for a single device
  };

  std::vector<int32_t> layer_of;         ///< of every operator, or node of a network
  std::vector<std::string> type;         ///< of a layer's first forward operator
  std::vector<double> parameter_bytes;   ///< of layers, as all that follows
  std::vector<double> fixed_bytes;       ///< parameters and optimiser state
  std::vector<double> activation_bytes;  ///< forward outputs of a micro-batch
  std::vector<double> forward_bytes;     ///< by cut: what a micro-batch sends over it
  std::vector<double> backward_bytes;    ///< by cut, the other way
  std::vector<Kind> kinds;               ///< in the order of their first devices
  std::vector<Device> devices;

  int32_t count() const { return static_cast<int32_t>(parameter_bytes.size()); }
  int32_t device_count() const { return static_cast<int32_t>(devices.size()); }
};

/// The row of a graph on a cluster. A layer is a colocation unit with forward operators; layers
/// stand in the order of their first ones. Everything else belongs to the layer whose forward
/// operator it serves, or to that of the operator before it. A tensor crosses a cut once, however
/// many read it; over a chain none goes back in forward passes. Times are those that the simulator
/// gives operators when all are on one device; collectives take none. Throws ArgumentError for a
/// graph without forward operators.
LayerRow layer_row_of(const Problem& problem);

/// The row of a network of a file for equal devices: its layers in the order of the file, at most
/// 1,024 (neighbours of longer networks are taken together). A layer's time is all forward_s, in
/// the network's unit; a cut sends what the time of the transfers of the layer before it is worth.
LayerRow layer_row_of(const PipelineNetwork& network, const PipelineMachine& machine);

/// The row of groups of nodes along an order of theirs, for equal accelerators: times, and memory
/// as fixed_bytes. Nothing is said of cuts: transfers depend on more than the two neighbours.
LayerRow layer_row_of(const LoadInstance& instance, const LoadOrder& order);

}  // namespace trinity
