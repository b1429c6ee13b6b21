#pragma once

#include <compare>

#include "simulator/record.h"

namespace trinity {

/// The simulator of Doppler's authors event by event, for the rules that follow it to the letter
/// (SimulationRules::doppler()). Every edge is a transfer of its own, even to a device that has the
/// tensor already: it arrives a wire's time after the producer's end, at once on the same device,
/// and nothing queues for wires.
///
/// INSTANTS. What is due at one instant happens in the order in which it was put off:
///   at first    every operator without inputs requests its device, in the order of the file;
///   a request   joins its device's queue; the device is granted;
///   a grant     where the device is free and its queue is not empty: the front takes the device
///               and its start is put off to this instant;
///   a start     puts off the finish by the operator's time;
///   a finish    frees the device without granting it; puts off the device's release, then the
///               sending, to this instant;
///   a release   grants the device;
///   a sending   puts off an arrival for each out-edge, in the order of the file;
///   an arrival  puts off its taking to this instant, which is one input less to wait for; the
///               last of an operator's puts off its request to this instant.
/// So what requests a device between its finish and its release lets the queue's front start.
///
/// The order of the file: attribute `file_position` of operators, and `input_positions`, the
/// number of the edge for each input; operators without these follow in order of number.
class DopplerEngine {
 public:
  explicit DopplerEngine(const Problem& problem);

  /// Fills `record` (begun by this). Stops early, with record.rejected, once the step is certain to
  /// be longer than `limit_ns`.
  void run(std::span<const int32_t> placement, int64_t limit_ns, Record& record);

 private:
  struct Edge {
    int32_t reader, output;
  };
  /// Put off to a later instant; `order` holds the ticket, then what happens.
  struct Later {
    int64_t time_ns;
    uint64_t order;
    auto operator<=>(const Later&) const = default;
  };
  struct Device {
    int32_t front, back;  // of its queue; -1: it is empty
    bool taken;
  };
  template <bool kLimited, bool kRecord>
  class Run;
  template <bool kLimited>
  void choose(const int32_t* placement, int64_t limit_ns, Record& record);
  void order_edges();

  const Problem& problem_;
  std::vector<Edge> edges_;               // by producer, in the order of the file
  std::vector<int32_t> first_edge_;       // one more than operators
  std::vector<int64_t> one_wire_ns_;      // per operator: of all its edges; -1: they differ
  std::vector<int32_t> sources_;          // in the order of the file
  std::vector<int32_t> inputs_, missing_;  // per operator
  std::vector<int32_t> next_waiting_;     // per operator: behind it in its device's queue
  std::vector<uint32_t> due_;             // what happens at this instant, in order
  std::vector<Later> near_, far_;         // the soonest, descending; a heap of those after them
  std::vector<Device> devices_;
  std::vector<int32_t> next_position_;    // per device
};

}  // namespace trinity
