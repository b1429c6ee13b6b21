#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace trinity {

/// Contents of a picture of a graph.
struct DotOptions {
  /// [operator]: device from 0; empty for a picture without devices.
  std::vector<int32_t> placement = {};
  /// Names of the devices, for the legend; required with `placement`.
  std::vector<std::string> devices = {};
  /// One node per colocation unit instead of one per operator, for training graphs of more than
  /// about a hundred operators, whose long backward edges cost `dot` minutes.
  bool units = false;
};

/// The graph in Graphviz's DOT language (`dot -Tsvg`). Nodes show name and type. Forward operators
/// have a solid border, backward ones a dashed and updates a dotted one. With a placement, devices
/// are colours of the Okabe-Ito palette (safe for colour-blind readers), with a legend; from the
/// ninth device on they repeat and nodes name their device. Edges between devices are thick.
/// Edges of at least 1 MiB are labelled with their size. Equal inputs give equal bytes.
///
/// Throws ArgumentError for a placement of the wrong length, a device without a name, and, with
/// `units`, a unit on two devices.
std::string graph_to_dot(const Graph& graph, const DotOptions& options = {});

}  // namespace trinity
