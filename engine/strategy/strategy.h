#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "cluster/cluster.h"
#include "graph/graph.h"

namespace trinity {

/// How a graph is trained on a cluster. Placement is the only part so far.
struct Strategy {
  std::vector<int32_t> placement;  ///< device of every operator, 0-based
};

/// Throws ArgumentError unless `placement` names a device of `cluster` for every operator and
/// keeps every colocation unit together.
void check_placement(std::span<const int32_t> placement, const Graph& graph,
                     const Cluster& cluster);

/// The strategy as JSON text ending in a newline: format and version, graph and cluster (name,
/// fingerprint), the device name of every operator by name, and `notes` (method, seed, metrics as
/// numbers or text, written in key order). Equal inputs give equal bytes.
std::string strategy_to_json(const Strategy& strategy, const Graph& graph, const Cluster& cluster,
                             const std::map<std::string, std::string>& notes);

struct LoadedStrategy {
  Strategy strategy;
  std::map<std::string, std::string> notes;
  bool same_graph = false, same_cluster = false;  ///< whether the fingerprints agree
};

/// Reads what strategy_to_json() wrote. `source` names the text in errors. Throws FileError for
/// malformed JSON, another format or version, an operator that the graph lacks or the file omits,
/// an unknown device, or a placement that check_placement() refuses.
LoadedStrategy strategy_from_json(const std::string& text, const std::string& source,
                                  const Graph& graph, const Cluster& cluster);

}  // namespace trinity
