#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "learn/parameters.h"
#include "learn/partition_passes.h"
#include "learn/schedule_passes.h"

namespace trinity {

/// Both networks on LibTorch's operators and autograd (learn/torch/networks.h), on the CPU as a
/// reference or on a GPU. Batches go through as a whole. Numbers cross over in the layout of the
/// passes. Not thread-safe.
class TorchPolicy {
 public:
  virtual ~TorchPolicy() = default;

  /// Constant logits [units, groups]; empty for none.
  virtual void set_prior(const std::vector<float>& prior) = 0;
  /// Copies all weights; after every change of them.
  virtual void set_weights(const Parameters& parameters) = 0;

  /// Log-probabilities [copies, units, groups] under masks [copies, units, 64] (empty: none).
  virtual void forward_partition(std::span<const float> masks,
                                 std::vector<float>& log_probability) = 0;

  using Choose = std::function<int32_t(int64_t sample, int64_t step, const float* row)>;
  /// Samples devices [S, K] for group embeddings [S, K, W] and constant logits `prior` [S, K, D];
  /// their log-probabilities go to `taken`.
  virtual void sample(std::span<const float> groups, std::span<const float> prior, int64_t samples,
                      const Choose& choose, std::span<int32_t> devices, std::span<float> taken) = 0;
  /// Log-probabilities of known devices for the embeddings and logits of the last sample().
  virtual void evaluate(std::span<const int32_t> devices, std::span<float> taken) = 0;

  /// The gradient of  sum of coefficients times log-probabilities, + entropy_weight times the mean
  /// entropies of units and of groups, + uniform_weight times the log-probabilities of all devices
  /// as last evaluated, laid out as the parameters are. `groups` are those chosen, [S, units]; none
  /// leaves the partition network out.
  virtual void backward(std::span<const int32_t> groups, std::span<const float> group_coefficient,
                        std::span<const float> device_coefficient, double entropy_weight,
                        double uniform_weight, std::vector<float>& gradient) = 0;
  virtual double devices_entropy() const = 0;  ///< mean of a group, nats, as last evaluated
};

/// Opens LibTorch (base/late.h). Throws ArgumentError when `device` is no device of this LibTorch.
std::unique_ptr<TorchPolicy> make_torch_policy(const std::string& device,
                                               const PartitionShape& partition,
                                               const ScheduleShape& schedule,
                                               const UnitFeatures& features);

/// Throws ArgumentError when `device` is no device of this LibTorch, which "cpu" does not open.
void check_policy_device(const std::string& device);

}  // namespace trinity
