#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/words.h"

namespace trinity {

/// The named pipeline schedules (engine/strategy/README.md).
enum class PipelineSchedule : uint8_t {
  gpipe,           ///< all forward micro-batches, then all backward ones, last first
  one_f_one_b,     ///< warm-up, then one forward and one backward alternately
  interleaved,     ///< 1F1B with several virtual stages per device
  zb_h1,           ///< 1F1B of F and B; stage r delays W by r micro-batches
  zb_h2,           ///< twice the warm-up and twice the delay: no bubble, more memory
  zb_interleaved,  ///< zb_h1 with several virtual stages (PyTorch's InterleavedZeroBubble)
  zb_v,            ///< two virtual stages in V shape, no bubble (PyTorch's ZBVZeroBubble)
  dualpipe_v,      ///< the same layout, forward and backward paired (DeepSeek's DualPipeV)
  pipedream,       ///< 1F1B without a flush: updates after every mini-batch, weights stashed
};

template <>
inline constexpr auto kWords<PipelineSchedule> =
    words("pipeline schedule", "gpipe", "1f1b", "interleaved", "zb-h1", "zb-h2", "zb-interleaved", "zb-v", "dualpipe-v",
          "pipedream");
/// True if a schedule of this name is a pipeline.
bool is_pipeline(std::string_view name);

/// True if the backward pass is split into B and W tasks (graph/split_backward.h).
bool splits_backward(PipelineSchedule schedule);
/// True if devices have several virtual stages (chunks).
bool takes_chunks(PipelineSchedule schedule);
/// True if they are two, in V shape: the first device has the first and the last.
bool is_v_shaped(PipelineSchedule schedule);

/// Returns the device, of p, of a chunk (virtual stage): chunks are assigned round-robin or, in V
/// shape, forwards and then backwards.
int32_t device_of_chunk(PipelineSchedule schedule, int32_t p, int32_t chunk);

/// Work on one chunk for one micro-batch.
enum class ChunkWork : uint8_t {
  forward,
  backward,  ///< gradients of inputs and of weights together
  input,     ///< B: input gradients only, which the chunk before waits for
  weight,    ///< W: weight gradients only, which no chunk waits for
};

struct ChunkTask {
  ChunkWork work;
  int32_t chunk;
  int32_t micro_batch;

  bool operator==(const ChunkTask&) const = default;
};

/// The tasks of every pipeline rank, in order.
using PipelineOrder = std::vector<std::vector<ChunkTask>>;

/// Number of forward tasks that a device runs before its first backward task; v chunks per device.
int64_t warm_up(PipelineSchedule schedule, int32_t p, int32_t v, int32_t micro_batches,
                int32_t device);

/// The tasks of a device in order, all of its chunks and micro-batches. Interleaved schedules need
/// micro-batches that p divides, V-shaped ones v = 2, dualpipe_v at least 2 p micro-batches; zb_h1,
/// zb_h2 and zb_v reach their bubble with p, 2 p - 1 and 2 p.
///
/// gpipe: Huang et al. 2019; 1f1b, interleaved: Narayanan et al. 2021 (SC), section 2.2; zb_h1,
/// zb_h2: Qi et al. 2024 (Zero Bubble), section 2, figures 2 and 3; zb_v: there, section 6; dualpipe_v: DeepSeek-V3.
/// The orders of zb_interleaved, zb_v and dualpipe_v equal PyTorch 2.13's; forward and backward
/// passes that PyTorch overlaps in dualpipe_v run one after the other here.
std::vector<ChunkTask> chunk_order(PipelineSchedule schedule, int32_t p, int32_t v,
                                   int32_t micro_batches, int32_t device);

/// The work of a device on all of its chunks for one micro-batch, in any unit of time.
struct ChunkTimes {
  double forward = 1, input = 1, weight = 1;

  double sum() const { return forward + input + weight; }
};

/// Idle time over ideal time, the work of one device.
struct ScheduleBubble {
  /// For the device that takes longest from its first task to its last: the value in papers on
  /// pipelines, since where stages update on their own the next step fills what a later start
  /// leaves.
  double of_device = 0;
  double of_step = 0;  ///< from the first task of any device to the last: what a step takes
};

/// Returns the bubble of an order with v chunks per device, for equal stages and free messages.
/// O(tasks); throws ArgumentError where tasks wait for each other.
ScheduleBubble schedule_bubble(const PipelineOrder& order, int32_t v, int32_t micro_batches,
                               const ChunkTimes& times = {});

/// The same of a schedule. Throws LimitError for more than 2^28 tasks, ArgumentError for pipedream, which has no step.
ScheduleBubble schedule_bubble(PipelineSchedule schedule, int32_t p, int32_t v,
                               int32_t micro_batches, const ChunkTimes& times = {});

}  // namespace trinity
