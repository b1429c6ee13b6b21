#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "simulator/simulator.h"

namespace trinity {

/// How a reward changes with what a step costs, around one placement.
struct RewardSlopes {
  double by_step_s = 0, by_communication_byte = 0, by_memory_byte = 0;
};

/// Estimates how the reward would change if single operators moved, from the timeline of one step.
///
/// A step's end is passed back through what it waited for: of everything that a task or a transfer
/// had to wait for (inputs, the task before it on the device, the transfer before it in the queue)
/// each takes a share, the larger the later it ended (a softened critical path). So every wait has
/// a criticality, the derivative of the step time by it, and moving a block of operators costs, to
/// first order, the criticality of what it adds (a transfer, work on the other device) times its
/// length, and saves the same for the work that it removes. Traffic and memory are the busiest
/// device's, softened likewise. One simulation covers all blocks and devices. Not thread-safe.
class CreditEstimator {
 public:
  explicit CreditEstimator(const Problem& problem);

  /// Simulates a placement, one micro-batch.
  void observe(std::span<const int32_t> placement);

  /// The estimated change of the reward, larger is better, when all operators of a block move to a
  /// device: [blocks, devices], 0 for the device where a block is. `block_of` has the block of
  /// every operator; the operators of a block are on one device.
  void changes(std::span<const int32_t> block_of, const RewardSlopes& slopes,
               std::span<double> out);

 private:
  struct Wait {
    double in = 0;  ///< criticality of waiting for the one before, on the device or in the queue
    int32_t next = -1, previous = -1;
  };
  void lay_out();
  void pass_back();
  void pass_back_task(int32_t task);
  void pass_back_transfer(int32_t transfer);
  void weigh_devices();
  double out_of(int32_t task) const;
  /// The task that a device runs at an instant, or ran last before it; -1 before the first.
  int32_t running(int32_t device, int64_t time_ns) const;

  void add_work(std::span<const int32_t> block_of, double slope, std::span<double> out);
  void add_memory(std::span<const int32_t> block_of, double slope, std::span<double> out);
  void add_tensors(std::span<const int32_t> block_of, const RewardSlopes& slopes,
                   std::span<double> out);
  /// The readers of one tensor that are of one block.
  struct ReaderBlock {
    int32_t block, device;
    double criticality;
  };
  void find_readers(int32_t op, int32_t output, std::span<const int32_t> block_of);
  void move_producer(int32_t op, int32_t output, int32_t own, const RewardSlopes& slopes,
                     std::span<double> out) const;
  void move_readers(int32_t op, int32_t output, const ReaderBlock& moved,
                    const RewardSlopes& slopes, std::span<double> out) const;
  int64_t held_bytes(int32_t op, int64_t time_ns) const;
  double added_transfer(int32_t op, int32_t output, int32_t from, int32_t to, double criticality,
                        const RewardSlopes& slopes) const;
  double saved_transfer(int32_t transfer, const RewardSlopes& slopes) const;

  const Problem& problem_;
  Simulator simulator_;
  std::vector<int32_t> placement_;
  Metrics metrics_;
  Timeline timeline_;
  double softness_ns_ = 1;

  std::vector<std::vector<int32_t>> on_device_;  ///< tasks in order of their start
  std::vector<Wait> task_, transfer_;
  std::vector<double> task_criticality_, transfer_criticality_;
  std::vector<double> edge_criticality_;      ///< of an edge's wait, by number of the edge
  std::vector<int32_t> transfer_of_;          ///< [outputs, devices], -1 for none
  std::vector<int32_t> input_, first_input_;  ///< edges into every operator
  std::vector<int32_t> producer_;             ///< of every edge
  std::vector<double> traffic_weight_, memory_weight_;  ///< of devices in the largest
  std::vector<int64_t> peak_time_ns_;
  std::vector<ReaderBlock> readers_;  ///< of the tensor at hand
  std::vector<int32_t> blocks_on_;    ///< of these, on every device
};

}  // namespace trinity
