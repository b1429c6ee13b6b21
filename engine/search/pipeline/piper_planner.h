#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace trinity {

/// Piper's planner (Tarnawski, Narayanan, Phanishayee, "Piper: Multidimensional Planner for DNN
/// Parallelization", NeurIPS 2021): stages of a pipeline, each with a degree d of data parallelism
/// and a degree t of tensor parallelism, and a configuration for every layer (plain, or activations
/// computed again), so that the time per sample of the slowest stage is least.
///
/// Of a stage on d * t devices, with N micro-batches in a batch and bandwidth b:
///   time = sum over its layers of time_t / d
///        + (sum over edges that leave or enter it of 2 (bytes + sync bytes of the layer's end) / d
///           + sum of 4 (d - 1) parameters / d / N) / b
///   memory of a device = sum of A y + B, with y = ceil(d of this and all later stages together /
///   d)
/// d divides N; all d together are at most N; all d * t together are at most the devices. Stages
/// are contiguous: what precedes any stage is a down-set of the graph.
///
/// Layers whose plain configurations do not fit get the others in the order of least time per byte
/// saved until they do, as in Piper's code. That is no optimal choice in every case, and Piper's
/// published results rest on it; everything else is exact.
///
/// No LayerRow (layer_row.h): its layers are a graph, each with several configurations.
struct PiperProblem {
  struct Configuration {
    std::string id;   ///< "vanilla" or "activation recomp"
    double time = 0;  ///< forward and backward of one sample
    double parameter_bytes = 0;
    double bytes_per_batch = 0, fixed_bytes = 0;  ///< A and B
    std::vector<double> sync_bytes;               ///< of every edge of the layer, by Layer::edges
  };
  struct Degree {
    int32_t degree = 1;
    std::vector<Configuration> configurations;  ///< not empty
  };
  struct Edge {
    int32_t from = 0, to = 0;
    double bytes = 0;
  };
  struct Layer {
    std::vector<Degree> degrees;  ///< ascending
    std::vector<int32_t> edges;   ///< edges at either end of which it is
  };
  std::vector<Layer> layers;
  std::vector<Edge> edges;  ///< a directed acyclic graph
  int32_t devices = 1;
  double memory_bytes = 0;
  double bandwidth_bytes_per_s = 0;
  int64_t micro_batches = 1;

  /// Fills Layer::edges from `edges`, in their order.
  void index();
};

/// Of a network of costs, as PipedreamStage.
struct PiperStage {
  std::vector<int32_t> layers;         ///< ascending
  int32_t replicas = 1, degree = 1;    ///< d and t
  std::vector<int32_t> configuration;  ///< of every layer: which of those of the degree
  double time = 0, memory_bytes = 0;
};

struct PiperPipeline {
  bool feasible = false;
  bool exact = false;              ///< over all down-sets; otherwise over one order, or stopped
  double time = 0;                 ///< of the slowest stage
  std::vector<PiperStage> stages;  ///< in pipeline order
  int32_t ideals = 0;
};

struct PiperLimits {
  int32_t most_ideals = 200'000;
  double seconds = 1e9;
  bool data_parallel = true, tensor_parallel = true;
};

/// The pipeline of least time. A threshold is searched: whether there is a pipeline within a time
/// is a dynamic program over down-sets that keeps, of each, only the pairs (devices used, sum of d)
/// that no other beats, and looks at few stages, because what is left must fit the devices that are
/// left. When time is up, the best so far is returned, or stages of one shape along one order where
/// such fit. Deterministic; throws ArgumentError for a problem that cannot be, Interrupted.
PiperPipeline piper_pipeline(const PiperProblem& problem, const PiperLimits& limits = {});

/// The time of a pipeline by the formula above, from its stages; infinite where a stage does not
/// fit. Fills time and memory of the stages.
double piper_price(const PiperProblem& problem, std::vector<PiperStage>& stages);

}  // namespace trinity
