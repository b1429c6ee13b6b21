// Rankers of moves as files: safetensors (formats/export/safetensors.h) with the weights by name,
// float32, and in the metadata the features that they were trained on, the widths of the hidden
// layers, and notes.
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/index.h"
#include "base/json.h"
#include "formats/export/safetensors.h"
#include "learn/move_network.h"

namespace trinity {
namespace {

constexpr const char *kFeatures = "move_features", *kHidden = "hidden", *kNote = "note.",
                     *kTraining = "training", *kFirstMoments = "adam.first",
                     *kSecondMoments = "adam.second";

std::vector<std::string> feature_names(int32_t count) {
  return {kMoveFeatures.begin(), kMoveFeatures.begin() + count};
}

/// An entry of the metadata; the file is foreign where it is missing or of another kind.
template <class Value>
Value entry(const SavedArrays& file, const char* name) {
  const auto found = file.metadata.find(name);
  try {
    TidyJson json;
    if (found != file.metadata.end() && !parse_json(found->second, json))
      return json.value.get<Value>();
  } catch (const nlohmann::json::exception&) {
  }
  file.refuse("not a ranker of moves saved by trinity (its metadata lack '{}')", name);
}

/// An array of `count` finite numbers.
std::vector<float> numbers(const SavedArrays& file, const std::string& name,
                           const std::vector<int64_t>& shape) {
  const auto* array = file.find(name);
  if (!array || array->dtype != "F32" || array->shape != shape)
    file.refuse("not a ranker of moves saved by trinity (array '{}' is missing or has another shape)", name);
  std::vector<float> values(array->bytes.size() / sizeof(float));
  std::memcpy(values.data(), array->bytes.data(), array->bytes.size());
  for (const float value : values)
    if (!std::isfinite(value)) file.refuse("a number in it is not finite");
  return values;
}

MoveTrainingState read_state(const SavedArrays& file, int64_t weights) {
  const auto about = entry<std::map<std::string, uint64_t>>(file, kTraining);
  const auto get = [&](const char* name) {
    const auto found = about.find(name);
    if (found == about.end()) file.refuse("the state of its training is incomplete");
    return found->second;
  };
  MoveTrainingState state;
  state.adam.steps = static_cast<int64_t>(get("steps"));
  state.episodes = static_cast<int64_t>(get("episodes"));
  state.problems = static_cast<int64_t>(get("problems"));
  state.seed = get("seed");
  state.standardised = get("standardised") != 0;
  state.adam.first = numbers(file, kFirstMoments, {weights});
  state.adam.second = numbers(file, kSecondMoments, {weights});
  return state;
}

}  // namespace

void save_move_network(const MoveNetwork& network, const std::string& path,
                       const std::map<std::string, std::string>& notes,
                       const MoveTrainingState* state) {
  std::map<std::string, std::string> metadata;
  metadata[kFeatures] = JsonWriter().texts(feature_names(network.inputs())).take();
  metadata[kHidden] = JsonWriter().integers(network.hidden()).take();
  for (const auto& [name, text] : notes) metadata[kNote + name] = text;
  std::vector<SavedArray> arrays;
  const auto& parameters = network.parameters();
  for (const auto& weight : parameters.weights())
    arrays.push_back({weight.name,
                      "F32",
                      weight.shape,
                      {reinterpret_cast<const char*>(parameters.values.data() + weight.offset),
                       at(weight.count) * sizeof(float)}});
  if (state) {
    // By name, as they always were.
    metadata[kTraining] = JsonWriter()
                              .begin_object()
                              .key("episodes")
                              .integer(state->episodes)
                              .key("problems")
                              .integer(state->problems)
                              .key("seed")
                              .integer(state->seed)
                              .key("standardised")
                              .integer(state->standardised ? 1 : 0)
                              .key("steps")
                              .integer(state->adam.steps)
                              .end_object()
                              .take();
    arrays.push_back(saved_floats(kFirstMoments, state->adam.first));
    arrays.push_back(saved_floats(kSecondMoments, state->adam.second));
  }
  write_arrays(path, arrays, metadata);
}

SavedMoveNetwork load_move_network(const std::string& path) {
  const auto file = read_arrays(path, true);
  const auto features = entry<std::vector<std::string>>(file, kFeatures);
  const bool memory_features = features == feature_names(kMoveFeatureCount);
  if (!memory_features && features != feature_names(kStepFeatureCount))
    file.refuse("a ranker of other move features than this version of trinity has: train it again");
  const auto hidden = entry<std::vector<int32_t>>(file, kHidden);
  SavedMoveNetwork saved;
  try {
    saved.network = std::make_shared<MoveNetwork>(hidden, 0, memory_features);
  } catch (const ArgumentError& error) {
    file.refuse("{}", error.what());
  }
  auto& parameters = saved.network->parameters();
  for (const auto& weight : parameters.weights()) {
    const auto values = numbers(file, weight.name, weight.shape);
    std::copy(values.begin(), values.end(), parameters.values.begin() + weight.offset);
  }
  if (file.metadata.contains(kTraining)) saved.state = read_state(file, parameters.size());
  for (const auto& [name, text] : file.metadata)
    if (name.starts_with(kNote)) saved.notes[name.substr(std::strlen(kNote))] = text;
  return saved;
}

}  // namespace trinity
