#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "cluster/cluster.h"
#include "graph/graph.h"

namespace trinity::test {

/// Builds small graphs of operators with given times.
class GraphMaker {
 public:
  explicit GraphMaker(const std::string& name) : builder_(name) {}

  int op(const std::string& name, double time_s, int64_t parameter_bytes = 0) {
    Operator op;
    op.name = name;
    op.type = "Work";
    op.measured_time_s = time_s;
    op.extra_parameter_bytes = parameter_bytes;
    return builder_.add_operator(op);
  }
  int output(int op, int64_t bytes) {
    Tensor tensor;
    tensor.bytes = bytes;
    return builder_.add_output(op, tensor);
  }
  void type(int op, const std::string& type) { builder_.op(op).type = type; }
  void read(int op, int tensor) { builder_.read(op, tensor); }
  /// Adds a tensor of its own from one operator to another.
  void edge(int from, int to, int64_t bytes) { read(to, output(from, bytes)); }
  void colocate(int a, int b) { builder_.colocate(a, b); }
  /// Adds an operator of a phase other than forward.
  int op_of(Phase phase, const std::string& name, double time_s, int forward = -1) {
    const int id = op(name, time_s);
    builder_.op(id).phase = phase;
    builder_.op(id).forward = forward;
    return id;
  }
  void collective(const std::string& name, int64_t bytes, std::vector<int32_t> members,
                  CollectiveKind kind = CollectiveKind::all_reduce,
                  CollectiveAlgorithm algorithm = CollectiveAlgorithm::automatic) {
    builder_.add_collective({name, kind, algorithm, bytes, std::move(members)});
  }
  Graph build() { return builder_.build(); }
  std::shared_ptr<const Graph> share() { return std::make_shared<const Graph>(builder_.build()); }

 private:
  GraphBuilder builder_;
};

/// Equal devices "d0", "d1", ... around one switch; latency and bandwidth are a route's.
inline ClusterSpec uniform_spec(int devices, double bandwidth_bytes_per_s, double latency_s,
                                int64_t memory_bytes = int64_t{16} << 30) {
  ClusterSpec spec;
  spec.name = "uniform";
  DeviceType type;
  type.name = "unit";
  type.peak_flops_per_s[DType::float32] = 1e12;
  type.memory_bandwidth_bytes_per_s = 1e11;
  type.memory_bytes = memory_bytes;
  spec.device_types.push_back(type);
  for (int d = 0; d < devices; ++d) spec.devices.push_back({"d" + std::to_string(d), 0, 1.0, ""});
  for (int d = 0; d < devices; ++d)
    spec.links.push_back({"d" + std::to_string(d), "switch", bandwidth_bytes_per_s, latency_s / 2});
  return spec;
}

/// Sets framework memory on every device in half of the cases, and resident gradients in half.
inline void hold_framework(RandomStream& random, ClusterSpec& spec) {
  const bool keeps = random.below(2) == 0;
  for (auto& type : spec.device_types) {
    type.framework_bytes = random.below(2) == 0 ? static_cast<int64_t>(random.below(1'000'000)) : 0;
    type.keeps_gradients = keeps;
  }
}

inline std::shared_ptr<const Cluster> uniform_cluster(int devices, double bandwidth_bytes_per_s,
                                                      double latency_s) {
  return std::make_shared<const Cluster>(uniform_spec(devices, bandwidth_bytes_per_s, latency_s));
}

/// `nodes` machines "n0", "n1", ... of `members` devices "n0/d0", "n0/d1", ... around a switch of
/// their own, each with one link to the switch "net" that all traffic to other machines shares.
inline ClusterSpec node_spec(int nodes, int members, double inner_bandwidth, double outer_bandwidth,
                             double inner_latency_s, double outer_latency_s) {
  auto spec = uniform_spec(1, 1e9, 0);
  spec.devices.clear();
  spec.links.clear();
  for (int n = 0; n < nodes; ++n) {
    const auto node = "n" + std::to_string(n);
    for (int m = 0; m < members; ++m) {
      const auto name = node + "/d" + std::to_string(m);
      spec.devices.push_back({name, 0, 1.0, ""});
      spec.links.push_back({name, node + "/switch", inner_bandwidth, inner_latency_s / 2});
    }
    spec.links.push_back({node + "/switch", "net", outer_bandwidth, outer_latency_s / 2});
  }
  return spec;
}

/// `nodes` machines of `members` devices "n0/d0", ... around a switch of their own, each with a NIC
/// "n0/nic0" at the switch "net".
inline ClusterSpec rail_spec(int nodes, int members) {
  auto spec = uniform_spec(1, 1e9, 0);
  spec.devices.clear();
  spec.links.clear();
  for (int n = 0; n < nodes; ++n)
    for (int m = 0; m < members; ++m) {
      const auto node = "n" + std::to_string(n), name = node + "/d" + std::to_string(m);
      const auto card = node + "/nic" + std::to_string(m);
      spec.devices.push_back({name, 0, 1.0, ""});
      spec.links.push_back({name, node + "/switch", 3e11, 2e-6});
      spec.links.push_back({name, card, 5e10, 3e-6});
      spec.links.push_back({card, "net", 5e10, 2e-6});
    }
  return spec;
}

/// A random layered graph: every operator reads one to three earlier ones nearby.
inline std::shared_ptr<const Graph> random_graph(RandomStream& random, int operators) {
  GraphMaker make("random");
  std::vector<int> outputs;
  for (int i = 0; i < operators; ++i) {
    const auto time_ns = static_cast<double>(1 + random.below(50000));
    const int op = make.op("op" + std::to_string(i), time_ns * 1e-9,
                           static_cast<int64_t>(random.below(10000)));
    const auto reads = i == 0 ? 0 : random.below(4);
    for (uint64_t r = 0; r < reads; ++r) {
      const auto back =
          1 +
          random.below(static_cast<uint64_t>(std::min<int>(8, static_cast<int>(outputs.size()))));
      make.read(op, outputs[outputs.size() - back]);
    }
    const auto tensors = 1 + random.below(2);
    for (uint64_t t = 0; t < tensors; ++t)
      outputs.push_back(make.output(op, static_cast<int64_t>(random.below(100000))));
  }
  return make.share();
}

inline std::vector<int32_t> random_placement(RandomStream& random, const Graph& graph,
                                             int devices) {
  std::vector<int32_t> unit_device, placement;
  for (int32_t u = 0; u < graph.unit_count(); ++u)
    unit_device.push_back(static_cast<int32_t>(random.below(static_cast<uint64_t>(devices))));
  for (const int32_t unit : graph.units()) placement.push_back(unit_device[unit]);
  return placement;
}

/// The stage of every operator in a graph that names operators by a letter and their stage ("f0",
/// "b12").
inline std::vector<int32_t> stages_of(const Graph& graph) {
  std::vector<int32_t> stage;
  for (const auto& op : graph.operators()) stage.push_back(std::stoi(op.name.substr(1)));
  return stage;
}

}  // namespace trinity::test
