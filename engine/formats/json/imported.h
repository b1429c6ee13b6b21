#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"

namespace trinity {

/// Result of an importer: the graph, and notes for the user, one sentence each (operators without a
/// rule of their own, unknown shapes, ...).
struct Imported {
  Graph graph;
  std::vector<std::string> warnings;
  /// Operator types without a rule of their own, sorted; they get the generic cost.
  std::vector<std::string> unknown_types;
};

}  // namespace trinity
