#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace trinity {

/// What a picture of a graph shows.
struct DotOptions {
  /// Device of every operator, from 0; empty for a picture without devices.
  std::vector<int32_t> placement = {};
  /// Names of the devices, for the legend; needed with `placement`.
  std::vector<std::string> devices = {};
  /// One node per colocation unit instead of one per operator: for training graphs of more than
  /// about a hundred operators, whose long edges into backward cost `dot` minutes.
  bool units = false;
};

/// The graph in Graphviz's DOT language (`dot -Tsvg`). Nodes show name and type; forward operators
/// have a solid border, backward ones a dashed, updates a dotted one. With a placement, devices are
/// colours of the Okabe-Ito palette, which colour-blind readers tell apart, explained in a legend;
/// from the ninth device on they repeat, nodes name their device, and edges between devices are
/// thick. Edges of at least 1 MiB carry their size. Equal inputs give equal bytes.
///
/// Throws ArgumentError for a placement of the wrong length, a device without a name, a unit on two
/// devices (where `units` asks for units).
std::string graph_to_dot(const Graph& graph, const DotOptions& options = {});

}  // namespace trinity
