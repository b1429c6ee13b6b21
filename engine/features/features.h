#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "features/node2vec.h"
#include "graph/units.h"
#include "simulator/problem.h"

namespace trinity {

/// Input features of the two networks (papers/notes.md "Trinity: features"). Rows are colocation
/// units; a unit's time is the sum over its operators.
struct UnitFeatures {
  /// A group of columns of `values`; `first` counts from 0.
  struct Columns {
    std::string name;
    int32_t first, count;
  };
  int32_t width = 0;          ///< number of columns of `values`
  std::vector<float> values;  ///< [unit][width]
  /// In order: time, output_bytes, depth, depth_waves, type, node2vec; disabled ones are missing.
  std::vector<Columns> columns;
  std::vector<int32_t> type;  ///< index into the type vocabulary, for a learned embedding
  int32_t type_count = 0;
  std::vector<std::string> type_names;  ///< vocabulary; its last entry may represent several types
  int32_t own_columns = 0;              ///< leading columns that are comparable between graphs
};

/// See feature_options.h.
struct FeatureOptions {
  Node2VecOptions node2vec;
  /// Numbers types by shared_types() instead of by frequency in the graph, so that learned
  /// embeddings apply to other graphs. Scripts set it by the option `vocabulary`.
  bool shared_types = false;
  bool raw_time = false, raw_output = false;
  bool mean_output_size = false;
  bool group_time = true, adjacency_out = false;
  bool depth = true;  ///< lets a network distinguish regions of the graph
  int32_t depth_waves = 5;
  bool scale_by_mean = false;
  bool type_index = false;  ///< additional column, for networks without an embedding of types
  bool group_counts = false;
};

/// Types after the 200 most common share the last entry of the vocabulary.
inline constexpr int32_t kTypeVocabulary = 200;

/// Number of shared_types() entries, chosen by hash, for types that are not in it.
inline constexpr int32_t kOtherTypes = 32;

/// One vocabulary for all graphs: `other 1` to `other 32` for unknown types, then every type of
/// operator_types() in that table's order, each followed by its gradient ("Conv", "ConvGrad").
/// Types appended to the table do not change earlier indices.
const std::vector<std::string>& shared_types();
/// Index of a type; for an unknown one a bucket by the hash (hash.h) of its name.
int32_t shared_type(const std::string& type);

UnitFeatures unit_features(const Problem& problem, const UnitGraph& units,
                           const FeatureOptions& options, uint64_t seed);

/// [unit]: seconds of its operators, averaged over devices.
std::vector<double> unit_times_s(const Problem& problem, const UnitGraph& units);

/// [unit]: fraction of the graph's work before the middle of the unit, in topological order; in (0,
/// 1), ascending.
std::vector<double> work_position(const Problem& problem, const UnitGraph& units);

/// Embeds the groups of one sampled grouping for the schedule network. Columns: type histogram with
/// sum 1 (`type_count`), log1p of output bytes and of time, both divided by the value for all units
/// together, then for every group whether an edge goes to it and whether one comes from it; options
/// raw_output, group_time, adjacency_out change this. An empty group is all zeros. Immutable.
class GroupFeatures {
 public:
  GroupFeatures(const Problem& problem, const UnitGraph& units, const UnitFeatures& features,
                int32_t groups, const FeatureOptions& options = {});
  int32_t width() const { return features_.type_count + sizes() + (out_only_ ? 1 : 2) * groups_; }
  /// Writes [groups][width] to `out`, rows `stride` apart. group_of: [unit] its group.
  void embed(std::span<const int32_t> group_of, float* out, int64_t stride) const;
  void embed(std::span<const int32_t> group_of, float* out) const { embed(group_of, out, width()); }

 private:
  const UnitGraph& units_;
  const UnitFeatures& features_;
  int32_t groups_;
  int32_t sizes() const { return timed_ ? 2 : 1; }

  bool mean_output_size_, counts_, raw_output_, timed_, out_only_;
  std::vector<double> unit_time_s_;
  double all_time_s_ = 0, all_bytes_ = 0;
};

}  // namespace trinity
