#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "simulator/problem.h"

namespace trinity {

/// The exact max-load cut of Tarnawski et al., "Efficient Algorithms for Device Placement of DNN
/// Graph Operators" (NeurIPS 2020; papers/notes.md "Exact cut by load"): contiguous parts of a
/// graph on accelerators and CPUs with the minimum largest device load. In a pipeline, that is the
/// time per sample.
///
/// load(accelerator) = times of its nodes + transfer time of each of its nodes with a reader
/// elsewhere, once, + the transfer time of each node elsewhere with a reader on it, once. load(CPU)
/// = times of its nodes. Contiguous: the forward nodes of a device are I \ J of two ideals (sets
/// closed under predecessors) J in I; backward nodes follow their unit. An accelerator's memory
/// bounds the sum over its nodes. Times may have any one unit; the names say seconds. Not a
/// LayerRow (layer_row.h), because its nodes form a graph; along an order it can be converted to
/// one.
struct LoadInstance {
  struct Node {
    double accelerator_s = 0, cpu_s = 0;
    double transfer_s = 0;  ///< of the output, to or from an accelerator
    int64_t memory_bytes = 0;
    int32_t unit = 0;                         ///< nodes of one unit share a device
    bool backward = false, supported = true;  ///< supported: allowed on an accelerator
  };
  std::vector<Node> nodes;
  std::vector<std::pair<int32_t, int32_t>> edges;  ///< producer, reader; distinct
  int32_t accelerators = 0, cpus = 0;
  int64_t memory_bytes = 0;  ///< per accelerator
};

/// Limits of the dynamic program over all ideals. Counts give equal results on every machine,
/// `seconds` does not. If a limit is reached, only topological orders of the graph are searched.
struct MaxLoadLimits {
  int32_t most_ideals = 100'000;
  int64_t most_pairs = 60'000'000;  ///< pairs of ideals examined; a million per second and more
  double seconds = 1e9;             ///< wall-clock time
  int32_t orders = 4;               ///< topological orders to cut along, which is fast
};

struct MaxLoadCut {
  bool feasible = false;        ///< false: no contiguous cut fits into memory
  bool exact = false;           ///< over all ideals: optimal, or proven infeasible
  double load_s = 0;            ///< maximum over devices
  std::vector<int32_t> device;  ///< [node]: accelerators from 0 in pipeline order, then CPUs
  int32_t ideals = 0;           ///< 0: not enumerated
};

/// Throws ArgumentError for no node, no device, nodes, units or edges that do not exist, numbers
/// that are negative, infinite or NaN, and more than 1,024 devices of one type.
void check_load_instance(const LoadInstance& instance);

/// Units whose forward nodes depend on each other in both directions are merged. Units with only
/// backward nodes are ordered by their gradients, reversed. A unit without time and memory and with
/// one neighbour is merged with it. When time is up, returns the best cut so far, or a simple cut
/// that fits. Throws as check_load_instance(), LimitError for more than 20,000 units, Interrupted.
MaxLoadCut max_load_cut(const LoadInstance& instance, const MaxLoadLimits& limits = {});

/// [device]: its load under the formula above.
std::vector<double> max_load_loads_s(const LoadInstance& instance,
                                     const std::vector<int32_t>& device);

/// The given cut with its load.
MaxLoadCut priced_cut(const LoadInstance& instance, std::vector<int32_t> device);

/// A problem as such an instance: every device is an accelerator; times and transfers are means
/// over devices and links; memory is the fixed bytes plus outputs that backward reads, with the
/// smallest device's capacity.
LoadInstance make_load_instance(const Problem& problem);

}  // namespace trinity
