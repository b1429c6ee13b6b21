#pragma once

#include <string>
#include <vector>

#include "graph/types.h"

namespace trinity {

/// Throws ArgumentError when a collective waits for itself, alone or by way of others: its members
/// start together, so none may read what another one's output leads to. Names the collective and
/// the two members. Expects operators without a cycle of their own.
void check_deadlock(const std::string& graph, const std::vector<Operator>& operators,
                    const std::vector<Tensor>& tensors, const std::vector<Collective>& collectives);

}  // namespace trinity
