#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "simulator/analysis.h"
#include "simulator/metrics.h"
#include "simulator/problem.h"

namespace trinity {

/// Memory and time of one device in a step, broken down by purpose.
struct DeviceAccount {
  int64_t parameters = 0;       ///< elements of the trainable weights that it holds
  int64_t weight_bytes = 0;     ///< of trained and untrained weights
  /// gradients that updates and reductions read after the last micro-batch
  int64_t gradient_bytes = 0;
  int64_t optimizer_bytes = 0;  ///< optimiser state
  int64_t gathered_bytes =
      0;  ///< the largest unit of weights gathered for use (ZeRO-3)
  /// Peak activation bytes: outputs of forward operators that backward operators on the device
  /// still need, split by the group of their last reader. Data and weights do not count. An output
  /// counts from the end of its task (a received copy: of its first forward reader) to the end of
  /// its last backward reader. Sampled at the write that maximises activations + delayed_bytes.
  std::vector<int64_t> activation_bytes;
  /// At the same moment: activations and gradients that weight-gradient (W) operators still need
  /// after their input-gradient (B) operators have run (Qi et al. 2024, table 1).
  int64_t delayed_bytes = 0;
  double flops = 0;
  /// Parts of the step: computing, the recomputation and the waits for copies to or from the host in that, waiting for
  /// messages (exposed_ns, see Exposure), and idle without work (the pipeline bubble). For a stream: of the whole run.
  int64_t compute_ns = 0, recompute_ns = 0, host_wait_ns = 0, idle_ns = 0;
  std::array<int64_t, kPurposes> exposed_ns = {};

  bool operator==(const DeviceAccount&) const = default;
};

/// Messages of one type and size that the same devices exchange in a step.
struct Traffic {
  /// point-to-point, from the first device to the second; else a collective of `kind`
  bool send = false;
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::vector<int32_t> devices;  ///< ascending for a collective
  Phase phase = Phase::forward;  ///< of the operator that writes it
  int32_t group = 0;
  /// of one message: an all-reduce's tensor, the full tensor of a gather or a scatter
  int64_t bytes = 0;
  int64_t count = 0;

  bool operator==(const Traffic&) const = default;
};

struct Account {
  std::vector<DeviceAccount> devices;
  std::vector<Traffic> traffic;  ///< sorted by its fields in their order
};

/// Breaks down the step of `timeline`. group: [operator], in [0, groups): the group that its
/// activations and messages are attributed to.
Account account(const Problem& problem, std::span<const int32_t> placement,
                const Timeline& timeline, std::span<const int32_t> group, int32_t groups);

}  // namespace trinity
