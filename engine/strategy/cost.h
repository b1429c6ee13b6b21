#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/cluster.h"
#include "graph/graph.h"

namespace trinity {

/// Seconds that an operator takes on a device. Where a cost model of one's own states a time
/// (Operator::stated), that time, of a part of an operator the share of it that the part has of the
/// time below. A measured time is used as it is; otherwise the roofline: launch + max(flops /
/// (compute_efficiency * peak), traffic / (memory_efficiency * memory bandwidth)), with
/// memory_efficiency in both terms for operators that are neither matmul nor convolution. Both
/// are divided by the device's speed. The peak belongs to the first output's dtype (to float8 if
/// a matmul reads float8, else to bfloat16), float32's where the device states none. Efficiencies
/// and launch are the device's, unless its type states others for the operator: of cost_keys() the
/// last that it states counts, in the dtype of the peak ('Conv:float16') before in all ('Conv').
/// Inputs, variables and views (Reshape, Flatten) cost nothing.
///
/// Further fields of a device type:
///   half_width n   a matmul takes 1 + n / w times its arithmetic, w being the smaller of its
///                  result's columns and its reduced length (of a gradient: of its forward matmul);
///                  so a matmul of n columns reaches half of the efficiency (Hockney and Jesshope,
///                  "Parallel Computers 2", 1988: n_1/2). n holds for the float16 peak: it is
///                  smaller, as the peak is, in a dtype with a smaller peak
///   operators.UnalignedMatMul  what a matmul with weights reaches at most whose columns or reduced
///                  length are no multiple of 128 bytes (NVIDIA, "Matrix Multiplication Background
///                  User's Guide", 2.2: of 64 16-bit elements on A100). Heads are slices of wider
///                  rows: the matmuls of attention are not meant
///   fuses_elementwise  an element-wise operator whose result only another one reads is one kernel
///                  with it: neither is the result written and read, nor does the first have a launch;
///                  the updates of all weights are one kernel, whose launch does not count; an
///                  operator with the attribute own_kernel = 1 is not joined with its reader
///   joins_products     n matmuls of one input with weights of their own are one kernel: together
///                  they are as wide as their results, read the input and write its gradient once,
///                  have one launch, and no sum of n gradients
///   overlap        1 is the roofline; 0: arithmetic and traffic one after the other, as in kernels
///                  whose blocks load, compute and store in step
///   dispatch_s     counts for runs of operators: strategy/dispatch.h
double operator_time_s(const Graph& graph, const Operator& op, const Device& device,
                       const DeviceType& type);

/// The same of all operators, with what they wait for their host (strategy/dispatch.h), which
/// stated times have; 0 for members of collectives.
std::vector<double> operator_times_s(const Graph& graph, const Device& device,
                                     const DeviceType& type);

/// The least seconds of an update if the host computes all of it: host_update_s(), with a stated time its part as above;
/// 0 where the type states no host.
double offloaded_update_s(const Operator& update, const Device& device, const DeviceType& type, double link_share);

/// Factor by which an operator takes longer on a device while all devices of its type on its node
/// compute: the device type's contention, or what it states for the operator (see cost_keys()).
double contention(const Operator& op, const DeviceType& type);
/// True if that can be other than 1.
bool has_contention(const DeviceType& type);

/// The names under which a device type can state efficiencies for an operator, the most special one
/// last: its type without "Grad", its type, and for convolutions the same of DepthwiseConv or, with
/// a kernel of 3 x 3 and stride 1 (which libraries compute with fewer multiplications: Lavin and
/// Gray 2016), Conv3x3. TensorFlow's convolutions go by ONNX's names, their backward ones with
/// "Grad".
std::vector<std::string> cost_keys(const Operator& op);

/// True if `name` can be among cost_keys() of any operator with a rule of its own, by itself or
/// with a dtype ('Conv:float16').
bool is_cost_key(std::string_view name);

/// A cost model of one's own: seconds of an operator on a device, nothing where the cluster's
/// holds; `default_s` is what that says.
using CostFunction = std::function<std::optional<double>(
    const Operator& op, const Device& device, const DeviceType& type, double default_s)>;

/// The times of a custom cost model for the operators of a graph on the first devices of every
/// type and speed: Operator::stated, null for members of collectives and where it states nothing.
/// Throws ArgumentError for a time that is negative or no number.
std::vector<StatedTimes> stated_times(const Graph& graph, const Cluster& cluster,
                                      std::span<const int32_t> devices, const CostFunction& cost);

}  // namespace trinity
