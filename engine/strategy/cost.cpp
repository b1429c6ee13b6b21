#include "strategy/cost.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <unordered_map>

#include "base/error.h"
#include "base/stop.h"
#include "graph/nameless.h"
#include "graph/operator_types.h"
#include "graph/split_backward.h"
#include "strategy/dispatch.h"
#include "strategy/offload.h"

namespace trinity {
namespace {

/// The dtype of the first output; of a matmul that reads float8, float8; of a matmul's gradients
/// the matmul's, and of other weight gradients their first input's, whatever the width of the sums
/// that accumulate them.
DType computed_in(const Graph& graph, const Operator& op) {
  if (operator_rule(op.type).matrix)
    for (const int32_t input : op.inputs)
      if (graph.tensor(input).dtype == DType::float8) return DType::float8;
  const bool gradient = operator_rule(op.type).matrix && op.forward >= 0;
  if (!gradient && is_weight_part(op) && !op.inputs.empty())
    return graph.tensor(op.inputs[0]).dtype;
  const auto& of = gradient ? graph.op(op.forward) : op;
  return of.outputs.empty() ? DType::float32 : graph.tensor(of.outputs[0]).dtype;
}

/// The dtype whose peak an operator has on a device: float32 where it states none for the operator's.
DType rated_in(const Graph& graph, const Operator& op, const DeviceType& type) {
  DType dtype = computed_in(graph, op);
  if (dtype == DType::float8 && !type.peak_flops_per_s.contains(dtype)) dtype = DType::bfloat16;
  return type.peak_flops_per_s.contains(dtype) ? dtype : DType::float32;
}

/// Hockney's n_1/2 is a rate times a latency, and a device type states it at its 16-bit peak: slower
/// arithmetic, float32's on ordinary cores, reaches half of its efficiency with proportionally
/// fewer columns.
double half_width_of(const DeviceType& type, DType dtype) {
  const auto half = type.peak_flops_per_s.find(DType::float16);
  if (half == type.peak_flops_per_s.end()) return type.half_width;
  return type.half_width * std::min(1.0, type.peak_flops_per_s.at(dtype) / half->second);
}

/// Efficiencies of a device on an operator: of its matrix or vector units and its memory, and the
/// launch.
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

/// Applies each of cost_keys() first in all dtypes, then as 'KEY:DTYPE'.
Reached reached_by(const Operator& op, const DeviceType& type, DType dtype) {
  const bool matrix = operator_rule(op.type).matrix;
  Reached reached{matrix ? type.compute_efficiency : type.memory_efficiency, type.memory_efficiency,
                  type.launch_s};
  if (!type.operators.empty())
    for (const auto& key : cost_keys(op)) {
      refine(type, key, reached);
      refine(type, fmt::format("{}:{}", key, dtype_name(dtype)), reached);
    }
  return reached;
}

/// True if cost_keys() depend on more than the operator's type.
bool keys_vary(const Operator& op) { return op.type.text().find("Conv") != std::string_view::npos; }

/// Efficiencies of a device type, by operator type and dtype. Not thread-safe.
class ReachedByType {
 public:
  explicit ReachedByType(const DeviceType& type) : type_(type) {
    const auto found = type.operators.find("UnalignedMatMul");
    if (found != type.operators.end()) unaligned_ = found->second.compute.value_or(unaligned_);
  }
  /// The most that matmuls with unaligned rows reach.
  double unaligned() const { return unaligned_; }
  const Reached& of(const Operator& op, DType dtype) {
    const auto same = [&](const Known& one) { return one.type == op.type && one.dtype == dtype; };
    auto found = std::find_if(known_.begin(), known_.end(), same);
    if (found == known_.end())
      found = known_.insert(found, {op.type, dtype, reached_by(op, type_, dtype)});
    else if (keys_vary(op))
      found->reached = reached_by(op, type_, dtype);
    return found->reached;
  }

