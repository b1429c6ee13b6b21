#include "strategy/chunk_order.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <span>

#include "base/error.h"
#include "base/index.h"

namespace trinity {
namespace {

constexpr int64_t kMostChunkTasks = int64_t{1} << 28;

/// Counts the micro-batches of every work on a device's two chunks in V shape, of which the second
/// is in the backward direction: 0 is the chunk of the forward direction. Micro-batches from
/// `micro_batches` are left out.
class VOrder {
 public:
  VOrder(int32_t p, int32_t micro_batches, int32_t rank)
      : p_(p), m_(micro_batches), rank_(rank), chunk_{rank, 2 * p - 1 - rank} {}

  std::vector<ChunkTask> zb_v() {
    const int32_t n = std::max(2 * p_ - 1, m_);
    times(2 * (p_ - rank_) - 1, [&] { forward(0); });
    times(rank_, [&] { forward(1), forward(0); });
    times(p_ - rank_, [&] { forward(1), input(1), weight(1); });
    while (forward_[1] < forward_[0] || forward_[0] < n) {
      if (forward_[0] < n) forward(0);
      input(0), weight(0);
      forward(1), input(1), weight(1);
    }
    times(rank_, [&] { input(0), input(1); });
    times(p_ - rank_, [&] { input(0), weight(0); });
    for (const int32_t side : {1, 0}) times(input_[side] - weight_[side], [&] { weight(side); });
    return std::move(order_);
  }

  std::vector<ChunkTask> dualpipe_v() {
    const int32_t after = p_ - rank_ - 1;
    times(2 * after, [&] { forward(0); });
    times(rank_ + 1, [&] { forward(0), forward(1); });
    times(after, [&] { input(1), oldest_weight(), forward(1); });
    times(m_ - 2 * p_ + rank_ + 1, [&] { forward(0), backward(1), forward(1), backward(0); });
    times(after, [&] { backward(1), forward(1), backward(0); });
    for (int32_t k = 0; k < 2 * (rank_ + 1); ++k)  // the second half without W tasks
      k <= rank_ ? backward(1 - k % 2) : input(1 - k % 2);
    times(after, [&] { oldest_weight(), input(0); });
    times(rank_ + 1, [&] { oldest_weight(); });
    return std::move(order_);
  }

 private:
  template <class Body>
  static void times(int32_t count, Body body) {
    for (int32_t i = 0; i < count; ++i) body();
  }
  void add(ChunkWork work, int32_t side, int32_t micro_batch) {
    if (micro_batch < m_) order_.push_back({work, chunk_[side], micro_batch});
  }
  void forward(int32_t side) { add(ChunkWork::forward, side, forward_[side]++); }
  void input(int32_t side) {
    waiting_.push_back(side);
    add(ChunkWork::input, side, input_[side]++);
  }
  void weight(int32_t side) { add(ChunkWork::weight, side, weight_[side]++); }
  void backward(int32_t side) {
    add(ChunkWork::backward, side, input_[side]++);
    ++weight_[side];
  }
  void oldest_weight() {
    if (next_ < waiting_.size()) weight(waiting_[next_++]);
  }

  int32_t p_, m_, rank_;
  std::array<int32_t, 2> chunk_, forward_{}, input_{}, weight_{};
  std::vector<int32_t> waiting_;  // directions of W tasks, in the order of their B tasks
  size_t next_ = 0;               // of `waiting_`
  std::vector<ChunkTask> order_;
};

/// The k-th chunk of a device in one direction: micro-batches in groups of p, each group passes the
/// chunks in order.
struct Turns {
  int64_t p, v, rank;

  ChunkTask task(ChunkWork work, int64_t k) const {
    const int64_t turn = k / p % v;
    const bool forward = work == ChunkWork::forward;
    return {work, static_cast<int32_t>((forward ? turn : v - 1 - turn) * p + rank),
            static_cast<int32_t>(k / (p * v) * p + k % p)};
  }
};

/// Runs the orders of all devices.
class OrderClock {
 public:
  OrderClock(const PipelineOrder& order, int32_t v, int32_t micro_batches, const ChunkTimes& times)
      : last_(static_cast<int32_t>(order.size()) * v - 1),
        m_(micro_batches),
        times_{times.forward / v, times.input / v, times.weight / v},
        forward_(at((int64_t{last_} + 1) * m_), -1),
        backward_(forward_.size(), -1) {
    for (const auto& tasks : order) devices_.push_back({tasks});
  }

  ScheduleBubble run(double ideal) {
    for (bool moved = true; moved;) {
      moved = false;
      for (auto& device : devices_)
        while (device.next < device.order.size() && step(device)) moved = true;
    }
    ScheduleBubble bubble;
    for (const auto& device : devices_) {
      if (device.next < device.order.size())
        throw ArgumentError("row {}: task {} never starts: tasks wait for each other in a cycle",
                            &device - devices_.data() + 1, device.next + 1);
      bubble.of_device = std::max(bubble.of_device, device.end - device.begin);
      bubble.of_step = std::max(bubble.of_step, device.end);
    }
    bubble.of_device = bubble.of_device / ideal - 1;
    bubble.of_step = bubble.of_step / ideal - 1;
    return bubble;
  }

 private:
  struct Device {
    std::span<const ChunkTask> order;
    size_t next = 0;
    double begin = -1, end = 0;
  };

  double duration(ChunkWork work) const {
    switch (work) {
      case ChunkWork::forward:
        return times_.forward;
      case ChunkWork::input:
        return times_.input;
      case ChunkWork::weight:
        return times_.weight;
      case ChunkWork::backward:
        break;
    }
    return times_.input + times_.weight;
  }

