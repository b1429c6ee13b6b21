#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "graph/types.h"

namespace trinity {

// Order of items that wait for each other, numbered from 0: operators, nodes of a file, layers,
// groups of them.

/// From an item to one that waits for it.
using Arrow = std::pair<int32_t, int32_t>;

/// A topological order of 0 to count - 1 that keeps their order where the arrows allow: always the
/// lowest number that waits for nothing (Kahn, "Topological sorting of large networks", 1962).
/// Items blocked by a cycle are left out, so the result is then shorter than `count`. Repeated
/// arrows are allowed. O((count + arrows) log count); polls the stop flag.
std::vector<int32_t> stable_order(int32_t count, std::span<const Arrow> arrows);

/// A cycle: indices of its arrows, in which each arrow begins where its predecessor ends, and the
/// first where the last ends. Empty if there is none.
std::vector<size_t> find_cycle(int32_t count, std::span<const Arrow> arrows);

/// A cycle as "a -> b -> a", with "..." after eight arrows.
std::string cycle_text(std::span<const Arrow> arrows, std::span<const size_t> cycle,
                       const std::function<std::string(int32_t)>& name);

/// Throws ArgumentError if a collective waits for itself, directly or through others: its members
/// start together, so none may depend on another's output. Names the collective and the two
/// members. Requires operators without a cycle.
void check_deadlock(const std::string& graph, const std::vector<Operator>& operators,
                    const std::vector<Tensor>& tensors, const std::vector<Collective>& collectives);

}  // namespace trinity
