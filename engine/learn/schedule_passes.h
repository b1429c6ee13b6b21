#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "kernels/kernels.h"
#include "learn/parameters.h"

namespace trinity {

/// The schedule network (papers/notes.md "Trinity: networks") without LibTorch: forward and
/// backward passes written out over kernels.h. networks.h holds the same network on LibTorch's
/// operators, as the reference that tests compare with and for GPUs.
struct ScheduleShape {
  int64_t groups = 0;   ///< K, steps of encoder and decoder
  int64_t width = 0;    ///< W, columns of a group's embedding
  int64_t devices = 0;  ///< D
  int64_t hidden = 0;   ///< H, width of each direction of the encoder; the decoder's is 2H
  double temperature = 10, tanh_constant = 5;
  bool stays = false;  ///< a trainable term for the previous device
  int64_t layers = 1;  ///< of encoder and decoder; the passes here are for one
  static constexpr int64_t kDeviceWidth = 20;
  int64_t wide() const { return 2 * hidden; }
};

/// Adds the network's weights, names beginning with "schedule.".
void add_schedule_weights(const ScheduleShape& shape, Parameters& parameters);

/// Offsets of the weights among all parameters.
struct ScheduleLayout {
  struct Lstm {
    int64_t input = 0, bias = 0, recurrent = 0;
  };
  Lstm forward, backward, decoder;
  int64_t device_embedding = 0, memory = 0, query = 0, score = 0, out = 0, stay = 0;

  ScheduleLayout(const ScheduleShape& shape, const Parameters& parameters);
};

/// The weights packed for the kernels, shared by all shards. Packed again after every change.
/// pack_piece() of different pieces may run concurrently; otherwise read-only for the shards.
class PackedSchedule {
 public:
  PackedSchedule(const ScheduleShape& shape, const ScheduleLayout& layout);

  /// Independent pieces of the work.
  int pieces() const { return static_cast<int>(items_.size()) + 1; }
  void pack_piece(int piece, const float* weights);

  // For forward passes: transposed, [inputs, outputs]; for backward ones as they are.
  std::vector<float> forward_input, forward_recurrent, backward_input, backward_recurrent;
  std::vector<float> decoder_recurrent, memory, query, out_state, out_context;
  std::vector<float> forward_recurrent_back, backward_recurrent_back, decoder_recurrent_back;
  std::vector<float> memory_back, query_back, out_state_back, out_context_back;
  /// Gates of the decoder for every previous device, before the recurrent part [D + 1, 8H].
  std::vector<float> device_gates;

 private:
  struct Item {
    std::vector<float>* to;
    int64_t depth, columns, offset, row, column;
  };
  void add(std::vector<float>& to, int64_t depth, int64_t columns, int64_t offset, int64_t row,
           int64_t column);

  const ScheduleShape& shape_;
  const ScheduleLayout& layout_;
  std::vector<Item> items_;
};

/// One shard of a batch: S samples through the network, forward and backward, with everything the
/// backward pass needs kept in between. Recurrent parts lie step by step [K, S, .], attention and
/// output sample by sample [S, K, .]. Not thread-safe; one object per shard.
class SchedulePasses {
 public:
  SchedulePasses(const ScheduleShape& shape, const ScheduleLayout& layout,
                 const PackedSchedule& packed, int64_t samples);

  /// Where the embedding of a sample's group `k` goes: W numbers.
  float* group(int64_t sample, int64_t k) {
    return x_.data() + (k * samples_ + sample) * shape_.width;
  }
  /// Constant logits [K, D] of a sample, zeros at first: added to u.
  float* prior(int64_t sample) { return prior_.data() + sample * shape_.groups * shape_.devices; }
  /// The logits u of the network alone [K, D] as last evaluated, without prior().
  std::vector<double> own_logits(int64_t sample) const;
  int64_t group_stride() const { return samples_ * shape_.width; }
  /// To be called after group() was filled again.
  void groups_changed();

  /// Encodes the groups, then decodes step by step: `choose` maps sample and step to a device from
  /// its log-probabilities [D].
  using Choose = std::function<int32_t(int64_t sample, int64_t step, const float* row)>;
  void sample(const float* weights, const Choose& choose);

  /// Encodes the groups and decodes the devices chosen before.
  void evaluate(const float* weights);

  /// Device of every group [S, K], its log-probability [S, K], all log-probabilities [S, K, D].
  std::vector<int32_t> devices;
  std::vector<float> taken, log_probability;
  /// Entropy summed over samples and steps, nats.
  double entropy() const;

  /// Terms of the objective in addition to sum coefficient * log-probability of the chosen device.
  struct Bonus {
    float entropy = 0;  ///< times the entropy of every row
    float uniform = 0;  ///< times the mean log-probability of a row's devices
  };
  /// Adds the objective's gradients to `gradients`, which is laid out as the weights are.
  void backward(const float* weights, std::span<const float> coefficient, Bonus bonus,
                float* gradients);

 private:
  using Buffer = std::vector<float>;
  struct Direction {
    Buffer gates, cell, tanh_cell, d_gates;
  };

  int64_t rows() const { return shape_.groups * samples_; }
  void encode(const float* weights);
  void encode_direction(Direction& direction, const float* bias, const Buffer& input,
                        const Buffer& recurrent, bool reverse);
  void start_decoder();
  void decode_step(int64_t step);
  void attend(const float* weights, int64_t sample, int64_t first, int64_t count);
  void finish_logits(const float* weights, int64_t sample, int64_t first, int64_t count);

  void backward_sample(const float* weights, int64_t sample, const float* coefficient, Bonus bonus,
                       float* gradients);
  void backward_logits(int64_t sample, const float* coefficient, Bonus bonus, float* gradients);
  void backward_out(int64_t sample, float* gradients);
  void backward_attention(const float* weights, int64_t sample, float* gradients);
  void backward_query(int64_t sample, float* gradients);
  void backward_memory(int64_t sample, float* gradients);
  void backward_decoder(const float* weights, float* gradients);
  void backward_device_gates(const float* weights, float* gradients);
  void backward_input(const Direction& direction, float* d_input);
  void backward_direction(Direction& direction, const ScheduleLayout::Lstm& at,
                          const Buffer& recurrent_back, bool reverse, float* gradients);
  int32_t previous(int64_t sample, int64_t step) const {
    return step == 0 ? static_cast<int32_t>(shape_.devices)
                     : devices[sample * shape_.groups + step - 1];
  }

  const ScheduleShape& shape_;
  const ScheduleLayout& layout_;
  const PackedSchedule& packed_;
  const Kernels& kernels_;
  int64_t samples_;

  Buffer x_, prior_, zeros_;
  SparseRows sparse_x_, sparse_x_transposed_;
  Direction forward_, backward_;
  Buffer encoded_;                            // [K, S, 2H]
  Buffer memory_, packed_memory_;             // [S, K, 2H], and packed sample by sample
  Buffer memory_exponential_;                 // exp(2 memory), as query_ becomes exp(2 query)
  Buffer gates_, hidden_, cell_, tanh_cell_;  // decoder; hidden_ and cell_ hold the start first
  Buffer query_, weight_, context_;           // [S, K, 2H], [S, K, K], [S, K, 2H]
  Buffer squashed_, probability_;             // tanh(u / T) and softmax, [S, K, D]
  // Backward.
  Buffer d_hidden_, d_gates_, d_encoded_, d_cell_, carry_, d_device_gates_;
  Buffer d_logit_, d_context_, d_weight_, d_query_, d_memory_, scratch_, transposed_, packed_rows_;
};

}  // namespace trinity
