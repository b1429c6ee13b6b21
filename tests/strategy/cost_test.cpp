#include "strategy/cost.h"

#include <doctest/doctest.h>

#include "strategy/dispatch.h"
#include "support/cases.h"

using namespace trinity;

namespace {

/// A convolution [8, 4, 10, 10] with weights [16, 4 / group, 3, 3], and a Relu after it.
Graph conv_net(int64_t group, DType dtype = DType::float32) {
  GraphBuilder builder("net");
  const auto add = [&](Operator op, std::vector<int64_t> shape) {
    return builder.add_output(builder.add_operator(std::move(op)),
                              {.shape = std::move(shape), .dtype = dtype});
  };
  const int32_t x = add({.name = "x", .type = "Input"}, {8, 4, 10, 10});
  const int32_t y = add({.name = "conv", .type = "Conv", .attributes = {{"group", group}},
                         .parameters = {{"weight", {16, 4 / group, 3, 3}, dtype}},
                         .inputs = {x}, .flops = 1e9}, {8, 16, 10, 10});
  add({.name = "relu", .type = "Relu", .inputs = {y}, .flops = 12800}, {8, 16, 10, 10});
  return builder.build();
}

DeviceType machine() {
  DeviceType type;
  type.name = "machine";
  type.peak_flops_per_s = {{DType::float32, 1e12}, {DType::float16, 4e12}};
  type.memory_bandwidth_bytes_per_s = 1e9;
  type.memory_bytes = 1 << 30;
  type.launch_s = 1e-6;
  type.compute_efficiency = 0.5;
  type.memory_efficiency = 0.8;
  return type;
}

}  // namespace

TEST_CASE("the roofline: launch plus the slower of arithmetic and traffic, unless measured") {
  const auto graph = conv_net(1);
  const Device device{"d", 0, 2.0, ""};
  // 1e9 FLOP at half of 1e12 FLOP/s: 2 ms; traffic 12.8 KB in, 51.2 KB out, 2304 B of weights.
  CHECK(operator_time_s(graph, graph.op(1), device, machine()) ==
        doctest::Approx((1e-6 + 2e-3) / 2));
  // 102,400 bytes at 0.8 GB/s.
  CHECK(operator_time_s(graph, graph.op(2), device, machine()) ==
        doctest::Approx((1e-6 + 102400 / 0.8e9) / 2));
  CHECK(operator_time_s(graph, graph.op(0), device, machine()) == 0);
  auto view = graph.op(2);
  view.type = "Reshape";
  CHECK(operator_time_s(graph, view, device, machine()) == 0);
  view.measured_time_s = 3e-3;
  CHECK(operator_time_s(graph, view, device, machine()) == doctest::Approx(3e-3 / 2));
}

TEST_CASE("peaks are per dtype, float32's where a device states none") {
  const Device device{"d", 0, 1.0, ""};
  const auto half = conv_net(1, DType::float16), other = conv_net(1, DType::bfloat16);
  CHECK(operator_time_s(half, half.op(1), device, machine()) == doctest::Approx(1e-6 + 0.5e-3));
  CHECK(operator_time_s(other, other.op(1), device, machine()) == doctest::Approx(1e-6 + 2e-3));
}

TEST_CASE("a device type states what kernels of an operator type reach") {
  auto type = machine();
  type.operators["Relu"] = {{}, 0.4, 3e-6, {}, {}};
  type.operators["Conv"] = {0.25, {}, {}, {}, {}};
  type.operators["DepthwiseConv"] = {0.05, {}, {}, {}, {}};
  const Device device{"d", 0, 1.0, ""};
  const auto graph = conv_net(1), depthwise = conv_net(4);
  CHECK(operator_time_s(graph, graph.op(1), device, type) == doctest::Approx(1e-6 + 4e-3));
  CHECK(operator_time_s(graph, graph.op(2), device, type) ==
        doctest::Approx(3e-6 + 102400 / 0.4e9));
  CHECK(cost_keys(depthwise.op(1)) == std::vector<std::string>{"Conv", "DepthwiseConv"});
  CHECK(operator_time_s(depthwise, depthwise.op(1), device, type) == doctest::Approx(1e-6 + 20e-3));
}

