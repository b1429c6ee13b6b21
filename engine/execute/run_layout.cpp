#include "execute/run_layout.h"

#include <algorithm>

#include "base/error.h"
#include "strategy/schedule.h"

namespace trinity {

RunLayout::RunLayout(const Graph& graph, std::span<const int32_t> placement, int32_t devices,
                     int32_t micro_batches, std::span<const double> order, bool stream)
    : placement_(placement.begin(), placement.end()),
      operators_(graph.operator_count()),
      micro_batches_(micro_batches),
      stream_(stream),
      queues_(static_cast<size_t>(devices)) {
  check_placement(graph, order);
  make_reads(graph);
  make_queues(graph, order);
  make_slots(graph);
}

void RunLayout::check_placement(const Graph& graph, std::span<const double> order) const {
  const auto count = static_cast<size_t>(operators_);
  if (placement_.size() != count)
    throw ArgumentError("execute: expected a device for each of {} operators, got {}", count, placement_.size());
  if (static_cast<int64_t>(operators_) * micro_batches_ > int64_t{1} << 26)
    throw LimitError("execute: {} operators in {} micro-batches are more than 2^26", operators_, micro_batches_);
  if (!order.empty() && order.size() != static_cast<size_t>(tasks()))
    throw ArgumentError("execute: expected a key for each of {} operators in {} micro-batches, got {}", count,
                        micro_batches_, order.size());
  for (int32_t op = 0; op < operators_; ++op) {
    const int32_t device = device_of(op), first = graph.unit(graph.op(op).unit)[0];
    if (device < 0 || device >= devices())
      throw ArgumentError("execute: operator {} is on device {}, expected 1 to {}", graph.op(op).name, device + 1,
                          devices());
    if (device != device_of(first))
      throw ArgumentError("execute: operators {} and {} share a colocation unit but are on devices {} and {}",
                          graph.op(first).name, graph.op(op).name, device_of(first) + 1, device + 1);
  }
}

/// True if an operator runs once, in the last micro-batch.
bool RunLayout::once(const Operator& op) const { return !stream_ && runs_once(op); }

void RunLayout::make_reads(const Graph& graph) {
  for (const auto& op : graph.operators()) reads_.emplace_back(op.inputs.begin(), op.inputs.end());
  for (const auto& collective : graph.collectives()) {
    const bool gathers = graph.op(collective.members[0]).type == "WeightGather";
    for (const int32_t member : collective.members) {
      const auto& own = graph.op(member);
      // A gather of weights before their use also reads tokens to wait for.
      const size_t pairs = !gathers                        ? own.outputs.size()
                           : own.phase == Phase::update ? own.inputs.size()
                                                        : 0;
      const bool of_first = own.type == "Broadcast";
      std::vector<int32_t> reads;
      for (size_t k = 0; k < pairs; ++k)
        for (const int32_t other : collective.members)
          if (!of_first || other == collective.members[0])
            reads.push_back(graph.op(other).inputs.at(k));
      reads.insert(reads.end(), own.inputs.begin() + static_cast<std::ptrdiff_t>(pairs),
                   own.inputs.end());
      reads_[member] = std::move(reads);
    }
  }
}

/// The order's keys, with the last member's key for all members of a collective.
std::vector<double> RunLayout::joined_keys(const Graph& graph,
                                           std::span<const double> order) const {
  std::vector<double> keys(order.begin(), order.end());
  for (const auto& collective : graph.collectives())
    for (int32_t m = 0; m < micro_batches_; ++m) {
      double last = keys[task(m, collective.members[0])];
      for (const int32_t member : collective.members) last = std::max(last, keys[task(m, member)]);
      for (const int32_t member : collective.members) keys[task(m, member)] = last;
    }
  return keys;
}

void RunLayout::make_queues(const Graph& graph, std::span<const double> order) {
  if (order.empty() && !graph.collectives().empty())
    throw ArgumentError("execute: graph {} has collectives: expected an order of tasks", graph.name());
  std::vector<int32_t> all;
  for (int32_t task = 0; task < tasks(); ++task)
    if (!once(graph.op(operator_of(task))) || micro_batch_of(task) + 1 == micro_batches_)
      all.push_back(task);
  std::vector<double> keys;
  if (!order.empty()) {
    keys = joined_keys(graph, order);
    std::stable_sort(all.begin(), all.end(),
                     [&](int32_t a, int32_t b) { return keys[a] < keys[b]; });
  }
  // No two devices wait for each other if all follow one order of the whole graph.
  std::vector<bool> placed(static_cast<size_t>(tasks()), false);
  std::vector<int32_t> open;
  for (const int32_t next : all) {
    open.push_back(next);
    while (!open.empty()) {  // inputs with the same time come first
      const int32_t task = open.back(), missing = missing_before(graph, task, placed);
      if (placed[task] || missing < 0) {
        open.pop_back();
        if (!placed[task]) queues_[device_of(operator_of(task))].push_back(task);
        placed[task] = true;
        continue;
      }
      if (keys.empty() || keys[missing] > keys[task])
        throw ArgumentError("execute: operator {} is ordered before {}, which it reads",
                            graph.op(operator_of(task)).name, graph.op(operator_of(missing)).name);
      open.push_back(missing);
    }
  }
}

/// A producer of a task's inputs that has no position yet; -1: none.
int32_t RunLayout::missing_before(const Graph& graph, int32_t task,
                                  const std::vector<bool>& placed) const {
  const int32_t op = operator_of(task), micro_batch = micro_batch_of(task);
  for (const int32_t input : reads(op)) {
    const int32_t producer = graph.tensor(input).producer;
    const bool adds_up = once(graph.op(op)) && !once(graph.op(producer));
    for (int32_t m = adds_up ? 0 : micro_batch; m <= micro_batch; ++m)
      if (!placed[this->task(m, producer)]) return this->task(m, producer);
  }
  return -1;
}

void RunLayout::make_slots(const Graph& graph) {
  const auto tensors = static_cast<int32_t>(graph.tensors().size());
  std::vector<std::vector<int32_t>> readers(graph.tensors().size());
  for (int32_t op = 0; op < operators_; ++op)
    for (const int32_t input : reads(op)) readers[input].push_back(op);
  for (int32_t tensor = 0; tensor < tensors; ++tensor) {
    first_slot_.push_back(static_cast<int32_t>(slots_.size()));
    const size_t home = slots_.size();
    slots_.push_back({tensor, device_of(graph.tensor(tensor).producer), 0, 0});
    for (const int32_t reader : readers[tensor]) {
      size_t at = home;
      while (at < slots_.size() && slots_[at].device != device_of(reader)) ++at;
      if (at == slots_.size()) {  // the first reader there makes a copy
        slots_.push_back({tensor, device_of(reader), 0, 0});
        ++slots_[home].readers;
        ++slots_[home].last_readers;
      }
      slots_[at].reader = slots_[at].readers_there++ == 0 ? reader : -1;
      if (!once(graph.op(reader))) ++slots_[at].readers;
      ++slots_[at].last_readers;
    }
  }
  first_slot_.push_back(static_cast<int32_t>(slots_.size()));
}

int32_t RunLayout::slot(int32_t tensor, int32_t device) const {
  int32_t at = home_slot(tensor);
  while (slots_[at].device != device) ++at;
  return at;
}

}  // namespace trinity
