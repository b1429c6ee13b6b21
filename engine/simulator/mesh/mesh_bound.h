#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/thread_pool.h"
#include "simulator/problem.h"
#include "simulator/mesh/unit_profile.h"
#include "strategy/chunk_order.h"

namespace trinity {

/// What no step of a mesh's strategy can beat.
struct MeshBound {
  int64_t step_time_ns = 0;
  std::vector<int64_t> memory_bytes;  ///< of the first device of every stage of the pipeline, or of its fullest place
  /// Of these what is resident, and gradients once all have begun to sum up.
  std::vector<int64_t> weight_bytes, optimizer_bytes, gradient_bytes;
  /// About how many operators a simulation of it would run, in all micro-batches: of one device of
  /// every stage where replicas and lanes are copies of each other, otherwise of all devices.
  int64_t tasks = 0;
  std::string refused;  ///< why it cannot be lowered, as far as that is seen here; empty: it can

  bool operator==(const MeshBound&) const = default;
};

/// Bounds of strategies with meshes without lowering them: from profiles of the network's units
/// (simulator/mesh/unit_profile.h), which strategies share that differ in pipeline, stages, replicas,
/// micro-batches, schedule and sharding alone. For threads.
///
/// TIME. Of replica 0's first device of every stage: its sequence of chunks (chunk_order()), each of
/// which takes at least what its units' longest paths take, from the device's last task and from the
/// arrival of what it reads of the chunk before, sent with nothing in the way. Behind its last
/// backward part stand updates and, with shard 1 and 2, the gathers of what was updated; messages of
/// gradients (and with shard 3 weights) fit between the moment that the first is complete and the
/// end. All messages of one group are one after the other in its queues; a number of messages takes
/// no less than one with all their bytes, since the time of the fastest algorithm is concave in them.
///
/// With operators placed inside stages this holds for the first device of every place by itself, what it waits
/// for at other places left out: the bound is the largest of all places.
///
/// MEMORY. What is resident, what the training software holds and gradients that stay and, at the start of a backward part, what is kept of the micro-batches
/// that went forward and not yet back, what weight parts read that are still to come, and the
/// gradients that have begun to sum up; of what replicas share out a share.
class MeshBounder {
 public:
  MeshBounder(std::shared_ptr<const Problem> problem, ThreadPool& pool);
  ~MeshBounder();

  /// Lowers the network once for each part_of() that is new. All on the pool; results do not depend on
  /// its threads. O(tasks of the pipelines).
  /// layers: of a network of which this one is a short form: its layers between the first and the last
  /// are like the second here, whatever is done with them; 0: of this one.
  std::vector<MeshBound> run(std::span<const Parallelism> given, int32_t layers = 0);
  /// The units of a strategy on the first device of a stage (from 0) of the pipeline. Throws what
  /// check_mesh() and UnitProfiler throw.
  std::vector<UnitProfile> units(const Parallelism& given, int32_t stage, int32_t layers = 0);

 private:
  struct Profile;
  struct Scratch;
  class Bounding;
  /// What decides the orders of all stages (chunk_order()).
  struct OrderKey {
    PipelineSchedule schedule = PipelineSchedule::gpipe;
    int32_t pipeline = 0, virtual_stages = 0, micro_batches = 0;
    auto operator<=>(const OrderKey&) const = default;
  };
  struct Hash {
    size_t operator()(const Parallelism& part) const { return hash_value(part); }
  };

  static OrderKey order_key(const Parallelism& given);
  static std::shared_ptr<const std::vector<UnitProfile>> units_at(const Problem& problem,
                                                                  Profile& profile,
                                                                  const Mesh& mesh, int32_t stage,
                                                                  CollectiveGroups& groups);
  Scratch& scratch_of(int thread);
  void make_profiles(std::span<const Parallelism> parts);
  std::string refusal(const Parallelism& given) const;
  MeshBound bound(const Parallelism& given, int32_t layers, Scratch& scratch) const;

  std::shared_ptr<const Problem> problem_;
  ThreadPool& pool_;
  std::mutex mutex_;  // of all below
  std::unordered_map<Parallelism, std::unique_ptr<Profile>, Hash> profiles_;  // by part_of()
  std::vector<std::unique_ptr<Scratch>> scratch_;                             // per thread
};

}  // namespace trinity
