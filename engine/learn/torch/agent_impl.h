#pragma once

#include <limits>
#include <optional>

#include "base/random.h"
#include "learn/torch/agent.h"
#include "learn/torch/networks.h"

namespace trinity {

struct Objective {
  torch::Tensor value;  ///< scalar, to be maximised
  double clipped = 0;   ///< share of ratios outside [1 - clip, 1 + clip]
};

/// PPO's clipped objective (eq. 14 of papers/notes.md "Trinity: equations"): the sum over samples
/// of `weight` [S] of the means over columns of min(r A, clip(r, 1 - eps, 1 + eps) A), divided by
/// `batch`, the number of samples of all processes. r is the exponential of `log_ratio` [S, n],
/// kept within +-20; `advantage` is [S, 1] or [S, n].
Objective clipped_objective(const torch::Tensor& log_ratio, const torch::Tensor& advantage,
                            const torch::Tensor& weight, double clip, double batch);

/// The state of an agent and the steps of its methods; agent.cpp samples, agent_learn.cpp learns,
/// agent_imitate.cpp imitates, agent_file.cpp saves and loads.
struct Agent::Impl {
  Impl(std::shared_ptr<const Problem> problem_in, const AgentOptions& options_in,
       ThreadPool& pool_in, AgentPeers peers_in = {});

  /// Samples [first, first + count) of a batch, which one task of the pool samples and evaluates.
  struct Shard {
    Shard(const Impl& agent, int64_t first_sample, int64_t samples);

    int64_t first, count;
    torch::Tensor groups;                         ///< embeddings [K, S, W]
    torch::Tensor prior;                          ///< constant logits [S, K, D]
    torch::Tensor devices;                        ///< chosen [S, K], int64
    std::optional<ScheduleNet::Encoded> encoded;  ///< of the weights as they are, if known
    torch::Tensor rows;                           ///< log-probabilities [S, K, D]
  };

  // Sampling.
  void sample();
  void draw_mask();
  void forward_partition();
  int32_t draw_group(int64_t unit, RandomStream& random) const;
  void draw_groups(Shard& shard, int64_t row);
  std::vector<int32_t> order(std::span<int32_t> group) const;
  void embed(std::span<const int32_t> grouping, std::span<const int32_t> labels, Shard& shard,
             int64_t row) const;
  void draw_devices(Shard& shard, const ScheduleNet::Choose& choose) const;
  void expand(std::span<const int32_t> groups_of, std::span<const int32_t> devices_of,
              std::vector<int32_t>& out) const;
  std::vector<int32_t> greedy();

  // Learning. A gradient step is forward, objective, backward, apply.
  UpdateReport update(std::span<const double> rewards, std::span<const uint8_t> weight,
                      std::span<const RewardSlopes> slopes);
  // Computes the contribution of every action (agent_credit.cpp).
  void assign_credit(std::span<const RewardSlopes> slopes);
  void credit_sample(const Shard& shard, int64_t row, const RewardSlopes& slopes,
                     CreditEstimator& estimator);
  void credit_groups(int64_t sample, const RewardSlopes& slopes, CreditEstimator& estimator);
  void credit_devices(const Shard& shard, int64_t row, const RewardSlopes& slopes,
                      CreditEstimator& estimator);
  void epoch(const torch::Tensor& advantage, const torch::Tensor& weight, UpdateReport& report);
  void evaluate(Shard& shard) const;
  void forward();
  torch::Tensor join(torch::Tensor Shard::*field) const;
  torch::Tensor taken_groups() const;
  torch::Tensor taken_devices() const;
  Objective objective(const torch::Tensor& by_unit, const torch::Tensor& by_group,
                      const torch::Tensor& advantage, const torch::Tensor& weight) const;
  void report_objective(const Objective& objective, UpdateReport& report);
  void backward(const torch::Tensor& by_unit, const torch::Tensor& by_group);
  double apply(double rate);
  void weights_changed();
  double learning_rate() const;
  double entropy_weight() const;
  void move_baseline(double mean);

  class Imitation;  // agent_imitate.cpp

  const float* unit_row(int64_t unit) const { return group_rows.data_ptr<float>() + unit * groups; }
  torch::Tensor to_device(const torch::Tensor& tensor) const {
    return tensor.to(weights.values.device());
  }
  uint64_t stream(int64_t sample) const {
    return batch * static_cast<uint64_t>(options.samples) +
           static_cast<uint64_t>(first_sample + sample);
  }
  /// Weight of this process in a mean over the samples of all processes.
  double own_share() const { return static_cast<double>(samples) / options.samples; }
  double noise() const {
    return batch <= static_cast<uint64_t>(options.noise_steps) ? options.noise_amplitude : 0;
  }
  void forget_batch() { sampled = false; }
  uint64_t problem_hash() const;

  std::shared_ptr<const Problem> problem;
  AgentOptions options;
  AgentPeers peers;
  int32_t first_sample, samples;  // of options.samples the ones that are sampled here
  ThreadPool& pool;
  UnitGraph units;
  std::vector<int32_t> deciding;  // the unit whose device every operator takes
  UnitFeatures features;
  int32_t groups;
  GroupFeatures embedder;
  PartitionShape partition_shape;
  ScheduleShape schedule_shape;
  Parameters layout;  // names and shapes, and what they were initialised to
  PolicyWeights weights;
  PartitionNet partition;
  ScheduleNet schedule;
  torch::Tensor mask;  // dropout's [U, 64]; undefined: none
  /// Constant logits of devices for every group as sampled [groups, devices]; empty for none.
  std::vector<float> device_prior;

  // The latest batch, S samples of it: the group of every unit as sampled and as the schedule network
  // numbers it, the device of every group.
  std::vector<int32_t> group_of, ordered_group, devices, placements;  // [S, U], [S, U], [S, K]
  torch::Tensor drawn_groups;                                         // [S, U], int64
  torch::Tensor unit_rows;                  // the partition network's log-probabilities [U, K]
  torch::Tensor group_rows, group_chances;  // the same and their exponentials, on the CPU
  torch::Tensor old_group, old_device;      // log-probabilities when sampled [S, U], [S, K]
  std::vector<Shard> shards;
  std::vector<double> group_credit, device_credit;           // [S, U], [S, K]
  std::vector<std::unique_ptr<CreditEstimator>> estimators;  // one a shard
  torch::Tensor gradient;                                    // as weights.values
  uint64_t batch = 0;
  bool sampled = false;
  // EMAs over batches: of the mean reward, and of the mean squared advantage.
  double baseline = std::numeric_limits<double>::quiet_NaN();
  double squares = std::numeric_limits<double>::quiet_NaN();
};

/// Log-probabilities [S, K] of devices [S, K] among rows [S, K, D].
torch::Tensor chosen(const torch::Tensor& rows, const torch::Tensor& devices);

/// Mean entropy of rows of log-probabilities [..., n], nats.
torch::Tensor entropy(const torch::Tensor& rows);

}  // namespace trinity
