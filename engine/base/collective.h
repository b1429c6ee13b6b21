#pragma once

#include <cstdint>

#include "base/words.h"

namespace trinity {

/// A collective operation of a group of devices.
enum class CollectiveKind : uint8_t {
  all_reduce,      ///< every member receives the sum of all members' tensors
  reduce_scatter,  ///< every member receives its shard of the sum
  all_gather,      ///< every member receives all members' shards
  broadcast,       ///< every member receives the first member's tensor
  all_to_all,      ///< member i receives part i of every member's tensor
};

/// Algorithms (manual/simulator.md "Collectives"). `automatic` is the fastest one that applies.
enum class CollectiveAlgorithm : uint8_t {
  automatic,
  ring,
  halving_doubling,  ///< only for a power of two of members; not for all-to-all
  tree,              ///< double binary tree, pipelined; not for all-to-all
  hierarchical,      ///< inside nodes, then between nodes, which need equal numbers of members
  leader,            ///< hierarchical with one sending device per node; not for all-to-all
  multicast,         ///< switches in nodes reduce (NVLink SHARP); see cluster/library.h
  in_network,        ///< switches between nodes reduce (SHARP); see cluster/library.h
};

template <>
inline constexpr auto kWords<CollectiveKind> =
    words("collective", "all_reduce", "reduce_scatter", "all_gather", "broadcast", "all_to_all");
template <>
inline constexpr auto kWords<CollectiveAlgorithm> =
    words("collective algorithm", "automatic", "ring", "halving_doubling", "tree", "hierarchical", "leader",
          "multicast", "in_network");

}  // namespace trinity
