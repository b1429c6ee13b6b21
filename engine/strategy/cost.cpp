#include "strategy/cost.h"

#include <algorithm>
#include <array>

#include "graph/operator_types.h"

namespace trinity {
namespace {

/// The dtype of the first output; of a product that reads float8, that; of a product's gradients that
/// of the product, however wide the sums are that are kept of them.
DType computed_in(const Graph& graph, const Operator& op) {
  if (operator_rule(op.type).matrix)
    for (const int32_t input : op.inputs)
      if (graph.tensor(input).dtype == DType::float8) return DType::float8;
  const bool gradient = operator_rule(op.type).matrix && op.forward >= 0;
  const auto& of = gradient ? graph.op(op.forward) : op;
  return of.outputs.empty() ? DType::float32 : graph.tensor(of.outputs[0]).dtype;
}

double peak_flops_per_s(const Graph& graph, const Operator& op, const DeviceType& type) {
  DType dtype = computed_in(graph, op);
  if (dtype == DType::float8 && !type.peak_flops_per_s.contains(dtype)) dtype = DType::bfloat16;
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
  if (!type.operators.empty())
    for (const auto& key : cost_keys(op)) refine(type, key, reached);
  return reached;
}

constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kOnnxNames = {{
    {"Conv2D", "Conv"},
    {"Conv2DBackpropInput", "ConvGrad"},
    {"Conv2DBackpropFilter", "ConvGrad"},
    {"DepthwiseConv2dNative", "DepthwiseConv"},
    {"DepthwiseConv2dNativeBackpropInput", "DepthwiseConvGrad"},
    {"DepthwiseConv2dNativeBackpropFilter", "DepthwiseConvGrad"},
}};

bool all_are(const Operator& op, const char* attribute, int64_t value, bool otherwise) {
  const auto found = op.attributes.find(attribute);
  if (found == op.attributes.end()) return otherwise;
  const auto* list = std::get_if<std::vector<int64_t>>(&found->second);
  return list && list->size() == 2 &&
         std::all_of(list->begin(), list->end(), [&](int64_t v) { return v == value; });
}

/// Adds a type, with the type that it is the gradient of before it.
void add_keys(std::string_view type, std::vector<std::string>& keys) {
  if (type.size() > 4 && type.ends_with("Grad")) keys.emplace_back(type.substr(0, type.size() - 4));
  keys.emplace_back(type);
}

}  // namespace

std::vector<std::string> cost_keys(const Operator& op) {
  std::string_view type = op.type;
  for (const auto& [name, onnx] : kOnnxNames)
    if (name == type) type = onnx;
  std::vector<std::string> keys;
  add_keys(type, keys);
  if (type != "Conv" && type != "ConvGrad") return keys;
  const std::string suffix(type.substr(4));
  if (is_depthwise(op))
    add_keys("Depthwise" + std::string(type), keys);
  else if (integer_attribute(op.attributes, "group", 1) == 1 &&
           all_are(op, "kernel_shape", 3, false) && all_are(op, "strides", 1, true))
    add_keys("Conv3x3" + suffix, keys);
  return keys;
}

bool is_cost_key(std::string_view name) {
  return has_operator_rule(name) || name == "DepthwiseConv" || name == "DepthwiseConvGrad" ||
         name == "Conv3x3" || name == "Conv3x3Grad";
}

double contention(const Operator& op, const DeviceType& type) {
  double result = type.contention;
  if (!type.operators.empty())
    for (const auto& key : cost_keys(op)) {
      const auto found = type.operators.find(key);
      if (found != type.operators.end()) result = found->second.contention.value_or(result);
    }
  return result;
}

bool has_contention(const DeviceType& type) {
  return type.contention > 1 ||
         std::any_of(type.operators.begin(), type.operators.end(),
                     [](const auto& entry) { return entry.second.contention.value_or(1) > 1; });
}

double operator_time_s(const Graph& graph, const Operator& op, const Device& device,
                       const DeviceType& type) {
  if (op.measured()) return op.measured_time_s / device.speed;
  if (operator_rule(op.type).view || (op.flops == 0 && op.traffic_bytes == 0)) return 0;
  const auto reached = reached_by(op, type);
  const double compute_s = op.flops / (reached.compute * peak_flops_per_s(graph, op, type));
  const double memory_s = op.traffic_bytes / (reached.memory * type.memory_bandwidth_bytes_per_s);
  return (reached.launch_s + std::max(compute_s, memory_s)) / device.speed;
}

}  // namespace trinity
