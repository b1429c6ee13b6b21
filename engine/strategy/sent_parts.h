#pragma once

#include <cstdint>
#include <vector>

#include "strategy/lowered_graph.h"

namespace trinity {

/// A tensor that every device of a group of `tensor` neighbours holds whole and that the same
/// devices of another group read is sent in parts: each device sends its part along the second
/// dimension to its place in the other group, which gathers them (Narayanan et al., SC 2021,
/// section 4.1: the scatter/gather optimisation of communication). whole: per tensor whether its
/// copies on a group are the same. Tensors whose second dimension does not divide go whole, as
/// before.
void send_parts(LoweredGraph& made, int32_t tensor, const std::vector<bool>& whole);

}  // namespace trinity
