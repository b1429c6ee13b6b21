#include "simulator/placeto_engine.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "base/stop.h"

namespace trinity {

bool PlacetoEngine::Event::operator>(const Event& other) const {
  return std::tie(time_ns, kind, first, second) >
         std::tie(other.time_ns, other.kind, other.first, other.second);
}

PlacetoEngine::PlacetoEngine(const Problem& problem)
    : problem_(problem),
      rank_(static_cast<size_t>(problem.operators())),
      by_rank_(rank_.size()),
      units_(2 * static_cast<size_t>(problem.devices())) {
  std::iota(by_rank_.begin(), by_rank_.end(), 0);
  std::sort(by_rank_.begin(), by_rank_.end(), [&](int32_t a, int32_t b) {
    return problem.graph().op(a).name < problem.graph().op(b).name;
  });
  for (size_t i = 0; i < by_rank_.size(); ++i) rank_[by_rank_[i]] = static_cast<int32_t>(i);
  for (int32_t o = 0; o < problem.operators(); ++o)
    if (problem.missing(o) == 0) sources_.push_back(o);
  const auto position = [&](int32_t o) {
    return integer_attribute(problem.graph().op(o).attributes, "file_position", o);
  };
  std::stable_sort(sources_.begin(), sources_.end(),
                   [&](int32_t a, int32_t b) { return position(a) < position(b); });
}

PlacetoEngine::Unit& PlacetoEngine::unit(int32_t kind, int32_t number) {
  return units_[kind == bus ? number : number + problem_.devices()];
}

void PlacetoEngine::offer(int64_t time_ns, int32_t kind, int32_t number, int32_t op,
                          int32_t output) {
  auto& to = unit(kind, number);
  to.jobs.push({time_ns, ++arrivals_, op, output});
  if (to.active) return;
  to.active = true;
  events_.push({time_ns, kind, number, 0});
}

void PlacetoEngine::run(std::span<const int32_t> placement, Record& record) {
  placement_ = placement;
  record_ = &record;
  record.begin(problem_, Plan{placement}, false);
  missing_.clear();
  for (int32_t o = 0; o < problem_.operators(); ++o) missing_.push_back(problem_.missing(o));
  if (record.tasks)
    next_position_.assign(record.first_position.begin(), record.first_position.end());
  for (const int32_t source : sources_) offer(0, device, placement[source], source, 0);
  for (int64_t count = 0; !events_.empty(); ++count) {
    if (count % 4096 == 0 && stop_flag().load(std::memory_order_relaxed)) {
      events_ = {};
      for (auto& each : units_) each = {};
      throw Interrupted();
    }
    const Event event = events_.top();
    events_.pop();
    event.kind == release ? take_release(event) : take_unit(event);
  }
}

void PlacetoEngine::take_release(const Event& event) {
  const int32_t reader = by_rank_[event.second];
  if (--missing_[reader] == 0) offer(event.time_ns, device, placement_[reader], reader, 0);
}

void PlacetoEngine::take_unit(const Event& event) {
  auto& from = unit(event.kind, event.first);
  if (from.jobs.empty()) {
    from.active = false;
    return;
  }
  const Job job = from.jobs.top();
  if (job.ready_ns > event.time_ns) {  // a transfer that becomes ready later
    events_.push({job.ready_ns, event.kind, event.first, 0});
    return;
  }
  from.jobs.pop();
  Job taken = job;
  taken.ready_ns = event.time_ns;
  if (event.kind == device) {
    if (record_->times) record_->ready_ns[job.op] = job.ready_ns;
    compute(taken, event.first);
  } else {
    send(taken, event.first);
  }
}

void PlacetoEngine::release_at(int64_t time_ns, int32_t from, int32_t reader) {
  events_.push({time_ns, release, rank_[from], rank_[reader]});
}

void PlacetoEngine::compute(const Job& job, int32_t device_number) {
  const auto o = static_cast<size_t>(job.op);
  auto& state = record_->devices[device_number];
  const int64_t cost_ns = state.cost_ns[o], end_ns = job.ready_ns + cost_ns;
  state.compute_ns += cost_ns;
  state.free_ns = end_ns + problem_.rules().device_dead_ns;
  record_->step_ns = std::max(record_->step_ns, end_ns);
  record_->last_ns = std::max(record_->last_ns, state.free_ns);
  if (record_->tasks) {
    const int32_t position = next_position_[device_number]++;
    record_->position[o] = position;
    record_->start_at[position] = job.ready_ns;
    record_->order.push_back(job.op);
  }
  if (record_->times) record_->end_ns[o] = end_ns;
  // outputs are enqueued in order; readers are sorted by operator, not by output
  int32_t sent = -1;
  std::vector<bool> away(
      static_cast<size_t>(problem_.first_output(job.op + 1) - problem_.first_output(job.op)));
  for (const auto& reader : problem_.readers(job.op)) {
    if (placement_[reader.op] == device_number)
      release_at(end_ns, job.op, reader.op);
    else
      away[reader.output] = true;
  }
  for (const bool wanted : away) {
    ++sent;
    if (wanted) offer(end_ns, bus, device_number, job.op, sent);
  }
  events_.push({state.free_ns, device, device_number, 0});
}

void PlacetoEngine::send(const Job& job, int32_t device_number) {
  const int64_t bytes = problem_.output_bytes(job.op, job.output);
  int32_t to = -1;
  for (const auto& reader : problem_.readers(job.op))
    if (reader.output == job.output && to < 0 && placement_[reader.op] != device_number)
      to = placement_[reader.op];
  const int64_t wire_ns = problem_.wire_ns(device_number, to, bytes);
  const int64_t end_ns = job.ready_ns + wire_ns;
  for (const auto& reader : problem_.readers(job.op))
    if (reader.output == job.output && placement_[reader.op] != device_number)
      release_at(end_ns, job.op, reader.op);
  auto& state = record_->devices[device_number];
  state.send_free_ns = end_ns + problem_.rules().link_dead_ns;
  state.send_ns += wire_ns;
  state.sent_bytes += bytes;
  record_->devices[to].received_bytes += bytes;
  record_->last_ns = std::max(record_->last_ns, state.send_free_ns);
  ++record_->transfers;
  if (record_->tasks)
    record_->add_copy({job.ready_ns, end_ns, job.op, job.output, device_number, to});
  events_.push({state.send_free_ns, bus, device_number, 0});
}

}  // namespace trinity
