#pragma once

#include <compare>

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
  struct Edge {
    int32_t reader, output;
  };
  /// A later event; `order` holds its ticket, then its type.
  struct Later {
    int64_t time_ns;
    uint64_t order;
    auto operator<=>(const Later&) const = default;
  };
  struct Device {
    int32_t front, back;  // of its queue; -1: empty
    bool taken;
  };
  template <bool kLimited, bool kRecord>
  class Run;
  template <bool kLimited>
  void choose(const int32_t* placement, int64_t limit_ns, Record& record);
  void order_edges();

  const Problem& problem_;
  std::vector<Edge> edges_;               // by producer, in file order
  std::vector<int32_t> first_edge_;       // operators + 1 entries
  std::vector<int64_t> one_wire_ns_;      // per operator: time of all its edges; -1: they differ
  std::vector<int32_t> sources_;          // in file order
  std::vector<int32_t> inputs_, missing_;  // per operator
  std::vector<int32_t> next_waiting_;     // per operator: next in its device's queue
  std::vector<uint32_t> due_;             // events of this instant, in order
  std::vector<Later> near_, far_;         // earliest events, descending; a heap of the later ones
  std::vector<Device> devices_;
  std::vector<int32_t> next_position_;    // per device
};

}  // namespace trinity
