#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "learn/agent_options.h"
#include "learn/credit.h"
#include "simulator/problem.h"

namespace trinity {

/// Statistics of one update.
struct UpdateReport {
  double mean_reward = 0;
  double loss = 0;      ///< minus the clipped objective and the entropy bonus, before the last step
  double baseline = 0;  ///< after the update
  double entropy_groups = 0;   ///< mean per unit, nats
  double entropy_devices = 0;  ///< mean per group, nats
  double clipped_share = 0;    ///< of actions outside [1 - clip, 1 + clip] in the last epoch
  double gradient_norm = 0;    ///< before clipping, last epoch
  double learning_rate = 0;    ///< of the last epoch
};

/// How imitate() learns.
struct ImitationOptions {
  /// Gradient steps of the schedule network. -1: none for one placement, 40 for several.
  int32_t steps = -1;
  double learning_rate = 5e-3;  ///< of these steps
  /// Share of every group's probability that is spread uniformly over all devices, and of every
  /// unit's that stays where the policy had it: the part left for exploration.
  double smoothing = 0.05;
};

/// Result of imitate().
struct ImitationReport {
  int32_t steps = 0;
  double log_likelihood_groups = 0;   ///< mean per unit, nats
  double log_likelihood_devices = 0;  ///< mean per group, nats
  double agreement = 0;  ///< share of the work that greedy() places as the first placement does
};

/// The processes that learn one policy together. Each has the same agent and bit-identical weights,
/// samples and evaluates its own part of every batch, and learns from all rewards.
/// sum_floats and sum_doubles replace values with their sums over all processes, bit-identical in
/// each; all call them equally often and in the same order. One process needs neither.
struct AgentPeers {
  int32_t rank = 0, size = 1;
  std::function<void(std::span<float>)> sum_floats;
  std::function<void(std::span<double>)> sum_doubles;
};

/// The actions of the latest batch (of this process's samples), for comparison and analysis. Groups
/// are numbered as sampled.
struct BatchActions {
  std::span<const int32_t> groups;   ///< [samples, units]
  std::span<const int32_t> devices;  ///< [samples, groups]
  std::span<const float> group_log_probability, device_log_probability;
};

/// The Trinity policy (papers/notes.md "Trinity: networks") on LibTorch: a partition network samples
/// a group for every colocation unit, a schedule network samples a device for every group; both
/// trained by PPO. Results depend on the options and the problem, not on the thread count; on the
/// number of peers only as far as sums of gradients are rounded differently.
class Agent {
 public:
  /// `pool` runs shards of a batch; LibTorch then uses one thread in each of its threads. Throws
  /// ArgumentError for options out of range, and for fewer samples than peers.
  Agent(std::shared_ptr<const Problem> problem, const AgentOptions& options, ThreadPool& pool,
        AgentPeers peers = {});
  ~Agent();

  /// Samples a batch: `samples` placements of all operators, one after the other; with peers
  /// own_samples() of them, from first_sample() on. The span is valid until the next call.
  std::span<const int32_t> sample();

  /// Learns from the rewards of the latest batch (of all peers), larger is better. `failing` marks
  /// samples (1) that broke a limit, for exclude_failing_after; it may be empty. Throws
  /// ArgumentError when there is no batch, a count differs, or a reward is not finite. `slopes` has
  /// the derivatives of every sample's reward; only action_credit needs them.
  UpdateReport update(std::span<const double> rewards, std::span<const uint8_t> failing = {},
                      std::span<const RewardSlopes> slopes = {});

  /// The most likely grouping with the most likely devices, as a placement of all operators.
  std::vector<int32_t> greedy();

  /// Raises the likelihood of given placements, one after the other in `placements`, each with a
  /// positive weight (empty: all equal). One grouping is inferred for all of them: units with the
  /// same devices everywhere share groups, as near to where the policy puts them as that allows; a
  /// group's device is the device of most of its work. Forgets Adam's moments, baseline and batch.
  ImitationReport imitate(std::span<const int32_t> placements, std::span<const double> weights,
                          const ImitationOptions& options);

  /// Saves weights, Adam's moments, baseline and step (agent_file.cpp gives the format). Throws
  /// FileError.
  void save(const std::string& path) const;
  /// Takes the weights of a saved policy as far as they mean the same here: types by name, groups
  /// by their place, devices when their number agrees. Everything else stays as it is. Returns the
  /// share of this policy's weights that came from the file. Throws FileError.
  double load(const std::string& path);
  /// Continues a saved run byte for byte. Throws FileError when problem or options differ.
  void resume(const std::string& path);

  BatchActions actions() const;
  int32_t groups() const;
  int32_t units() const;
  const AgentOptions& options() const;
  int64_t parameter_count() const;
  int64_t gradient_steps() const;
  int32_t first_sample() const;  ///< from 0, of those in a batch that this process draws
  int32_t own_samples() const;

  struct Impl;  ///< agent_impl.h

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace trinity
