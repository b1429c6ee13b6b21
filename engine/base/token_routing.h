#pragma once

#include <cstdint>

namespace trinity {

/// How the rows of an all-to-all follow from tokens: every token has one row for each of its experts, which are
/// uniformly random; `group_topk` of the groups of experts come first, then experts in them.
struct TokenRouting {
  int64_t experts = 0;    ///< of all members
  int64_t per_token = 0;  ///< experts of a token; 0: rows are no copies of tokens
  int64_t groups = 1;
  int64_t group_topk = 1;

  /// Mean number of `parts` equal parts of the experts that have at least one expert of a token. Groups count where
  /// parts consist of whole groups or groups of whole parts.
  double destinations(int64_t parts) const;
};

}  // namespace trinity
