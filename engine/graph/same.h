#pragma once

#include <algorithm>

#include "graph/types.h"

namespace trinity {

/// Whether operators are equal in all that costs and memory go by, names, inputs, outputs and
/// collectives aside.
inline bool same_work(const Operator& a, const Operator& b) {
  const auto same = [](const Parameter& x, const Parameter& y) {
    return x.shape == y.shape && x.dtype == y.dtype && x.trainable == y.trainable;
  };
  return a.type == b.type && a.phase == b.phase && a.attributes == b.attributes &&
         std::equal(a.parameters.begin(), a.parameters.end(), b.parameters.begin(),
                    b.parameters.end(), same) &&
         a.flops == b.flops && a.traffic_bytes == b.traffic_bytes &&
         a.measured_time_s == b.measured_time_s &&
         a.measured_backward_time_s == b.measured_backward_time_s &&
         a.extra_parameter_bytes == b.extra_parameter_bytes &&
         a.persistent_bytes == b.persistent_bytes && a.workspace_bytes == b.workspace_bytes;
}

/// Whether tensors are equal but for their names and writers.
inline bool same_tensor(const Tensor& a, const Tensor& b) {
  return a.shape == b.shape && a.dtype == b.dtype && a.bytes == b.bytes && a.gradient == b.gradient;
}

}  // namespace trinity