 private:
  struct Known {
    OperatorType type;
    DType dtype;
    Reached reached;
  };
  const DeviceType& type_;
  double unaligned_ = std::numeric_limits<double>::infinity();
  std::vector<Known> known_;
};

constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kOnnxNames = {{
    {"Conv2D", "Conv"},
    {"Conv2DBackpropInput", "ConvGrad"},
    {"Conv2DBackpropFilter", "ConvGrad"},
    {"DepthwiseConv2dNative", "DepthwiseConv"},
    {"DepthwiseConv2dNativeBackpropInput", "DepthwiseConvGrad"},
    {"DepthwiseConv2dNativeBackpropFilter", "DepthwiseConvGrad"},
}};

bool all_are(const Operator& op, const char* attribute, int64_t value, bool otherwise) {
  if (!op.attributes.contains(attribute)) return otherwise;
  const auto* list = find_attribute<std::vector<int64_t>>(op.attributes, attribute);
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
  std::string_view type = op.type.text();
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
  if (const auto colon = name.rfind(':'); colon != std::string_view::npos) {
    const auto dtype = name.substr(colon + 1);
    name = name.substr(0, colon);
    if (dtype != "float32" && dtype != "float16" && dtype != "bfloat16" && dtype != "float64" &&
        dtype != "float8")
      return false;
  }
  return has_operator_rule(name) || name == "DepthwiseConv" || name == "DepthwiseConvGrad" ||
         name == "Conv3x3" || name == "Conv3x3Grad" || name == "UnalignedMatMul";
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

namespace {

bool is_gradient(const Operator& op) { return op.type.ends_with("Grad"); }

/// The forward operator of a gradient, else the operator itself.
const Operator& product_of(const Graph& graph, const Operator& op) {
  return is_gradient(op) && op.forward >= 0 ? graph.op(op.forward) : op;
}

/// A matmul with a weight of its own, of experts too.
bool is_weight_product(const Operator& op) {
  const auto flops = operator_rule(op.type).flops;
  return (flops == OperatorRule::Flops::product || flops == OperatorRule::Flops::einsum) &&
         !op.parameters.empty() && !op.inputs.empty() && !op.outputs.empty();
}

/// Calls visit(reader) for every operator that reads a tensor.
template <class Visit>
void each_reader(const Graph& graph, int32_t tensor, Visit visit) {
  if (graph.tensor(tensor).producer < 0) return;
  for (const int32_t reader : graph.readers_of(tensor)) visit(reader);
}

double columns_of(const Graph& graph, const Operator& op) {
  const auto& shape = graph.tensor(op.outputs[0]).shape;
  return shape.empty() ? 0 : static_cast<double>(shape.back());
}

/// Matmuls of one input that are one kernel: how many, and their columns together.
struct Siblings {
  double count = 1, columns = 0;
};

Siblings siblings_of(const Graph& graph, const Operator& product) {
  Siblings found{0, 0};
  each_reader(graph, product.inputs[0], [&](int32_t reader) {
    const auto& other = graph.op(reader);
    if (other.type != product.type || other.phase != product.phase || !is_weight_product(other) ||
        other.inputs[0] != product.inputs[0])
      return;
    found.count += 1;
    found.columns += columns_of(graph, other);
  });
  return found;
}

/// Columns and reduced length of a matmul, 0 for other operators, and whether rows of both are a
/// multiple of 128 bytes or the matmul has no weight.
struct Rows {
  double columns = 0, reduced = 0;
  bool aligned = true;
};

Rows rows_of(const Graph& graph, const Operator& product, const Siblings& siblings) {
  const auto flops = operator_rule(product.type).flops;
  if (flops != OperatorRule::Flops::product && flops != OperatorRule::Flops::einsum) return {};
  if (product.outputs.empty()) return {};
  const auto& result = graph.tensor(product.outputs[0]);
  if (result.shape.empty() || result.elements() <= 0 || product.flops <= 0) return {};
  Rows rows{siblings.count > 1 ? siblings.columns : static_cast<double>(result.shape.back()),
            product.flops / (2 * static_cast<double>(result.elements()))};
  const auto bytes = static_cast<double>(dtype_bytes(result.dtype));
  rows.aligned = !is_weight_product(product) || (std::fmod(rows.columns * bytes, 128) == 0 &&
                                                 std::fmod(rows.reduced * bytes, 128) == 0);
  return rows;
}

/// The operator that alone reads a tensor; -1 where there are none or several.
int32_t sole_reader(const Graph& graph, int32_t tensor) {
  int32_t reader = -1, count = 0;
  each_reader(graph, tensor, [&](int32_t one) {
    reader = one;
    ++count;
  });
  return count == 1 ? reader : -1;
}

/// True if a tensor never leaves its kernel where element-wise operators are joined.
bool stays_inside(const Graph& graph, int32_t tensor) {
  const int32_t producer = graph.tensor(tensor).producer;
  if (producer < 0 || !is_elementwise(graph.op(producer).type)) return false;
  if (integer_attribute(graph.op(producer).attributes, "own_kernel", 0) != 0) return false;
  const int32_t reader = sole_reader(graph, tensor);
  return reader >= 0 && is_elementwise(graph.op(reader).type) &&
         graph.op(reader).phase == graph.op(producer).phase;
}

/// Costs of a kernel in addition to the operator's: bytes that are not moved, the part of a launch
/// that counts, and the rows of its matmul.
struct Kernel {
  double saved_bytes = 0, launches = 1;
  Rows rows;
};

void join_elementwise(const Graph& graph, const Operator& op, Kernel& kernel) {
  if (op.type == "Update") kernel.launches = 0;
  if (!is_elementwise(op.type)) return;
  for (const int32_t input : op.inputs)
    if (stays_inside(graph, input))
      kernel.saved_bytes += static_cast<double>(graph.tensor(input).bytes);
  for (const int32_t output : op.outputs)
    if (stays_inside(graph, output)) {
      kernel.saved_bytes += static_cast<double>(graph.tensor(output).bytes);
      if (output == op.outputs[0]) kernel.launches = 0;
    }
}

/// True if an accumulation adds gradients that one joined kernel writes.
bool sums_joined(const Graph& graph, const Operator& op) {
  if (op.type != "Sum" || op.phase != Phase::backward || op.inputs.size() < 2) return false;
  int32_t input = -1;
  for (const int32_t term : op.inputs) {
    const int32_t from = graph.tensor(term).producer;
    if (from < 0 || !is_gradient(graph.op(from))) return false;
    const auto& product = product_of(graph, graph.op(from));
    if (is_gradient(product) || !is_weight_product(product)) return false;
    if (input >= 0 && product.inputs[0] != input) return false;
    input = product.inputs[0];
  }
  return true;
}

Kernel kernel_of(const Graph& graph, const Operator& op, const DeviceType& type) {
  Kernel kernel;
  if (type.fuses_elementwise) join_elementwise(graph, op, kernel);
  const auto& product = product_of(graph, op);
  Siblings siblings;
  if (type.joins_products && is_weight_product(product) && !is_gradient(product)) {
    siblings = siblings_of(graph, product);
    if (siblings.count > 1) {
      const auto input = static_cast<double>(graph.tensor(product.inputs[0]).bytes);
      // A gradient reads the input and writes its gradient; cut in two, a part does one of both.
      const double times = product.flops > 0 && op.flops > 1.5 * product.flops ? 2 : 1;
      kernel.saved_bytes += times * input * (1 - 1 / siblings.count);
      kernel.launches /= siblings.count;
    }
  }
  kernel.rows = rows_of(graph, product, siblings);
  return kernel;
}

}  // namespace

namespace {

/// The time of an operator on a device in a custom cost model; nullptr: none.
const StatedTime* stated_on(const Operator& op, const Device& device) {
  if (!op.stated) return nullptr;
  for (const auto& stated : *op.stated)
    if (stated.device_type == device.type && stated.speed == device.speed) return &stated;
  return nullptr;
}

/// The time by the cluster's cost model; of an operator that takes any, sets Kernel::launches.
double model_time_s(const Graph& graph, const Operator& op, const Device& device, const DeviceType& type,
                    ReachedByType& rates, double* launches = nullptr) {
  if (op.measured()) return op.measured_time_s / device.speed;
  if (operator_rule(op.type).view || (op.flops == 0 && op.traffic_bytes == 0)) return 0;
  if (type.joins_products && sums_joined(graph, op)) return 0;
  const DType dtype = rated_in(graph, op, type);
  const auto& reached = rates.of(op, dtype);
  const auto kernel = kernel_of(graph, op, type);
  if (launches) *launches = kernel.launches;
  const double compute =
      kernel.rows.aligned ? reached.compute : std::min(reached.compute, rates.unaligned());
  double compute_s = op.flops / (compute * type.peak_flops_per_s.at(dtype));
  const double width = std::min(kernel.rows.columns, kernel.rows.reduced);
  if (width > 0) compute_s *= 1 + half_width_of(type, dtype) / width;
  const double bytes = std::max(0.0, op.traffic_bytes - kernel.saved_bytes);
  const double memory_s = bytes / (reached.memory * type.memory_bandwidth_bytes_per_s);
  const double work_s = std::max(compute_s, memory_s) +
                        (1 - type.overlap) * std::min(compute_s, memory_s);
  const double device_s = kernel.launches * reached.launch_s + work_s, offloaded = offloaded_fraction(op);
  if (offloaded == 0) return device_s / device.speed;
  return std::max((1 - offloaded) * device_s, offloaded * host_update_s(op, type)) / device.speed;
}

/// The stated time of an operator that takes this time by the model, or this time.
double stated_or_model_s(const StatedTime* stated, double time_s) {
  if (!stated) return time_s;
  return stated->model_time_s > 0 ? stated->time_s * (time_s / stated->model_time_s)
                                  : stated->time_s;
}

}  // namespace

double operator_time_s(const Graph& graph, const Operator& op, const Device& device,
                       const DeviceType& type) {
  ReachedByType rates(type);
  return stated_or_model_s(stated_on(op, device), model_time_s(graph, op, device, type, rates));
}

double offloaded_update_s(const Operator& update, const Device& device, const DeviceType& type, double link_share) {
  if (type.host_bandwidth_bytes_per_s == 0 || type.host_memory_bandwidth_bytes_per_s == 0) return 0;
  return stated_or_model_s(stated_on(update, device), host_update_s(update, type, link_share) / device.speed);
}

HostedCosts::HostedCosts(const Graph& graph, const DeviceType& type, const std::vector<bool>& left_out)
    : graph_(graph), type_(type), left_out_(left_out) {
  ReachedByType rates(type);
  Device device;
  device.speed = 1;
  StopPoll stop;
  std::vector<double> launches(graph.operators().size(), 0);
  model_s_.reserve(launches.size());
  for (size_t o = 0; o < launches.size(); ++o, stop.step())
    model_s_.push_back(counts(o) ? model_time_s(graph, graph.operators()[o], device, type, rates, &launches[o]) : 0);
  dispatches_ = Dispatches(graph, type, model_s_, launches);
}

bool HostedCosts::counts(size_t op) const {
  return graph_.operators()[op].collective < 0 && (left_out_.empty() || !left_out_[op]);
}

HostedTimes HostedCosts::on(const Device& device) const {
  std::vector<double> times_s;
  std::vector<std::pair<size_t, double>> stated;
  for (size_t o = 0; o < model_s_.size(); ++o) {
    times_s.push_back(model_s_[o] / device.speed);
    const auto* own = counts(o) ? stated_on(graph_.operators()[o], device) : nullptr;
    if (!own) continue;
    stated.emplace_back(o, stated_or_model_s(own, times_s[o]));  // which has its waits
    times_s[o] = 0;
  }
  auto dispatch_s = dispatches_.wait(device.speed, times_s);
  for (const auto& [o, time_s] : stated) times_s[o] = time_s;
  auto copies_s = wait_for_copies(graph_, type_, times_s);
  return {std::move(times_s), std::move(dispatch_s), std::move(copies_s)};
}

std::vector<double> operator_times_s(const Graph& graph, const Device& device,
                                     const DeviceType& type) {
  return HostedCosts(graph, type).on(device).times_s;
}

std::vector<StatedTimes> stated_times(const Graph& graph, const Cluster& cluster,
                                      std::span<const int32_t> devices, const CostFunction& cost) {
  std::vector<std::vector<StatedTime>> found(static_cast<size_t>(graph.operator_count()));
  for (const int32_t d : devices) {
    const auto& device = cluster.device(d);
    const auto& type = cluster.type_of(d);
    const auto default_s = operator_times_s(graph, device, type);
    ReachedByType rates(type);
    StopPoll stop;
    for (size_t o = 0; o < found.size(); ++o, stop.step()) {
      const auto& op = graph.operators()[o];
      if (op.collective >= 0) continue;
      const auto time_s = cost(op, device, type, default_s[o]);
      if (!time_s) continue;
      if (!(*time_s >= 0))
        throw ArgumentError("the cost of operator '{}' on device '{}' must be 0 or more seconds, got {}", op.name,
                            device.name, *time_s);
      found[o].push_back({device.type, device.speed, *time_s,
                          model_time_s(graph, op, device, type, rates)});
    }
  }
  std::vector<StatedTimes> times(found.size());
  for (size_t o = 0; o < found.size(); ++o)
    if (!found[o].empty())
      times[o] = std::make_shared<const std::vector<StatedTime>>(std::move(found[o]));
  return times;
}

namespace {

/// Time in which the host dispatches a kernel of an operator.
double dispatch_of(const Operator& op, const DeviceType& type) {
  double result = type.dispatch_s;
  if (!type.operators.empty())
    for (const auto& key : cost_keys(op)) {
      const auto found = type.operators.find(key);
      if (found != type.operators.end()) result = found->second.dispatch_s.value_or(result);
    }
  return result;
}

/// Kernels of an operator: an Einsum with weights has one per expert, its gradient two.
double kernels_of(const Graph& graph, const Operator& op) {
  const auto& product = product_of(graph, op);
  if (operator_rule(product.type).flops != OperatorRule::Flops::einsum || product.outputs.empty() ||
      is_gradient(product) || !is_weight_product(product))
    return 1;
  const auto& shape = graph.tensor(product.outputs[0]).shape;
  if (shape.empty()) return 1;
  return static_cast<double>(shape[0]) * (op.flops > 1.5 * product.flops ? 2 : 1);
}

}  // namespace

Dispatches::Dispatches(const Graph& graph, const DeviceType& type, std::span<const double> times_s,
                       std::span<const double> launches) {
  const bool stated =
      std::any_of(type.operators.begin(), type.operators.end(),
                  [](const auto& entry) { return entry.second.dispatch_s.value_or(0) > 0; });
  if (type.dispatch_s <= 0 && !stated) return;
  std::unordered_map<std::string, int32_t> numbers;  // of runs: by layer, part and phase
  const double updates = type.operators.contains("Update") ? 1 : 0;  // else one kernel for all
  const size_t count = times_s.size();
  run_.assign(count, -1);
  host_s_.assign(count, 0);
  std::vector<std::pair<OperatorType, double>> known;  // dispatch_of() by type
  const auto dispatch_s = [&](const Operator& about) {
    if (keys_vary(about)) return dispatch_of(about, type);
    const auto found = std::ranges::find(known, about.type, &std::pair<OperatorType, double>::first);
    return found != known.end() ? found->second : known.emplace_back(about.type, dispatch_of(about, type)).second;
  };
  const Operator* last = nullptr;  // most operators are in the run of the one before
  int32_t run = -1;
  for (size_t op = 0; op < count; ++op) {
    const auto& about = graph.operators()[op];
    if (about.collective >= 0 || about.measured() || times_s[op] <= 0) continue;
    if (!last || last->name != about.name || last->phase != about.phase) {
      auto name = layer_and_parts(about.name);
      name += static_cast<char>(about.phase);
      run = numbers.try_emplace(std::move(name), static_cast<int32_t>(numbers.size())).first->second;
    }
    last = &about;
    run_[op] = run;
    const double each = about.type == "Update" ? updates : launches.empty() ? kernel_of(graph, about, type).launches
                                                                            : launches[op];
    host_s_[op] = each * kernels_of(graph, about) * dispatch_s(about);
  }
  runs_ = numbers.size();
}

std::vector<double> Dispatches::wait(double speed, std::vector<double>& times_s) const {
  std::vector<double> dispatch_s(times_s.size(), 0), work_s(runs_, 0), host_s(runs_, 0);
  const auto for_run = [&](auto visit) {
    for (size_t op = 0; op < run_.size(); ++op)
      if (run_[op] >= 0 && times_s[op] > 0) visit(op, static_cast<size_t>(run_[op]));
  };
  for_run([&](size_t op, size_t run) {
    work_s[run] += times_s[op];
    host_s[run] += dispatch_s[op] = host_s_[op] / speed;
  });
  for_run([&](size_t op, size_t run) {
    if (host_s[run] > work_s[run]) times_s[op] *= host_s[run] / work_s[run];
  });
  return dispatch_s;
}

}  // namespace trinity
