#pragma once

#include <string>
#include <vector>

#include "graph/types.h"

namespace trinity {

/// Throws ArgumentError if a collective waits for itself, directly or through others: its members
/// start together, so none may depend on another's output. Names the collective and the two
/// members. Requires operators without a cycle.
void check_deadlock(const std::string& graph, const std::vector<Operator>& operators,
                    const std::vector<Tensor>& tensors, const std::vector<Collective>& collectives);

}  // namespace trinity
