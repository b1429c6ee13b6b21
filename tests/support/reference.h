#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "cluster/collectives.h"
#include "graph/operator_types.h"
#include "simulator/metrics.h"
#include "simulator/problem.h"
#include "simulator/simulator.h"

namespace trinity::test {

/// Implements Simulator::run from the text of its comment alone: at every instant it examines every
/// task, device and transfer. Slow; an oracle for graphs of a few hundred operators. Throws
/// std::logic_error for unsupported rules (broadcast, last_event, outputs_only), ArgumentError for
/// an order that deadlocks.
void simulate_reference(const Problem& problem, const Plan& plan, Metrics& metrics,
                        Timeline& timeline);

/// Fails the running test unless results equal the reference's, are no better than lower_bounds(),
/// and agree with analysis.h and, if wanted, with the owners of the peaks.
void check_reference(const Problem& problem, const Plan& plan, const Metrics& metrics,
                     const Timeline& timeline);

}  // namespace trinity::test

/// Parts of the reference simulator.
namespace trinity::test::reference {

enum class State { absent, waiting, ready, running, ended };

struct Task {
  int32_t micro = 0, op = 0, device = 0;
  State state = State::waiting;
  bool member = false;  ///< of a collective
  int32_t awaited = 0;  ///< inputs that have not arrived
  int64_t ready_ns = -1, start_ns = -1, end_ns = -1;
};

/// A transfer and the tasks that read its copy.
struct Copy {
  Transfer transfer;
  std::vector<int32_t> readers;
};

/// Everything that happened in a step, or in a stream, in which every operator runs each time.
struct Story {
  int32_t operators = 0, micro_batches = 1;
  bool stream = false;
  std::vector<Task> tasks;
  std::vector<std::vector<int32_t>> started;  ///< per device: its tasks in order of start
  std::vector<Copy> copies;
  std::vector<CollectiveRun> runs;

  int32_t number(int32_t micro, int32_t op) const { return micro * operators + op; }
  bool once(const Problem& problem, int32_t op) const { return !stream && problem.once(op); }
};

/// The micro-batch in which the reader of a tensor of micro-batch `micro` runs.
inline int32_t reader_micro(const Problem& problem, const Story& story, int32_t micro,
                            int32_t reader) {
  return story.once(problem, reader) ? story.micro_batches - 1 : micro;
}

/// Memory of each device, by slots.
class Memory {
 public:
  Memory(const Problem& problem, const Story& story, std::span<const int32_t> weight_versions)
      : problem_(problem), story_(story), weight_versions_(weight_versions) {
    hold_outputs();
    hold_until_read();
    hold_until_sent();
    hold_copies();
    for (int32_t op = problem.operators() - 1; op >= 0; --op)
      if (problem.alias(op) >= 0 && !accumulates(op, 0)) join_view(op);
  }

  std::vector<MemoryLevel> levels(int32_t device) const {
    int64_t fixed = 0;
    bool used = false;
    for (int32_t op = 0; op < problem_.operators(); ++op) {
      if (story_.tasks[op].device != device) continue;
      fixed += problem_.fixed_bytes(op);
      if (!weight_versions_.empty())
        fixed += (weight_versions_[device] - 1) * problem_.graph().op(op).parameter_bytes();
      used = true;
    }
    if (used) fixed += problem_.cluster().type_of(device).framework_bytes;
    const auto& started = story_.started[device];
    std::vector<MemoryLevel> levels;
    for (size_t slot = 0; slot < std::max<size_t>(1, started.size()); ++slot) {
      MemoryLevel level{0, fixed};
      for (const auto& [key, holding] : outputs_) level.bytes += bytes_in(holding, device, slot);
      for (const Holding& holding : copies_) level.bytes += bytes_in(holding, device, slot);
      if (!started.empty()) {
        const Task& task = story_.tasks[started[slot]];
        level.time_ns = task.start_ns;
        level.bytes += problem_.graph().op(task.op).workspace_bytes;
      }
      levels.push_back(level);
    }
    return levels;
  }

 private:
  struct Holding {
    int32_t device = 0;
    size_t first = 0, last = 0;  ///< slots
    int64_t bytes = 0;

