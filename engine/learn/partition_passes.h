#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "features/features.h"
#include "kernels/kernels.h"
#include "learn/parameters.h"

namespace trinity {

/// The partition network (papers/notes.md "Trinity: networks") without LibTorch, as
/// schedule_passes.h has the other one:
/// for every unit, log-probabilities of the groups.
struct PartitionShape {
  int64_t units = 0;     ///< U
  int64_t types = 0;     ///< size of the vocabulary; 0: no embedding of types
  int64_t features = 0;  ///< columns of a unit's features
  int64_t groups = 0;    ///< K
  bool linear = false;   ///< one hidden layer of 64 without activation, as the released code has it
  static constexpr int64_t kTypeWidth = 20, kFirst = 64, kSecond = 128;
  int64_t type_width() const { return types > 0 ? kTypeWidth : 0; }
  int64_t input() const { return type_width() + features; }
  int64_t last() const { return linear ? kFirst : kSecond; }
};

/// Adds the network's weights, names beginning with "partition.".
void add_partition_weights(const PartitionShape& shape, Parameters& parameters);

/// Logits [units, groups] that an untrained network starts from: -contiguity * (K * position -
/// (g + 1/2))^2 for group g and a unit at `position` in (0, 1). Neighbouring units share groups.
std::vector<float> contiguous_prior(std::span<const double> position, int64_t groups,
                                    double contiguity);

/// All units through the network in chunks of rows that do not depend on the thread count. A row is
/// a unit, or a unit under one sample's dropout mask: row r * units + u where there are several.
class PartitionPasses {
 public:
  /// `features` and `parameters` must outlive this.
  PartitionPasses(const PartitionShape& shape, const UnitFeatures& features,
                  const Parameters& parameters);

  /// Constant logits [units, groups]; empty for none.
  std::vector<float> prior;

  /// Packs the weights; after every change of them.
  void pack(const float* weights);
  /// Sets the masks [copies, units, 64] that scale the first layer; empty for none, with 1 copy.
  void set_masks(std::vector<float> masks);
  std::span<const float> masks() const { return masks_; }
  int64_t copies() const { return copies_; }

  int chunks() const;
  void forward_chunk(int chunk, const float* weights);

  /// [copies, units, groups]
  std::vector<float> log_probability, probability;
  const float* row(int64_t sample, int64_t unit) const {
    return log_probability.data() + row_of(sample, unit) * shape_.groups;
  }
  const float* chances(int64_t sample, int64_t unit) const {
    return probability.data() + row_of(sample, unit) * shape_.groups;
  }
  int64_t row_of(int64_t sample, int64_t unit) const {
    return (copies_ == 1 ? 0 : sample) * shape_.units + unit;
  }
  double entropy() const;  ///< mean of a row, nats

  /// Adds a chunk's gradients of  sum coefficient * log-probability of the group chosen
  /// + entropy_weight * entropy  to `gradients` (laid out as all weights, from the first of this
  /// network on). `group_of` and `coefficient` are [samples, units].
  void backward_chunk(int chunk, const float* weights, std::span<const int32_t> group_of,
                      std::span<const float> coefficient, float entropy_weight, float* gradients);

  int64_t weight_count() const { return weight_count_; }

 private:
  struct Range {
    int64_t first, count;
  };
  struct Scratch {
    std::vector<float> logits, second, first, transposed, packed;
  };
  Range range(int chunk) const;
  const float* unit_row(int64_t row) const {
    return features_.values.data() + (row % shape_.units) * shape_.features;
  }
  int32_t type_of(int64_t row) const { return features_.type[row % shape_.units]; }
  void first_layer(const Range& rows);
  void upper_layers(const Range& rows, const float* weights);
  void backward_logits(const Range& rows, std::span<const int32_t> group_of,
                       std::span<const float> coefficient, float entropy_weight,
                       std::vector<float>& logits) const;
  /// d_weight += d_rows^T inputs, d_bias += sum of d_rows.
  void outer(const Range& rows, const std::vector<float>& d_rows, int64_t outputs,
             const float* inputs, int64_t in, float* d_weight, int64_t stride, float* d_bias,
             Scratch& scratch) const;
  void backward_types(const Range& rows, const std::vector<float>& d_first, const float* weights,
                      float* gradients) const;
  float* at(float* gradients, int64_t offset) const { return gradients + offset - weight_offset_; }

  PartitionShape shape_;
  const UnitFeatures& features_;
  const Kernels& kernels_;
  int64_t embedding_ = 0, first_weight_, first_bias_, second_weight_ = 0, second_bias_ = 0;
  int64_t out_weight_, out_bias_, weight_offset_, weight_count_ = 0;
  int64_t copies_ = 1;
  std::vector<float> masks_;
  std::vector<float> packed_first_, packed_second_, packed_out_, packed_second_back_;
  std::vector<float> packed_out_back_;
  std::vector<float> type_part_;       // [types, 64]: embedding and bias through the first layer
  std::vector<float> first_, second_;  // activations [rows, 64] and [rows, 128]
};

}  // namespace trinity
