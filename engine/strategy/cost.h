#pragma once

#include <functional>
#include <string>

#include "cluster/cluster.h"
#include "graph/graph.h"

namespace trinity {

/// Seconds that an operator takes on a device. A measured time is used as it is; otherwise the
/// roofline: launch + max(flops / (compute_efficiency * peak), traffic / (memory_efficiency *
/// memory bandwidth)), with memory_efficiency in both terms for operators that are no matrix
/// product or convolution. Both are divided by the device's speed. The peak is that of the first
/// output's dtype, float32's where the device states none. Efficiencies and launch are those that
/// the device type states for cost_key(), else for the type without "Grad", else the device's.
/// Inputs, variables and views (Reshape, Flatten) cost nothing.
double operator_time_s(const Graph& graph, const Operator& op, const Device& device,
                       const DeviceType& type);

/// The name under which a device type states efficiencies for an operator: its type, for depthwise
/// convolutions DepthwiseConv and DepthwiseConvGrad.
std::string cost_key(const Operator& op);

/// A cost model of one's own: seconds of an operator on a device; `default_s` is what
/// operator_time_s() says.
using CostFunction = std::function<double(const Operator& op, const Device& device,
                                          const DeviceType& type, double default_s)>;

}  // namespace trinity
