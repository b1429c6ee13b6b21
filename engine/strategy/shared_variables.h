#pragma once

#include <cstdint>

#include "strategy/lowered_graph.h"

namespace trinity {

/// A variable that operators on several devices read (a tied embedding, in the first stage and in
/// the last) gets a copy "<name>~<k>" on every one of them, with gradient, state and update of its
/// own. Each accumulates the gradients of its readers; the results are all-reduced once per step,
/// before the updates (Megatron-LM's _allreduce_word_embedding_grads). All-reduces of a copy's
/// gradient over parts of the sequence follow, also once per step, or precede it if they scatter:
/// so they can be joined with the reduction over replicas. They do so in the bucket of the device's
/// other gradients of the same number of copies (OperatorRole::spread), where it fits. Variables
/// for which some device would have no gradient stay where they are. bucket_bytes: of gradients that are summed over
/// parts of the sequence together; scatters: whether those sums are scattered after every micro-batch.
LoweredGraph share_variables(const LoweredGraph& made, int64_t bucket_bytes, bool scatters);

}  // namespace trinity
