#pragma once

#include <algorithm>

#include "base/stop.h"
#include "graph/operator_types.h"
#include "graph/recompute.h"
#include "graph/split_backward.h"
#include "simulator/record.h"

namespace trinity {

/// A tensor or workspace that a device holds over an interval of its slots.
struct HeldTensor {
  int32_t first = 0, last = 0;  ///< positions in the record
  int64_t bytes = 0;
  int32_t task = 0;     ///< producer
  int32_t output = -1;  ///< index of its output; -1: its workspace
  bool copy = false;    ///< true on a device that received it
};

/// Computes the peak memory of every device from a finished run, by slots (rules: simulator.h).
/// Slot k of a device is position first_position + k of the record, so a level is a running sum
/// over positions. Not thread-safe.
class SlotMemory {
 public:
  explicit SlotMemory(const Problem& problem)
      : problem_(problem),
        members_(!problem.graph().collectives().empty()),
        held_bytes_(problem.held_bytes().begin(), problem.held_bytes().end()),
        accumulates_(static_cast<size_t>(problem.outputs()), false) {
    std::vector<int32_t> viewed(static_cast<size_t>(problem.operators()), -1);
    for (int32_t o = 0; o < problem.operators(); ++o) {
      producer_.insert(producer_.end(),
                       static_cast<size_t>(problem.first_output(o + 1) - problem.first_output(o)), o);
      int32_t edge = problem.first_edge(o);
      for (const auto& reader : problem.readers(o)) {
        const int32_t tensor = problem.first_output(o) + reader.output;
        if (!problem.once(o) && problem.once(reader.op)) accumulates_[tensor] = true;
        if (problem.alias(reader.op) == tensor) viewed[reader.op] = edge;
        ++edge;
      }
    }
    for (int32_t o = problem.operators() - 1; o >= 0; --o) {
      if (problem.alias(o) < 0) continue;
      view_.push_back(o);
      viewed_.push_back(viewed[o]);
      held_bytes_[problem.first_output(o)] = 0;
    }
  }

  /// Sets peak_memory_bytes of all devices. Fills memory, and owners if requested, of `timeline` if
  /// given. devices: cluster index of each device that placement and record name; empty: identical.
  void account(std::span<const int32_t> placement, std::span<const int32_t> devices,
               const Record& record, Metrics& metrics, Timeline* timeline) {
    cluster_devices_ = devices;
    collects_ = timeline && timeline->wants_owners;
    if (collects_ && input_part_.empty()) input_part_ = input_parts(problem_.graph());
    held_.clear();
    begin(placement, record);
    place_copies();
    record.swept ? account_swept() : account_tasks();
    sum(metrics, timeline ? &timeline->memory : nullptr);
    if (collects_) own(*timeline);
  }

 private:
  /// First and last position at which something is held.
  struct Held {
    int32_t first = -1, last = -1;
  };

  void begin(std::span<const int32_t> placement, const Record& record) {
    placement_ = placement;
    record_ = &record;
    accumulating_ = record.micro_batches > 1 && !record.stream;
    delta_.assign(static_cast<size_t>(record.first_position.back()) + 1, 0);
    devices_ = record.devices.size();
    last_use_.resize(static_cast<size_t>(problem_.max_outputs()) * devices_);
    hints_.resize(devices_ <= kHintedDevices ? devices_ * devices_ : 0);
    for (size_t i = 0; i < hints_.size(); ++i) hints_[i] = record.first_position[i % devices_];
  }

  void place_copies() {
    copy_.resize(std::max(copy_.size(), record_->copy_count));
    StopPoll stop;
    for (size_t i = 0; i < record_->copy_count; ++i, stop.step()) {
      const auto& copy = record_->copies[i];
      copy_[i] = {slot_at(copy.to, copy.start_ns, copy.from),
                  slot_at(copy.from, copy.end_ns, copy.from)};
    }
  }

