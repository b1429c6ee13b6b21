#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "search/placement/placement_space.h"

namespace trinity {

/// Cuts a row of `elements` into consecutive parts with the minimum largest load: exactly, by a
/// binary search over the load with fill_row(). The caller defines the load (time, memory):
/// work[part * elements + e] of element e on part `part`, or work[e] if all parts are equal. Empty
/// parts are allowed. Returns the part of every element; of several optimal cuts the one whose
/// early parts hold most. Throws ArgumentError for no part, a wrong size, or negative work. O(parts
/// * elements * log(total)).
std::vector<int32_t> cut_row(std::span<const int64_t> work, size_t elements, int32_t parts);

/// The same for real numbers and equal parts: exact to 2^-40 of all work.
std::vector<int32_t> cut_row(const std::vector<double>& work, int32_t parts);

/// Fills parts in order up to `limit` each; elements that do not fit get part `parts`.
std::vector<int32_t> fill_row(std::span<const int64_t> work, size_t elements, int32_t parts,
                              int64_t limit);

/// The colocation units in forward order: by their first operator that has a cost or depends on one
/// that has; units of weights or data only (TaskGraph::follows) by their first reader. Pipelines
/// cut this chain.
std::vector<int32_t> pipeline_order(const Problem& problem);

/// Cuts pipeline_order() into one run per device, devices in ascending order, with the minimum
/// largest device time (communication free). This is GPipe's balance (Huang et al. 2019), solved
/// exactly; torchgpipe minimises the variance of the stages heuristically (manual/papers.md "GPipe
/// and torchgpipe"). Does not use LayerRow, because it also has units without forward operators.
Assignment contiguous_cut(const PlacementSpace& space);

}  // namespace trinity