TEST_CASE("a gradient has its own efficiency, or the efficiency of its forward type") {
  auto type = machine();
  type.operators["Conv"] = {0.25, {}, {}, {}, {}};
  const Device device{"d", 0, 1.0, ""};
  const auto graph = conv_net(1);
  Operator grad = graph.op(1);
  grad.type = "ConvGrad";
  CHECK(operator_time_s(graph, grad, device, type) == doctest::Approx(1e-6 + 4e-3));
  type.operators["ConvGrad"] = {0.125, {}, {}, {}, {}};
  CHECK(operator_time_s(graph, grad, device, type) == doctest::Approx(1e-6 + 8e-3));
  CHECK(operator_time_s(graph, graph.op(1), device, type) == doctest::Approx(1e-6 + 4e-3));
}

namespace {

/// x [4, 6] into three matmuls of 8, 16 and 8 columns whose results are joined by Add and Relu, and
/// the gradients of the products with their sum.
struct Products {
  Graph graph;
  int32_t product(int32_t k) const { return graph.find("p" + std::to_string(k)); }
  double time_s(const char* name, const DeviceType& type) const {
    return operator_time_s(graph, graph.op(graph.find(name)), {"d", 0, 1.0, ""}, type);
  }
};

/// own_kernel: what Add has as its attribute of that name; scale: of all widths.
Products products(int64_t own_kernel = 0, int64_t scale = 1) {
  GraphBuilder builder("products");
  const auto add = [&](const char* name, const char* type, Phase phase, std::vector<int32_t> inputs,
                       std::vector<int64_t> shape, double flops, int32_t forward = -1,
                       std::vector<Parameter> weights = {}) {
    Operator op{.name = name, .type = type, .phase = phase, .parameters = std::move(weights),
                .inputs = std::move(inputs), .flops = flops, .forward = forward};
    if (op.type == "Add" && own_kernel != 0) op.attributes["own_kernel"] = own_kernel;
    const int32_t id = builder.add_operator(std::move(op));
    return std::pair{id, builder.add_output(id, {.shape = std::move(shape)})};
  };
  const auto [input, x] = add("x", "Input", Phase::forward, {}, {4, 6 * scale}, 0);
  std::vector<int32_t> results, gradients, forward;
  for (const int64_t columns : {8 * scale, 16 * scale, 8 * scale}) {
    const auto name = "p" + std::to_string(results.size());
    const auto [id, y] = add(name.c_str(), "Gemm", Phase::forward, {x}, {4, columns},
                             2.0 * 4 * 6 * static_cast<double>(scale * columns), -1,
                             {{"weight", {6 * scale, columns}, DType::float32, true}});
    results.push_back(y);
    forward.push_back(id);
  }
  const auto sum = add("layer/add", "Add", Phase::forward, {results[0], results[2]}, {4, 8}, 32).second;
  add("layer/relu", "Relu", Phase::forward, {sum}, {4, 8}, 32);
  for (size_t k = 0; k < 3; ++k) {
    const auto name = "g" + std::to_string(k);
    gradients.push_back(add(name.c_str(), "GemmGrad", Phase::backward, {results[k], x}, {4, 6}, 1000,
                            forward[k]).second);
  }
  add("total", "Sum", Phase::backward, gradients, {4, 6}, 48);
  add("update", "Update", Phase::update, {gradients[0]}, {1}, 8);
  return {builder.build()};
}

}  // namespace

TEST_CASE("narrow matmuls reach less of the peak") {
  auto type = machine();
  type.launch_s = 0;
  type.memory_bandwidth_bytes_per_s = 1e18;
  const auto made = products();
  const double wide = made.time_s("p1", type), gradient = made.time_s("g0", type);
  type.half_width = 6;  // 6 is summed over, which is less than the columns
  CHECK(made.time_s("p1", type) == doctest::Approx(2 * wide));
  CHECK(made.time_s("g0", type) == doctest::Approx(2 * gradient));
  const double peak = type.peak_flops_per_s.at(DType::float32);
  type.peak_flops_per_s[DType::float16] = 3 * peak;  // float32 starts as fast and ends slower
  CHECK(made.time_s("p1", type) == doctest::Approx(wide * (1 + 1.0 / 3)));
  type.peak_flops_per_s[DType::float16] = peak / 3;
  CHECK(made.time_s("p1", type) == doctest::Approx(2 * wide));
}