  /// The slot of `device` that `time_ns` falls into. The instants of one `from` are almost ordered,
  /// so the search starts where the last one of the pair ended, eight slots at a time.
  int32_t slot_at(int32_t device, int64_t time_ns, int32_t from) {
    if (hints_.empty()) return search(device, time_ns);
    const int64_t* start = record_->start_at.data();
    const int32_t first = record_->first_position[device];
    const int32_t last = record_->first_position[static_cast<size_t>(device) + 1] - 2;
    int32_t& hint = hints_[static_cast<size_t>(from) * devices_ + static_cast<size_t>(device)];
    int32_t at = hint;
    while (at > first && start[at] > time_ns) --at;
    while (at + 8 <= last) {
      int32_t passed = 0;
      for (int32_t i = 1; i <= 8; ++i) passed += start[at + i] <= time_ns;
      at += passed;
      if (passed < 8) return hint = at;
    }
    while (at < last && start[at + 1] <= time_ns) ++at;
    return hint = at;
  }

  int32_t search(int32_t device, int64_t time_ns) const {
    const auto& start = record_->start_at;
    const int32_t first = record_->first_position[device];
    const int32_t end = record_->first_position[static_cast<size_t>(device) + 1] - 1;
    const auto after = std::upper_bound(start.begin() + first, start.begin() + end, time_ns);
    return std::max(first, static_cast<int32_t>(after - start.begin()) - 1);
  }

  /// A run without collectives, in a few passes over flat arrays: the sweep has recorded what every
  /// edge reads.
  void account_swept() {
    const int32_t runs = record_->micro_batches;
    last_.resize(std::max(last_.size(), producer_.size() * static_cast<size_t>(runs) +
                                            record_->copy_count));
    for (int32_t run = 0; run < runs; ++run) begin_uses(run);
    use_copies();
    for (int32_t run = 0; run < runs; ++run) use_swept(run);
    if (accumulating_) accumulated_.assign(producer_.size(), {});
    for (int32_t run = 0; run < runs; ++run) hold_swept(run);
    if (accumulating_) hold_accumulated();
    const auto first_copy = producer_.size() * static_cast<size_t>(runs);
    for (size_t i = 0; i < record_->copy_count; ++i) {
      const auto& copy = record_->copies[i];
      const int32_t op = runs == 1 ? copy.task : copy.task % problem_.operators();
      hold({copy_[i].first, last_[first_copy + i]}, problem_.copied_bytes(op, copy.output), copy.task,
           copy.output, true);
    }
  }

  /// Outputs are held from the slot that writes them.
  void begin_uses(int32_t run) {
    const int32_t* const position = positions(run);
    int32_t* const last = last_.data() + producer_.size() * static_cast<size_t>(run);
    for (size_t i = 0; i < producer_.size(); ++i) last[i] = position[producer_[i]];
  }

  /// Copies are held from their start; sent outputs until the end of the transfer.
  void use_copies() {
    const int32_t n = problem_.operators(), outputs = problem_.outputs();
    const int32_t runs = record_->micro_batches;
    int32_t* const copied = last_.data() + producer_.size() * static_cast<size_t>(runs);
    for (size_t i = 0; i < record_->copy_count; ++i) {
      const auto& copy = record_->copies[i];
      const int32_t run = runs == 1 ? 0 : copy.task / n, op = copy.task - run * n;
      int32_t& sent = last_[run * outputs + problem_.first_output(op) + copy.output];
      sent = std::max(sent, copy_[i].last);
      copied[i] = copy_[i].first;
    }
  }

