#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "simulator/analysis.h"
#include "simulator/metrics.h"
#include "simulator/problem.h"

namespace trinity {

/// What a device holds and computes in a step, by kind.
struct DeviceAccount {
  int64_t parameters = 0;       ///< elements of the trainable weights that it holds
  int64_t weight_bytes = 0;     ///< of these and of what is not trained
  int64_t gradient_bytes = 0;   ///< what updates and reductions behind the last micro-batch read
  int64_t optimizer_bytes = 0;  ///< state that stays from step to step
  int64_t gathered_bytes =
      0;  ///< the largest unit of weights that is gathered for its use (ZeRO-3)
  /// Outputs of forward operators that backward operators on the device still wait for, by the
  /// group of the last of these, at the moment when together with what is delayed they are most, of
  /// those when one has just been written. From the end of their task (what was sent to the device:
  /// of the first forward operator that reads it there) to the end of the last of these readers;
  /// data and weights do not count.
  std::vector<int64_t> activation_bytes;
  /// At the same moment, beside these: what weight parts of a backward pass in two still wait for
  /// after their input parts have run (Qi et al. 2024, table 1): activations, and gradients.
  int64_t delayed_bytes = 0;
  double flops = 0;
  /// The step: computing, of that again (recompute()), waiting for messages (Exposure), and idle
  /// for want of work: the bubble of a pipeline. Of a stream all of it, not a step.
  int64_t compute_ns = 0, recompute_ns = 0, idle_ns = 0;
  std::array<int64_t, kPurposes> exposed_ns = {};

  bool operator==(const DeviceAccount&) const = default;
};

/// What the same devices exchange in a step in messages of one kind and size.
struct Traffic {
  bool send = false;  ///< from the first device to the second; else a collective of `kind`
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::vector<int32_t> devices;  ///< of a collective ascending
  Phase phase = Phase::forward;  ///< of who writes it
  int32_t group = 0;
  int64_t bytes = 0;  ///< of one: an all-reduce's tensor, the whole of a gather or a scatter
  int64_t count = 0;

  bool operator==(const Traffic&) const = default;
};

struct Account {
  std::vector<DeviceAccount> devices;
  std::vector<Traffic> traffic;  ///< sorted by its fields in their order
};

/// Accounts for a step that `timeline` tells of. group: of every operator the one, of `groups`,
/// that its activations and messages count to.
Account account(const Problem& problem, std::span<const int32_t> placement,
                const Timeline& timeline, std::span<const int32_t> group, int32_t groups);

}  // namespace trinity
