// Rankers of moves as files: safetensors (formats/export/safetensors.h) with the weights by name,
// float32, and in the metadata the features that they were trained on, the widths of the hidden
// layers, and notes.
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/index.h"
#include "formats/export/safetensors.h"
#include "learn/move_network.h"

namespace trinity {
namespace {

constexpr const char *kFeatures = "move_features", *kHidden = "hidden", *kNote = "note.";

std::vector<std::string> feature_names() { return {kMoveFeatures.begin(), kMoveFeatures.end()}; }

/// An entry of the metadata; the file is foreign where it is missing or of another kind.
template <class Value>
Value entry(const SavedArrays& file, const char* name) {
  const auto found = file.metadata.find(name);
  try {
    if (found != file.metadata.end()) return nlohmann::json::parse(found->second).get<Value>();
  } catch (const nlohmann::json::exception&) {
  }
  file.refuse(fmt::format("not a ranker of moves saved by trinity (its metadata lack '{}')", name));
}

}  // namespace

void save_move_network(const MoveNetwork& network, const std::string& path,
                       const std::map<std::string, std::string>& notes) {
  std::map<std::string, std::string> metadata;
  metadata[kFeatures] = nlohmann::json(feature_names()).dump();
  metadata[kHidden] = nlohmann::json(network.hidden()).dump();
  for (const auto& [name, text] : notes) metadata[kNote + name] = text;
  std::vector<SavedArray> arrays;
  const auto& parameters = network.parameters();
  for (const auto& weight : parameters.weights())
    arrays.push_back({weight.name,
                      "F32",
                      weight.shape,
                      {reinterpret_cast<const char*>(parameters.values.data() + weight.offset),
                       at(weight.count) * sizeof(float)}});
  write_arrays(path, arrays, metadata);
}

SavedMoveNetwork load_move_network(const std::string& path) {
  const auto file = read_arrays(path, true);
  if (entry<std::vector<std::string>>(file, kFeatures) != feature_names())
    file.refuse("a ranker of other features of moves than this program's: train it again");
  const auto hidden = entry<std::vector<int32_t>>(file, kHidden);
  SavedMoveNetwork saved;
  try {
    saved.network = std::make_shared<MoveNetwork>(hidden, 0);
  } catch (const ArgumentError& error) {
    file.refuse(error.what());
  }
  auto& parameters = saved.network->parameters();
  for (const auto& weight : parameters.weights()) {
    const auto* array = file.find(weight.name);
    if (!array || array->dtype != "F32" || array->shape != weight.shape)
      file.refuse(fmt::format("not a ranker of moves saved by trinity (its '{}')", weight.name));
    float* to = parameters.values.data() + weight.offset;
    std::memcpy(to, array->bytes.data(), array->bytes.size());
    for (int64_t i = 0; i < weight.count; ++i)
      if (!std::isfinite(to[i])) file.refuse("a number in it is not finite");
  }
  for (const auto& [name, text] : file.metadata)
    if (name.starts_with(kNote)) saved.notes[name.substr(std::strlen(kNote))] = text;
  return saved;
}

}  // namespace trinity
