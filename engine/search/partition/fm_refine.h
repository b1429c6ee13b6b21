#pragma once

#include "base/random.h"
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

/// Cells with weights and the nets between them, on two sides: the state of one Fiduccia-Mattheyses
/// refinement (fm.h). Not thread-safe.
class FmSides {
 public:
  /// The part of `hypergraph` between `units` (ascending); cell i is units[i]. share: fraction of
  /// the weight for the first side (false).
  FmSides(const Hypergraph& hypergraph, std::span<const int32_t> weight,
          std::span<const int32_t> units, double share, double imbalance);

  /// Initial sides: the first cells up to the share; or a set grown from a random cell.
  std::vector<bool> first_cells() const;
  std::vector<bool> grown(RandomStream& random) const;

  /// Runs passes from `side` until none gains.
  void refine(std::vector<bool>& side, int32_t passes);

  int64_t cut_bytes(const std::vector<bool>& side) const;
  /// Distance of the first side's weight from its bounds; 0 inside.
  int64_t violation(int64_t first_weight) const;
  int64_t first_weight(const std::vector<bool>& side) const;

 private:
  struct Buckets;
  bool pass(std::vector<bool>& side);
  void count(const std::vector<bool>& side);
  void move(int32_t cell, std::vector<bool>& side, Buckets& buckets);
  int32_t choose(Buckets& buckets, int64_t first_weight) const;
  std::span<const int32_t> pins(int32_t net) const;
  std::span<const int32_t> nets(int32_t cell) const;

  std::vector<int64_t> weight_, bytes_;
  std::vector<int32_t> first_pin_, pins_, first_net_, nets_;
  std::vector<int32_t> on_side_[2];  // pins of a net on each side
  int64_t low_ = 0, high_ = 0, total_ = 0, largest_gain_ = 0;
  double share_;
};

}  // namespace trinity
