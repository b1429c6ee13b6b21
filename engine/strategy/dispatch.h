#pragma once

#include <span>
#include <vector>

#include "cluster/cluster.h"
#include "graph/graph.h"

namespace trinity {

/// A host dispatches kernels one after the other, DeviceType::dispatch_s each (of operators for
/// which the type states another, that: 0 for kernels in a recorded graph; an Einsum with weights
/// has one kernel per expert, its gradient two), and runs ahead of the device where these take
/// longer. So a run of kernels takes the longer of its kernels' time and the time of
/// dispatching them: if it is the latter, times_s of the run are stretched in
/// proportion. A run is the operators of one name before the first '/' (a layer), of one phase and
/// one part (the numbers after '@'); views, members of collectives and operators that
/// belong to another's kernel (fuses_elementwise, joins_products) are not dispatched, nor are updates
/// unless the type has an entry for them: what the host does for every weight then. times_s:
/// seconds of every operator on a device of this type and speed, by operator_time_s(). Nothing
/// changes without dispatch_s.
class Dispatches {
 public:
  Dispatches() = default;
  /// times_s: operators that take no time are not dispatched. launches: [operator], kernels by what is fused or joined;
  /// empty: they are counted.
  Dispatches(const Graph& graph, const DeviceType& type, std::span<const double> times_s,
             std::span<const double> launches = {});
  /// Returns what the host needs to dispatch the kernels of every operator, in seconds.
  std::vector<double> wait(double speed, std::vector<double>& times_s) const;

 private:
  std::vector<int32_t> run_;    // per operator; -1: not dispatched
  std::vector<double> host_s_;  // per operator, with speed 1
  size_t runs_ = 0;
};

/// operator_times_s() (strategy/cost.h), what the host needs to dispatch every operator (0 where
/// its time is stated), and the part of times_s that waits for copies (strategy/offload.h; empty: none).
struct HostedTimes {
  std::vector<double> times_s, dispatch_s, copies_s;
};

/// These times on devices of one type with different speeds. Operators that are left out take no time and are not
/// dispatched. Refers to the graph.
class HostedCosts {
 public:
  HostedCosts(const Graph& graph, const DeviceType& type, const std::vector<bool>& left_out = {});
  HostedTimes on(const Device& device) const;

 private:
  bool counts(size_t op) const;

  const Graph& graph_;
  const DeviceType& type_;
  std::vector<bool> left_out_;
  std::vector<double> model_s_;  // per operator, with speed 1
  Dispatches dispatches_;
};

}  // namespace trinity
