#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace trinity {

/// [size in `bytes`]: seconds that a worker on device `to` takes to copy that many bytes just
/// written by the worker on device `from`, as the executor does for a tensor read on another
/// device. Median of `repeats` copies, after one warm-up. Devices as in parse_worker_device().
/// Throws ArgumentError for sizes below 4 bytes and fewer than one repeat.
std::vector<double> measure_copies(const std::string& from, const std::string& to,
                                   const std::vector<int64_t>& bytes, int32_t repeats);

/// Peak rates that a worker reaches on a device, medians.
struct DeviceRates {
  double flops_per_s = 0;         ///< matmul of two float32 matrices of 1024 x 1024
  double memory_bytes_per_s = 0;  ///< read and written by an in-place addition on 64 MB
};
DeviceRates measure_rates(const std::string& device);

}  // namespace trinity
