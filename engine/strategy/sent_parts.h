#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/graph.h"

namespace trinity {

/// A graph whose stages send each other parts.
struct SentParts {
  Graph graph;
  std::vector<int32_t> device;  ///< of every operator
  std::vector<int32_t> origin;  ///< per operator the one that it is, cuts or gathers for
  std::vector<int32_t> with;    ///< the same; of gathers the first operator that reads them
  std::vector<bool> added;      ///< per operator: a slice, or a member of a gather
};

/// Tensors that every device of a group of `tensor` neighbours holds whole and that the same
/// devices of other groups read are sent in parts: each device sends its part along the second
/// dimension to its place in the other group, which gathers them (Narayanan et al., SC 2021,
/// section 4.1: the scatter/gather optimisation of communication). whole: per tensor whether its
/// copies on a group are the same. Tensors whose second dimension does not divide go whole, as
/// before.
SentParts send_parts(const Graph& graph, std::span<const int32_t> device, int32_t tensor,
                     const std::vector<bool>& whole);

}  // namespace trinity
