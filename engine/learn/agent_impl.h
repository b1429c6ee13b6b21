#pragma once

#include <limits>

#include "base/random.h"
#include "learn/agent.h"
#include "learn/partition_passes.h"
#include "learn/schedule_passes.h"
#include "learn/torch_policy.h"

namespace trinity {

/// The state of an agent and the steps of its methods; agent.cpp samples and learns,
/// agent_imitate.cpp imitates, agent_file.cpp saves and loads.
struct Agent::Impl {
  Impl(std::shared_ptr<const Problem> problem_in, const AgentOptions& options_in,
       ThreadPool& pool_in, AgentPeers peers_in = {});

  void check_memory() const;
  void make_passes();

  // Sampling.
  void sample();
  void sample_by_torch();
  std::vector<float> group_rows();
  std::vector<float> prior_rows();
  void draw_masks(uint64_t index);
  void forward_partition();
  int32_t draw_group(int32_t sample, int64_t unit, RandomStream& random) const;
  void draw_groups(int32_t sample);
  std::vector<int32_t> order(std::span<int32_t> group) const;
  void embed(std::span<const int32_t> grouping, std::span<const int32_t> labels,
             SchedulePasses& pass, int32_t row) const;
  void expand(std::span<const int32_t> groups_of, std::span<const int32_t> devices_of,
              std::vector<int32_t>& out) const;
  std::vector<int32_t> greedy();

  // Learning. A gradient step is forward, coefficients, backward, apply.
  UpdateReport update(std::span<const double> rewards, std::span<const uint8_t> weight,
                      std::span<const RewardSlopes> slopes);
  // What single actions contribute (agent_credit.cpp).
  void assign_credit(std::span<const RewardSlopes> slopes);
  void credit_sample(int32_t sample, const RewardSlopes& slopes, CreditEstimator& estimator);
  void credit_groups(int32_t sample, const RewardSlopes& slopes, CreditEstimator& estimator);
  void credit_devices(int32_t sample, const RewardSlopes& slopes, CreditEstimator& estimator);
  void epoch(int32_t index, std::span<const double> advantage, std::span<const uint8_t> weight,
             UpdateReport& report);
  void forward();
  void refresh_masks(int32_t epoch);
  void gather_groups();
  Objective set_coefficients(std::span<const double> advantage, std::span<const uint8_t> weight,
                             double batch_size);
  void report_objective(const Objective& objective, UpdateReport& report);
  void backward(double entropy_weight);
  void sum_parts(size_t first);
  double apply(double rate);
  void pack();
  double learning_rate() const;
  double entropy_weight() const;
  std::vector<double> advantages(std::span<const double> rewards, double scale) const;
  void move_baseline(double mean);

  // Imitation (agent_imitate.cpp).
  ImitationReport imitate(std::span<const int32_t> given, std::span<const double> weights_given,
                          const ImitationOptions& how);
  std::vector<std::vector<int32_t>> unit_devices(std::span<const int32_t> given) const;
  std::vector<double> unit_work() const;
  std::vector<int32_t> infer_groups(const std::vector<std::vector<int32_t>>& device_of,
                                    const std::vector<double>& weights);
  double set_prior(const std::vector<int32_t>& target, double smoothing);
  void devices_of_groups(std::span<const int32_t> grouping, const std::vector<int32_t>& device_of,
                         std::span<int32_t> out) const;
  void imitation_row(SchedulePasses& pass, int32_t row, uint64_t stream,
                     const std::vector<int32_t>& target, const std::vector<int32_t>& device_of);
  void set_device_prior(const std::vector<int32_t>& target,
                        const std::vector<std::vector<int32_t>>& device_of,
                        const std::vector<double>& weights, double smoothing);
  void teach(const std::vector<int32_t>& target, const std::vector<std::vector<int32_t>>& device_of,
             const std::vector<double>& weights, const ImitationOptions& how);
  void teaching_step(std::vector<SchedulePasses>& rounds,
                     const std::vector<std::vector<float>>& coefficients, float uniform,
                     double rate);
  double agreement(const std::vector<int32_t>& device_of);

  int32_t shards() const { return static_cast<int32_t>(passes.size()); }
  int32_t first_of(int32_t shard) const {
    return static_cast<int32_t>(int64_t{samples} * shard / shards());
  }
  int32_t shard_of(int32_t sample) const;
  SchedulePasses& pass_of(int32_t sample, int32_t& index) {
    const int32_t shard = shard_of(sample);
    index = sample - first_of(shard);
    return passes[shard];
  }
  uint64_t stream(int32_t sample) const {
    return batch * static_cast<uint64_t>(options.samples) +
           static_cast<uint64_t>(first_sample + sample);
  }
  /// The weight of this process in a sum of means over the samples of every process.
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
  /// Constant logits of devices for every group as sampled [groups, devices]; empty for none.
  std::vector<float> device_prior;
  Parameters parameters;
  AdamState adam;
  std::unique_ptr<ScheduleLayout> layout;
  std::unique_ptr<PartitionPasses> partition;
  std::unique_ptr<PackedSchedule> packed;
  std::vector<SchedulePasses> passes;         // one a shard
  std::unique_ptr<TorchPolicy> torch_policy;  // instead of passes on a GPU

  // The latest batch, S samples of it: the group of every unit as sampled and as the schedule
  // network numbers it, log-probabilities of the samples then and now, their coefficients.
  std::vector<int32_t> group_of, ordered_group, devices, placements;  // [S, U], [S, U], [S, K]
  std::vector<float> old_group, group_taken, group_coefficient;       // [S, U]
  std::vector<float> old_device, device_taken, device_coefficient;    // [S, K]
  std::vector<double> group_credit, device_credit;                    // [S, U], [S, K]
  std::vector<std::unique_ptr<CreditEstimator>> estimators;           // one a shard
  std::vector<std::vector<float>> gradient_parts;
  std::vector<float> gradient;
  uint64_t batch = 0;
  bool sampled = false;
  // EMAs over batches: of the mean reward, and of the mean squared advantage.
  double baseline = std::numeric_limits<double>::quiet_NaN();
  double squares = std::numeric_limits<double>::quiet_NaN();
  AgentProfile profile;
};

/// Adds the time until it goes out of scope to `total`. Not thread-safe.
class Stopwatch {
 public:
  explicit Stopwatch(double& total);
  ~Stopwatch();

 private:
  double& total_;
  double start_;
};

}  // namespace trinity
