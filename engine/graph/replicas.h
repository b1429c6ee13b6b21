#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/graph.h"

namespace trinity {

struct ReplicaOptions {
  /// Gradients are reduced in buckets. A bucket closes when the next gradient would make it larger
  /// than this; a single larger gradient has its own.
  int64_t bucket_bytes = 25'000'000;
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::automatic;
  /// Device of every operator of the graph in one replica. A bucket holds gradients of one device;
  /// where this is empty, of one colocation unit.
  std::span<const int32_t> device_of = {};
};

/// Data parallelism as a graph, and where its operators come from.
struct Replicated {
  Graph graph;
  std::vector<int32_t> origin;   ///< per operator: the one it copies, -1 for an all-reduce
  std::vector<int32_t> replica;  ///< per operator: its replica, from 0
};

/// `replicas` copies of every operator, tensor, colocation unit and collective, named
/// "<name>@<replica>" with replicas from 0, and an all-reduce per bucket of gradients between them
/// and the updates. Gradients are the tensors that operators of phase update read from others; they
/// fill the buckets in the order in which they are produced. Bucket k is a collective
/// "all_reduce<k>" of phase update with a member "all_reduce<k>@<replica>" (type "AllReduce") in
/// every replica, which reads the bucket's gradients there and writes as many tensors of the same
/// sizes; the updates read those. One replica gives a copy of the graph.
///
/// Placing the result: a copy goes to its replica's device for `origin`; a member goes where the
/// producer of its first input goes, and shares its colocation unit when all gradients of the
/// bucket come from one unit.
///
/// Throws ArgumentError for fewer than one replica, a bucket of less than one byte, a `device_of`
/// of another length, LimitError for more than kMaxOperators operators.
Replicated replicate(const Graph& graph, int32_t replicas, const ReplicaOptions& options = {});

}  // namespace trinity
