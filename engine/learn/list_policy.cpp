#include "learn/list_policy.h"

#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/index.h"
#include "base/json.h"
#include "formats/export/safetensors.h"

namespace trinity {
namespace {

constexpr const char *kTerms = "list_terms", *kCircumstances = "list_circumstances",
                     *kMembers = "members", *kListNote = "note.";

template <class Names>
std::string names_text(const Names& names) {
  return JsonWriter().texts(names).take();
}

void check_names(const SavedArrays& file, const char* key, const std::string& own) {
  const auto found = file.metadata.find(key);
  if (found == file.metadata.end())
    file.refuse(fmt::format("not a list scheduler saved by trinity (its metadata lack '{}')", key));
  if (found->second != own)
    file.refuse("a list scheduler of other terms than this program's: train it again");
}

}  // namespace

ListPolicy list_policy(std::vector<std::vector<double>> members) {
  if (members.empty() || members.size() > 1024)
    throw ArgumentError(
        fmt::format("list scheduler: expected 1 to 1024 members, got {}", members.size()));
  for (size_t m = 0; m < members.size(); ++m) {
    if (members[m].size() != at(kListWeightCount))
      throw ArgumentError(fmt::format("list scheduler: member {}: expected {} weights, got {}",
                                      m + 1, kListWeightCount, members[m].size()));
    for (auto& weight : members[m]) {
      weight = double{static_cast<float>(weight)};
      if (!std::isfinite(weight))
        throw ArgumentError(
            fmt::format("list scheduler: member {}: expected finite numbers", m + 1));
    }
  }
  return {std::move(members)};
}

void save_list_policy(const ListPolicy& policy, const std::string& path,
                      const std::map<std::string, std::string>& notes) {
  std::vector<float> values;
  for (const auto& member : policy.members)
    for (const double weight : member) values.push_back(static_cast<float>(weight));
  auto array = saved_floats(kMembers, values);
  array.shape = {std::ssize(policy.members), std::ssize(kListTerms),
                 std::ssize(kListCircumstances)};
  std::map<std::string, std::string> metadata{{kTerms, names_text(kListTerms)},
                                              {kCircumstances, names_text(kListCircumstances)}};
  for (const auto& [name, text] : notes) metadata[kListNote + name] = text;
  write_arrays(path, {array}, metadata);
}

SavedListPolicy load_list_policy(const std::string& path) {
  const auto file = read_arrays(path, true);
  check_names(file, kTerms, names_text(kListTerms));
  check_names(file, kCircumstances, names_text(kListCircumstances));
  const auto* array = file.find(kMembers);
  const size_t size = at(kListWeightCount) * sizeof(float);
  if (!array || array->dtype != "F32" || array->shape.size() != 3 ||
      array->shape[1] != std::ssize(kListTerms) ||
      array->shape[2] != std::ssize(kListCircumstances) || array->bytes.size() % size != 0)
    file.refuse("not a list scheduler saved by trinity (its 'members')");
  std::vector<std::vector<double>> members;
  for (size_t from = 0; from < array->bytes.size(); from += size) {
    std::vector<float> values(at(kListWeightCount));
    std::memcpy(values.data(), array->bytes.data() + from, size);
    members.emplace_back(values.begin(), values.end());
  }
  SavedListPolicy saved;
  try {
    saved.policy = list_policy(std::move(members));
  } catch (const ArgumentError& error) {
    file.refuse(error.what());
  }
  for (const auto& [name, text] : file.metadata)
    if (name.starts_with(kListNote)) saved.notes[name.substr(std::strlen(kListNote))] = text;
  return saved;
}

}  // namespace trinity
