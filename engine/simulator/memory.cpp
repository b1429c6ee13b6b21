#include "simulator/memory.h"

#include <algorithm>

namespace trinity {
namespace {

/// Above this number of devices a table of hints would be larger than it is worth.
constexpr int32_t kHintedDevices = 32;

}  // namespace

SlotMemory::SlotMemory(const Problem& problem)
    : problem_(problem),
      members_(!problem.graph().collectives().empty()),
      accumulates_(static_cast<size_t>(problem.outputs()), false),
      last_use_(static_cast<size_t>(problem.max_outputs()) *
                static_cast<size_t>(problem.devices())) {
  for (int32_t o = 0; o < problem.operators(); ++o)
    for (const auto& reader : problem.readers(o))
      if (!problem.once(o) && problem.once(reader.op))
        accumulates_[static_cast<size_t>(problem.first_output(o) + reader.output)] = true;
  const int32_t d = problem.devices();
  if (d <= kHintedDevices) hints_.resize(static_cast<size_t>(d) * static_cast<size_t>(d));
}

void SlotMemory::account(std::span<const int32_t> placement, const Record& record, Metrics& metrics,
                         std::vector<std::vector<MemoryLevel>>* levels) {
  begin(placement, record);
  if (members_) place_members();
  const bool general = record.micro_batches > 1 || members_ || problem_.has_aliases();
  for (auto task = record.order.rbegin(); task != record.order.rend(); ++task)
    general ? visit<true>(*task) : visit<false>(*task);
  if (record.micro_batches > 1) hold_accumulated();
  sum(metrics, levels);
}

void SlotMemory::begin(std::span<const int32_t> placement, const Record& record) {
  placement_ = placement;
  record_ = &record;
  delta_.assign(static_cast<size_t>(record.first_position.back()) + 1, 0);
  const auto d_count = static_cast<size_t>(problem_.devices());
  for (size_t i = 0; i < hints_.size(); ++i) hints_[i] = record.first_position[i % d_count + 1] - 2;
  if (members_) member_.resize(record.position.size());
  if (problem_.has_aliases()) view_last_.assign(record.position.size(), -1);
  if (record.micro_batches > 1) {
    ended_.assign(static_cast<size_t>(problem_.operators()), false);
    accumulated_.assign(static_cast<size_t>(problem_.outputs()), {});
  }
}

/// The slot of `device` that `time_ns` falls into, for a transfer from `from`.
int32_t SlotMemory::position_at(int32_t device, int64_t time_ns, int32_t from) {
  const auto& start = record_->start_at;
  const int32_t first = record_->first_position[static_cast<size_t>(device)];
  const int32_t end = record_->first_position[static_cast<size_t>(device) + 1] - 1;
  if (hints_.empty()) {
    const auto after = std::upper_bound(start.begin() + first, start.begin() + end, time_ns);
    return std::max(first, static_cast<int32_t>(after - start.begin()) - 1);
  }
  int32_t& at = hints_[static_cast<size_t>(from) * static_cast<size_t>(problem_.devices()) +
                       static_cast<size_t>(device)];
  while (at > first && start[static_cast<size_t>(at)] > time_ns) --at;
  while (at + 1 < end && start[static_cast<size_t>(at) + 1] <= time_ns) ++at;
  return at;
}

void SlotMemory::place_members() {
  for (const auto& run : record_->collectives) {
    const auto& collective = problem_.graph().collectives()[static_cast<size_t>(run.collective)];
    for (const int32_t op : collective.members) {
      const int32_t device = placement_[static_cast<size_t>(op)];
      const auto task = static_cast<size_t>(run.micro_batch * problem_.operators() + op);
      member_[task].first = position_at(device, run.start_ns, device);
      member_[task].last = position_at(device, run.end_ns, device);
    }
  }
}

/// Holds the outputs of a task and their copies elsewhere.
template <bool kGeneral>
void SlotMemory::visit(int32_t task) {
  const auto t = static_cast<size_t>(task);
  const int32_t micro = kGeneral ? task / problem_.operators() : 0;
  const int32_t op = kGeneral ? task - micro * problem_.operators() : task;
  const int32_t device = placement_[static_cast<size_t>(op)];
  const bool member = kGeneral && members_ && problem_.graph().op(op).collective >= 0;
  const int32_t position = member ? member_[t].first : record_->position[t];
  const int32_t outputs = problem_.first_output(op + 1) - problem_.first_output(op);
  for (int32_t i = 0; i < outputs; ++i) last_use(i, device) = position;
  const auto first_copy = static_cast<size_t>(record_->first_copy[t]);
  size_t end_copy = first_copy;
  for (; end_copy < record_->copies.size() && record_->copies[end_copy].task == task; ++end_copy) {
    const auto& copy = record_->copies[end_copy];
    last_use(copy.output, copy.to) = position_at(copy.to, copy.start_ns, device);
  }
  note_readers<kGeneral>(task, op, micro);
  for (size_t i = end_copy; i-- > first_copy;) {
    const auto& copy = record_->copies[i];
    hold({position_at(copy.to, copy.start_ns, device), last_use(copy.output, copy.to)},
         problem_.output_bytes(op, copy.output));
    int32_t& last = last_use(copy.output, device);
    last = std::max(last, position_at(device, copy.end_ns, device));
  }
  for (int32_t i = 0; i < outputs; ++i) {
    const Held held{position, last_use(i, device)};
    if constexpr (kGeneral)
      hold_output(task, op, i, held);
    else
      hold(held, problem_.output_bytes(op, i));
  }
  if (problem_.has_workspace() && !member) hold({position, position}, problem_.workspace_bytes(op));
}

/// Finds the last slot in which each output of a task is read on each device.
template <bool kGeneral>
void SlotMemory::note_readers(int32_t task, int32_t op, int32_t micro) {
  const auto* position = record_->position.data();
  if constexpr (!kGeneral) {
    for (const auto& reader : problem_.readers(op)) {
      int32_t& last = last_use(reader.output, placement_[static_cast<size_t>(reader.op)]);
      last = std::max(last, position[reader.op]);
    }
    return;
  }
  const int32_t n = problem_.operators(), last_micro = record_->micro_batches - 1;
  bool hands_out = true;  // whether readers that run once a step have it from this task
  if (last_micro > 0 && !problem_.once(op)) {
    hands_out = !ended_[static_cast<size_t>(op)];
    ended_[static_cast<size_t>(op)] = true;
  }
  for (const auto& reader : problem_.readers(op)) {
    const bool once = last_micro > 0 && problem_.once(reader.op);
    if (once && !hands_out) continue;
    const int32_t reading = (once ? last_micro : micro) * n + reader.op;
    note_reader(reading, reader.op, problem_.first_output(op) + reader.output,
                last_use(reader.output, placement_[static_cast<size_t>(reader.op)]));
  }
  (void)task;
}

void SlotMemory::note_reader(int32_t task, int32_t op, int32_t tensor, int32_t& last) const {
  const auto t = static_cast<size_t>(task);
  const bool member = members_ && problem_.graph().op(op).collective >= 0;
  last = std::max(last, member ? member_[t].last : record_->position[t]);
  if (problem_.alias(op) == tensor) last = std::max(last, view_last_[t]);
}

void SlotMemory::hold_output(int32_t task, int32_t op, int32_t output, Held held) {
  const auto tensor = static_cast<size_t>(problem_.first_output(op) + output);
  if (record_->micro_batches > 1 && accumulates_[tensor]) {
    auto& whole = accumulated_[tensor];
    whole.first = whole.first < 0 ? held.first : std::min(whole.first, held.first);
    whole.last = std::max(whole.last, held.last);
  } else if (output == 0 && problem_.alias(op) >= 0) {
    view_last_[static_cast<size_t>(task)] = held.last;
  } else {
    hold(held, problem_.output_bytes(op, output));
  }
}

void SlotMemory::hold_accumulated() {
  for (size_t i = 0; i < accumulated_.size(); ++i)
    if (accumulated_[i].first >= 0) hold(accumulated_[i], problem_.all_output_bytes()[i]);
}

void SlotMemory::sum(Metrics& metrics, std::vector<std::vector<MemoryLevel>>* levels) const {
  for (int32_t o = 0; o < problem_.operators(); ++o)
    metrics.devices[static_cast<size_t>(placement_[static_cast<size_t>(o)])].peak_memory_bytes +=
        problem_.fixed_bytes(o);
  if (levels) levels->assign(metrics.devices.size(), {});
  for (size_t d = 0; d < metrics.devices.size(); ++d) {
    auto& peak = metrics.devices[d].peak_memory_bytes;
    int64_t level = peak;
    const auto first = static_cast<size_t>(record_->first_position[d]);
    const auto end = static_cast<size_t>(record_->first_position[d + 1]) - 1;
    for (size_t at = first; at < end; ++at) {
      level += delta_[at];
      peak = std::max(peak, level);
      if (levels) (*levels)[d].push_back({record_->start_at[at], level});
    }
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
      bytes += problem.all_output_bytes()[static_cast<size_t>(i)];
    for (const auto& reader : problem.readers(op))
      released = std::max(released, record.end_ns[static_cast<size_t>(reader.op)] - 1000);
    auto& device = changes[static_cast<size_t>(placement[o])];
    device.push_back({record.start_at[static_cast<size_t>(record.position[o])], bytes});
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
