#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "search/placement/placement_space.h"

namespace trinity {

/// Cuts a row of `elements` into consecutive parts so that the largest load is least: exactly, by a
/// binary search over the load with fill_row(). What a load is (time, memory) is the caller's:
/// work[part * elements + e] of element e on part `part` (parts may run at different speeds), or
/// work[e] where all parts are alike. Empty parts are allowed. Returns the part of every element;
/// among optimal cuts that whose early parts hold most. Throws ArgumentError for no part, a size
/// that does not fit, or negative work. O(parts * elements * log(total)).
std::vector<int32_t> cut_row(std::span<const int64_t> work, size_t elements, int32_t parts);

/// The same of real numbers, all parts alike: exact in whole numbers of a part in 2^40 of all work.
std::vector<int32_t> cut_row(const std::vector<double>& work, int32_t parts);

/// Fills parts in turn up to `limit` each; what the last one does not hold is in part `parts`.
std::vector<int32_t> fill_row(std::span<const int64_t> work, size_t elements, int32_t parts,
                              int64_t limit);

/// The colocation units in the order in which forward reaches them: by their first operator that
/// costs anything or depends on one that does; units that are only weights or data (TaskGraph::
/// follows) by their first reader. This is the chain that pipelines cut.
std::vector<int32_t> pipeline_order(const Problem& problem);

/// Units in pipeline_order(), one run of them a device, devices in ascending order: the time of the
/// device of the longest is least (wires free). GPipe's balance (Huang et al. 2019), exactly: it
/// minimises the variance of the stages, and torchgpipe does so heuristically (papers/notes.md
/// "GPipe and torchgpipe"). No LayerRow: it has units without forward operators, too.
Assignment contiguous_cut(const PlacementSpace& space);

}  // namespace trinity