    void prolong(size_t slot) { last = std::max(last, slot); }
  };
  using Key = std::pair<int32_t, int32_t>;  ///< (task, output); task 0 for accumulating tensors

  static int64_t bytes_in(const Holding& holding, int32_t device, size_t slot) {
    const bool held = holding.device == device && holding.first <= slot && slot <= holding.last;
    return held ? holding.bytes : 0;
  }

  /// The slot of an instant is the slot of the latest task started by then.
  size_t slot_at(int32_t device, int64_t time_ns) const {
    size_t slot = 0;
    const auto& started = story_.started[device];
    for (size_t s = 0; s < started.size(); ++s)
      if (story_.tasks[started[s]].start_ns <= time_ns) slot = s;
    return slot;
  }

  size_t own_slot(int32_t number) const {
    const auto& started = story_.started[story_.tasks[number].device];
    return static_cast<size_t>(std::find(started.begin(), started.end(), number) - started.begin());
  }

  /// Outputs of a member of a collective begin in the slot of the collective's start.
  size_t write_slot(int32_t number) const {
    const Task& task = story_.tasks[number];
    return task.member ? slot_at(task.device, task.start_ns) : own_slot(number);
  }

  /// A member of a collective holds its inputs until the slot of the collective's end.
  size_t read_slot(int32_t number) const {
    const Task& task = story_.tasks[number];
    return task.member ? slot_at(task.device, task.end_ns) : own_slot(number);
  }

  bool accumulates(int32_t op, int32_t output) const {
    if (story_.micro_batches == 1 || story_.once(problem_, op)) return false;
    for (const auto& reader : problem_.readers(op))
      if (reader.output == output && story_.once(problem_, reader.op)) return true;
    return false;
  }

  /// True for outputs of every micro-batch that are read once per step, if all device types keep
  /// gradients; and for outputs of collectives that run once per step and read only these.
  bool stays(int32_t op, int32_t output) const {
    for (int32_t d = 0; d < problem_.devices(); ++d)
      if (!problem_.cluster().type_of(d).keeps_gradients) return false;
    const auto& graph = problem_.graph();
    if (!problem_.once(op)) {
      for (const auto& reader : problem_.readers(op))
        if (reader.output == output && problem_.once(reader.op)) return true;
      return false;
    }
    if (graph.op(op).collective < 0 || graph.op(op).inputs.empty()) return false;
    for (const int32_t input : graph.op(op).inputs) {
      const int32_t from = graph.tensor(input).producer;
      if (graph.tensor(input).bytes > 0 && !stays(from, input - graph.op(from).outputs[0]))
        return false;
    }
    return true;
  }

  Key key(int32_t number, int32_t output) const {
    const int32_t op = story_.tasks[number].op;
    return {accumulates(op, output) ? op : number, output};
  }

  bool runs(int32_t number) const { return story_.tasks[number].state != State::absent; }

  /// An output is held from its task's slot; an accumulating one once, from the first.
  void hold_outputs() {
    for (size_t t = 0; t < story_.tasks.size(); ++t) {
      const auto number = static_cast<int32_t>(t);
      if (!runs(number)) continue;
      const Task& task = story_.tasks[t];
      const size_t slot = write_slot(number);
      const auto outputs = problem_.graph().op(task.op).outputs.size();
      for (int32_t output = 0; output < static_cast<int32_t>(outputs); ++output) {
        // A Variable's weights and resident gradients are fixed bytes.
        const bool weights = is_variable(problem_.graph().op(task.op));
        const int64_t bytes = weights || stays(task.op, output)
                                  ? 0 : problem_.copied_bytes(task.op, output);
        const Holding fresh{task.device, slot, slot, bytes};
        Holding& holding = outputs_.emplace(key(number, output), fresh).first->second;
        holding.first = std::min(holding.first, slot);
        holding.prolong(slot);
      }
    }
  }

