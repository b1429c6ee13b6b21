#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace trinity {

/// Decomposes a list of items, each of a layer (from 0) or of none. In a zone every layer has one
/// run of equal length, in ascending or descending order of layers; items outside layers stand
/// between zones.
struct LayerRuns {
  struct Zone {
    int32_t length;      ///< of one run
    bool up;             ///< a layer's run precedes that of the next layer
    bool whole = true;   ///< its runs are contiguous, and the first one is at an end
  };
  /// Position of an item: index `place` in a layer's run in a zone. Zone -1: outside layers.
  struct Place {
    int32_t zone = -1, layer = -1, place = 0;
  };
  int32_t layers = 0;
  std::vector<Zone> zones;
  std::vector<Place> places;  ///< per item of the list
  std::vector<int32_t> begins;  ///< start of a run, by zone and layer

  int32_t begin(int32_t zone, int32_t layer) const {
    return begins[static_cast<size_t>(zone * layers + layer)];
  }
  int32_t number(int32_t zone, int32_t layer, int32_t place) const {
    return begin(zone, layer) + place;
  }
};

/// Renumbers layers so that layer `ends` becomes 0. Of n layers the inner ones are then 0 ... n - 2
/// * ends - 1.
inline std::vector<int32_t> inner_layers(std::span<const int32_t> layers, int32_t ends = 1) {
  std::vector<int32_t> inner(layers.begin(), layers.end());
  for (int32_t& layer : inner) layer -= ends;
  return inner;
}

/// Returns none if the list has no such decomposition. labels: layer per item, from 0; any other
/// value: outside.
inline std::optional<LayerRuns> layer_runs(std::span<const int32_t> labels, int32_t layers) {
  LayerRuns result{layers, {}, std::vector<LayerRuns::Place>(labels.size()), {}};
  const auto count = static_cast<int32_t>(labels.size());
  const auto run_at = [&](int32_t i, int32_t layer) {  // length of the layer's run that starts at i
    int32_t end = i;
    while (end < count && labels[static_cast<size_t>(end)] == layer) ++end;
    return end - i;
  };
  for (int32_t i = 0; i < count;) {
    const int32_t first = labels[static_cast<size_t>(i)];
    if (first < 0 || first >= layers) {
      ++i;
      continue;
    }
    const bool up = first == 0;
    if (!up && first != layers - 1) return std::nullopt;
    const int32_t length = run_at(i, first);
    const auto zone = static_cast<int32_t>(result.zones.size());
    result.zones.push_back({length, up});
    result.begins.resize(result.begins.size() + static_cast<size_t>(layers));
    for (int32_t k = 0; k < layers; ++k, i += length) {
      const int32_t layer = up ? k : layers - 1 - k;
      result.begins[static_cast<size_t>(zone * layers + layer)] = i;
      const int32_t found = run_at(i, layer);
      if (found < length || (found > length && k + 1 < layers)) return std::nullopt;
      for (int32_t j = 0; j < length; ++j)
        result.places[static_cast<size_t>(i + j)] = {zone, layer, j};
    }
  }
  return result;
}

/// The same if other items may separate the runs of a zone: the first run of every layer belongs to
/// the first zone, and so on.
inline std::optional<LayerRuns> broken_layer_runs(std::span<const int32_t> labels, int32_t layers) {
  LayerRuns result{layers, {}, std::vector<LayerRuns::Place>(labels.size()), {}};
  std::vector<std::vector<std::pair<int32_t, int32_t>>> runs(static_cast<size_t>(layers));
  for (size_t i = 0, end = 0; i < labels.size(); i = end) {
    for (end = i + 1; end < labels.size() && labels[end] == labels[i]; ++end) {}
    if (labels[i] >= 0 && labels[i] < layers)
      runs[static_cast<size_t>(labels[i])].emplace_back(i, end - i);
  }
  for (size_t zone = 0; zone < runs[0].size(); ++zone) {
    const int32_t length = runs[0][zone].second;
    int32_t ups = 0, downs = 0;
    for (size_t layer = 0; layer < runs.size(); ++layer) {
      if (runs[layer].size() != runs[0].size() || runs[layer][zone].second != length)
        return std::nullopt;
      const int32_t begin = runs[layer][zone].first;
      if (layer > 0) {
        ups += begin == runs[layer - 1][zone].first + length;
        downs += begin + length == runs[layer - 1][zone].first;
      }
      result.begins.push_back(begin);
      for (int32_t j = 0; j < length; ++j)
        result.places[static_cast<size_t>(begin + j)] = {static_cast<int32_t>(zone),
                                                         static_cast<int32_t>(layer), j};
    }
    if ((ups > 0) == (downs > 0)) return std::nullopt;
    result.zones.push_back({length, ups > 0, ups + downs == layers - 1});
  }
  return result;
}

}  // namespace trinity
