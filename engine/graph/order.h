#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace trinity {

// The order of things that wait for each other, for whatever is numbered from 0: operators, nodes of
// a file, layers, groups of them.

/// From what comes first to what waits for it.
using Arrow = std::pair<int32_t, int32_t>;

/// A topological order of 0 to count - 1 that keeps their order where the arrows allow: always the
/// lowest number that waits for nothing (Kahn, "Topological sorting of large networks", 1962). What
/// a cycle blocks is left out, so that the result is then shorter than `count`. Repeated arrows do
/// no harm. O((count + arrows) log count); polls the stop flag.
std::vector<int32_t> stable_order(int32_t count, std::span<const Arrow> arrows);

/// A cycle: the numbers of its arrows, each of which begins where the one before it ends, and the
/// first where the last one ends. Empty where there is none.
std::vector<size_t> find_cycle(int32_t count, std::span<const Arrow> arrows);

/// A cycle as "a -> b -> a", with "..." after eight arrows.
std::string cycle_text(std::span<const Arrow> arrows, std::span<const size_t> cycle,
                       const std::function<std::string(int32_t)>& name);

}  // namespace trinity
