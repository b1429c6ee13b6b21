#pragma once

#include <span>

#include "cluster/cluster.h"
#include "graph/graph.h"

namespace trinity {

// CPU offload of the optimiser: the host keeps a share of its states (float32 weights and moments) and computes this
// share of the updates, as Megatron-Core's HybridDeviceOptimizer with --overlap-cpu-optimizer-d2h-h2d and DeepSpeed's
// ZeRO-Offload (Ren et al. 2021) do. An update takes the longest of what overlaps weight by weight: the device's own
// share; gradients to the host and weights back, each in its direction of the link; the host's memory traffic.
// (DeepSpeed sends weights back after all updates, and gradients during the backward pass.) The first gradient and the
// last weight, for which nothing else is left to do, and other traffic on the link are not counted.

/// The graph in which the host has this share of every update and of its states. serves: of each operator the one of
/// the original graph that it is a part of.
Graph offload_optimizer(Graph graph, const Graph& original, std::span<const int32_t> serves, double fraction);

/// The host's share of an update in such a graph; 0 for other operators.
double offloaded_fraction(const Operator& op);

/// Bytes over the link in its busier direction per byte of memory traffic, of an update in the original graph.
double link_share(const Graph& original, const Operator& update);

/// Seconds in which the host computes all of an update; link_share 0: the one from offload_optimizer(). Needs the
/// device type's rates of its host.
double host_update_s(const Operator& update, const DeviceType& type, double link_share = 0);

}  // namespace trinity
