#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "cluster/collectives.h"
#include "simulator/mesh/colours.h"

// Only for the search for symmetry (symmetry.cpp).

namespace trinity {

/// Interns collective costs of device groups: groups of equal cost get equal ids. Not thread-safe.
class GroupPrices {
 public:
  GroupPrices(const Cluster& cluster, CollectiveGroups& groups) : cluster_(cluster), groups_(groups) {}

  int32_t of(std::span<const int32_t> devices, bool exchanges) {
    // Small groups number in the thousands; caching them costs more than it saves.
    const auto price = devices.size() <= kFewDevices ? groups_.make(devices, exchanges)
                                                     : groups_.find(devices, exchanges);
    const auto next = static_cast<int32_t>(known_.size());
    return known_.try_emplace(price, next).first->second;
  }

  /// The same if pieces_alike(): groups that are certain to cost the same are evaluated once.
  int32_t of_alike(std::span<const int32_t> devices, bool exchanges) {
    const auto& routes = cluster_.routes();
    key_.assign(1, exchanges);
    uint64_t pieces = 0;
    for (size_t i = 0; i < devices.size(); ++i) {  // devices of one piece are contiguous
      pieces += i == 0 || routes.piece(devices[i]) != routes.piece(devices[i - 1]);
      key_.push_back(pieces << 32 | static_cast<uint64_t>(routes.number(devices[i])));
      key_.push_back(static_cast<uint64_t>(routes.table(devices[i])));
    }
    const auto number = at(alike_.of(key_));
    if (number == alike_price_.size()) alike_price_.push_back(of(devices, exchanges));
    return alike_price_[number];
  }

 private:
  static constexpr size_t kFewDevices = 16;

  const Cluster& cluster_;
  CollectiveGroups& groups_;
  struct Hash {
    size_t operator()(const CollectiveGroup& group) const { return group.hash(); }
  };
  std::unordered_map<CollectiveGroup, int32_t, Hash> known_;
  Colours alike_;
  std::vector<int32_t> alike_price_;
  std::vector<uint64_t> key_;
};

}  // namespace trinity
