#pragma once

#include <cstdint>
#include <vector>

#include "graph/graph.h"

namespace trinity {

/// Which backward operators are weight work, of no use to any but the updates. A tensor is a
/// gradient of weights when updates read it, or operators that only hand gradients of weights on:
/// those that serve a Variable (or what is made of Variables alone), sums, slices, concatenations
/// and members of collectives. Weight work writes only such tensors. A forward operator that
/// recompute() repeated never does: it runs before the gradients of inputs. Nor do weight parts
/// that split_backward() was told not to delay.
std::vector<bool> find_weight_work(const Graph& graph);

/// A backward operator that writes gradients of weights beside others, which split_backward() would
/// cut; -1 where there is none.
int32_t find_joined_backward(const Graph& graph);

/// A training graph whose backward pass is in two, and where its operators come from.
struct SplitBackward {
  Graph graph;
  std::vector<int32_t> origin;  ///< per operator: the one of the original graph that it is part of
};

/// Zero-bubble pipelines (Qi, Wan, Huang and Lin, ICLR 2024): every backward operator that writes
/// gradients both of weights and of inputs becomes an input part of its name, with the gradients of
/// inputs, and a weight part "<name>/weight" that follows it, with those of weights; type, unit,
/// forward operator, attributes are those of the whole, and an attribute `weight_part` marks the
/// latter. The rest stays as it is. What both parts read lives until the later one has run.
///
/// Products and convolutions are linear in each operand: the input part reads gradients and
/// weights but no activation, the weight part gradients and activations but no weights. Parts of
/// other operators (norms, recurrent cells) read all that the whole did. Of FLOP, and of time where
/// it was measured, each part has half: exact for products and convolutions, where both gradients
/// take as many; of norms it counts little beside their traffic. A part's traffic is what it reads
/// and writes, so that what both read counts twice.
///
/// at_once: of every operator whether its weight part is not delayed (attribute `at_once`), or
/// empty. Throws LimitError for more than kMaxOperators operators.
SplitBackward split_backward(const Graph& graph, const std::vector<bool>& at_once = {});

/// The same of those operators alone whose gradients of inputs are summed up by a collective, at once
/// or behind a sum of theirs: weight parts stand behind it, so that they run while it is on its way
/// (Megatron-LM's LinearWithGradAccumulationAndAsyncCommunication).
SplitBackward overlap_sums(const Graph& graph);

/// Whether an operator is a weight part that split_backward() made: it reads no weights.
bool is_weight_part(const Operator& op);
/// Of every forward operator its backward operator that is no weight part; -1: it has none.
std::vector<int32_t> input_parts(const Graph& graph);

}  // namespace trinity