TEST_CASE("matmuls with weights whose rows are no multiple of 128 bytes reach less") {
  auto type = machine();
  type.launch_s = 0;
  type.memory_bandwidth_bytes_per_s = 1e18;
  auto slower = type;
  slower.operators["UnalignedMatMul"].compute = type.compute_efficiency / 2;
  const auto narrow = products(), wide = products(0, 32);  // of 24 and of 768 bytes
  for (const char* name : {"p1", "g0"}) {
    CHECK(narrow.time_s(name, slower) == doctest::Approx(2 * narrow.time_s(name, type)));
    CHECK(wide.time_s(name, slower) == wide.time_s(name, type));
  }
  CHECK(narrow.time_s("layer/relu", slower) == narrow.time_s("layer/relu", type));
}

TEST_CASE("element-wise operators in a row are one kernel") {
  auto type = machine();
  type.fuses_elementwise = true;
  const auto made = products();
  // Two results read, nothing written: 256 bytes at 0.8 GB/s. The launch is the last one's.
  CHECK(made.time_s("layer/add", type) == doctest::Approx(256 / 0.8e9));
  CHECK(made.time_s("layer/relu", type) == doctest::Approx(1e-6 + 128 / 0.8e9));
  CHECK(made.time_s("update", type) < 1e-6);
  const auto apart = products(1);
  const auto plain = machine();
  for (const char* name : {"layer/add", "layer/relu"})
    CHECK(apart.time_s(name, type) == made.time_s(name, plain));
  auto dispatched = type;
  dispatched.dispatch_s = 1;
  std::vector<double> times_s(static_cast<size_t>(apart.graph.operator_count()), 1e-3);
  Dispatches(apart.graph, dispatched, times_s).wait(1, times_s);
  CHECK(times_s[static_cast<size_t>(apart.graph.find("layer/relu"))] == doctest::Approx(1));
}

TEST_CASE("a run of kernels takes as long as the host needs to dispatch them") {
  auto type = machine();
  const auto made = products();
  const auto count = static_cast<size_t>(made.graph.operator_count());
  const auto add = static_cast<size_t>(made.graph.find("layer/add"));
  const auto relu = static_cast<size_t>(made.graph.find("layer/relu"));
  const std::vector<double> whole(count, 1e-3);
  auto times_s = whole;
  Dispatches(made.graph, type, times_s).wait(1, times_s);
  CHECK(times_s == whole);
  type.dispatch_s = 0.9e-3;  // two kernels of 1 ms take longer
  Dispatches(made.graph, type, times_s).wait(1, times_s);
  CHECK(times_s[add] == 1e-3);
  type.dispatch_s = 3e-3;
  Dispatches(made.graph, type, times_s).wait(1, times_s);
  CHECK(times_s[add] == doctest::Approx(3e-3));
  CHECK(times_s[relu] == doctest::Approx(3e-3));
  type.fuses_elementwise = true;  // one kernel, which takes 2 ms
  times_s = whole;
  Dispatches(made.graph, type, times_s).wait(2, times_s);
  CHECK(times_s[add] == 1e-3);
  type.dispatch_s = 8e-3;  // on a device of twice the speed
  Dispatches(made.graph, type, times_s).wait(2, times_s);
  CHECK(times_s[add] + times_s[relu] == doctest::Approx(4e-3));
  type.fuses_elementwise = false;
  type.dispatch_s = 0;  // recorded, but for one operator that is several kernels
  type.operators[made.graph.op(static_cast<int32_t>(add)).type].dispatch_s = 5e-3;
  times_s = whole;
  Dispatches(made.graph, type, times_s).wait(1, times_s);
  CHECK(times_s[add] + times_s[relu] == doctest::Approx(5e-3));
  type.dispatch_s = 4e-3;
  type.operators[made.graph.op(static_cast<int32_t>(add)).type].dispatch_s = 0;
  times_s = whole;
  Dispatches(made.graph, type, times_s).wait(1, times_s);
  CHECK(times_s[add] + times_s[relu] == doctest::Approx(4e-3));
}

