#pragma once

#include <cstdint>
#include <span>
#include <vector>

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

}  // namespace trinity
