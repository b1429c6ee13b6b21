#pragma once

#include <map>
#include <span>

#include "strategy/splits.h"

namespace trinity {

struct TensorParts {
  int32_t tensor = 1;
  /// Parts of the sequence, in each of which there are `tensor`: all of a network is cut along it.
  int32_t context = 1;
  /// Operators not cut over `tensor` are cut along the sequence instead of computed on all devices.
  bool sequence = false;
  /// By number of forward operator: the dimension that is cut over `tensor` whatever the pattern
  /// says; -1: it stays whole.
  std::map<int32_t, int32_t> said = {};
  /// By operator, or empty: forward ones that are cut by heads over tensor and context instead of
  /// along the sequence.
  std::vector<bool> by_heads = {};
};

/// Every operator in tensor x context parts, on its own devices, as Megatron-LM splits
/// transformers (Shoeybi et al. 2019, section 3): a matmul with weights whose result reaches
/// another such matmul is cut by columns, the other one by rows, the operators between them
/// (attention's heads, the activation) along the same axis; the matmul before the loss and the
/// table of embeddings whose rows equal the loss's classes (else the largest one) are cut by
/// vocabulary, which is padded where the parts do not divide it (SplitOptions::tensor). All other
/// operators are computed on all of the devices. first_device: per operator; its parts go there and
/// on the devices that follow, tensor innermost. One part: nothing is split.
///
/// Found from the graph alone: the cut axis is followed from a matmul through its readers, and
/// the matmul stays whole if one of them cannot follow (a norm over the axis, a sum with
/// an uncut tensor). Throws ArgumentError if a layer that would be cut has an axis (heads) of a
/// size that the parts do not divide, naming it and the nearest numbers of parts that do; if
/// queries, keys and values are one matmul; and if an operator cut by heads has none, or a number that the parts do not divide.
///
/// The sequence is the second axis of what a table of embeddings gives, and what it becomes on the
/// way. Every head of attention sees all keys: the parts of the sequence gather them (and scatter
/// their gradients). ArgumentError where the parts do not divide it, or there is none.
Splits tensor_splits(const Graph& graph, const TensorParts& parts,
                     std::span<const int32_t> first_device);

}  // namespace trinity
