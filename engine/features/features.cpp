#include "features/features.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "base/error.h"
#include "base/hash.h"
#include "graph/operator_types.h"

namespace trinity {
namespace {

/// Type vocabulary of a graph: the most common types first, the rest share the last entry.
void make_vocabulary(const UnitGraph& units, UnitFeatures& features) {
  const auto types = units.types.size();
  std::vector<int32_t> uses(types, 0), order(types), rank(types);
  for (const int32_t type : units.type) ++uses[type];
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return uses[a] > uses[b]; });
  for (size_t i = 0; i < types; ++i)
    rank[order[i]] = std::min(static_cast<int32_t>(i), kTypeVocabulary - 1);
  features.type_count = std::min(static_cast<int32_t>(types), kTypeVocabulary);
  for (int32_t i = 0; i < features.type_count; ++i)
    features.type_names.push_back(units.types[order[i]]);
  for (const int32_t type : units.type) features.type.push_back(rank[type]);
}

/// Types of units in the vocabulary shared by all graphs.
void take_shared_vocabulary(const UnitGraph& units, UnitFeatures& features) {
  features.type_names = shared_types();
  features.type_count = static_cast<int32_t>(features.type_names.size());
  for (const int32_t type : units.type) features.type.push_back(shared_type(units.types[type]));
}

/// Divides the columns of times and output sizes by their mean.
void divide_by_mean(const UnitGraph& units, const std::vector<double>& times,
                    UnitFeatures& features) {
  double time = 0, bytes = 0;
  for (size_t u = 0; u < times.size(); ++u) {
    time += times[u] / static_cast<double>(times.size());
    bytes += static_cast<double>(units.output_bytes[u]) / static_cast<double>(times.size());
  }
  for (size_t u = 0; u < times.size(); ++u) {
    float* row = features.values.data() + u * static_cast<size_t>(features.width);
    row[0] = time > 0 ? static_cast<float>(times[u] / time) : 0;
    row[1] = bytes > 0 ? static_cast<float>(static_cast<double>(units.output_bytes[u]) / bytes) : 0;
  }
}

}  // namespace

namespace {

/// Columns for the position of a unit in the graph.
void append_depth(const UnitGraph& units, size_t unit, int32_t waves, std::vector<float>& out) {
  const int32_t deepest = *std::max_element(units.depth.begin(), units.depth.end());
  const double at = deepest > 0 ? static_cast<double>(units.depth[unit]) / deepest : 0;
  out.push_back(static_cast<float>(at));
  for (int32_t wave = 0; wave < waves; ++wave) {
    const double angle = 3.141592653589793 * std::ldexp(at, wave);
    out.push_back(static_cast<float>(std::sin(angle)));
    out.push_back(static_cast<float>(std::cos(angle)));
  }
}

}  // namespace

std::vector<double> unit_times_s(const Problem& problem, const UnitGraph& units) {
  std::vector<double> times(static_cast<size_t>(units.size()), 0);
  for (int32_t o = 0; o < problem.operators(); ++o)
    for (int32_t d = 0; d < problem.devices(); ++d)
      times[units.unit_of[o]] +=
          static_cast<double>(problem.cost_ns(d, o)) * 1e-9 / problem.devices();
  return times;
}

const std::vector<std::string>& shared_types() {
  static const auto names = [] {
    std::vector<std::string> made;
    for (int32_t i = 1; i <= kOtherTypes; ++i) made.push_back(fmt::format("other {}", i));
    for (const auto& type : operator_types()) {
      made.push_back(type);
      made.push_back(type + "Grad");
    }
    return made;
  }();
  return names;
}

int32_t shared_type(const std::string& type) {
  static const auto number = [] {
    std::map<std::string, int32_t> made;
    const auto& names = shared_types();
    for (size_t i = kOtherTypes; i < names.size(); ++i)
      made.emplace(names[i], static_cast<int32_t>(i));
    return made;
  }();
  const auto found = number.find(type);
  if (found != number.end()) return found->second;
  return static_cast<int32_t>(Hasher().add(type).value() % kOtherTypes);
}

namespace {

/// Columns of the enabled options.
std::vector<UnitFeatures::Columns> columns_of(const FeatureOptions& options) {
  std::vector<UnitFeatures::Columns> all;
  int32_t width = 0;
  const auto add = [&](const char* name, int32_t count) {
    if (count > 0) all.push_back({name, width, count});
    width += count;
  };
  add("time", 1);
  add("output_bytes", 1);
  add("depth", options.depth ? 1 : 0);
  add("depth_waves", options.depth ? 2 * options.depth_waves : 0);
  add("type", options.type_index ? 1 : 0);
  add("node2vec", options.node2vec.dimensions);
  return all;
}

}  // namespace

