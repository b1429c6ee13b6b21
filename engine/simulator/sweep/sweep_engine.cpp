#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "simulator/sweep/sweep_run.h"

namespace trinity {
namespace {

int op_bits(const Problem& problem) {
  return std::bit_width(static_cast<uint32_t>(std::max(problem.operators() - 1, 0)));
}

/// Fair shares are rounded down; 2k - 1 bytes/s among k flows lose nearly half.
bool packs(const Problem& problem, int32_t runs, int shift) {
  const int64_t numbers = int64_t{1} << shift;
  const int64_t tasks = runs > 1 ? int64_t{runs} << op_bits(problem) : problem.operators();
  const double longer = (problem.rules().queue == QueueModel::fair ? 2.0 : 1.0) * runs;
  return tasks < numbers && problem.most_missing() < numbers &&
         longer * problem.longest_step_ns() < std::ldexp(1.0, 64 - shift) - 1;
}

/// True if indices of outputs, copies and edges fit.
bool counts(const Problem& problem, int32_t runs) {
  return (int64_t{problem.outputs()} + problem.edges()) * runs < (int64_t{1} << 30);
}

}  // namespace

SweepEngine::SweepEngine(const Problem& problem)
    : problem_(problem),
      op_bits_(op_bits(problem)),
      arrivals_(static_cast<size_t>(problem.max_outputs()) *
                static_cast<size_t>(problem.devices())),
      flows_(problem.cluster()),
      next_position_(static_cast<size_t>(problem.devices())) {
  for (int32_t o = 0; o < problem.operators(); ++o) {
    if (problem.missing(o) == 0) sources_.push_back(o);
    const auto readers = problem.readers(o);
    summed_.push_back(!problem.once(o) &&
                      std::any_of(readers.begin(), readers.end(),
                                  [&](const auto& reader) { return problem.once(reader.op); }));
  }
  for (int32_t o = 0; o <= problem.operators(); ++o)
    nodes_.push_back({problem.first_edge(o), problem.first_output(o)});
  for (size_t i = 0; i < problem.uniform_wires().size(); ++i)
    wires_.push_back({problem.uniform_wires()[i], problem.all_output_bytes()[i]});
  const auto d = static_cast<size_t>(problem.devices());
  if (problem.rules().queue == QueueModel::pair) pair_free_.resize(d * d);
  if (problem.rules().queue == QueueModel::route)
    channel_free_.resize(problem.cluster().channels().size());
}

void SweepEngine::lay_out(int32_t runs) {
  if (runs == runs_) return;
  runs_ = runs;
  const auto r = static_cast<size_t>(runs);
  missing_image_.clear();
  for (int32_t o = 0; o < problem_.operators(); ++o)
    missing_image_.insert(missing_image_.end(), r, static_cast<uint64_t>(problem_.missing(o)));
  state_.resize(missing_image_.size());
  store_.resize(missing_image_.size());
  if (wiring(problem_) == Wiring::channels)
    expected_.resize(static_cast<size_t>(problem_.edges()) * r);
}

bool SweepEngine::takes(const Problem& problem, const Schedule* schedule) {
  if (problem.rules().queue == QueueModel::receiver || problem.tables().contends()) return false;
  const int32_t runs = schedule ? schedule->runs() : 1;
  if (schedule && (schedule->stream > 0 || !schedule->weight_versions.empty() ||
                   (runs > 1 && schedule->dispatch == DispatchRule::order)))
    return false;
  return problem.graph().collectives().empty() && counts(problem, runs) &&
         (packs(problem, runs, kSmallShift) || packs(problem, runs, kLargeShift));
}

SweepEngine::Wiring SweepEngine::wiring(const Problem& problem) {
  const auto& rules = problem.rules();
  if (rules.queue == QueueModel::route || rules.queue == QueueModel::fair) return Wiring::channels;
  const bool plain = rules.queue == QueueModel::sender && !problem.uniform_wires().empty() &&
                     rules.device_dead_ns == 0 && rules.link_dead_ns == 0 && !rules.broadcast;
  return plain ? Wiring::plain : Wiring::queues;
}

/// Books a transfer in a queue with one sender, from copy.start_ns on at the earliest; returns its
/// arrival.
int64_t SweepEngine::book(Copy copy, int64_t bytes, Record& record, int32_t number) {
  const auto& rules = problem_.rules();
  const int64_t wire = problem_.wire_ns(copy.from, copy.to, bytes);
  auto& sender = record.devices[copy.from];
  int64_t unqueued = 0;
  int64_t& free = rules.queue == QueueModel::pair
                      ? pair_free_[static_cast<size_t>(copy.from) * record.devices.size() +
                                   static_cast<size_t>(copy.to)]
                  : rules.queue == QueueModel::none ? unqueued
                                                    : sender.send_free_ns;
  copy.start_ns = std::max(copy.start_ns, free);
  copy.end_ns = copy.start_ns + wire;
  free = copy.end_ns + rules.link_dead_ns;
  record.last_ns = std::max(record.last_ns, free);
  sender.send_ns += wire;
  sender.sent_bytes += bytes;
  record.devices[copy.to].received_bytes += bytes;
  if (record.tasks) record.copies[number] = copy;
  return copy.end_ns;
}

void SweepEngine::begin_turns(const Schedule& schedule, size_t devices) {
  turns_.clear();
  waiting_.resize(devices);
  for (size_t d = 0; d < devices; ++d) {
    auto& waiting = waiting_[d];
    waiting.later.clear();
    waiting.chosen.clear();
    waiting.stack.clear();
    waiting.next_ns = EventQueue::kNever;
    if (schedule.dispatch != DispatchRule::order) continue;
    waiting.at = schedule.order_first[d];
    waiting.end = schedule.order_first[d + 1];
  }
}

bool SweepEngine::run(const Plan& plan, int64_t limit_ns, Record& record) {
  record.begin(problem_, plan, limit_ns != kNoLimit);
  lay_out(record.micro_batches);
  std::memcpy(state_.data(), missing_image_.data(), state_.size() * sizeof(uint64_t));
  if (runs_ > 1) to_run_.assign(static_cast<size_t>(problem_.operators()), runs_);
  for (auto& arrival : arrivals_) arrival.task = -1;
  std::fill(pair_free_.begin(), pair_free_.end(), 0);
  std::fill(channel_free_.begin(), channel_free_.end(), 0);
  begins_.clear();
  if (problem_.rules().queue == QueueModel::fair) flows_.clear();
  if (plan.schedule) begin_turns(*plan.schedule, record.devices.size());
  const auto edges =  // each may need a copy of its own
      static_cast<size_t>(problem_.edges()) * static_cast<size_t>(runs_);
  if (record.tasks || wiring(problem_) == Wiring::channels)
    record.copies.resize(std::max(record.copies.size(), edges));
  if (record.tasks) {
    std::copy(record.first_position.begin(), record.first_position.end() - 1,
              next_position_.begin());
    record.source.resize(edges);
    record.swept = true;
  }
  const bool small = packs(problem_, runs_, kSmallShift);
  if (runs_ == 1)
    return small ? wire<kSmallShift, false>(plan, limit_ns, record)
                 : wire<kLargeShift, false>(plan, limit_ns, record);
  return small ? wire<kSmallShift, true>(plan, limit_ns, record)
               : wire<kLargeShift, true>(plan, limit_ns, record);
}

}  // namespace trinity
