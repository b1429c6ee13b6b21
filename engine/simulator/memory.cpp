#include "simulator/memory.h"

#include <algorithm>

#include "base/stop.h"
#include "graph/operator_types.h"
#include "graph/recompute.h"
#include "graph/split_backward.h"

namespace trinity {
namespace {

/// Above this number of devices the table of hints would be too large.
constexpr size_t kHintedDevices = 32;

}  // namespace

SlotMemory::SlotMemory(const Problem& problem)
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

void SlotMemory::account(std::span<const int32_t> placement, std::span<const int32_t> devices,
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

void SlotMemory::begin(std::span<const int32_t> placement, const Record& record) {
  placement_ = placement;
  record_ = &record;
  accumulating_ = record.micro_batches > 1 && !record.stream;
  delta_.assign(static_cast<size_t>(record.first_position.back()) + 1, 0);
  devices_ = record.devices.size();
  last_use_.resize(static_cast<size_t>(problem_.max_outputs()) * devices_);
  hints_.resize(devices_ <= kHintedDevices ? devices_ * devices_ : 0);
  for (size_t i = 0; i < hints_.size(); ++i) hints_[i] = record.first_position[i % devices_];
}

/// The slot of `device` that `time_ns` falls into. The instants of one `from` are almost ordered,
/// so the search starts where the last one of the pair ended, eight slots at a time.
inline int32_t SlotMemory::slot_at(int32_t device, int64_t time_ns, int32_t from) {
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

int32_t SlotMemory::search(int32_t device, int64_t time_ns) const {
  const auto& start = record_->start_at;
  const int32_t first = record_->first_position[device];
  const int32_t end = record_->first_position[static_cast<size_t>(device) + 1] - 1;
  const auto after = std::upper_bound(start.begin() + first, start.begin() + end, time_ns);
  return std::max(first, static_cast<int32_t>(after - start.begin()) - 1);
}

void SlotMemory::place_copies() {
  copy_.resize(std::max(copy_.size(), record_->copy_count));
  StopPoll stop;
  for (size_t i = 0; i < record_->copy_count; ++i, stop.step()) {
    const auto& copy = record_->copies[i];
    copy_[i] = {slot_at(copy.to, copy.start_ns, copy.from),
                slot_at(copy.from, copy.end_ns, copy.from)};
  }
}

/// A run without collectives, in a few passes over flat arrays: the sweep has recorded what every
/// edge reads.
void SlotMemory::account_swept() {
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
    hold({copy_[i].first, last_[first_copy + i]}, problem_.output_bytes(op, copy.output), copy.task,
         copy.output, true);
  }
}

/// Outputs are held from the slot that writes them.
void SlotMemory::begin_uses(int32_t run) {
  const int32_t* const position = positions(run);
  int32_t* const last = last_.data() + producer_.size() * static_cast<size_t>(run);
  for (size_t i = 0; i < producer_.size(); ++i) last[i] = position[producer_[i]];
}

/// Copies are held from their start; sent outputs until the end of the transfer.
void SlotMemory::use_copies() {
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
void SlotMemory::use_swept(int32_t run) {
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

void SlotMemory::hold_swept(int32_t run) {
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
      hold({position[o], position[o]}, problem_.workspace_bytes(o), run * problem_.operators() + o, -1);
}

/// Any run, task by task, last first: readers of a view are seen before the viewed tensor.
void SlotMemory::account_tasks() {
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

void SlotMemory::place_members() {
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
void SlotMemory::visit(int32_t task, size_t first_copy, size_t end_copy) {
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
         problem_.output_bytes(op, copies[i].output), task, copies[i].output, true);
    int32_t& last = last_use(copies[i].output, device);
    last = std::max(last, copy_[i].last);
  }
  for (int32_t i = 0; i < outputs; ++i) hold_output(task, op, i, {position, last_use(i, device)});
  if (problem_.has_workspace() && !member)
    hold({position, position}, problem_.workspace_bytes(op), task, -1);
}

/// Finds the last slot in which each output of a task is read on each device.
void SlotMemory::note_readers(int32_t op, int32_t micro) {
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

void SlotMemory::note_reader(int32_t task, int32_t op, int32_t tensor, int32_t& last) const {
  const auto t = static_cast<size_t>(task);
  const bool member = members_ && problem_.graph().op(op).collective >= 0;
  last = std::max(last, member ? member_[t].last : record_->position[t]);
  if (problem_.alias(op) == tensor) last = std::max(last, view_last_[t]);
}

void SlotMemory::hold_output(int32_t task, int32_t op, int32_t output, Held held) {
  const auto tensor = static_cast<size_t>(problem_.first_output(op) + output);
  if (accumulating_ && accumulates_[tensor]) {
    accumulate(tensor, held);
  } else if (output == 0 && problem_.alias(op) >= 0) {
    view_last_[task] = held.last;
  } else {
    hold(held, held_bytes_[tensor], task, output);
  }
}

void SlotMemory::accumulate(size_t tensor, Held held) {
  auto& whole = accumulated_[tensor];
  whole.first = whole.first < 0 ? held.first : std::min(whole.first, held.first);
  whole.last = std::max(whole.last, held.last);
}

void SlotMemory::hold_accumulated() {
  for (size_t i = 0; i < accumulated_.size(); ++i)
    if (accumulated_[i].first >= 0) {
      const int32_t op = producer_[i], last_run = record_->micro_batches - 1;
      hold(accumulated_[i], problem_.held_bytes()[i], last_run * problem_.operators() + op,
           static_cast<int32_t>(i) - problem_.first_output(op));
    }
}

void SlotMemory::sum(Metrics& metrics, std::vector<std::vector<MemoryLevel>>* levels) {
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

/// Positions in which a tensor is read on a device; -1: none.
struct SlotMemory::Uses {
  int32_t first = -1;  ///< first
  int32_t last = -1;   ///< last; W operators count with their B operators' positions
  bool delayed = false;  ///< W operators are among the readers

  void add(int32_t at) {
    first = first < 0 ? at : std::min(first, at);
    last = std::max(last, at);
  }
};

int32_t SlotMemory::last_position(int32_t task) const {
  const bool member =
      members_ && problem_.graph().op(task % problem_.operators()).collective >= 0;
  return member ? member_[task].last : record_->position[task];
}

/// Covers an output of an operator and its local views.
void SlotMemory::add_uses(int32_t micro, int32_t op, int32_t output, int32_t device,
                          Uses& uses) const {
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

/// Purpose of an operator's output, without regard to its readers' delay.
MemoryOwner SlotMemory::kind_of(int32_t op, int32_t output) const {
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

MemoryOwner SlotMemory::owner_of(const HeldTensor& tensor, int32_t device, int32_t peak) const {
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

void SlotMemory::own(Timeline& timeline) const {
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

void account_outputs_only(const Problem& problem, std::span<const int32_t> placement,
                          const Record& record, Metrics& metrics) {
  struct Change {
    int64_t time_ns;
    int64_t bytes;
  };
  std::vector<std::vector<Change>> changes(metrics.devices.size());
  for (int32_t op = 0; op < problem.operators(); ++op) {
    const auto o = static_cast<size_t>(op);
    int64_t bytes = 0, released = -1;
    for (int32_t i = problem.first_output(op); i < problem.first_output(op + 1); ++i)
      bytes += problem.all_output_bytes()[i];
    for (const auto& reader : problem.readers(op))
      released = std::max(released, record.end_ns[reader.op] - 1000);
    auto& device = changes[placement[o]];
    device.push_back({record.start_at[record.position[o]], bytes});
    if (released >= 0) device.push_back({released, -bytes});
  }
  for (size_t d = 0; d < changes.size(); ++d) {
    std::sort(changes[d].begin(), changes[d].end(), [](const Change& a, const Change& b) {
      return a.time_ns != b.time_ns ? a.time_ns < b.time_ns : a.bytes > b.bytes;
    });
    int64_t live = 0;
    for (const auto& change : changes[d])
      metrics.devices[d].peak_memory_bytes =
          std::max(metrics.devices[d].peak_memory_bytes, live += change.bytes);
  }
}

}  // namespace trinity