TEST_CASE("updates wait for the host where the type says what it does for a weight") {
  GraphBuilder builder("updates");
  for (const char* name : {"layer/a/update", "layer/b/update"})
    builder.add_operator({.name = name, .type = "Update", .phase = Phase::update});
  const Graph graph = builder.build();
  auto type = machine();
  const std::vector<double> whole(2, 1e-3);
  auto times_s = whole;
  type.dispatch_s = 5e-3;  // of kernels: one updates all weights
  Dispatches(graph, type, times_s).wait(1, times_s);
  CHECK(times_s == whole);
  type.operators["Update"].dispatch_s = 4e-3;
  Dispatches(graph, type, times_s).wait(1, times_s);
  CHECK(times_s[0] + times_s[1] == doctest::Approx(8e-3));
}

TEST_CASE("matmuls of one input are one kernel") {
  auto type = machine();
  const auto made = products();
  const double one = made.time_s("p1", type) - 1e-6;
  type.joins_products = true;
  // A third of the launch; of three reads of x (96 bytes) one remains.
  CHECK(made.time_s("p1", type) == doctest::Approx(1e-6 / 3 + one - 64 / 0.8e9));
  CHECK(made.time_s("total", type) == 0);
  type.joins_products = false;
  CHECK(made.time_s("total", type) > 1e-6);
}

TEST_CASE("arithmetic and traffic hide each other, or follow each other") {
  auto type = machine();
  const auto made = products();
  const double flops_s = 768 / 0.5e12, bytes_s = (96 + 256 + 384) / 0.8e9;
  CHECK(made.time_s("p1", type) == doctest::Approx(1e-6 + bytes_s));
  type.overlap = 0;
  CHECK(made.time_s("p1", type) == doctest::Approx(1e-6 + bytes_s + flops_s));
}

TEST_CASE("the weights of a variable count once, and on another device as a copy") {
  GraphBuilder builder("tied");
  const int32_t weights = builder.add_operator(
      {.name = "weights", .type = "Variable", .parameters = {{"weight", {1000}}}});
  const int32_t w = builder.add_output(weights, {.shape = {1000}});
  for (const char* name : {"a", "b"}) {
    const int32_t reader = builder.add_operator(
        {.name = name, .type = "Work", .inputs = {w}, .measured_time_s = 1e-3});
    builder.add_output(reader, {.bytes = 100});
  }
  const auto graph = std::make_shared<const Graph>(builder.build());
  const auto problem = test::make_problem(graph, test::uniform_spec(2, 1e9, 0));
  const std::vector<int32_t> together = {0, 0, 0}, apart = {0, 0, 1};
  auto metrics = test::metrics_of(problem, {together});
  CHECK(metrics.peak_memory_bytes == 4000 + 100);
  CHECK(metrics.total_communication_bytes == 0);
  metrics = test::metrics_of(problem, {apart});
  CHECK(metrics.devices[0].peak_memory_bytes == 4000 + 100);
  CHECK(metrics.devices[1].peak_memory_bytes == 4000 + 100);
  CHECK(metrics.total_communication_bytes == 4000);
}

TEST_CASE("convolutions of 3 x 3 and TensorFlow's have the names of their kind") {
  using Keys = std::vector<std::string>;
  Operator op;
  op.type = "ConvGrad";
  op.attributes["kernel_shape"] = std::vector<int64_t>{3, 3};
  CHECK(cost_keys(op) == Keys{"Conv", "ConvGrad", "Conv3x3", "Conv3x3Grad"});
  op.attributes["strides"] = std::vector<int64_t>{2, 2};
  CHECK(cost_keys(op) == Keys{"Conv", "ConvGrad"});
  op.type = "DepthwiseConv2dNativeBackpropFilter";
  CHECK(cost_keys(op) == Keys{"DepthwiseConv", "DepthwiseConvGrad"});
  op.type = "Relu";
  CHECK(cost_keys(op) == Keys{"Relu"});
  CHECK(is_cost_key("Conv3x3Grad"));
  CHECK(is_cost_key("UnalignedMatMul"));
  CHECK_FALSE(is_cost_key("Conv5x5"));
  CHECK(is_cost_key("Conv:float16"));
  CHECK_FALSE(is_cost_key("Conv:float17"));
  CHECK_FALSE(is_cost_key("Conv5x5:float16"));
}
