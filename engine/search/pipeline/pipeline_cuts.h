#pragma once

#include <cstdint>
#include <vector>

#include "search/pipeline/ideals.h"
#include "search/pipeline/max_load_cut.h"

namespace trinity {

/// Cuts along one topological order of a load instance's groups (see make_load_order()), one part
/// an accelerator in order: what is used where no optimiser is. They are priced as every cut is,
/// but memory and unsupported nodes are no concern of theirs (is_feasible() tells). Without
/// accelerators everything goes to the first CPU.
enum class CutRule {
  balanced,    ///< the largest sum of times least (GPipe's aim; exact)
  torchgpipe,  ///< the block partition of Barany and Grinberg, as torchgpipe balances
  equal,       ///< equally many groups each
  random,      ///< cuts drawn uniformly
  memory,      ///< the largest sum of memory least: of such cuts what is nearest to fitting (exact)
};

/// The device of every node. `seed` is of random cuts.
std::vector<int32_t> cut_by_rule(const LoadInstance& instance, CutRule rule, uint64_t seed = 1);

/// The same along another order of the groups, for an instance that was checked.
std::vector<int32_t> cut_along(const LoadInstance& instance, const LoadOrder& order, CutRule rule,
                               uint64_t seed = 1);

/// The block partition of Barany and Grinberg ("Block partitions of sequences", 2015), which
/// torchgpipe uses: sums of consecutive elements in `parts` blocks whose largest is at most the
/// smallest plus the largest element. From equal blocks on, an element at a time moves from a
/// neighbour towards the smallest block that is nearest the largest. Returns the block of every
/// element. Throws ArgumentError for no part or a negative element.
std::vector<int32_t> block_partition(const std::vector<double>& work, int32_t parts);

struct CutSearchOptions {
  uint64_t seed = 1;
  int32_t starts = 8;        ///< the balanced cuts, then random ones
  int64_t trials = 200'000;  ///< moves tried, of all starts together
  double seconds = 1e9;      ///< wall-clock time; results then depend on the machine
};

/// Local search over the cuts: a cut moves by 1, 2, 4, ... groups while the largest load falls (or,
/// at the same, the sum of squares does), from several starts; the least largest load that fits.
std::vector<int32_t> search_cuts(const LoadInstance& instance, const CutSearchOptions& options);

}  // namespace trinity