  /// Inputs of a micro-batch are held until they are read, viewed tensors as long as their views.
  void use_swept(int32_t run) {
    const int32_t* const position = positions(run);
    const int32_t* const source =
        record_->source.data() + static_cast<size_t>(problem_.edges()) * static_cast<size_t>(run);
    int32_t* const last = last_.data();
    const bool not_last = run + 1 < record_->micro_batches;
    const auto readers = problem_.all_readers();
    for (size_t e = 0; e < readers.size(); ++e) {
      if (not_last && problem_.once(readers[e].op)) continue;
      int32_t& use = last[source[e]];
      use = std::max(use, position[readers[e].op]);
    }
    for (size_t i = 0; i < view_.size(); ++i) {
      if (not_last && problem_.once(view_[i])) continue;
      const int32_t output = problem_.first_output(view_[i]);
      if (accumulating_ && accumulates_[output]) continue;
      int32_t& use = last[source[viewed_[i]]];
      use = std::max(use, last[run * problem_.outputs() + output]);
    }
  }

  void hold_swept(int32_t run) {
    const int32_t* const position = positions(run);
    const int32_t* const last = last_.data() + producer_.size() * static_cast<size_t>(run);
    const bool not_last = run + 1 < record_->micro_batches;
    for (size_t i = 0; i < producer_.size(); ++i) {
      if (not_last && problem_.once(producer_[i])) continue;
      const Held held{position[producer_[i]], last[i]};
      if (accumulating_ && accumulates_[i])
        accumulate(i, held);
      else
        hold(held, held_bytes_[i], run * problem_.operators() + producer_[i],
             static_cast<int32_t>(i) - problem_.first_output(producer_[i]));
    }
    if (!problem_.has_workspace()) return;
    for (int32_t o = 0; o < problem_.operators(); ++o)
      if (!not_last || !problem_.once(o))
        hold({position[o], position[o]}, problem_.graph().op(o).workspace_bytes, run * problem_.operators() + o, -1);
  }

  const int32_t* positions(int32_t run) const {
    return record_->position.data() +
           static_cast<size_t>(problem_.operators()) * static_cast<size_t>(run);
  }

  /// Any run, task by task, last first: readers of a view are seen before the viewed tensor.
  void account_tasks() {
    if (members_) place_members();
    view_last_.assign(record_->position.size(), -1);
    if (accumulating_) {
      ended_.assign(static_cast<size_t>(problem_.operators()), false);
      accumulated_.assign(static_cast<size_t>(problem_.outputs()), {});
    }
    size_t end = record_->copy_count;
    StopPoll stop;
    for (auto task = record_->order.rbegin(); task != record_->order.rend(); ++task, stop.step()) {
      size_t first = end;
      while (first > 0 && record_->copies[first - 1].task == *task) --first;
      visit(*task, first, end);
      end = first;
    }
    if (accumulating_) hold_accumulated();
  }

  void place_members() {
    member_.resize(record_->position.size());
    for (const auto& run : record_->collectives) {
      const auto& collective = problem_.graph().collectives()[run.collective];
      for (const int32_t op : collective.members) {
        const int32_t device = placement_[op];
        const auto task = static_cast<size_t>(run.micro_batch * problem_.operators() + op);
        member_[task].first = slot_at(device, run.start_ns, device);
        member_[task].last = slot_at(device, run.end_ns, device);
      }
    }
  }

  /// Adds a task's outputs, their copies on other devices, and its workspace.
  void visit(int32_t task, size_t first_copy, size_t end_copy) {
    const auto t = static_cast<size_t>(task);
    const int32_t micro = task / problem_.operators(), op = task - micro * problem_.operators();
    const int32_t device = placement_[op];
    const bool member = members_ && problem_.graph().op(op).collective >= 0;
    const int32_t position = member ? member_[t].first : record_->position[t];
    const int32_t outputs = problem_.first_output(op + 1) - problem_.first_output(op);
    for (int32_t i = 0; i < outputs; ++i) last_use(i, device) = position;
    const auto& copies = record_->copies;
    for (size_t i = first_copy; i < end_copy; ++i)
      last_use(copies[i].output, copies[i].to) = copy_[i].first;
    note_readers(op, micro);
    for (size_t i = first_copy; i < end_copy; ++i) {
      hold({copy_[i].first, last_use(copies[i].output, copies[i].to)},
           problem_.copied_bytes(op, copies[i].output), task, copies[i].output, true);
      int32_t& last = last_use(copies[i].output, device);
      last = std::max(last, copy_[i].last);
    }
    for (int32_t i = 0; i < outputs; ++i) hold_output(task, op, i, {position, last_use(i, device)});
    if (problem_.has_workspace() && !member)
      hold({position, position}, problem_.graph().op(op).workspace_bytes, task, -1);
  }

