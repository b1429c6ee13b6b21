#pragma once

#include <span>
#include <vector>

#include "simulator/record.h"

namespace trinity {

/// The simulator of Doppler's authors, event by event (SimulationRules::doppler()). Every edge is a
/// transfer of its own, even to a device that already has the tensor. It arrives one link time
/// after the producer's end (at once on the same device); transfers never queue. Not thread-safe.
///
/// INSTANTS. Events of one instant happen in the order in which they were scheduled:
///   at first    every operator without inputs requests its device, in file order;
///   a request   joins its device's queue and grants the device;
///   a grant     if the device is free and its queue is not empty: the front takes the device, and
///               its start is scheduled for this instant;
///   a start     schedules the finish after the operator's time;
///   a finish    frees the device without a grant; schedules the device's release, then the
///               sending, for this instant;
///   a release   grants the device;
///   a sending   schedules an arrival for each out-edge, in file order;
///   an arrival  schedules its taking for this instant, which decrements the reader's missing
///               inputs; the last one schedules its request for this instant.
/// A request between a device's finish and its release thus starts the queue's front.
///
/// File order: attribute `file_position` of operators, and `input_positions`, the edge number of
/// each input; operators without these follow in order of number.
class DopplerEngine {
 public:
  explicit DopplerEngine(const Problem& problem);

  /// Fills `record`, which it resets first. Stops early, with record.rejected, once the step is
  /// certain to exceed `limit_ns`.
  void run(std::span<const int32_t> placement, int64_t limit_ns, Record& record);

 private:
  enum class Kind : uint8_t { request, start, finish, release, send, arrive, take };
  struct Edge {
    int32_t reader, output;
  };
  struct Event {
    int64_t time_ns, ticket;
    Kind kind;
    int32_t op;
    bool operator>(const Event& other) const {
      return time_ns != other.time_ns ? time_ns > other.time_ns : ticket > other.ticket;
    }
  };
  struct Device {
    int32_t front = -1, back = -1;  // of its queue; -1: empty
    bool taken = false;
  };

  void put(int64_t time_ns, Kind kind, int32_t op);
  void handle(Kind kind, int32_t op);
  void join(int32_t op);
  void grant(int32_t number);
  void start(int32_t op);
  void note(int32_t op, int64_t end_ns);
  void deliver(int32_t op);
  std::span<const Edge> edges(int32_t op) const {
    const auto first = static_cast<size_t>(first_edge_[op]);
    return std::span(edges_).subspan(first, static_cast<size_t>(first_edge_[op + 1]) - first);
  }

  const Problem& problem_;
  std::vector<Edge> edges_;               // by producer, in file order
  std::vector<int32_t> first_edge_;       // operators + 1 entries
  std::vector<int32_t> sources_;          // in file order
  std::vector<int32_t> missing_;          // per operator
  std::vector<int32_t> next_waiting_;     // per operator: next in its device's queue
  std::vector<Event> events_;             // a heap
  std::vector<Device> devices_;
  std::vector<int32_t> next_position_;    // per device
  std::span<const int32_t> placement_;
  Record* record_ = nullptr;
  int64_t limit_ns_ = kNoLimit, now_ns_ = 0, tickets_ = 0;
};

}  // namespace trinity
