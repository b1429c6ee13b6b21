#pragma once

#include <cstdint>
#include <vector>

#include "search/pipeline/ideals.h"
#include "search/pipeline/max_load_cut.h"

namespace trinity {

/// Rules that cut one topological order of a load instance's groups (see make_load_order()) into
/// one part per accelerator, in order: baselines without an optimiser. They are evaluated like
/// every cut, but ignore memory and unsupported nodes (see is_feasible()). Without accelerators
/// everything goes to the first CPU.
enum class CutRule {
  balanced,    ///< minimises the largest sum of times (GPipe's aim; exact)
  torchgpipe,  ///< block partition of Barany and Grinberg, as in torchgpipe
  equal,       ///< equal numbers of groups
  random,      ///< uniformly random cuts
  memory,      ///< minimises the largest sum of memory (exact): the cut nearest to fitting
};

/// [node]: its device. `seed`: for random cuts.
std::vector<int32_t> cut_by_rule(const LoadInstance& instance, CutRule rule, uint64_t seed = 1);

/// The same along another order of the groups, for a checked instance.
std::vector<int32_t> cut_along(const LoadInstance& instance, const LoadOrder& order, CutRule rule,
                               uint64_t seed = 1);

/// The block partition of Barany and Grinberg ("Block partitions of sequences", 2015), as used by
/// torchgpipe: consecutive elements in `parts` blocks whose largest sum is at most the smallest sum
/// plus the largest element. Starting from equal blocks, one element at a time moves from a
/// neighbour towards the smallest block nearest to the largest one. Returns the block of every
/// element. Throws ArgumentError for no part or a negative element.
std::vector<int32_t> block_partition(const std::vector<double>& work, int32_t parts);

struct CutSearchOptions {
  uint64_t seed = 1;
  int32_t starts = 8;        ///< the balanced cuts, then random ones
  int64_t trials = 200'000;  ///< moves tried, over all starts
  double seconds = 1e9;      ///< wall-clock time; results then depend on the machine
};

/// Local search over the cuts from several starts: a cut moves by 1, 2, 4, ... groups while the
/// largest load falls (or, if equal, the sum of squares). Minimises the largest load among cuts
/// that fit.
std::vector<int32_t> search_cuts(const LoadInstance& instance, const CutSearchOptions& options);

}  // namespace trinity
