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

}  // namespace

double operator_time_s(const Graph& graph, const Operator& op, const Device& device,
                       const DeviceType& type) {
  if (op.measured()) return op.measured_time_s / device.speed;
  const auto& rule = operator_rule(op.type);
  if (rule.view || (op.flops == 0 && op.traffic_bytes == 0)) return 0;
  const double efficiency = rule.matrix ? type.compute_efficiency : type.memory_efficiency;
  const double compute_s = op.flops / (efficiency * peak_flops_per_s(graph, op, type));
  const double memory_s =
      op.traffic_bytes / (type.memory_efficiency * type.memory_bandwidth_bytes_per_s);
  return (type.launch_s + std::max(compute_s, memory_s)) / device.speed;
}

}  // namespace trinity
