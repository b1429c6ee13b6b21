#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "simulator/bind_schedule.h"
#include "simulator/simulator.h"
#include "simulator/symmetry.h"

namespace trinity {

/// Prices meshes by one replica and lane of every class of those that behave alike
/// (simulator/symmetry.h); their graphs have the operators of these alone. Results are those of the
/// whole graph, bit for bit. Keeps what it made for the latest structures and meshes. For threads.
class SymmetryPricer {
 public:
  explicit SymmetryPricer(std::shared_ptr<const Problem> problem);
  ~SymmetryPricer();

  /// Fills `metrics` as a simulation of the whole graph would, or returns false: nothing is alike,
  /// or an error is to be said of the whole graph. The strategy has a mesh that check_mesh() takes.
  bool price(const Strategy& strategy, Metrics& metrics, int64_t limit_ns);

  /// Where the first part of every original operator is (Arrangement::home). Throws what
  /// lower_replica() throws.
  std::vector<int32_t> home(const Strategy& strategy);

  /// Devices that are simulated for a strategy; -1: all.
  int32_t simulated_devices(const Strategy& strategy);

 private:
  struct Made;
  struct Bound;
  struct Structure;

  std::shared_ptr<Bound> bound(const Strategy& strategy);
  std::shared_ptr<Structure> structure(const Strategy& strategy);
  std::shared_ptr<Bound> bind(Structure& structure, const Mesh& mesh) const;
  std::shared_ptr<Made> make(Structure& structure, const Symmetry& symmetry) const;
  std::shared_ptr<const Schedule> schedule(Bound& bound, const Parallelism& given);
  void run(Bound& bound, const Strategy& strategy, Metrics& metrics, int64_t limit_ns);

  static constexpr int64_t kMostOperators = 1'000'000;
  static constexpr size_t kMostBound = 64;

  std::shared_ptr<const Problem> problem_;
  std::mutex mutex_;  // of all below
  std::list<std::shared_ptr<Structure>> structures_;  // the latest first
};

}  // namespace trinity
