#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace trinity {

/// Seconds that a worker on device `to` takes to copy `bytes` bytes that the worker on device
/// `from` has just written: what the executor does for a tensor whose reader lies elsewhere. One
/// entry a size, the median of `repeats` copies after one that is not counted. Devices as in
/// parse_worker_device(). Throws ArgumentError for sizes below 4 bytes and fewer than one repeat.
std::vector<double> measure_copies(const std::string& from, const std::string& to,
                                   const std::vector<int64_t>& bytes, int32_t repeats);

/// What a worker on a device reaches at best, medians.
struct DeviceRates {
  double flops_per_s = 0;         ///< a product of two float32 matrices of 1024 rows and columns
  double memory_bytes_per_s = 0;  ///< read and written by adding 1 to 64 MB in place
};
DeviceRates measure_rates(const std::string& device);

}  // namespace trinity
