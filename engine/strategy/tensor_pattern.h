#pragma once

#include <span>

#include "strategy/splits.h"

namespace trinity {

/// Every operator in `parts` parts, on the devices that are its own, as Megatron-LM splits
/// transformers (Shoeybi et al. 2019, section 3): a product with weights whose results come back
/// through another such product is cut by columns, that one by rows, what is between them
/// (attention's heads, the activation) along the same axis; the largest table of embeddings and the
/// product in front of the loss are cut by vocabulary. Everything else is computed on all of the
/// devices. devices_of: per operator, `parts` devices each. One part: nothing is split.
///
/// Found from the graph alone: the cut axis is followed from a product through its readers, and
/// the product stays whole where one of them could not follow (a norm over the axis, a sum with
/// what is not cut). Throws ArgumentError where a layer that would be cut has an axis (heads) of a
/// size that the parts do not divide, naming it and the nearest numbers of parts that do, and where
/// queries, keys and values are one product.
///
/// sequence: what is not cut so is cut along the sequence (the second axis of its output) instead
/// of computed everywhere; ArgumentError where the parts do not divide it.
Splits tensor_splits(const Graph& graph, int32_t parts,
                     std::span<const std::vector<int32_t>> devices_of, bool sequence = false);

}  // namespace trinity
