#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "search/pipeline/max_load_cut.h"
#include "search/pipeline/pipedream_planner.h"
#include "search/pipeline/piper_planner.h"

namespace trinity {

/// A network to be cut into a pipeline, as a file of any kind describes it, in the order of that
/// file; and the problems that planners make of it.
///
/// Kinds of nodes: of a whole step (dnn-partitioning: forward and backward nodes apart, bound by
/// units) or layers, whose time is that of forward and backward together (PipeDream, DAPPLE, Piper,
/// our own models). What crosses a cut is a time where the file says so (dnn-partitioning), else
/// bytes, which go forward once and come back once as gradients.
struct PipelineNetwork {
  struct Node {
    std::string id;
    double time = 0;       ///< on an accelerator, in the network's unit of time
    double cpu_time = 0;   ///< 0 where there are no CPUs
    double transfer = -1;  ///< of the output to or from an accelerator; below 0: output_bytes say
    double output_bytes = 0;
    double parameter_bytes = 0;
    int64_t memory_bytes = 0;  ///< what an accelerator must have for it
    int32_t unit = 0;          ///< nodes of one unit share a device
    int32_t expert = -1;       ///< the stage that the file gives it
    bool backward = false, supported = true;
    bool planned = true;  ///< false: PipeDream takes it out of the graph before planning
  };
  std::string name, format;
  std::string unit = "s";  ///< of times: "s" or "ms"
  double unit_s = 1;       ///< the same as a number
  bool numbered_ids = false;
  std::vector<Node> nodes;
  std::vector<std::pair<int32_t, int32_t>> edges;  ///< distinct: a node that another reads
  PiperProblem piper;  ///< by node, of Piper's files; no layers elsewhere

  // What the file says of the machine; 0 where it does not.
  int32_t devices = 0, cpus = 0;
  int64_t memory_bytes = 0, micro_batches = 0;
  double bandwidth_bytes_per_s = 0;

  int32_t count() const { return static_cast<int32_t>(nodes.size()); }
};

/// What to cut it for.
struct PipelineMachine {
  int32_t devices = 1, cpus = 0;
  int64_t memory_bytes = 0;          ///< of a device; 0: no limit
  double bandwidth_bytes_per_s = 0;  ///< between devices; above 0
  int64_t micro_batches = 1;         ///< in a batch
};

/// Largest loads (see max_load_cut.h), a node of the network a node of the instance, times in the
/// network's unit. Transfers that are times count for the network's own bandwidth and are scaled to
/// the machine's.
LoadInstance load_instance(const PipelineNetwork& network, const PipelineMachine& machine);

/// PipeDream's problem: layers, in seconds. Nodes of a step are folded: those that share a unit or
/// depend on each other both ways are a layer with all their times and weights, and what its
/// forward nodes send is its output.
PipedreamLayers pipedream_layers(const PipelineNetwork& network);

/// Piper's problem: the file's own, or with the plain configuration alone of every folded layer,
/// which keeps its output for every micro-batch in flight (A) and what its node says beside (B).
/// `members` gets the nodes of every layer.
PiperProblem piper_problem(const PipelineNetwork& network, const PipelineMachine& machine,
                           std::vector<std::vector<int32_t>>& members);

/// A problem's network: a layer an operator of the forward pass, with the times of its gradients
/// and updates; their means over the devices. The outputs that its gradients read are its memory
/// beside its weights. A graph without a backward pass is one of layers as it stands.
PipelineNetwork network_of(const Problem& problem);

}  // namespace trinity
