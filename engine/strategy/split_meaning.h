#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "strategy/split_layout.h"

// Attributes of graph/meaning.h that say what parts of operators are, and what moves their blocks.

namespace trinity {

/// Where a block begins.
std::vector<int64_t> begins(const Block& block);
/// The same, seen from another block that contains it.
std::vector<int64_t> begins(const Block& block, const Block& within);

/// Block_begin and block_whole, where the block is not all of the shape.
void state_block(Operator& op, const Block& block, const std::vector<int64_t>& shape);
/// Axes, starts and ends of a block within another.
void state_range(Operator& op, const Block& block, const Block& within);
/// The meaning of a part of a forward operator; none for other operators. `coupled`: its cut
/// dimensions whose points need statistics of each other.
void state_part(const Graph& graph, const SplitLayout& layout, int32_t op, int32_t part,
                const std::vector<int32_t>& coupled, Operator& made);
/// The reduction of an all-reduce's member for a part that exchanges statistics.
void state_reduction(const Operator& part, const std::string& reduction, Operator& member);

}  // namespace trinity
