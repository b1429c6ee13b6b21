#pragma once

#include <memory>
#include <span>

#include "simulator/simulator.h"
#include "strategy/pieces.h"

namespace trinity {

/// Simulation engine for pipelines: every device follows an order of its own, given in pieces. All
/// operators that a device runs between two incoming tensors are one event, so a run costs as much
/// proportional to its transfers and collectives. Results are bit-identical to EventLoop's (rules:
/// simulator.h). Not thread-safe; working memory is kept between runs.
///
/// Why that is exact. A device with an order runs its tasks one after the other, each as soon as
/// its predecessor has ended and its inputs have arrived. All times therefore follow from the
/// arrivals of transfers and collectives, and these from the order in which they are booked.
/// Bookings are made in order of time. At one instant transfers of ending tasks are booked first,
/// by task number; then the transfers of arriving collectives, by booking; then collectives, by
/// (micro-batch, collective). The event loop could book in another order only if tasks that take no
/// time send at one instant over one queue from two devices, or if a collective takes no time. In
/// these cases run() returns false.
///
/// Micro-batches repeat (mesh/order_periods.h). Once the state of devices that send each other messages in every
/// micro-batch equals an earlier state, shifted in time, they are periodic for as long as the order is. Periods are
/// then skipped, and the results follow from a run with fewer micro-batches.
///
/// Terms: a *row* is a collective or the route of a transfer (collectives come first); a *cell* is
/// a row in one micro-batch. A *segment* is a run of operators on one device without an incoming
/// tensor in between. A *mark* is a snapshot of the state that is searched for repetition.
class OrderEngine {
 public:
  /// For problems on this cluster. Caches collective costs, too.
  explicit OrderEngine(const Cluster& cluster);
  ~OrderEngine();

  /// Fills `metrics` as Simulator::run() does for the same order. Returns false, with `metrics`
  /// unchanged, if the rules are not supported, if the result could differ from the event loop's, or if the order is
  /// faulty and the event loop should report why.
  bool run(const Problem& problem, std::span<const int32_t> placement, const OrderPieces& pieces,
           const Quotient* quotient, int64_t limit_ns, Metrics& metrics);

  /// Number of micro-batches that the last run skipped as repetitions.
  int32_t left_out() const;

 private:
  class Run;
  std::unique_ptr<Run> run_;
};

}  // namespace trinity
