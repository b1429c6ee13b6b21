#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "graph/graph.h"
#include "simulator/mesh/layer_runs.h"
#include "graph/layers.h"

namespace trinity {

/// Builds a training graph with fewer of its repeated layers, if the layers are equivalent: in
/// every run of operators that each layer has, operators at the same index have equal costs and
/// sizes, and read the same indices of their own layer, of a neighbouring layer, or of operators
/// outside all layers. The first layers (e.g. dense ones before those with experts) and the last
/// may differ; they count as operators outside. Results for the layers in between then hold for any
/// number of them. Thread-safe.
class FewerLayers {
 public:
  static constexpr int32_t kLeast = 5;  ///< if only the first layer may differ

  /// The graph must outlive it.
  explicit FewerLayers(const Graph& graph);

  /// Layers of the graph, equivalent or not.
  const Layers& layers() const { return layers_; }
  bool alike() const { return runs_.has_value(); }
  /// Requires alike(). front(): number of first layers that may differ; least(): minimum number of
  /// layers of a reduced graph.
  int32_t front() const { return front_; }
  int32_t least() const { return kLeast - 1 + front_; }
  /// The graph with `count` of its layers, differing first and last ones included. Requires least()
  /// <= count < number of layers.
  std::shared_ptr<const Graph> of(int32_t count);
  /// Per operator of the graph: the operator of of(count) that represents it.
  std::vector<int32_t> like(int32_t count) const;

 private:
  struct Read;

  Read read_of(int32_t reader, int32_t tensor) const;
  bool equal_layers() const;
  bool same(int32_t a, int32_t b) const;
  bool same_reads(int32_t a, int32_t b) const;
  bool reads_ends_alone(int32_t op) const;
  bool kept(int32_t layer, int32_t count_of_all) const {
    return layer < count_of_all - front_ - 2 || layer == runs_->layers - 1;
  }
  const Operator& second(int32_t op) const;
  int32_t add(GraphBuilder& builder, int32_t op, std::vector<int32_t>& tensor) const;
  void add_units(GraphBuilder& builder, const std::vector<int32_t>& number) const;
  Graph make(int32_t count_of_all) const;

  const Graph& graph_;
  static constexpr int32_t kMostFront = 8;

  Layers layers_;
  int32_t front_ = 0;
  std::optional<LayerRuns> runs_;  // runs of the equivalent layers, numbered from 0
  std::mutex mutex_;
  std::map<int32_t, std::shared_ptr<const Graph>> made_;  // by number of layers
};

}  // namespace trinity