  /// Finds the last slot in which each output of a task is read on each device.
  void note_readers(int32_t op, int32_t micro) {
    const int32_t n = problem_.operators();
    const int32_t last_micro = accumulating_ ? record_->micro_batches - 1 : 0;
    bool hands_out = true;  // readers that run once per step receive it from this task
    if (last_micro > 0 && !problem_.once(op)) {
      hands_out = !ended_[op];
      ended_[op] = true;
    }
    for (const auto& reader : problem_.readers(op)) {
      const bool once = last_micro > 0 && problem_.once(reader.op);
      if (once && !hands_out) continue;
      const int32_t reading = (once ? last_micro : micro) * n + reader.op;
      note_reader(reading, reader.op, problem_.first_output(op) + reader.output,
                  last_use(reader.output, placement_[reader.op]));
    }
  }

  void note_reader(int32_t task, int32_t op, int32_t tensor, int32_t& last) const {
    const auto t = static_cast<size_t>(task);
    const bool member = members_ && problem_.graph().op(op).collective >= 0;
    last = std::max(last, member ? member_[t].last : record_->position[t]);
    if (problem_.alias(op) == tensor) last = std::max(last, view_last_[t]);
  }

  void hold_output(int32_t task, int32_t op, int32_t output, Held held) {
    const auto tensor = static_cast<size_t>(problem_.first_output(op) + output);
    if (accumulating_ && accumulates_[tensor]) {
      accumulate(tensor, held);
    } else if (output == 0 && problem_.alias(op) >= 0) {
      view_last_[task] = held.last;
    } else {
      hold(held, held_bytes_[tensor], task, output);
    }
  }

  /// Records a task's output, or its workspace (output -1); see HeldTensor.
  void hold(Held held, int64_t bytes, int32_t task, int32_t output, bool copy = false) {
    delta_[held.first] += bytes;
    delta_[static_cast<size_t>(held.last) + 1] -= bytes;
    if (collects_ && bytes > 0)
      held_.push_back({held.first, held.last, bytes, task, output, copy});
  }

  void accumulate(size_t tensor, Held held) {
    auto& whole = accumulated_[tensor];
    whole.first = whole.first < 0 ? held.first : std::min(whole.first, held.first);
    whole.last = std::max(whole.last, held.last);
  }

  void hold_accumulated() {
    for (size_t i = 0; i < accumulated_.size(); ++i)
      if (accumulated_[i].first >= 0) {
        const int32_t op = producer_[i], last_run = record_->micro_batches - 1;
        hold(accumulated_[i], problem_.held_bytes()[i], last_run * problem_.operators() + op,
             static_cast<int32_t>(i) - problem_.first_output(op));
      }
  }

  int32_t& last_use(int32_t output, int32_t device) {
    return last_use_[static_cast<size_t>(output) * devices_ + static_cast<size_t>(device)];
  }

