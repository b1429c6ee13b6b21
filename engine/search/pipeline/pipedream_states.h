#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/deadline.h"

namespace trinity {

/// The places where PipeDream (Narayanan et al., SOSP 2019; papers/notes.md "PipeDream") cuts a
/// network into stages. The optimiser that chooses among them is lib/trinity/pipeline/pipedream.lua.

/// A forward graph of layers with costs. Not a LayerRow (layer_row.h): antichains are found along
/// its edges.
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

}  // namespace trinity
