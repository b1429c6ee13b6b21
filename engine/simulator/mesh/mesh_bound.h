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

/// Lower bounds on a step of a mesh strategy.
struct MeshBound {
  int64_t step_time_ns = 0;
  /// per pipeline stage: its first device, or the maximum over its places
  std::vector<int64_t> memory_bytes;
  /// Parts of memory_bytes: resident weights and optimiser state, and gradients once all
  /// accumulate.
  std::vector<int64_t> weight_bytes, optimizer_bytes, gradient_bytes;
  /// Approximate number of operators that a simulation would run, over all micro-batches: of one
  /// device per stage if replicas and pipeline groups are equivalent, else of all devices.
  int64_t tasks = 0;
  std::string refused;  ///< reason if it cannot be lowered, as far as known here; else empty

  bool operator==(const MeshBound&) const = default;
};

/// Bounds of mesh strategies without lowering them. They use profiles of the network's units
/// (simulator/mesh/unit_profile.h), which strategies share if they differ only in pipeline, stages,
/// replicas, micro-batches, schedule and sharding. Thread-safe.
///
/// TIME. Considers the first device of every stage of replica 0 and its sequence of virtual stages
/// (chunk_order()). Each takes at least the longest paths through its units, from the device's
/// previous task and from the arrival of its input, which is sent without contention. After the
/// last backward task come the updates and, with ZeRO stages 1 and 2, the gathers of updated
/// weights. Messages of gradients (ZeRO-3: also of weights) must fit between the completion of the
/// first gradient and the end; without ZeRO-2 or 3 a virtual stage's follow its last input gradient
/// for the stage before. Messages of one group are serial in its queues (ReplicaMessages), messages
/// about experts and about other weights if rings leave the first device through one queue. Messages in
/// buckets take at least as long as full ones with all their bytes, because the time of the fastest
/// algorithm is concave in bytes.
///
/// With operators placed inside stages the same holds for the first device of every place alone,
/// without waiting for other places; the bound is the maximum over places.
///
/// MEMORY. Resident weights and optimiser state, memory of the training software and resident
/// gradients; and at the start of a backward task: activations of the micro-batches whose forward
/// but not backward pass has run, inputs of pending weight-gradient (W) tasks, and gradients that
/// accumulate. Tensors that replicas shard count with their shard.
class MeshBounder {
 public:
  MeshBounder(std::shared_ptr<const Problem> problem, ThreadPool& pool);
  ~MeshBounder();

  /// Lowers the network once per new part_of(), on the pool. Results do not depend on the number of
  /// threads. O(tasks of the pipelines). layers: number of layers of the full network if `problem`
  /// is a shortened one whose inner layers all equal its second layer; 0 if `problem` is the full
  /// network.
  std::vector<MeshBound> run(std::span<const Parallelism> given, int32_t layers = 0);
  /// Units of a strategy on the first device of a pipeline stage (from 0). Throws the errors of
  /// check_mesh() and UnitProfiler.
  std::vector<UnitProfile> units(const Parallelism& given, int32_t stage, int32_t layers = 0);

 private:
  struct Profile;
  struct Scratch;
  class Bounding;
  /// Inputs of chunk_order() for all stages.
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
  std::mutex mutex_;  // guards the members below
  std::unordered_map<Parallelism, std::unique_ptr<Profile>, Hash> profiles_;  // by part_of()
  std::vector<std::unique_ptr<Scratch>> scratch_;                             // per thread
};

}  // namespace trinity