  void sum(Metrics& metrics, std::vector<std::vector<MemoryLevel>>* levels) {
    const auto versions = record_->weight_versions;
    used_.assign(metrics.devices.size(), false);
    for (int32_t o = 0; o < problem_.operators(); ++o) {
      const auto d = static_cast<size_t>(placement_[o]);
      auto& peak_bytes = metrics.devices[d].peak_memory_bytes;
      if (!used_[d]) peak_bytes += framework_bytes(d);
      used_[d] = true;
      peak_bytes += problem_.fixed_bytes(o);
      if (!versions.empty())
        peak_bytes += (versions[d] - 1) * problem_.graph().op(o).parameter_bytes();
    }
    if (levels) levels->assign(metrics.devices.size(), {});
    peak_.assign(metrics.devices.size(), 0);
    for (size_t d = 0; d < metrics.devices.size(); ++d) {
      auto& peak = metrics.devices[d].peak_memory_bytes;
      int64_t level = peak;
      const auto first = static_cast<size_t>(record_->first_position[d]);
      const auto end = static_cast<size_t>(record_->first_position[d + 1]) - 1;
      peak_[d] = record_->first_position[d];
      for (size_t at = first; at < end; ++at) {
        level += delta_[at];
        if (level > peak) peak = level, peak_[d] = static_cast<int32_t>(at);
        if (levels) (*levels)[d].push_back({record_->start_at[at], level});
      }
    }
  }

  /// Fills the owners of the devices' peaks, and what they hold then.
  void own(Timeline& timeline) const {
    const auto& first_position = record_->first_position;
    auto& owners = timeline.owners;
    owners.assign(peak_.size(), {});
    timeline.at_peak.clear();
    const auto add = [&](size_t device, MemoryOwner owner, int64_t bytes) {
      owners[device][static_cast<size_t>(owner)] += bytes;
    };
    for (int32_t o = 0; o < problem_.operators(); ++o) {
      const auto device = static_cast<size_t>(placement_[o]);
      const auto versions = record_->weight_versions;
      const int64_t parameters = problem_.graph().op(o).parameter_bytes();
      add(device, MemoryOwner::weights, versions.empty() ? parameters : versions[device] * parameters);
      const int64_t gradients = problem_.gradient_bytes(o);
      add(device, MemoryOwner::gradients, gradients);
      add(device, MemoryOwner::optimizer, problem_.fixed_bytes(o) - parameters - gradients);
    }
    for (size_t d = 0; d < used_.size(); ++d)
      if (used_[d]) add(d, MemoryOwner::framework, framework_bytes(d));
    for (const HeldTensor& tensor : held_) {
      const auto behind = std::upper_bound(first_position.begin(), first_position.end(), tensor.first);
      const auto device = static_cast<int32_t>(behind - first_position.begin()) - 1;
      const int32_t peak = peak_[device];
      if (peak < tensor.first || tensor.last < peak) continue;
      const MemoryOwner owner = owner_of(tensor, device, peak);
      add(static_cast<size_t>(device), owner, tensor.bytes);
      timeline.at_peak.push_back({device, tensor.task % problem_.operators(), owner, tensor.bytes});
    }
  }

  MemoryOwner owner_of(const HeldTensor& tensor, int32_t device, int32_t peak) const {
    if (tensor.output < 0) return MemoryOwner::workspace;
    const int32_t micro = tensor.task / problem_.operators();
    const int32_t op = tensor.task - micro * problem_.operators();
    const MemoryOwner kind = kind_of(op, tensor.output);
    Uses uses;
    add_uses(micro, op, tensor.output, device, uses);
    if (tensor.copy && peak < uses.first) return MemoryOwner::received;
    const bool waits = kind == MemoryOwner::activations || kind == MemoryOwner::activation_gradients;
    if (waits && uses.delayed && peak > uses.last) return MemoryOwner::delayed;
    return kind;
  }

  /// Purpose of an operator's output, without regard to its readers' delay.
  MemoryOwner kind_of(int32_t op, int32_t output) const {
    const auto& graph = problem_.graph();
    const auto& about = graph.op(op);
    const bool gathers = about.collective >= 0 &&
                         graph.collectives()[about.collective].kind == CollectiveKind::all_gather;
    if (about.type == "WeightGather" || (about.phase == Phase::update && gathers))
      return MemoryOwner::gathered;
    if (about.phase == Phase::update) return MemoryOwner::gradients;
    if (about.phase == Phase::forward || is_recomputed(about)) return MemoryOwner::activations;
    for (const auto& reader : problem_.readers(op))
      if (reader.output == output && graph.op(reader.op).phase == Phase::update)
        return MemoryOwner::gradients;
    return MemoryOwner::activation_gradients;
  }

