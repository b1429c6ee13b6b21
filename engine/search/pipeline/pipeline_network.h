#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "search/pipeline/max_load_cut.h"
#include "search/pipeline/pipedream_states.h"
#include "search/pipeline/piper_planner.h"

namespace trinity {

/// A network to be cut into a pipeline, of a problem or as a script describes it (a file's, in its order), and its
/// conversions to the planners' problems.
///
/// Nodes are either the nodes of a whole step (dnn-partitioning: separate forward and backward
/// nodes, joined by units) or layers with one time for forward and backward (PipeDream, DAPPLE,
/// Piper, our own models). Traffic across a cut is a time if the file gives one (dnn-partitioning),
/// else bytes, which go forward once and return once as gradients.
struct PipelineNetwork {
  struct Node {
    double time = 0;       ///< on an accelerator, in the network's unit of time
    double cpu_time = 0;   ///< 0 without CPUs
    /// time of the output to or from an accelerator; negative: use output_bytes
    double transfer = -1;
    double output_bytes = 0;
    double parameter_bytes = 0;
    int64_t memory_bytes = 0;  ///< required on an accelerator
    int32_t unit = 0;          ///< nodes of one unit share a device
    bool backward = false, supported = true;
    bool planned = true;  ///< false: PipeDream removes it from the graph before planning
  };
  double unit_s = 1;                 ///< the unit of times in seconds
  double bandwidth_bytes_per_s = 0;  ///< that Node::transfer is of; 0: not given
  std::vector<Node> nodes;
  std::vector<int32_t> operators;  ///< [node]: its operator, of a problem's network
  std::vector<std::pair<int32_t, int32_t>> edges;  ///< distinct, sorted: producer, reader
  PiperProblem piper;  ///< by node, of Piper's files; no layers for others

  int32_t count() const { return static_cast<int32_t>(nodes.size()); }
};

/// The machine to plan for.
struct PipelineMachine {
  int32_t devices = 1, cpus = 0;
  int64_t memory_bytes = 0;          ///< per device; 0: no limit
  double bandwidth_bytes_per_s = 0;  ///< between devices; above 0
  int64_t micro_batches = 1;         ///< per batch
};

/// As a max-load instance (see max_load_cut.h): one node per node, times in the network's unit.
/// Transfer times are converted from the network's own bandwidth to the machine's.
LoadInstance load_instance(const PipelineNetwork& network, const PipelineMachine& machine);

/// As PipeDream's problem: layers, in seconds. Nodes of a step are folded: those that share a unit
/// or depend on each other in both directions are one layer with all their times and weights, whose
/// output is what its forward nodes send.
PipedreamLayers pipedream_layers(const PipelineNetwork& network);

/// As Piper's problem: the file's own; or every folded layer with only the plain configuration,
/// which keeps its output per micro-batch in flight (A) and its node's other memory (B). `members`
/// receives the nodes of every layer.
PiperProblem piper_problem(const PipelineNetwork& network, const PipelineMachine& machine,
                           std::vector<std::vector<int32_t>>& members);

/// The network of a problem: one layer per forward operator, with the times of its gradients and
/// updates, averaged over devices. Memory is the weights plus the outputs that its gradients read.
/// A graph without a backward pass is used unmodified.
PipelineNetwork network_of(const Problem& problem);

}  // namespace trinity
