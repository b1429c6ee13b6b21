#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace trinity {

/// Piper's planner (Tarnawski, Narayanan, Phanishayee, "Piper: Multidimensional Planner for DNN
/// Parallelization", NeurIPS 2021): stages of a pipeline, each with a degree d of data parallelism,
/// a degree t of tensor parallelism, and a configuration for every layer (plain, or with activation
/// recomputation), to minimise the time per sample of the slowest stage.
///
/// For a stage on d * t devices, with N micro-batches per batch and bandwidth b:
///   time = sum over its layers of time_t / d
///          + (sum over edges that leave or enter it of 2 (bytes + sync bytes of its end) / d
///             + sum of 4 (d - 1) parameters / d / N) / b
///   memory per device = sum of A y + B, with y = ceil(sum of d from this stage to the last / d)
/// d divides N; all d together are at most N; all d * t together are at most the devices. Stages
/// are contiguous: the predecessors of any stage are a down-set of the graph.
///
/// If the plain configurations do not fit, layers change to others in the order of least time per
/// byte saved until they do, as in Piper's code. This is not always optimal, but Piper's published
/// results depend on it; everything else is exact.
///
/// Not a LayerRow (layer_row.h): its layers form a graph, each with several configurations.
struct PiperProblem {
  struct Configuration {
    std::string id;   ///< "vanilla" or "activation recomp"
    double time = 0;  ///< forward and backward of one sample
    double parameter_bytes = 0;
    double bytes_per_batch = 0, fixed_bytes = 0;  ///< A and B
    std::vector<double> sync_bytes;               ///< [edge of the layer, as Layer::edges]
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
    std::vector<int32_t> edges;   ///< edges that begin or end here
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

/// A stage of a network of costs, as PipedreamStage.
struct PiperStage {
  std::vector<int32_t> layers;         ///< ascending
  int32_t replicas = 1, degree = 1;    ///< d and t
  std::vector<int32_t> configuration;  ///< [layer]: index of its configuration at the degree
  double time = 0, memory_bytes = 0;
};

struct PiperPipeline {
  bool feasible = false;
  bool exact = false;              ///< over all down-sets; false: over one order, or stopped
  double time = 0;                 ///< of the slowest stage
  std::vector<PiperStage> stages;  ///< in pipeline order
  int32_t ideals = 0;
};

struct PiperLimits {
  int32_t most_ideals = 200'000;
  double seconds = 1e9;
  bool data_parallel = true, tensor_parallel = true;
};

/// The pipeline of minimum time. Searches for the smallest feasible time limit. Feasibility of a
/// limit is decided by a dynamic program over down-sets that keeps, per down-set, only undominated
/// pairs (devices used, sum of d). It examines few stages, because the remainder must fit on the
/// remaining devices. When time is up, returns the best so far, or stages of one shape along one
/// order if such fit. Deterministic. Throws ArgumentError for an inconsistent problem, Interrupted.
PiperPipeline piper_pipeline(const PiperProblem& problem, const PiperLimits& limits = {});

/// Time of a pipeline by the formula above, from its stages; infinite if a stage does not fit.
/// Fills time and memory of the stages.
double piper_price(const PiperProblem& problem, std::vector<PiperStage>& stages);

}  // namespace trinity
