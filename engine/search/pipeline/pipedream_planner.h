#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/deadline.h"

namespace trinity {

/// PipeDream's optimiser (Narayanan et al., SOSP 2019; papers/notes.md "PipeDream"), following the
/// released code, which differs from the paper: assigns layers to stages and numbers of replicas to
/// stages, to minimise the time of the slowest stage.
///
/// Time of a stage with compute time T and weights of W bytes on m workers with b bytes/s between
/// them: (T + 4 (m - 1) W / (b m)) / m. With `transfers` a cut of A bytes bounds the pipeline by 2
/// A / (b m) on either side. The paper's form, by option: max(T, 2 (m - 1) W / b) / m, and 2 A / b
/// for a cut.

/// Input of the planner: a forward graph of layers with costs. Not a LayerRow (layer_row.h):
/// antichains are found along its edges.
struct PipedreamLayers {
  std::vector<std::vector<int32_t>> members;  ///< [layer]: the caller's nodes in it
  std::vector<double> time_s;                 ///< forward and backward
  std::vector<double> parameter_bytes, output_bytes;
  std::vector<std::pair<int32_t, int32_t>> edges;  ///< distinct, from lower to higher layers
  int32_t source = 0;  ///< the layer that antichains begin with; it has no predecessor

  int32_t count() const { return static_cast<int32_t>(time_s.size()); }
};

/// Merges chains that begin at a branch into one layer, as PipeDream's graph.compress_branches()
/// does: it has the sums of times and weights and the output of its last member. For graphs with
/// many branches, which otherwise have too many antichains.
PipedreamLayers compress_branches(const PipedreamLayers& layers);

/// A place where the graph can be cut: the layers up to it, and the data that crosses it.
struct PipedreamState {
  std::vector<int32_t> layers;  ///< members of the layers up to here, ascending
  double time_s = 0;            ///< of these layers, forward and backward
  double parameter_bytes = 0;   ///< of these layers
  double activation_bytes = 0;  ///< outputs of these layers: stashed by a worker
  double output_bytes = 0;      ///< outputs of operators that are read after the cut
  std::vector<int32_t> before;  ///< earlier states contained in this one, ascending
};

/// The cuts of a forward graph as PipeDream enumerates them: antichains, each derived from another
/// by advancing one layer. States are numbered by their number of members, then by discovery. A
/// chain of n layers has n states; wide graphs have many. Throws LimitError for more than 4,000,
/// Interrupted, TimeIsUp.
std::vector<PipedreamState> pipedream_states(const PipedreamLayers& layers,
                                             const Deadline& deadline = {});

/// One state per layer, whose output is all that crosses there: for graphs with too many
/// antichains. Throws LimitError for more than 4,000 layers, Interrupted, TimeIsUp.
std::vector<PipedreamState> pipedream_chain(const PipedreamLayers& layers,
                                            const Deadline& deadline = {});
/// At most `most` of these states, including the last, for any number of layers.
std::vector<PipedreamState> pipedream_few(const PipedreamLayers& layers, int32_t most);

/// A level of a cluster: `workers` units of the level below, connected with a bandwidth.
struct PipedreamLevel {
  int32_t workers = 1;
  double bandwidth_bytes_per_s = 0;
};

struct PipedreamOptions {
  bool transfers = true;    ///< count transfers of activations and their gradients
  bool straight = false;    ///< no replicas: one stage per worker
  bool fewer = false;       ///< a pipeline may leave workers idle (PipeDream's use_fewer_machines)
  bool paper = false;       ///< use the paper's costs instead of the code's
  double memory_bytes = 0;  ///< limit of a worker's stash, by each level's count; 0: none
  double compression = 1;   ///< divisor of transfer sizes
};

/// A stage of a network of costs: a planner's result, not part of a strategy.
struct PipedreamStage {
  int32_t first = 0, last = 0;    ///< states (first, last]; first -1: from the beginning
  std::vector<int32_t> replicas;  ///< per level, innermost first
};

struct PipedreamPipeline {
  bool feasible = false;       ///< false: straight with more workers than cuts, or memory exceeded
  double time_s = 0;           ///< of the slowest stage
  double data_parallel_s = 0;  ///< all workers as replicas of one stage, level by level
  std::vector<PipedreamStage> stages;  ///< of the innermost level, in order
};

/// The best pipeline through the states: a stage lies between two states, one of which precedes the
/// other. O(states^2 * predecessors * workers^2) for all levels except the last. Deterministic.
/// Throws Interrupted, TimeIsUp; ArgumentError for no state or level, workers outside 1 to 1024,
/// bandwidths that are not positive; LimitError if its tables would exceed 32 million entries.
PipedreamPipeline pipedream_pipeline(std::span<const PipedreamState> states,
                                     std::span<const PipedreamLevel> levels,
                                     const PipedreamOptions& options = {},
                                     const Deadline& deadline = {});

/// Source of a pipeline's cuts.
struct PipedreamCuts {
  std::vector<PipedreamState> states;
  const char* kind = "antichains";
};
struct PipedreamFound {
  PipedreamCuts cuts;
  PipedreamPipeline pipeline;
  bool complete = true;  ///< false: only few cuts of one order were tried
};

/// Finds cuts and a pipeline within `seconds`: over the antichains (compress "no"), those of
/// compressed branches ("yes"), or (compress "auto") the first of these, and then all or few cuts
/// of one order of the layers, that has at most 4,000 states and fits into the tables. When time is
/// up: few cuts of one order. Throws as the functions above, except TimeIsUp.
PipedreamFound find_pipedream_pipeline(const PipedreamLayers& layers,
                                       std::span<const PipedreamLevel> levels,
                                       const PipedreamOptions& options, const std::string& compress,
                                       double seconds);

}  // namespace trinity