  /// Positions in which a tensor is read on a device; -1: none.
  struct Uses {
    int32_t first = -1;  ///< first
    int32_t last = -1;   ///< last; W operators count with their B operators' positions
    bool delayed = false;  ///< W operators are among the readers

    void add(int32_t at) {
      first = first < 0 ? at : std::min(first, at);
      last = std::max(last, at);
    }
  };

  /// Covers an output of an operator and its local views.
  void add_uses(int32_t micro, int32_t op, int32_t output, int32_t device, Uses& uses) const {
    const auto& graph = problem_.graph();
    for (const auto& reader : problem_.readers(op)) {
      if (reader.output != output || placement_[reader.op] != device) continue;
      const bool once = accumulating_ && problem_.once(reader.op);
      const int32_t run = once ? record_->micro_batches - 1 : micro;
      int32_t by = reader.op;
      if (is_weight_part(graph.op(by))) {
        uses.delayed = true;
        const int32_t input = input_part_[graph.op(by).forward];
        if (input >= 0 && placement_[input] == device) by = input;
      }
      uses.add(last_position(run * problem_.operators() + by));
      if (problem_.alias(reader.op) == problem_.first_output(op) + output)
        add_uses(run, reader.op, 0, device, uses);
    }
  }

  int32_t last_position(int32_t task) const {
    const bool member =
        members_ && problem_.graph().op(task % problem_.operators()).collective >= 0;
    return member ? member_[task].last : record_->position[task];
  }

  int64_t framework_bytes(size_t device) const {
    return problem_.framework_bytes(cluster_devices_.empty() ? static_cast<int32_t>(device)
                                                             : cluster_devices_[device]);
  }

  /// Above this number of devices the table of hints would be too large.
  static constexpr size_t kHintedDevices = 32;

  const Problem& problem_;
  const bool members_;
  size_t devices_ = 0;                  // number of devices in the record
  std::vector<int32_t> producer_;       // per output
  std::vector<int64_t> held_bytes_;     // per output: 0 for views
  std::vector<int32_t> view_, viewed_;  // view operators, descending, and the edges they view
  std::vector<bool> accumulates_;  // per output: read once per step, written in every micro-batch
  bool accumulating_ = false;           // tensors read by updates accumulate over micro-batches
  std::span<const int32_t> placement_, cluster_devices_;
  const Record* record_ = nullptr;
  std::vector<int64_t> delta_;  // per position: bytes allocated minus bytes released before
  std::vector<int32_t> hints_;  // [from][to]: where to start the search for an instant's slot
  std::vector<Held> copy_;      // per copy: slot of its start, and slot of its end on the sender
  std::vector<int32_t> last_;   // sweep: [run][output], then per copy: slot of its last use
  std::vector<Held> accumulated_;   // per output

  bool collects_ = false;         // owners are requested
  std::vector<HeldTensor> held_;  // everything held, if collects_
  std::vector<bool> used_;        // per device: something runs there
  std::vector<int32_t> peak_;     // per device: the first position whose level is its peak
  // per forward operator: its input-gradient operator, if W operators are separate
  std::vector<int32_t> input_part_;

  // Used when visiting task by task.
  std::vector<int32_t> last_use_;   // [output][device] of the current task
  std::vector<Held> member_;        // per task: slots of start and end of its collective
  std::vector<int32_t> view_last_;  // per task: last use of the view's output
  std::vector<bool> ended_;         // per operator: its last micro-batch to end has been visited
};

}  // namespace trinity
