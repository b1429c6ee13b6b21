#pragma once

#include <cstdint>
#include <vector>

#include "graph/graph.h"

namespace trinity {

/// [operator]: true for weight-gradient (W) operators: backward operators whose results only
/// updates use. A tensor is a weight gradient if it is read by updates or by operators that only
/// pass weight gradients on: gradients of a Variable (or of values made of Variables alone), sums,
/// slices, concatenations and members of collectives. W operators write only weight gradients. Not
/// included: forward operators repeated by recompute(), which run before the input gradients; and W
/// operators that split_backward() was asked not to delay.
std::vector<bool> find_weight_work(const Graph& graph);

/// A backward operator that writes both weight gradients and others, which split_backward() would
/// split; -1: none.
int32_t find_joined_backward(const Graph& graph);

/// Splits the backward pass for zero-bubble pipelines (Qi, Wan, Huang and Lin, ICLR 2024). Every
/// backward operator that writes gradients of both weights and inputs becomes an input-gradient
/// operator (B) of the same name, and a weight-gradient operator (W) "<name>/weight" after it.
/// Type, unit, forward operator and attributes stay the same; attribute `weight_part` marks W.
/// Tensors that B and W both read live until the later one has run.
///
/// Matmuls and convolutions are linear in each operand: B reads gradients and weights but no
/// activation, W reads gradients and activations but no weights. For other operators (norms,
/// recurrent cells) both read all inputs. Each has half of the FLOP and of a measured time. This is
/// exact for matmuls and convolutions, whose two gradients cost the same; norms are dominated by
/// their traffic. The traffic of each is what it reads and writes, so shared inputs count twice.
///
/// at_once: [operator] true if its W operator is not delayed (attribute `at_once`); or empty.
/// Throws LimitError for more than kMaxOperators operators.
DerivedGraph split_backward(Graph graph, const std::vector<bool>& at_once = {});

/// The same only for operators whose input gradients are reduced by a collective, directly or after
/// a local sum. W operators follow the collective, so that they overlap with it (Megatron-LM's
/// LinearWithGradAccumulationAndAsyncCommunication).
DerivedGraph overlap_sums(Graph graph);

/// True for a weight-gradient operator made by split_backward(); it reads no weights.
bool is_weight_part(const Operator& op);
/// [forward operator]: its backward operator that is not a W operator; -1: none.
std::vector<int32_t> input_parts(const Graph& graph);

}  // namespace trinity
