#pragma once

#include <cstdint>
#include <optional>

#include "strategy/splits.h"

namespace trinity {

struct SharingOptions {
  int64_t bucket_bytes = 0;  ///< of gradients that are summed over parts of the sequence together
  bool scatters = false;     ///< whether those sums are scattered after every micro-batch
};

/// A variable that operators on several devices read (a tied embedding, in the first stage and in
/// the last) gets a copy "<name>~<k>" on every one of them, with gradient, state and update of its
/// own. Each adds up the gradients of its readers; the sums are all-reduced once a
/// step, before the updates (Megatron-LM's _allreduce_word_embedding_grads). All-reduces that sum a
/// copy's gradient over parts of the sequence come after that one, once a step, too, or, where they
/// scatter, ahead of it: so they may sum over the replicas in the same breath. They do so in the
/// bucket of the device's other gradients of the same number of copies (OperatorRole::spread), where it fits.
/// Variables of which some device would have no gradient stay where they are. Nothing where there is
/// no other.
std::optional<Lowered> share_variables(const Lowered& made, const SharingOptions& options);

}  // namespace trinity
