#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "graph/graph.h"
#include "simulator/mesh/layer_runs.h"
#include "graph/layers.h"

namespace trinity {

/// A training graph with fewer of its repeated layers, where all layers are alike: in every run of
/// operators that a layer has, those of one place are equal in what costs and sizes go by, and read
/// in the same places of their own layer, of the one before or behind, and of what belongs to no
/// layer. The first layers (dense ones before those with experts) and the last one may differ: they
/// count as what belongs to no layer. What the layers between them do, any number of these does.
/// For threads.
class FewerLayers {
 public:
  static constexpr int32_t kLeast = 5;  ///< where the first one alone may differ

  /// The graph must outlive it.
  explicit FewerLayers(const Graph& graph);

  /// Of the graph; whether they are alike or not.
  const Layers& layers() const { return layers_; }
  bool alike() const { return runs_.has_value(); }
  /// Only where they are alike: how many of the first ones may differ, and how many are enough.
  int32_t front() const { return front_; }
  int32_t least() const { return kLeast - 1 + front_; }
  /// The graph with `count` of its layers, those that may differ among them. count: at least
  /// least(), less than the graph has.
  std::shared_ptr<const Graph> of(int32_t count);
  /// Of every operator of the graph one of of(count) that is like it.
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
  std::optional<LayerRuns> runs_;  // of the layers between those that may differ, from 0
  std::mutex mutex_;
  std::map<int32_t, std::shared_ptr<const Graph>> made_;  // by their layers
};

}  // namespace trinity
