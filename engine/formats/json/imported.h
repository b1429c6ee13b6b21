#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"

namespace trinity {

/// What an importer makes of a file: the graph, and what a person should know about it, one
/// sentence each (operators without a rule of their own, shapes that nothing tells, ...).
struct Imported {
  Graph graph;
  std::vector<std::string> warnings;
  /// Types of operators without a rule of their own, sorted, which get the generic cost.
  std::vector<std::string> unknown_types;
  /// What the file is: "ONNX", "PipeDream profile", ...
  std::string format;
  /// The graph is a whole step (forward, backward and what else the file has): not to be lowered.
  bool whole_step = false;
};

}  // namespace trinity
