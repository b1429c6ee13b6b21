#pragma once

#include <cstdint>
#include <span>
#include <vector>

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

}  // namespace trinity
