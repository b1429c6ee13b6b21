#include "simulator/doppler_engine.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "base/stop.h"

namespace trinity {
namespace {

int64_t file_position(const Operator& op, int32_t number) {
  return integer_attribute(op.attributes, "file_position", number);
}

/// The edge number of `reader` reading `tensor`; the maximum if the file gives none.
int64_t edge_position(const Operator& reader, int32_t tensor) {
  constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
  const auto* list = find_attribute<std::vector<int64_t>>(reader.attributes, "input_positions");
  if (!list) return kNone;
  for (size_t i = 0; i < reader.inputs.size() && i < list->size(); ++i)
    if (reader.inputs[i] == tensor) return (*list)[i];
  return kNone;
}

}  // namespace

DopplerEngine::DopplerEngine(const Problem& problem) : problem_(problem) {
  const auto& graph = problem.graph();
  first_edge_.push_back(0);
  for (int32_t o = 0; o < problem.operators(); ++o) {
    if (problem.missing(o) == 0) sources_.push_back(o);
    std::vector<std::pair<int64_t, Edge>> edges;
    for (const auto& reader : problem.readers(o)) {
      const int32_t tensor = graph.op(o).outputs[static_cast<size_t>(reader.output)];
      edges.push_back({edge_position(graph.op(reader.op), tensor), {reader.op, reader.output}});
    }
    std::stable_sort(edges.begin(), edges.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [position, edge] : edges) edges_.push_back(edge);
    first_edge_.push_back(static_cast<int32_t>(edges_.size()));
  }
  std::stable_sort(sources_.begin(), sources_.end(), [&](int32_t a, int32_t b) {
    return file_position(graph.op(a), a) < file_position(graph.op(b), b);
  });
}

void DopplerEngine::run(std::span<const int32_t> placement, int64_t limit_ns, Record& record) {
  placement_ = placement;
  limit_ns_ = limit_ns;
  record_ = &record;
  record.begin(problem_, Plan{placement}, limit_ns != kNoLimit);
  missing_.clear();
  for (int32_t o = 0; o < problem_.operators(); ++o) missing_.push_back(problem_.missing(o));
  next_waiting_.resize(missing_.size());
  devices_.assign(record.devices.size(), {});
  events_.clear();
  if (record.tasks)
    next_position_.assign(record.first_position.begin(), record.first_position.end() - 1);
  now_ns_ = tickets_ = 0;
  for (const int32_t source : sources_) put(0, Kind::request, source);
  for (StopPoll stop; !events_.empty() && !record.rejected; stop.step()) {
    std::pop_heap(events_.begin(), events_.end(), std::greater<>());
    const Event event = events_.back();
    events_.pop_back();
    now_ns_ = event.time_ns;
    handle(event.kind, event.op);
  }
  record.last_ns = record.step_ns;
}

void DopplerEngine::put(int64_t time_ns, Kind kind, int32_t op) {
  events_.push_back({time_ns, tickets_++, kind, op});
  std::push_heap(events_.begin(), events_.end(), std::greater<>());
}

void DopplerEngine::handle(Kind kind, int32_t op) {
  switch (kind) {
    case Kind::request:
      return join(op);
    case Kind::start:
      return start(op);
    case Kind::finish:
      devices_[placement_[op]].taken = false;
      put(now_ns_, Kind::release, op);
      return put(now_ns_, Kind::send, op);
    case Kind::release:
      return grant(placement_[op]);
    case Kind::send:
      return deliver(op);
    case Kind::arrive:  // all but an operator's last have no further effect
      if (--missing_[op] == 0) put(now_ns_, Kind::take, op);
      return;
    case Kind::take:
      return put(now_ns_, Kind::request, op);
  }
}

void DopplerEngine::join(int32_t op) {
  if (record_->times) record_->ready_ns[op] = now_ns_;
  auto& device = devices_[placement_[op]];
  next_waiting_[op] = -1;
  (device.front < 0 ? device.front : next_waiting_[device.back]) = op;
  device.back = op;
  grant(placement_[op]);
}

void DopplerEngine::grant(int32_t number) {
  auto& device = devices_[number];
  if (device.taken || device.front < 0) return;
  const int32_t op = device.front;
  device.front = next_waiting_[op];
  device.taken = true;
  put(now_ns_, Kind::start, op);
}

void DopplerEngine::start(int32_t op) {
  auto& device = record_->devices[placement_[op]];
  const int64_t cost_ns = device.cost_ns[op], end_ns = now_ns_ + cost_ns;
  if (limit_ns_ != kNoLimit) {
    const int64_t bound_ns = now_ns_ + std::max(device.remaining_ns, cost_ns + problem_.tail_ns(op));
    if (bound_ns > limit_ns_) {
      record_->rejected = true;
      record_->step_ns = bound_ns;
      return;
    }
    device.remaining_ns -= cost_ns;
  }
  device.compute_ns += cost_ns;
  record_->step_ns = std::max(record_->step_ns, end_ns);
  if (record_->tasks) note(op, end_ns);
  put(end_ns, Kind::finish, op);
}

void DopplerEngine::note(int32_t op, int64_t end_ns) {
  const int32_t position = next_position_[placement_[op]]++;
  record_->position[op] = position;
  record_->start_at[position] = now_ns_;
  record_->order.push_back(op);
  if (record_->times) record_->end_ns[op] = end_ns;
}

void DopplerEngine::deliver(int32_t op) {
  const int32_t from = placement_[op];
  for (const auto& [reader, output] : edges(op)) {
    const int32_t to = placement_[reader];
    if (to == from) {
      put(now_ns_, Kind::arrive, reader);
      continue;
    }
    const int64_t bytes = problem_.output_bytes(op, output);
    const int64_t end_ns = now_ns_ + problem_.wire_ns(from, to, bytes);
    record_->devices[from].send_ns += end_ns - now_ns_;
    record_->devices[from].sent_bytes += bytes;
    record_->devices[to].received_bytes += bytes;
    ++record_->transfers;
    if (record_->tasks) record_->add_copy({now_ns_, end_ns, op, output, from, to});
    put(end_ns, Kind::arrive, reader);
  }
}

}  // namespace trinity
