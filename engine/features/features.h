#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "features/node2vec.h"
#include "graph/units.h"
#include "simulator/problem.h"

namespace trinity {

/// What the two networks are told of a problem (papers/notes.md "Trinity: features").
/// Rows stand for colocation units; a unit's time is that of all its operators.
struct UnitFeatures {
  /// Columns of `values` that belong together: `first` counts from 0.
  struct Columns {
    std::string name;
    int32_t first, count;
  };
  int32_t width = 0;          ///< columns of `values`
  std::vector<float> values;  ///< [unit][width]
  /// From left to right: time, output_bytes, depth, depth_waves, type, node2vec, those there are.
  std::vector<Columns> columns;
  std::vector<int32_t> type;  ///< index into the type vocabulary, for a learned embedding
  int32_t type_count = 0;
  std::vector<std::string> type_names;  ///< of the vocabulary; its last entry may stand for several
  int32_t own_columns = 0;              ///< the first columns: what is comparable between graphs
};

/// What feature_options.h says of each.
struct FeatureOptions {
  Node2VecOptions node2vec;
  /// Types are numbered by shared_types() instead of by how common they are in the graph: what is
  /// learned of a number then holds for other graphs. Scripts say it by a word, `vocabulary`.
  bool shared_types = false;
  bool raw_time = false, raw_output = false;
  bool mean_output_size = false;
  bool group_time = true, adjacency_out = false;
  bool depth = true;  ///< a network can then tell regions of the graph apart
  int32_t depth_waves = 5;
  bool scale_by_mean = false;
  bool type_index = false;  ///< one more column, for networks without an embedding of types
  bool group_counts = false;
};

/// Types beyond the 200 most common share the last entry of the vocabulary.
inline constexpr int32_t kTypeVocabulary = 200;

/// Types that have no place in shared_types() share so many entries of it, by hash.
inline constexpr int32_t kOtherTypes = 32;

/// One vocabulary for all graphs: `other 1` to `other 32` for types that the engine does not know,
/// then every type of operator_types() in that table's order, each with its gradient ("Conv",
/// "ConvGrad") behind it. A type added to the table's end moves no other.
const std::vector<std::string>& shared_types();
/// A type's index there; of an unknown one the bucket that its name's hash (hash.h) gives.
int32_t shared_type(const std::string& type);

UnitFeatures unit_features(const Problem& problem, const UnitGraph& units,
                           const FeatureOptions& options, uint64_t seed);

/// Seconds of every unit's operators, averaged over devices.
std::vector<double> unit_times_s(const Problem& problem, const UnitGraph& units);

/// The share of the graph's work that comes before the middle of every unit, in topological order:
/// in (0, 1), ascending with the unit's place.
std::vector<double> work_position(const Problem& problem, const UnitGraph& units);

/// Embeds the groups of one sampled grouping for the schedule network. Columns: type histogram
/// scaled to sum 1 (`type_count`), log1p of output bytes and of time, both divided by their value
/// for all units together, then for every group whether an edge goes to it and whether one comes
/// from it; raw_output, group_time, adjacency_out say otherwise. An empty group is all zeros.
class GroupFeatures {
 public:
  GroupFeatures(const Problem& problem, const UnitGraph& units, const UnitFeatures& features,
                int32_t groups, const FeatureOptions& options = {});
  int32_t width() const { return features_.type_count + sizes() + (out_only_ ? 1 : 2) * groups_; }
  /// Writes [groups][width] to `out`, rows `stride` apart. `group_of` gives the group of every
  /// unit.
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
