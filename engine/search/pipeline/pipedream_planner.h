#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/deadline.h"

namespace trinity {

/// PipeDream's optimiser (Narayanan et al., SOSP 2019; papers/notes.md "PipeDream"), as its
/// released code computes (which differs from the paper): layers to stages and stages to numbers
/// of replicas, so that the slowest stage takes least.
///
/// The time of a stage of compute T, weights W bytes, on m workers joined by b bytes/s:
///   (T + 4 (m - 1) W / (b m)) / m
/// and with `transfers` a cut of A bytes bounds the pipeline by 2 A / (b m) on either side. The
/// paper's form, by option: max(T, 2 (m - 1) W / b) / m, and 2 A / b for a cut.

/// What is planned: a forward graph of layers with what they cost. No LayerRow (layer_row.h):
/// antichains are found along its edges.
struct PipedreamLayers {
  std::vector<std::vector<int32_t>> members;  ///< nodes of the caller's that a layer stands for
  std::vector<double> time_s;                 ///< forward and backward
  std::vector<double> parameter_bytes, output_bytes;
  std::vector<std::pair<int32_t, int32_t>> edges;  ///< distinct, from lower to higher layers
  int32_t source = 0;  ///< the layer that the antichains begin with; none leads to it

  int32_t count() const { return static_cast<int32_t>(time_s.size()); }
};

/// Chains that begin at a branch made one layer, as PipeDream's graph.compress_branches() does: it
/// has the sums of times and weights and the output of its last member. For graphs of many
/// branches, which have too many antichains otherwise.
PipedreamLayers compress_branches(const PipedreamLayers& layers);

/// A place where the graph can be cut: everything up to here, and what crosses.
struct PipedreamState {
  std::vector<int32_t> layers;  ///< members of the layers up to here, ascending
  double time_s = 0;            ///< of these, forward and backward
  double parameter_bytes = 0;   ///< of these
  double activation_bytes = 0;  ///< outputs of these: what a worker stashes
  double output_bytes = 0;      ///< outputs of the operators that are read beyond here
  std::vector<int32_t> before;  ///< earlier states within this one, ascending
};

/// The cuts of a forward graph as PipeDream finds them: antichains, each made from another by
/// moving one layer on. States are numbered by how many members they hold, then by discovery. A
/// chain of n layers has n states; wide graphs have many: throws LimitError beyond 4,000,
/// Interrupted, TimeIsUp.
std::vector<PipedreamState> pipedream_states(const PipedreamLayers& layers,
                                             const Deadline& deadline = {});

/// One state per layer, whose output is all that crosses there: for graphs with too many
/// antichains. Throws LimitError beyond 4,000 layers, Interrupted, TimeIsUp.
std::vector<PipedreamState> pipedream_chain(const PipedreamLayers& layers,
                                            const Deadline& deadline = {});
/// At most so many of these states, the last among them, for any number of layers.
std::vector<PipedreamState> pipedream_few(const PipedreamLayers& layers, int32_t most);

/// A level of a cluster: `workers` of the level below, joined by a bandwidth.
struct PipedreamLevel {
  int32_t workers = 1;
  double bandwidth_bytes_per_s = 0;
};

struct PipedreamOptions {
  bool transfers = true;    ///< count the transfers of activations and their gradients
  bool straight = false;    ///< no replicas: as many stages as workers
  bool fewer = false;       ///< a pipeline may leave workers idle (PipeDream's use_fewer_machines)
  bool paper = false;       ///< the paper's costs in place of the code's
  double memory_bytes = 0;  ///< what a worker may stash, by each level's count; 0: no limit
  double compression = 1;   ///< transfers are so many times smaller
};

/// Of a network of costs, which need be no graph: an answer, not part of a strategy.
struct PipedreamStage {
  int32_t first = 0, last = 0;    ///< states (first, last]: -1 for first is the graph's begin
  std::vector<int32_t> replicas;  ///< at every level, innermost first
};

struct PipedreamPipeline {
  bool feasible = false;       ///< false: straight with more workers than cuts, or no memory
  double time_s = 0;           ///< of the slowest stage
  double data_parallel_s = 0;  ///< all workers as replicas of one stage, level by level
  std::vector<PipedreamStage> stages;  ///< of the innermost level, in order
};

/// A pipeline through the states: a stage lies between two states of which one is before the other.
/// O(states^2 * predecessors * workers^2) for all but the last of several levels. Deterministic;
/// throws Interrupted, TimeIsUp, and ArgumentError for no state or level, workers below 1 or above
/// 1024, bandwidths that are not positive, LimitError
/// when its tables would exceed 32 million entries.
PipedreamPipeline pipedream_pipeline(std::span<const PipedreamState> states,
                                     std::span<const PipedreamLevel> levels,
                                     const PipedreamOptions& options = {},
                                     const Deadline& deadline = {});

/// Where a pipeline's cuts come from.
struct PipedreamCuts {
  std::vector<PipedreamState> states;
  const char* kind = "antichains";
};
struct PipedreamFound {
  PipedreamCuts cuts;
  PipedreamPipeline pipeline;
  bool complete = true;  ///< false: few cuts of one order were looked at
};

/// Cuts and a pipeline within `seconds`: over the antichains (compress "no"), those of compressed
/// branches ("yes"), or (compress "auto") where either are more than 4,000 or than tables
/// hold, these and then one order of the layers, last few cuts of it. When time is up, few cuts of
/// one order. Throws as the functions above, but TimeIsUp.
PipedreamFound find_pipedream_pipeline(const PipedreamLayers& layers,
                                       std::span<const PipedreamLevel> levels,
                                       const PipedreamOptions& options, const std::string& compress,
                                       double seconds);

}  // namespace trinity
