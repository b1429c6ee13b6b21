#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "simulator/problem.h"

namespace trinity {

/// The exact max-load cut of Tarnawski et al., "Efficient Algorithms for Device Placement of DNN
/// Graph Operators" (NeurIPS 2020; papers/notes.md "Exact cut by load"): contiguous parts of a
/// graph on accelerators and CPUs so that the largest load of a device is least. In a pipeline,
/// that is the time per sample.
///
/// load(accelerator) = times of its nodes + the transfer time of each of its nodes with a reader
/// elsewhere, once, + that of each node elsewhere with a reader on it, once. load(CPU) = times of
/// its nodes. Contiguous: the forward nodes of a device are I \ J of two ideals (sets closed under
/// predecessors) J in I; backward nodes are where their unit is. An accelerator's memory bounds the
/// sum over its nodes.
/// Times may be in any one unit; the names say seconds. No LayerRow (layer_row.h): its nodes are a
/// graph; a row is made of it along an order.
struct LoadInstance {
  struct Node {
    double accelerator_s = 0, cpu_s = 0;
    double transfer_s = 0;  ///< of the output, to or from an accelerator
    int64_t memory_bytes = 0;
    int32_t unit = 0;                         ///< nodes of one unit share a device
    bool backward = false, supported = true;  ///< supported: may be on an accelerator
  };
  std::vector<Node> nodes;
  std::vector<std::pair<int32_t, int32_t>> edges;  ///< a node that reads another, distinct
  int32_t accelerators = 0, cpus = 0;
  int64_t memory_bytes = 0;  ///< of an accelerator
};

/// When the dynamic program over all ideals is given up. Counts give the same result on every
/// machine, `seconds` does not. Without it, orders of the graph are all that is looked at.
struct MaxLoadLimits {
  int32_t most_ideals = 100'000;
  int64_t most_pairs = 60'000'000;  ///< pairs of ideals looked at, a million a second and more
  double seconds = 1e9;             ///< wall-clock time
  int32_t orders = 4;               ///< topological orders to cut along, which is quick
};

struct MaxLoadCut {
  bool feasible = false;        ///< false: no contiguous cut fits the memory
  bool exact = false;           ///< over all ideals: optimal, or proved infeasible
  double load_s = 0;            ///< the largest
  std::vector<int32_t> device;  ///< of every node: accelerators from 0 in pipeline order, then CPUs
  int32_t ideals = 0;           ///< 0: they were not looked at
};

/// Throws ArgumentError for no node, no device, nodes, units or edges that do not exist, numbers
/// that are negative, infinite or none, more than 1,024 devices of a kind.
void check_load_instance(const LoadInstance& instance);

/// Units whose forward nodes depend on each other both ways are taken as one. Units of backward
/// nodes alone take part in the order of their gradients, reversed. A unit that takes no time and
/// no memory and has one neighbour goes with it. When time is up, the best so far is returned, or
/// simple cuts where they fit. Throws as check_load_instance(), LimitError for more than 20,000
/// units, Interrupted.
MaxLoadCut max_load_cut(const LoadInstance& instance, const MaxLoadLimits& limits = {});

/// The devices of a placement priced as above.
std::vector<double> max_load_loads_s(const LoadInstance& instance,
                                     const std::vector<int32_t>& device);

/// What a cut that was not searched for is worth.
MaxLoadCut priced_cut(const LoadInstance& instance, std::vector<int32_t> device);

/// A problem as such an instance: every device an accelerator, times and wires at their means over
/// devices and links, memory the fixed bytes plus outputs that backward reads, of the smallest
/// device.
LoadInstance make_load_instance(const Problem& problem);

}  // namespace trinity
