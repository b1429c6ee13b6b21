#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/hash.h"
#include "graph/graph.h"
#include "graph/iteration_space.h"

namespace trinity {

/// Cache of the iteration spaces of a graph's operators. Operators of equal type, attributes and
/// shapes, as in repeated layers, share one. References live as long as the cache. Not thread-safe.
class OperatorSpaces {
 public:
  /// copies: append the dimension of copies (OperatorCut).
  explicit OperatorSpaces(const Graph& graph, bool copies = false)
      : graph_(graph), copies_(copies) {}

  const std::shared_ptr<const IterationSpace>& of(int32_t op) {
    const uint64_t key = key_of(graph_.op(op));
    const auto [first, last] = known_.equal_range(key);
    for (auto found = first; found != last; ++found)
      if (same(graph_.op(found->second.op), graph_.op(op))) return found->second.space;
    auto space = std::make_shared<IterationSpace>(iteration_space(graph_, op));
    if (copies_) space->dimensions.push_back({"copies", 1, DimensionRole::rows, false});
    return known_.emplace(key, Known{op, std::move(space)})->second.space;
  }

 private:
  struct Known {
    int32_t op;  // first operator with this space
    std::shared_ptr<const IterationSpace> space;
  };

  const std::vector<int64_t>& shape(int32_t tensor) const { return graph_.tensor(tensor).shape; }

  /// Hash of the shapes that an operator reads and writes.
  uint64_t key_of(const Operator& op) const {
    uint64_t key = std::hash<std::string>()(op.type);
    for (const auto* tensors : {&op.inputs, &op.outputs})
      for (const int32_t tensor : *tensors)
        for (const int64_t extent : shape(tensor)) key = mix64(key ^ static_cast<uint64_t>(extent));
    return key;
  }

  bool same(const Operator& a, const Operator& b) const {
    const auto tensors = [this](const auto& x, const auto& y) {
      return std::equal(x.begin(), x.end(), y.begin(), y.end(),
                        [this](int32_t p, int32_t q) { return shape(p) == shape(q); });
    };
    return a.type == b.type && tensors(a.inputs, b.inputs) && tensors(a.outputs, b.outputs) &&
           std::equal(a.parameters.begin(), a.parameters.end(), b.parameters.begin(),
                      b.parameters.end(),
                      [](const Parameter& x, const Parameter& y) { return x.shape == y.shape; }) &&
           a.attributes == b.attributes;
  }

  const Graph& graph_;
  bool copies_;
  std::unordered_multimap<uint64_t, Known> known_;
};

}  // namespace trinity
