#pragma once

#include "cluster/cluster.h"
#include "graph/graph.h"

namespace trinity {

/// Seconds that an operator takes on a device. A measured time is used as it is; otherwise the
/// roofline: launch + max(flops / (compute_efficiency * peak), traffic / (memory_efficiency *
/// memory bandwidth)), with memory_efficiency in both terms for operators that are no matrix
/// product or convolution. Both are divided by the device's speed. Inputs and views (Reshape,
/// Flatten) cost nothing.
double operator_time_s(const Graph& graph, const Operator& op, const Device& device,
                       const DeviceType& type);

}  // namespace trinity
