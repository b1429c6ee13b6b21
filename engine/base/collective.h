#pragma once

#include <cstdint>
#include <string_view>

namespace trinity {

/// What a group of devices does together.
enum class CollectiveKind : uint8_t {
  all_reduce,      ///< every member ends with the sum of all members' tensors
  reduce_scatter,  ///< every member ends with its share of the sum
  all_gather,      ///< every member ends with all members' shares
  broadcast,       ///< every member ends with the first member's tensor
  all_to_all,      ///< member i ends with part i of every member's tensor
};

/// How it is carried out (manual/simulator.md "Collectives"). `automatic` takes the fastest that
/// applies.
enum class CollectiveAlgorithm : uint8_t {
  automatic,
  ring,
  halving_doubling,  ///< members a power of two; no all-to-all
  tree,              ///< double binary tree, pipelined; no all-to-all
  hierarchical,      ///< inside nodes and between nodes, which have equally many members
  leader,            ///< hierarchical with one talking device a node; no all-to-all
  multicast,         ///< switches in nodes add up (NVLink SHARP); see cluster/library.h
  in_network,        ///< switches between nodes add up (SHARP); see cluster/library.h
};

/// Both throw ArgumentError naming the accepted words.
CollectiveKind parse_collective_kind(std::string_view name);
CollectiveAlgorithm parse_collective_algorithm(std::string_view name);
const char* collective_kind_name(CollectiveKind kind);
const char* collective_algorithm_name(CollectiveAlgorithm algorithm);

}  // namespace trinity
