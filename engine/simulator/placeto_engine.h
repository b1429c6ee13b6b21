#pragma once

#include <queue>
#include <vector>

#include "simulator/record.h"

namespace trinity {

/// The published Placeto / Trinity simulator, event by event (SimulationRules::placeto()). A task
/// that ends releases its local readers one by one and enqueues one transfer per output on its
/// device's bus, which releases all remote readers together. Devices and buses are first in, first
/// out. At one instant releases come first (in order of the names of producer and reader), then
/// buses, then devices, each by number. Not thread-safe.
class PlacetoEngine {
 public:
  explicit PlacetoEngine(const Problem& problem);

  /// Fills `record`, which it resets first.
  void run(std::span<const int32_t> placement, Record& record);

 private:
  enum Kind : int32_t { release, bus, device };
  struct Event {
    int64_t time_ns;
    int32_t kind, first, second;  // release: name ranks of producer and reader; else: the unit
    bool operator>(const Event& other) const;
  };
  /// A task that waits for its device, or an output that waits for its bus.
  struct Job {
    int64_t ready_ns, arrival;
    int32_t op, output;
    bool operator>(const Job& other) const {
      return ready_ns != other.ready_ns ? ready_ns > other.ready_ns : arrival > other.arrival;
    }
  };
  template <class T>
  using Heap = std::priority_queue<T, std::vector<T>, std::greater<>>;
  struct Unit {
    Heap<Job> jobs;
    bool active = false;
  };

  Unit& unit(int32_t kind, int32_t number);
  void offer(int64_t time_ns, int32_t kind, int32_t number, int32_t op, int32_t output);
  void take_release(const Event& event);
  void take_unit(const Event& event);
  void compute(const Job& job, int32_t device_number);
  void send(const Job& job, int32_t device_number);
  void release_at(int64_t time_ns, int32_t from, int32_t reader);

  const Problem& problem_;
  std::vector<int32_t> rank_, by_rank_;  // operators sorted by name
  std::vector<int32_t> sources_;         // in file order, if known
  std::span<const int32_t> placement_;
  Record* record_ = nullptr;
  Heap<Event> events_;
  std::vector<Unit> units_;  // buses, then devices
  std::vector<int32_t> missing_, next_position_;
  int64_t arrivals_ = 0;
};

}  // namespace trinity