  /// The time at which the inputs of a task have arrived; negative before that.
  double ready(const ChunkTask& task) const {
    const size_t own = at(int64_t{task.chunk} * m_ + task.micro_batch);
    if (task.work == ChunkWork::forward) return task.chunk == 0 ? 0 : forward_[own - at(m_)];
    if (task.work == ChunkWork::weight) return backward_[own];
    return task.chunk == last_ ? forward_[own] : backward_[own + at(m_)];
  }

  bool step(Device& device) {
    const ChunkTask& task = device.order[device.next];
    const double from = ready(task);
    if (from < 0) return false;
    const double begin = std::max(device.end, from);
    if (device.next == 0) device.begin = begin;
    device.end = begin + duration(task.work);
    const size_t own = at(int64_t{task.chunk} * m_ + task.micro_batch);
    if (task.work == ChunkWork::forward) forward_[own] = device.end;
    if (task.work == ChunkWork::input || task.work == ChunkWork::backward)
      backward_[own] = device.end;
    ++device.next;
    return true;
  }

  int32_t last_, m_;
  ChunkTimes times_;                        // of one chunk
  std::vector<double> forward_, backward_;  // ends, per chunk and micro-batch
  std::vector<Device> devices_;
};

}  // namespace

bool is_pipeline(std::string_view name) {
  const auto& all = kWords<PipelineSchedule>.all;
  return std::find(all.begin(), all.end(), name) != all.end();
}

bool is_v_shaped(PipelineSchedule schedule) {
  return schedule == PipelineSchedule::zb_v || schedule == PipelineSchedule::dualpipe_v;
}

bool splits_backward(PipelineSchedule schedule) {
  return is_v_shaped(schedule) || schedule == PipelineSchedule::zb_h1 ||
         schedule == PipelineSchedule::zb_h2 || schedule == PipelineSchedule::zb_interleaved;
}

bool takes_chunks(PipelineSchedule schedule) {
  return is_v_shaped(schedule) || schedule == PipelineSchedule::interleaved ||
         schedule == PipelineSchedule::zb_interleaved;
}

int32_t device_of_chunk(PipelineSchedule schedule, int32_t p, int32_t chunk) {
  return is_v_shaped(schedule) && chunk / p % 2 == 1 ? p - 1 - chunk % p : chunk % p;
}

int64_t warm_up(PipelineSchedule schedule, int32_t p, int32_t v, int32_t micro_batches,
                int32_t device) {
  const int64_t m = micro_batches, after = p - 1 - device;
  switch (schedule) {
    case PipelineSchedule::gpipe:
      return m;
    case PipelineSchedule::one_f_one_b:
    case PipelineSchedule::pipedream:
      return std::min(after, m);
    case PipelineSchedule::interleaved:
      return std::min(2 * after + int64_t{v - 1} * p, m * v);
    case PipelineSchedule::zb_h1:
    case PipelineSchedule::zb_interleaved:
      return std::min(after + int64_t{v - 1} * p, m * v);
    case PipelineSchedule::zb_h2:
      return std::min(2 * after, m);
    case PipelineSchedule::zb_v:
    case PipelineSchedule::dualpipe_v:
      return std::min<int64_t>(2 * after + 1, m) + std::min(device + 1, micro_batches);
  }
  return m;
}

std::vector<ChunkTask> chunk_order(PipelineSchedule schedule, int32_t p, int32_t v,
                                   int32_t micro_batches, int32_t device) {
  if (schedule == PipelineSchedule::zb_v) return VOrder(p, micro_batches, device).zb_v();
  if (schedule == PipelineSchedule::dualpipe_v)
    return VOrder(p, micro_batches, device).dualpipe_v();
  const Turns turns{p, v, device};
  const int64_t total = int64_t{micro_batches} * v;
  const int64_t ahead = warm_up(schedule, p, v, micro_batches, device);
  const bool split = splits_backward(schedule);
  const int64_t delays = schedule == PipelineSchedule::zb_h2 ? 2 : 1;
  const int64_t delay = split ? delays * device : 0;  // of W tasks
  std::vector<ChunkTask> order;
  for (int64_t k = 0; k < total + ahead + delay; ++k) {
    const int64_t back = k - ahead, weights = back - delay;
    if (k < total) order.push_back(turns.task(ChunkWork::forward, k));
    if (back >= 0 && back < total)
      order.push_back(turns.task(split ? ChunkWork::input : ChunkWork::backward, back));
    if (schedule == PipelineSchedule::gpipe && back >= 0)
      order.back().micro_batch = micro_batches - 1 - order.back().micro_batch;
    if (split && weights >= 0) order.push_back(turns.task(ChunkWork::weight, weights));
  }
  return order;
}

ScheduleBubble schedule_bubble(const PipelineOrder& order, int32_t v, int32_t micro_batches,
                               const ChunkTimes& times) {
  return OrderClock(order, v, micro_batches, times).run(times.sum() * micro_batches);
}

ScheduleBubble schedule_bubble(PipelineSchedule schedule, int32_t p, int32_t v,
                               int32_t micro_batches, const ChunkTimes& times) {
  if (schedule == PipelineSchedule::pipedream)
    throw ArgumentError("schedule 'pipedream' has no step whose bubble could be predicted");
  if (int64_t{p} * v > kMostChunkTasks / (int64_t{3} * micro_batches))
    throw LimitError("the bubble of {} stages and {} micro-batches needs more than 2^28 tasks, the limit",
                     int64_t{p} * v, micro_batches);
  PipelineOrder order;
  for (int32_t device = 0; device < p; ++device)
    order.push_back(chunk_order(schedule, p, v, micro_batches, device));
  return schedule_bubble(order, v, micro_batches, times);
}

}  // namespace trinity
