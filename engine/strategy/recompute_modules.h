#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "graph/layers.h"
#include "strategy/mesh.h"

namespace trinity {

/// The modules of Megatron-LM's --recompute-modules, by the names of a layer's operators
/// (megatron/core/transformer/transformer_config.py at commit d98e8a64).
enum class RecomputeModule : uint8_t {
  core_attn,       ///< attention without its projections
  layernorm,       ///< both norms
  mla_up_proj,     ///< of latent attention: norms and up-projections of queries, keys and values, rotation
  mlp,             ///< a dense feed-forward network up to its last matmul
  moe,             ///< router, dispatch, experts, shared expert
  moe_act,         ///< the activation of experts
  shared_experts,  ///< the shared expert alone
};

/// Sets recompute and recompute_modules from a word: none, selective, full, or modules joined by
/// '+'. Throws ArgumentError naming the accepted words.
void parse_recompute(std::string_view text, Parallelism& given);
/// The text that parse_recompute() reads.
std::string recompute_text(const Parallelism& given);

/// The forward operators of the layers that belong to the modules of a strategy. Throws ArgumentError for a module that
/// the graph does not have.
std::vector<int32_t> module_operators(const Parallelism& given, const Graph& graph, const Layers& layers);

}  // namespace trinity
