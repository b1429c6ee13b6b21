#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "learn/features.h"
#include "simulator/problem.h"

namespace trinity {

/// Everything that may be set about the Trinity search. The defaults are what works best here;
/// paper() gives the settings that the article prints (papers.md 1.7).
struct AgentOptions {
  uint64_t seed = 1;
  int32_t groups = 0;    ///< 0: min(256, 20 x devices, units)
  int32_t samples = 16;  ///< placements per policy update
  int32_t epochs = 4;    ///< gradient steps on one batch of samples
  double learning_rate = 2e-3;
  double clip = 0.2;             ///< PPO's epsilon, per action
  double entropy_weight = 1e-2;  ///< bonus per action, in units of the advantage
  double gradient_norm = 1.0;    ///< global norm that gradients are clipped to
  double temperature = 10;       ///< eq. 9: softmax(C tanh(u / T))
  double tanh_constant = 5;
  double baseline_n = 19;      ///< N of eq. 15; the decay is (N - 1) / (N + 1)
  double noise_amplitude = 0;  ///< uniform noise on logits while sampling, outside the ratio
  int32_t noise_steps = 0;     ///< batches during which there is noise
  double dropout = 0;  ///< in the partition network; one mask per batch, kept for all epochs
  /// Divides R - b by its root mean square in the batch or its EMA, whichever is larger: a policy
  /// that has settled is not shaken by noise.
  bool normalise_advantage = true;
  /// Numbers the groups of a sample by the mean place of their members in topological order before
  /// the schedule network sees them, empty ones last: its decoder walks from inputs to loss.
  bool order_groups = true;
  /// Probability with which the untrained schedule network leaves the previous group's device: the
  /// first placements then have few cuts. 0: no such start, every device alike.
  double switch_probability = 0.1;
  /// How strongly the untrained partition network puts units with neighbouring shares of the work
  /// into one group (see PartitionNet::start_contiguous). 0: not at all.
  double contiguity = 6;
  int32_t hidden = 256;  ///< width of each direction of the encoder
  FeatureOptions features;

  static AgentOptions paper();
};

/// What one update did.
struct UpdateReport {
  double mean_reward = 0;
  double baseline = 0;         ///< after the update
  double entropy_groups = 0;   ///< mean per unit, nats
  double entropy_devices = 0;  ///< mean per group, nats
  double clipped_share = 0;    ///< of actions outside [1 - clip, 1 + clip] in the last epoch
  double gradient_norm = 0;    ///< before clipping, last epoch
};

/// The Trinity policy (papers.md 1.4): a partition network draws a group for every colocation unit,
/// a schedule network draws a device for every group; both trained by PPO with per-action ratios
/// (1.5, 1.9 item 13). Results depend on the options and the problem, not on the thread count.
class Agent {
 public:
  /// `pool` runs shards of a batch; its threads must run LibTorch single-threaded
  /// (use_one_torch_thread). Throws ArgumentError for options out of range.
  Agent(std::shared_ptr<const Problem> problem, const AgentOptions& options, ThreadPool& pool);
  ~Agent();

  /// Draws a batch: `samples` placements of all operators, one after the other. The span is valid
  /// until the next call.
  std::span<const int32_t> sample();

  /// Learns from the rewards of the latest batch, larger is better. Throws ArgumentError when
  /// there is no batch, the count differs, or a reward is not finite.
  UpdateReport update(std::span<const double> rewards);

  /// The most likely grouping with the most likely devices, as a placement of all operators.
  std::vector<int32_t> greedy();

  int32_t groups() const;
  const AgentOptions& options() const;
  int64_t parameter_count() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Makes LibTorch and its BLAS use one thread in the calling thread, and malloc keep freed memory
/// (tensors of some megabytes would otherwise be mapped and cleared anew every time).
void use_one_torch_thread();

/// LibTorch's version and the BLAS library that the process has loaded, for a start-up line;
/// `slow` is set when it is the reference BLAS (about 16 times slower than OpenBLAS).
struct TorchDescription {
  std::string text;
  bool slow = false;
};
TorchDescription describe_torch();

}  // namespace trinity
