#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/thread_pool.h"
#include "cluster/collectives.h"
#include "simulator/bind_schedule.h"
#include "simulator/order_engine.h"
#include "simulator/simulator.h"
#include "strategy/lanes.h"
#include "strategy/lower.h"
#include "strategy/pieces.h"
#include "strategy/quotient.h"

namespace trinity {

/// Equivalence classes of the pipeline groups in all replicas: one representative per class is simulated.
/// The classes are an equitable partition (argument: mesh/DESIGN.md).
struct Symmetry {
  std::vector<bool> devices;      ///< per device of a replica: some replica's is simulated
  std::vector<int32_t> replicas;  ///< of which a pipeline group is simulated, ascending
  Quotient quotient;              ///< without `group`, which depends on the copies that are made
  /// [device of a replica][such a replica]: device index in `quotient`; -1: it is not simulated
  std::vector<int32_t> number;
  /// Index into members of `Quotient` per (pipeline group, simulated replica) or (device, simulated
  /// replica), for each scope LoweredGraph::Among; -1: no simulated replica is in such a group.
  using Groups = std::array<std::vector<int32_t>, 3>;
  Groups inner, across;
};

/// Result of find_symmetry().
struct SymmetrySearch {
  /// Pipeline groups of one replica queue for the same channels, so they would have to be one
  /// group; there is no symmetry then.
  bool share = false;
  std::optional<Symmetry> symmetry;
};

/// Finds equivalence classes by colour refinement over device types, links, queues and collectives.
/// If no two devices are equivalent, every device is its own class. Returns none if results may
/// depend on the order of equal events (queue model fair, memory contention, published rules).
/// `prices` and pieces_alike (mesh/replicas_alike.h) belong to the problem's cluster.
SymmetrySearch find_symmetry(const ReplicaLanes& lanes, const Mesh& mesh, const Problem& problem,
                             CollectiveGroups& prices, bool pieces_alike);

/// Simulates meshes by one replica and one pipeline group of every equivalence class
/// (simulator/symmetry.h); the lowered graphs have the operators of these representatives alone.
/// Results are bit-identical to the whole graph's. Keeps what it built for the latest
/// structures and meshes; evaluators of one graph share everything that does not depend on the
/// cluster. Thread-safe.
class SymmetryPricer {
 public:
  explicit SymmetryPricer(std::shared_ptr<const Problem> problem);
  ~SymmetryPricer();

  /// Fills `metrics` as a simulation of the whole graph would. Returns false if the rules forbid
  /// the reduction, or if nothing is equivalent and the graph is too large to keep. The strategy
  /// has a mesh that check_mesh() and check_inside() accept. Throws the errors of lowering, binding
  /// and simulation; their messages may lack operator names, because the reduced graphs have none.
  bool price(const Strategy& strategy, Metrics& metrics, int64_t limit_ns);

  /// Owners of the peaks of all devices (Timeline::owners); none for idle devices. Returns false in
  /// the same cases as price().
  bool own(const Strategy& strategy, std::vector<OwnedBytes>& owners);

  /// Device of the first part of every original operator (Arrangement::home). Throws the errors of
  /// lower_replica().
  std::vector<int32_t> home(const Strategy& strategy);

  /// Number of representatives that are simulated; -1: all devices.
  int32_t simulated_devices(const Strategy& strategy);

 private:
  struct Bound;
  struct Structure;
  struct Lowered;

  std::shared_ptr<Lowered> lowered(const Parallelism& given, const Strategy& of);
  /// The cached structure; a new one is built in the form that the strategy's mesh will run.
  std::shared_ptr<Structure> structure(const Strategy& strategy);
  std::shared_ptr<const SymmetrySearch> find(const ReplicaLanes& lanes, const Mesh& mesh);

  std::shared_ptr<Bound> bound(const Strategy& strategy);
  std::shared_ptr<Bound> bind(Structure& structure, const Mesh& mesh);
  std::shared_ptr<const OrderPieces> order(Bound& bound, const Parallelism& given);
  void run(Bound& bound, const Parallelism& given, Metrics& metrics, int64_t limit_ns);
  static void run_events(const Bound& bound, const Parallelism& given, Metrics& metrics,
                         Timeline* timeline, int64_t limit_ns);

  static constexpr int64_t kMostOperators = 250'000;
  static constexpr int64_t kMostBound = 64;
  static constexpr int64_t kMostFound = 64;

  struct FoundKey {
    Mesh mesh;
    std::vector<int32_t> outline;  // of the pipeline groups
    bool operator==(const FoundKey&) const = default;
  };

  std::shared_ptr<const Problem> problem_;
  Latest<Strategy, Structure> structures_;
  Latest<FoundKey, const SymmetrySearch> found_{kMostFound};
  std::once_flag once_;
  bool pieces_alike_ = false;  // of the cluster; computed once
  LaneParts parts_;
  Idle<CollectiveGroups> prices_;
  Idle<OrderEngine> engines_;
};

}  // namespace trinity
