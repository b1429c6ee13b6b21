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

/// Replicas and lanes of which those that behave alike are simulated once: classes of an equitable
/// partition (mesh/DESIGN.md has the argument).
struct Symmetry {
  std::vector<bool> devices;      ///< of a replica: whether its lane is simulated
  std::vector<int32_t> replicas;  ///< those that are simulated, ascending
  Quotient quotient;              ///< without `group`, which goes by the copies that are made
  std::vector<int32_t> number;    ///< of every device of a replica x simulated replica: in quotient
  /// In quotient.members, by lane group x simulated replica, or device x simulated replica: the
  /// group there of replicas of a kind (LoweredCopies::Among); -1: of none that is simulated.
  using Groups = std::array<std::vector<int32_t>, 3>;
  Groups inner, across;
};

/// What find_symmetry() found.
struct SymmetrySearch {
  /// Lanes of one replica queue for the same channels, so that they would have to be one lane; then
  /// there is no symmetry yet.
  bool share = false;
  std::optional<Symmetry> symmetry;
};

/// Finds them by colour refinement over device types, wires, queues and collectives: all where no
/// two are alike. Nothing where the rules let what is alike depend on order (queue model fair,
/// contention for memory, published rules). `prices` are of the problem's cluster, and so is
/// pieces_alike (mesh/replicas_alike.h).
SymmetrySearch find_symmetry(const ReplicaLanes& lanes, const Mesh& mesh, const Problem& problem,
                             CollectiveGroups& prices, bool pieces_alike);

class FoldedMeshes;
struct FoldRuns;
struct FoldedMesh;

/// Prices meshes by one replica and lane of every class of those that behave alike
/// (simulator/symmetry.h), all where no two are alike; their graphs have the operators of these
/// alone. Results are those of the whole graph, bit for bit. Keeps what it made for the latest
/// structures and meshes; what does not depend on the cluster pricers of one graph have together.
/// For threads.
class SymmetryPricer {
 public:
  explicit SymmetryPricer(std::shared_ptr<const Problem> problem);
  ~SymmetryPricer();

  /// Fills `metrics` as a simulation of the whole graph would, or returns false: the rules forbid it,
  /// or nothing is alike and the graph is too large to be kept. The strategy has a mesh that
  /// check_mesh() and check_inside() take. Throws what lowering, binding and simulating throw; since
  /// graphs have no names, messages may have none.
  bool price(const Strategy& strategy, Metrics& metrics, int64_t limit_ns);

  /// Who owns the peaks of all devices (Timeline::owners), none of those that nothing runs on; or
  /// returns false, as price() does.
  bool own(const Strategy& strategy, std::vector<OwnedBytes>& owners);

  /// Where the first part of every original operator is (Arrangement::home). Throws what
  /// lower_replica() throws.
  std::vector<int32_t> home(const Strategy& strategy);

  /// What was made of a strategy.
  struct Seen {
    int32_t devices = -1;  ///< that are simulated; -1: all
    int32_t layers = -1;   ///< that were lowered; -1: all
    int32_t joins = 0;     ///< of few layers: operators that join what several layers write
    /// Of few layers: those devices of every stage that run; none: the first of each kind.
    std::vector<int32_t> parts = {};
  };
  Seen seen(const Strategy& strategy);

 private:
  struct Made;
  struct Bound;
  struct Structure;
  struct Lowered;

  std::shared_ptr<Lowered> lowered(const Parallelism& given, const Strategy& of, bool whole);
  /// Where a structure is new, it is made as the strategy's mesh will run.
  std::shared_ptr<Structure> structure(const Strategy& strategy);
  std::shared_ptr<const SymmetrySearch> find(const ReplicaLanes& lanes, const Mesh& mesh);
  LoweredReplica all_lanes(const Parallelism& given) const;

  // Under the structure's lock:
  std::shared_ptr<Bound> bound(Structure& structure, const Mesh& mesh, bool folds);
  std::shared_ptr<Bound> bind(Structure& structure, const Mesh& mesh);
  std::shared_ptr<Bound> bind_folded(Structure& structure, const Mesh& mesh);
  std::shared_ptr<const FoldedMesh> folded(Structure& structure, const FoldRuns& runs);
  std::shared_ptr<Made> make(Structure& structure, const Symmetry& symmetry) const;
  std::shared_ptr<const OrderPieces> order(Bound& bound, const Parallelism& given);

  bool run(const Bound& bound, const OrderPieces& pieces, const Parallelism& given,
           Metrics& metrics, int64_t limit_ns);
  static void run_events(const Bound& bound, const Parallelism& given, Metrics& metrics,
                         Timeline* timeline, int64_t limit_ns);

  static constexpr int64_t kMostOperators = 250'000;
  static constexpr size_t kMostBound = 64;
  static constexpr int64_t kMostFound = 64;

  struct FoundKey {
    Mesh mesh;
    std::vector<int32_t> outline;  // of the lanes
    bool operator==(const FoundKey&) const = default;
  };

  std::shared_ptr<const Problem> problem_;
  Latest<Strategy, Structure> structures_;
  Latest<FoundKey, const SymmetrySearch> found_{kMostFound};
  std::once_flag once_;
  bool pieces_alike_ = false;  // of the cluster, found once
  LaneParts parts_;
  std::unique_ptr<FoldedMeshes> folded_;
  Idle<CollectiveGroups> prices_;
  Idle<OrderEngine> engines_;
};

}  // namespace trinity