  /// ... until the slot in which its last local reader runs
  void hold_until_read() {
    for (size_t t = 0; t < story_.tasks.size(); ++t) {
      const auto number = static_cast<int32_t>(t);
      if (!runs(number)) continue;
      const Task& task = story_.tasks[t];
      for (const auto& reader : problem_.readers(task.op)) {
        const int32_t reading =
            story_.number(reader_micro(problem_, story_, task.micro, reader.op), reader.op);
        if (story_.tasks[reading].device == task.device)
          outputs_.at(key(number, reader.output)).prolong(read_slot(reading));
      }
    }
  }

  /// ... and until the slot in which its last outgoing transfer ends.
  void hold_until_sent() {
    for (const Copy& copy : story_.copies) {
      const Transfer& sent = copy.transfer;
      outputs_.at(key(sent.task, sent.output)).prolong(slot_at(sent.from, sent.end_ns));
    }
  }

  /// A received copy is held from the slot of its transfer's start until the slot of its last
  /// reader there.
  void hold_copies() {
    for (const Copy& copy : story_.copies) {
      const Transfer& sent = copy.transfer;
      const size_t slot = slot_at(sent.to, sent.start_ns);
      Holding holding{sent.to, slot, slot, problem_.copied_bytes(sent.task % problem_.operators(), sent.output)};
      for (const int32_t reader : copy.readers) holding.prolong(read_slot(reader));
      copies_.push_back(holding);
    }
  }

  /// The output of a view takes no memory and extends the life of the viewed tensor. Called for the
  /// last operator first, so views of this view are already included.
  void join_view(int32_t op) {
    if (problem_.graph().op(op).outputs.empty()) return;
    for (int32_t k = 0; k < story_.micro_batches; ++k) {
      const int32_t number = story_.number(k, op);
      Holding* viewed = runs(number) ? viewed_holding(number) : nullptr;
      if (!viewed) continue;
      Holding& view = outputs_.at(key(number, 0));
      viewed->prolong(view.last);
      view.bytes = 0;
    }
  }

  /// The tensor viewed by the task's output on its device: the original or its received copy.
  Holding* viewed_holding(int32_t number) {
    const Task& task = story_.tasks[number];
    const int32_t viewed = problem_.alias(task.op);
    int32_t producer = 0;
    while (producer + 1 < problem_.operators() && problem_.first_output(producer + 1) <= viewed)
      ++producer;
    const int32_t output = viewed - problem_.first_output(producer);
    const int32_t micro = reader_micro(problem_, story_, task.micro, producer);
    const int32_t writing = story_.number(micro, producer);
    if (story_.tasks[writing].device == task.device) return &outputs_.at(key(writing, output));
    for (size_t c = 0; c < copies_.size(); ++c) {
      const Copy& copy = story_.copies[c];
      const bool same = story_.tasks[copy.transfer.task].op == producer &&
                        copy.transfer.output == output && copy.transfer.to == task.device;
      const auto& readers = copy.readers;
      if (same && std::find(readers.begin(), readers.end(), number) != readers.end())
        return &copies_[c];
    }
    return nullptr;
  }

  const Problem& problem_;
  const Story& story_;
  std::span<const int32_t> weight_versions_;
  std::map<Key, Holding> outputs_;
  std::vector<Holding> copies_;  ///< per entry of Story::copies
};

/// Distinct devices of a collective's members, ascending.
std::vector<int32_t> member_devices(const Story& story, const Collective& collective);
CollectiveCost price(const Problem& problem, const Story& story, const Collective& collective);

/// Speed of a running task's device, in 2^-20 of its speed alone; running: [device] its task, or
/// -1.
int64_t rate(const Problem& problem, const Story& story, const std::vector<int32_t>& running,
             const Task& task);

/// Totals of a story; of a stream, by its schedule, per micro_batches mini-batches.
void measure_traffic(const Problem& problem, const Story& story, Metrics& metrics);
void measure_tasks(const Story& story, Metrics& metrics);
void measure_stream(const Problem& problem, const Story& story, const Schedule& schedule,
                    Metrics& metrics);
void measure_memory(const Problem& problem, const Story& story,
                    std::span<const int32_t> weight_versions, Metrics& metrics, Timeline& timeline);
void measure_peaks(const Problem& problem, Metrics& metrics);
void tell(const Story& story, Timeline& timeline);

}  // namespace trinity::test::reference
