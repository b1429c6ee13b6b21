#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/graph.h"

namespace trinity {

/// A graph whose variables are read where they are.
struct SharedVariables {
  Graph graph;
  std::vector<int32_t> device;  ///< of every operator
  std::vector<int32_t> origin;  ///< per operator the one that it is, copies or sums for
  std::vector<int32_t> with;    ///< per operator the one that it works for: of copies a reader
  std::vector<bool> sums;       ///< per operator: a member of an all-reduce that was added
};

struct SharingOptions {
  int64_t bucket_bytes = 0;  ///< of gradients that are summed over parts of the sequence together
  bool scatters = false;     ///< whether those sums are scattered after every micro-batch
};

/// A variable that operators on several devices read (a tied embedding, in the first stage and in
/// the last) gets a copy "<name>~<k>" on every one of them, with its own gradient, state and
/// update. Each adds up the gradients of its readers; the copies' gradients are all-reduced once
/// per step, before the updates (Megatron-LM's _allreduce_word_embedding_grads). All-reduces of a
/// copy's gradient over parts of the sequence come after that one, also once per step, or, if they
/// scatter, before it: so they may also reduce over the replicas. They do so in the bucket of the
/// device's other gradients with the same number of copies (`spread`, per operator) if it has free
/// space. Variables of which some device would have no gradient are not copied. Without any, the
/// graph is unchanged.
SharedVariables share_variables(const Graph& graph, std::span<const int32_t> device,
                                std::span<const int32_t> spread, const SharingOptions& options);

}  // namespace trinity