UnitFeatures unit_features(const Problem& problem, const UnitGraph& units,
                           const FeatureOptions& options, uint64_t seed) {
  const auto times = unit_times_s(problem, units);
  const auto dimensions = static_cast<size_t>(options.node2vec.dimensions);
  std::vector<float> structure;
  if (dimensions > 0) structure = node2vec(units.neighbours, options.node2vec, seed);
  UnitFeatures features;
  features.columns = columns_of(options);
  features.width = features.columns.back().first + features.columns.back().count;
  features.own_columns = features.width - options.node2vec.dimensions;
  if (options.shared_types)
    take_shared_vocabulary(units, features);
  else
    make_vocabulary(units, features);
  for (size_t u = 0; u < times.size(); ++u) {
    const double time_us = times[u] * 1e6;
    features.values.push_back(static_cast<float>(options.raw_time ? time_us : std::log1p(time_us)));
    const auto bytes = static_cast<double>(units.output_bytes[u]);
    features.values.push_back(static_cast<float>(options.raw_output ? bytes : std::log1p(bytes)));
    if (options.depth) append_depth(units, u, options.depth_waves, features.values);
    if (options.type_index) features.values.push_back(static_cast<float>(features.type[u]));
    features.values.insert(features.values.end(),
                           structure.begin() + static_cast<std::ptrdiff_t>(u * dimensions),
                           structure.begin() + static_cast<std::ptrdiff_t>((u + 1) * dimensions));
  }
  standardise_columns(features.values, features.width);
  if (options.scale_by_mean) divide_by_mean(units, times, features);
  if (options.type_index)
    for (size_t u = 0; u < times.size(); ++u)
      features.values[u * static_cast<size_t>(features.width) +
                      static_cast<size_t>(features.own_columns - 1)] =
          static_cast<float>(features.type[u]);
  return features;
}

std::vector<double> work_position(const Problem& problem, const UnitGraph& units) {
  auto work = unit_times_s(problem, units);
  const double total = std::accumulate(work.begin(), work.end(), 0.0);
  // Each unit gets a small constant weight, so that units without cost also count.
  for (double& w : work)
    w = (total > 0 ? 0.9 * w / total : 0) +
        (total > 0 ? 0.1 : 1.0) / static_cast<double>(work.size());
  std::vector<int32_t> order(work.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return units.first_operator[a] < units.first_operator[b];
  });
  std::vector<double> position(work.size());
  double before = 0;
  for (const int32_t u : order) {
    const double own = work[u];
    position[u] = before + own / 2;
    before += own;
  }
  return position;
}

GroupFeatures::GroupFeatures(const Problem& problem, const UnitGraph& units,
                             const UnitFeatures& features, int32_t groups,
                             const FeatureOptions& options)
    : units_(units),
      features_(features),
      groups_(groups),
      mean_output_size_(options.mean_output_size),
      counts_(options.group_counts),
      raw_output_(options.raw_output),
      timed_(options.group_time),
      out_only_(options.adjacency_out),
      unit_time_s_(unit_times_s(problem, units)) {
  for (size_t u = 0; u < unit_time_s_.size(); ++u) {
    all_time_s_ += unit_time_s_[u];
    all_bytes_ += static_cast<double>(units.output_bytes[u]);
  }
}

void GroupFeatures::embed(std::span<const int32_t> group_of, float* out, int64_t stride) const {
  const auto row = static_cast<size_t>(stride), types = static_cast<size_t>(features_.type_count);
  const auto k = static_cast<size_t>(groups_), columns = static_cast<size_t>(width());
  for (size_t g = 0; g < k; ++g) std::fill_n(out + g * row, columns, 0.0f);
  std::vector<double> time_s(k, 0), bytes(k, 0);
  std::vector<float> members(k, 0);
  for (size_t u = 0; u < group_of.size(); ++u) {
    const auto g = static_cast<size_t>(group_of[u]);
    out[g * row + static_cast<size_t>(features_.type[u])] += 1;
    members[g] += 1;
    time_s[g] += unit_time_s_[u];
    bytes[g] += static_cast<double>(units_.output_bytes[u]);
  }
  for (size_t g = 0; g < k; ++g) {
    if (members[g] == 0) continue;
    for (size_t t = 0; t < types && !counts_; ++t) out[g * row + t] /= members[g];
    if (mean_output_size_) bytes[g] /= members[g];
    if (all_bytes_ > 0)
      out[g * row + types] = static_cast<float>(
          raw_output_ ? bytes[g] / all_bytes_ : std::log1p(bytes[g]) / std::log1p(all_bytes_));
    if (timed_ && all_time_s_ > 0)
      out[g * row + types + 1] =
          static_cast<float>(std::log1p(time_s[g] * 1e6) / std::log1p(all_time_s_ * 1e6));
  }
  for (const auto& edge : units_.edges) {
    const auto from = static_cast<size_t>(group_of[edge.from]);
    const auto to = static_cast<size_t>(group_of[edge.to]);
    if (from == to) continue;
    const size_t first = types + static_cast<size_t>(sizes());
    float& ahead = out[from * row + first + to];
    ahead = counts_ ? ahead + 1 : 1;
    if (out_only_) continue;
    float& back = out[to * row + first + k + from];
    back = counts_ ? back + 1 : 1;
  }
  for (size_t g = 0; g < k && counts_; ++g) {
    float* entry = out + g * row;
    const float scale = 1 / (*std::max_element(entry, entry + columns) + 1);
    for (size_t i = 0; i < columns; ++i) entry[i] *= scale;
  }
}

}  // namespace trinity
