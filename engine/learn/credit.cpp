#include "learn/credit.h"

#include <algorithm>
#include <cmath>

#include "base/index.h"

namespace trinity {
namespace {

constexpr double kSoftness = 0.005;  ///< of the step time: of ends that far apart, one has e shares
constexpr double kDeviceSoftness = 0.05;  ///< of the largest device's traffic or memory, likewise

/// Derivatives of a softened maximum.
std::vector<double> soft_maximum(const std::vector<double>& values) {
  const double most = *std::max_element(values.begin(), values.end());
  std::vector<double> weights(values.size(), 0);
  double sum = 0;
  for (size_t i = 0; i < values.size(); ++i)
    sum += weights[i] = most > 0 ? std::exp((values[i] / most - 1) / kDeviceSoftness) : 1;
  for (double& weight : weights) weight /= sum;
  return weights;
}

}  // namespace

CreditEstimator::CreditEstimator(const Problem& problem) : problem_(problem), simulator_(problem) {
  const auto n = at(problem.operators());
  first_input_.assign(n + 1, 0);
  producer_.resize(at(problem.edges()));
  input_.resize(at(problem.edges()));
  for (const auto& reader : problem.all_readers()) ++first_input_[at(reader.op) + 1];
  for (size_t op = 0; op < n; ++op) first_input_[op + 1] += first_input_[op];
  std::vector<int32_t> next(first_input_.begin(), first_input_.end() - 1);
  for (int32_t op = 0; op < problem.operators(); ++op) {
    int32_t edge = problem.first_edge(op);
    for (const auto& reader : problem.readers(op)) {
      producer_[edge] = op;
      input_[next[reader.op]++] = edge++;
    }
  }
}

void CreditEstimator::observe(std::span<const int32_t> placement) {
  placement_.assign(placement.begin(), placement.end());
  simulator_.run(placement_, metrics_, &timeline_);
  softness_ns_ = std::max(1.0, kSoftness * static_cast<double>(metrics_.step_time_ns));
  lay_out();
  pass_back();
  weigh_devices();
}

void CreditEstimator::lay_out() {
  const auto n = at(problem_.operators()), d = at(problem_.devices());
  const auto& t = timeline_;
  on_device_.assign(d, {});
  for (int32_t task = 0; task < problem_.operators(); ++task)
    on_device_[placement_[task]].push_back(task);
  task_.assign(n, {});
  for (auto& list : on_device_) {
    std::sort(list.begin(), list.end(), [&](int32_t a, int32_t b) {
      return std::pair(t.start_ns[a], a) < std::pair(t.start_ns[b], b);
    });
    for (size_t i = 1; i < list.size(); ++i) {
      task_[list[i]].previous = list[i - 1];
      task_[list[i - 1]].next = list[i];
    }
  }
  transfer_.assign(t.transfers.size(), {});
  transfer_of_.assign(at(problem_.outputs()) * d, -1);
  std::vector<int32_t> last(d * d, -1);  // of every queue
  const auto queue = problem_.rules().queue;
  for (size_t i = 0; i < t.transfers.size(); ++i) {
    const auto& sent = t.transfers[i];
    transfer_of_[at(problem_.first_output(sent.task) + sent.output) * d + at(sent.to)] =
        static_cast<int32_t>(i);
    if (queue != QueueModel::sender && queue != QueueModel::pair) continue;
    auto& before = last[at(sent.from) * d + (queue == QueueModel::pair ? at(sent.to) : 0)];
    transfer_[i].previous = before;
    if (before >= 0) transfer_[before].next = static_cast<int32_t>(i);
    before = static_cast<int32_t>(i);
  }
}

void CreditEstimator::pass_back() {
  const auto& t = timeline_;
  task_criticality_.assign(task_.size(), 0);
  transfer_criticality_.assign(transfer_.size(), 0);
  edge_criticality_.assign(at(problem_.edges()), 0);
  // The step's end: a softened maximum over the tasks.
  double sum = 0;
  for (size_t i = 0; i < task_.size(); ++i) {
    const double early = static_cast<double>(metrics_.step_time_ns - t.end_ns[i]) / softness_ns_;
    if (early < 30) sum += task_criticality_[i] = std::exp(-early);
  }
  if (sum > 0)
    for (double& value : task_criticality_) value /= sum;
  std::vector<int32_t> order(task_.size() + transfer_.size());
  const auto tasks = static_cast<int32_t>(task_.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int32_t>(i);
  const auto start = [&](int32_t node) {
    return node < tasks ? t.start_ns[node] : t.transfers[node - tasks].start_ns;
  };
  std::sort(order.begin(), order.end(),
            [&](int32_t a, int32_t b) { return std::pair(start(a), a) > std::pair(start(b), b); });
  for (const int32_t node : order) {
    if (node < tasks)
      pass_back_task(node);
    else
      pass_back_transfer(node - tasks);
  }
}

void CreditEstimator::pass_back_task(int32_t task) {
  const double criticality = task_criticality_[task];
  if (criticality < 1e-9) return;
  const auto& t = timeline_;
  const int64_t start = t.start_ns[task];
  const auto share = [&](int64_t end_ns) {
    const double late = static_cast<double>(end_ns - start) / softness_ns_;
    return late < -30 ? 0.0 : std::exp(late);
  };
  const auto d = at(problem_.devices());
  const int32_t home = placement_[task], before = task_[task].previous;
  const auto arrival = [&](int32_t edge, int32_t& sent) {
    const int32_t from = producer_[edge], output = problem_.all_readers()[edge].output;
    sent = placement_[from] == home
               ? -1
               : transfer_of_[at(problem_.first_output(from) + output) * d + at(home)];
    return sent < 0 ? t.end_ns[from] : t.transfers[sent].end_ns;
  };
  double sum = before >= 0 ? share(t.end_ns[before]) : 0;
  int32_t sent = -1;
  for (int32_t i = first_input_[task]; i < first_input_[task + 1]; ++i)
    sum += share(arrival(input_[i], sent));
  if (sum <= 1e-300) return;
  if (before >= 0) {
    task_[task].in = criticality * share(t.end_ns[before]) / sum;
    task_criticality_[before] += task_[task].in;
  }
  for (int32_t i = first_input_[task]; i < first_input_[task + 1]; ++i) {
    const double part = criticality * share(arrival(input_[i], sent)) / sum;
    edge_criticality_[input_[i]] = part;
    if (sent < 0)
      task_criticality_[producer_[input_[i]]] += part;
    else
      transfer_criticality_[sent] += part;
  }
}

void CreditEstimator::pass_back_transfer(int32_t transfer) {
  const double criticality = transfer_criticality_[transfer];
  if (criticality < 1e-9) return;
  const auto& sent = timeline_.transfers[transfer];
  const int32_t before = transfer_[transfer].previous;
  const auto share = [&](int64_t end_ns) {
    return std::exp(static_cast<double>(end_ns - sent.start_ns) / softness_ns_);
  };
  const double own = share(timeline_.end_ns[sent.task]);
  const double waits = before >= 0 ? share(timeline_.transfers[before].end_ns) : 0;
  if (own + waits <= 1e-300) return;
  task_criticality_[sent.task] += criticality * own / (own + waits);
  if (before < 0) return;
  transfer_[transfer].in = criticality * waits / (own + waits);
  transfer_criticality_[before] += transfer_[transfer].in;
}

void CreditEstimator::weigh_devices() {
  const auto d = at(problem_.devices());
  std::vector<double> traffic(d), memory(d);
  peak_time_ns_.assign(d, 0);
  for (size_t i = 0; i < d; ++i) {
    const auto& device = metrics_.devices[i];
    traffic[i] = static_cast<double>(device.bytes_sent + device.bytes_received);
    memory[i] = static_cast<double>(device.peak_memory_bytes);
    int64_t most = -1;
    if (i < timeline_.memory.size())
      for (const auto& level : timeline_.memory[i])
        if (level.bytes > most) most = level.bytes, peak_time_ns_[i] = level.time_ns;
  }
  traffic_weight_ = soft_maximum(traffic);
  memory_weight_ = soft_maximum(memory);
}

double CreditEstimator::out_of(int32_t task) const {
  return task >= 0 && task_[task].next >= 0 ? task_[task_[task].next].in : 0;
}

int32_t CreditEstimator::running(int32_t device, int64_t time_ns) const {
  const auto& list = on_device_[device];
  const auto after = std::partition_point(
      list.begin(), list.end(), [&](int32_t task) { return timeline_.start_ns[task] <= time_ns; });
  return after == list.begin() ? -1 : *(after - 1);
}

void CreditEstimator::changes(std::span<const int32_t> block_of, const RewardSlopes& slopes,
                              std::span<double> out) {
  std::fill(out.begin(), out.end(), 0.0);
  add_work(block_of, slopes.by_step_s / 1e9, out);
  add_memory(block_of, slopes.by_memory_byte, out);
  add_tensors(block_of, slopes, out);
}

void CreditEstimator::add_work(std::span<const int32_t> block_of, double slope,
                               std::span<double> out) {
  const auto& t = timeline_;
  const int32_t d = problem_.devices();
  for (int32_t home = 0; home < d; ++home) {
    const auto& list = on_device_[home];
    double leaving = 0;  // criticality of the wait after this run of tasks of one block
    for (size_t i = list.size(); i-- > 0;) {
      const int32_t task = list[i], next = task_[task].next, before = task_[task].previous;
      const int32_t block = block_of[task];
      if (next < 0 || block_of[next] != block) leaving = out_of(task);
      const auto length = static_cast<double>(problem_.cost_ns(home, task));
      if (length <= 0) continue;
      const double wait =
          before >= 0 && block_of[before] != block
              ? static_cast<double>(std::max<int64_t>(0, t.start_ns[task] - t.ready_ns[task]))
              : 0;
      for (int32_t there = 0; there < d; ++there) {
        if (there == home) continue;
        const auto longer = static_cast<double>(problem_.cost_ns(there, task));
        const int32_t busy = running(there, t.ready_ns[task]);
        double change = longer * out_of(busy) - length * leaving;
        change += task_criticality_[task] * (longer - length);
        const double queue =
            busy >= 0 ? static_cast<double>(std::max<int64_t>(0, t.end_ns[busy] - t.ready_ns[task]))
                      : 0;
        change += task_[task].in * (before >= 0 && block_of[before] != block ? queue - wait : 0);
        out[at(block) * at(d) + at(there)] += slope * change;
      }
    }
  }
}

/// Bytes that an operator keeps on its device at an instant: weights, and outputs from its start
/// until the last reader has run.
int64_t CreditEstimator::held_bytes(int32_t op, int64_t time_ns) const {
  const auto& t = timeline_;
  int64_t bytes = problem_.fixed_bytes(op);
  if (t.start_ns[op] > time_ns || problem_.alias(op) >= 0) return bytes;
  int64_t until = t.end_ns[op];
  for (const auto& reader : problem_.readers(op)) until = std::max(until, t.start_ns[reader.op]);
  if (until < time_ns) return bytes;
  const int32_t end =
      op + 1 < problem_.operators() ? problem_.first_output(op + 1) : problem_.outputs();
  for (int32_t output = problem_.first_output(op); output < end; ++output)
    bytes += problem_.held_bytes()[output];
  return bytes;
}

void CreditEstimator::add_memory(std::span<const int32_t> block_of, double slope,
                                 std::span<double> out) {
  const int32_t d = problem_.devices();
  const auto share = [&](int32_t op, int32_t device) {
    if (on_device_[device].empty()) return 0.0;
    return memory_weight_[device] * static_cast<double>(held_bytes(op, peak_time_ns_[device]));
  };
  for (int32_t op = 0; op < problem_.operators(); ++op) {
    const double here = share(op, placement_[op]);
    for (int32_t there = 0; there < d; ++there)
      if (there != placement_[op])
        out[at(block_of[op]) * at(d) + at(there)] += slope * (share(op, there) - here);
  }
}

double CreditEstimator::added_transfer(int32_t op, int32_t output, int32_t from, int32_t to,
                                       double criticality, const RewardSlopes& slopes) const {
  const int64_t bytes = problem_.output_bytes(op, output);
  const auto wire = static_cast<double>(problem_.wire_ns(from, to, bytes));
  return slopes.by_step_s * 1e-9 * criticality * wire +
         slopes.by_communication_byte * static_cast<double>(bytes) *
             (traffic_weight_[from] + traffic_weight_[to]);
}

double CreditEstimator::saved_transfer(int32_t transfer, const RewardSlopes& slopes) const {
  const auto& sent = timeline_.transfers[transfer];
  const auto length = static_cast<double>(sent.end_ns - sent.start_ns);
  const auto wait = static_cast<double>(sent.start_ns - sent.enqueued_ns);
  const double time = transfer_criticality_[transfer] * length + transfer_[transfer].in * wait;
  return -slopes.by_step_s * 1e-9 * time -
         slopes.by_communication_byte * static_cast<double>(sent.bytes) *
             (traffic_weight_[sent.from] + traffic_weight_[sent.to]);
}

void CreditEstimator::add_tensors(std::span<const int32_t> block_of, const RewardSlopes& slopes,
                                  std::span<double> out) {
  for (int32_t op = 0; op < problem_.operators(); ++op) {
    const auto readers = problem_.readers(op);
    int32_t outputs = 0;
    for (const auto& reader : readers) outputs = std::max(outputs, reader.output + 1);
    for (int32_t output = 0; output < outputs; ++output) {
      const int32_t own = block_of[op];
      find_readers(op, output, block_of);
      move_producer(op, output, own, slopes, out);
      for (const auto& moved : readers_)
        if (moved.block != own) move_readers(op, output, moved, slopes, out);
    }
  }
}

void CreditEstimator::find_readers(int32_t op, int32_t output, std::span<const int32_t> block_of) {
  const auto readers = problem_.readers(op);
  const auto first = at(problem_.first_edge(op));
  readers_.clear();
  blocks_on_.assign(at(problem_.devices()), 0);
  for (size_t i = 0; i < readers.size(); ++i) {
    if (readers[i].output != output) continue;
    const int32_t block = block_of[readers[i].op], device = placement_[readers[i].op];
    const auto known = std::find_if(readers_.begin(), readers_.end(),
                                    [&](const ReaderBlock& other) { return other.block == block; });
    if (known == readers_.end()) {
      readers_.push_back({block, device, edge_criticality_[first + i]});
      ++blocks_on_[device];
    } else {
      known->criticality += edge_criticality_[first + i];
    }
  }
}

/// Its copies to where it goes are saved, one back to the readers that it leaves is added.
void CreditEstimator::move_producer(int32_t op, int32_t output, int32_t own,
                                    const RewardSlopes& slopes, std::span<double> out) const {
  const int32_t home = placement_[op], d = problem_.devices();
  const int32_t* sent = transfer_of_.data() + at(problem_.first_output(op) + output) * at(d);
  double left = 0;
  bool leaves = false;
  for (const auto& reader : readers_) {
    if (reader.block == own || reader.device != home) continue;
    leaves = true;
    left += reader.criticality;
  }
  for (int32_t there = 0; there < d; ++there) {
    if (there == home) continue;
    double& change = out[at(own) * at(d) + at(there)];
    if (sent[there] >= 0) change += saved_transfer(sent[there], slopes);
    if (leaves) change += added_transfer(op, output, there, home, left, slopes);
  }
}

/// Their copy is saved where no other block reads it and they go where the tensor is; one is added
/// where it is not.
void CreditEstimator::move_readers(int32_t op, int32_t output, const ReaderBlock& moved,
                                   const RewardSlopes& slopes, std::span<double> out) const {
  const int32_t home = placement_[op], d = problem_.devices();
  const int32_t* sent = transfer_of_.data() + at(problem_.first_output(op) + output) * at(d);
  const bool alone = blocks_on_[moved.device] == 1;
  const int32_t copy = moved.device == home ? -1 : sent[moved.device];
  const double by_ns = slopes.by_step_s * 1e-9 * moved.criticality;
  for (int32_t there = 0; there < d; ++there) {
    if (there == moved.device) continue;
    double& change = out[at(moved.block) * at(d) + at(there)];
    const bool known = there == home || blocks_on_[there] > 0;
    if (copy >= 0 && alone && known) {
      change += saved_transfer(copy, slopes);
    } else if (copy >= 0 && !alone && there == home) {
      const auto& late = timeline_.transfers[copy];
      change -= by_ns * static_cast<double>(late.end_ns - late.enqueued_ns);
    }
    if (!known && !(copy >= 0 && alone))
      change += added_transfer(op, output, home, there, moved.criticality, slopes);
    else if (known && there != home && copy < 0)
      change += by_ns * static_cast<double>(
                            problem_.wire_ns(home, there, problem_.output_bytes(op, output)));
  }
}

}  // namespace trinity
