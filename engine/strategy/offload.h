#pragma once

#include <span>

#include "cluster/cluster.h"
#include "graph/graph.h"
#include "strategy/splits.h"

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

// CPU offload of activations: the host keeps a share of every tensor that a layer's forward pass keeps for its backward
// pass. A device copies the share of a layer to the host while it computes the layer, fetches it while it computes the
// layer's backward pass, and waits where that takes longer, as Transformer Engine's windows of layers do (Megatron-Core's
// --cpu-offloading-num-layers and --fine-grained-activation-offloading). So a pass of a layer takes the longer of its
// operators and of the copies in one direction of the link. Two layers' share are on the device while they are copied: a
// workspace of its operators. Collectives, and a stage's other passes, hide no copies here.

/// The graph in which the host keeps this share of the activations of layers: sets Tensor::host_bytes of tensors that a
/// device holds for the backward pass of a layer, and of the layer's operators there host_run, host_bytes and workspaces.
/// roles: of the operators; layers: their number.
Graph offload_activations(Graph graph, std::span<const OperatorRole> roles, int32_t layers, double fraction);

/// Adds to the times of operators on a device what runs of them wait for their copies, each in proportion, and returns
/// it; empty: nothing is copied.
std::vector<double> wait_for_copies(const Graph& graph, const DeviceType& type, std::vector<double>& times_s);

/// The tensor whose memory a tensor shares through views and in-place sums. roles: if given, on the device of a reader.
int32_t stored_tensor(const Graph& graph, int32_t tensor, std::span<const OperatorRole> roles = {}, int32_t device = 0);

/// True for data and weights, which no operator of a forward pass computes.
bool is_data(const Operator& op);

}  // namespace trinity
