#include "strategy/cost.h"

#include <algorithm>

#include "graph/operator_types.h"

namespace trinity {
namespace {

double peak_flops_per_s(const Graph& graph, const Operator& op, const DeviceType& type) {
  const DType dtype = op.outputs.empty() ? DType::float32 : graph.tensor(op.outputs[0]).dtype;
  const auto found = type.peak_flops_per_s.find(dtype);
  return found != type.peak_flops_per_s.end() ? found->second
                                              : type.peak_flops_per_s.at(DType::float32);
}

/// What the device reaches on an operator: efficiencies of its matrix or vector units, of its
/// memory, and the launch.
struct Reached {
  double compute, memory, launch_s;
};

void refine(const DeviceType& type, std::string_view key, Reached& reached) {
  const auto found = type.operators.find(key);
  if (found == type.operators.end()) return;
  reached.compute = found->second.compute.value_or(reached.compute);
  reached.memory = found->second.memory.value_or(reached.memory);
  reached.launch_s = found->second.launch_s.value_or(reached.launch_s);
}

Reached reached_by(const Operator& op, const DeviceType& type) {
  const bool matrix = operator_rule(op.type).matrix;
  Reached reached{matrix ? type.compute_efficiency : type.memory_efficiency, type.memory_efficiency,
                  type.launch_s};
  if (type.operators.empty()) return reached;
  const auto key = cost_key(op);
  if (key.ends_with("Grad")) refine(type, std::string_view(key).substr(0, key.size() - 4), reached);
  refine(type, key, reached);
  return reached;
}

}  // namespace

std::string cost_key(const Operator& op) {
  if (!is_depthwise(op)) return op.type;
  return op.type.ends_with("Grad") ? "DepthwiseConvGrad" : "DepthwiseConv";
}

double operator_time_s(const Graph& graph, const Operator& op, const Device& device,
                       const DeviceType& type) {
  if (op.measured()) return op.measured_time_s / device.speed;
  if (operator_rule(op.type).view || (op.flops == 0 && op.traffic_bytes == 0)) return 0;
  const auto reached = reached_by(op, type);
  const double compute_s = op.flops / (reached.compute * peak_flops_per_s(graph, op, type));
  const double memory_s =
      op.traffic_bytes / (reached.memory * type.memory_bandwidth_bytes_per_s);
  return (reached.launch_s + std::max(compute_s, memory_s)) / device.speed;
}

}  // namespace trinity
