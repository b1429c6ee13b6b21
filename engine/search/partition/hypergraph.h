#pragma once

#include "search/placement/placement_space.h"

namespace trinity {

/// Units as cells and tensors as nets: a net joins the unit that produces a tensor and all other
/// units that read it. A net whose pins are on k devices is sent k - 1 times, so the sum of bytes *
/// (k - 1) is the total traffic. Nets with equal pins are merged.
struct Hypergraph {
  std::vector<int32_t> first_pin;  ///< nets + 1 positions in `pins`
  std::vector<int32_t> pins;       ///< units, ascending within a net, at least 2
  std::vector<int64_t> bytes;      ///< per net; at least 1
  int32_t units = 0;

  explicit Hypergraph(const PlacementSpace& space);
  int32_t nets() const { return static_cast<int32_t>(bytes.size()); }
  std::span<const int32_t> net(int32_t number) const {
    const auto n = static_cast<size_t>(number);
    return {pins.data() + first_pin[n], static_cast<size_t>(first_pin[n + 1] - first_pin[n])};
  }
  /// Sum of bytes * (devices that a net touches - 1).
  int64_t sent_bytes(const Assignment& assignment) const;
};

}  // namespace trinity
