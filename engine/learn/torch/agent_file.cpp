// Saved policies: files of arrays (formats/export/safetensors.h) with the weights, each by its
// name, Adam's first and second moments and the constant logits of both networks, all float32. The
// metadata names the options, the types of the vocabulary and the state that is no array, each as
// JSON. Doubles are stored as their bits.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "formats/export/safetensors.h"
#include "learn/torch/agent_impl.h"

namespace trinity {
namespace {

using Json = nlohmann::json;

/// Arrays in addition to the weights.
constexpr const char *kAdamFirst = "adam.first", *kAdamSecond = "adam.second", *kPrior = "prior",
                     *kDevicePrior = "device_prior";

/// A saved policy, checked as far as it can be without a problem at hand.
struct Saved {
  SavedArrays file;

  /// Entries that are missing or of another kind make the file damaged.
  template <class Value>
  Value get(const char* name) const {
    const auto found = file.metadata.find(name);
    try {
      TidyJson json;
      if (found != file.metadata.end() && !parse_json(found->second, json))
        return json.value.get<Value>();
    } catch (const Json::exception&) {
    }
    file.refuse("not a policy saved by trinity (its metadata lack '{}')", name);
  }
  std::map<std::string, std::string> options() const {
    return get<std::map<std::string, std::string>>("options");
  }
  std::vector<float> numbers(const char* name) const {
    const auto* array = file.find(name);
    if (!array) file.refuse("not a policy saved by trinity (it has no '{}')", name);
    std::vector<float> values(array->bytes.size() / sizeof(float));
    if (!values.empty())
      std::memcpy(values.data(), array->bytes.data(), values.size() * sizeof(float));
    return values;
  }
};

Saved read_saved(const std::string& path) {
  Saved saved{read_arrays(path, true)};
  for (const auto& array : saved.file.arrays) {
    if (array.dtype != "F32") saved.file.refuse("not a policy saved by trinity (not all float32)");
    for (size_t at = 0; at < array.bytes.size(); at += sizeof(float)) {
      float value;
      std::memcpy(&value, array.bytes.data() + at, sizeof value);
      if (!std::isfinite(value)) saved.file.refuse("a number in it is not finite");
    }
  }
  return saved;
}

/// True if constant logits are absent or complete.
bool fits(size_t count, int64_t wanted) {
  return count == 0 || count == static_cast<size_t>(wanted);
}

/// On the CPU; of an undefined tensor none.
std::vector<float> floats(const torch::Tensor& tensor) {
  if (!tensor.defined()) return {};
  const auto flat = tensor.cpu().contiguous();
  return {flat.data_ptr<float>(), flat.data_ptr<float>() + flat.numel()};
}

uint64_t bits(double value) { return std::bit_cast<uint64_t>(value); }

/// For every index here the one in the file that means the same, -1 where there is none.
using Match = std::vector<int64_t>;

Match same(int64_t count) {
  Match match;
  for (int64_t i = 0; i < count; ++i) match.push_back(i);
  return match;
}

/// Group g of `count` to the group of `saved` that covers the same place.
Match by_place(int64_t count, int64_t saved) {
  Match match;
  for (int64_t g = 0; g < count; ++g) match.push_back((2 * g + 1) * saved / (2 * count));
  return match;
}

void extend(Match& match, const Match& more, int64_t shift) {
  for (const int64_t at : more) match.push_back(at < 0 ? -1 : at + shift);
}

/// Which rows and columns of the file's weights are rows and columns here.
struct WeightMatch {
  Match types;
  int64_t saved_types, groups, saved_groups, own, saved_own, type_width, saved_type_width;
  bool same_devices, type_index, same_types;

  /// Columns of an encoder's input: type histogram, two sums, edges to and from groups.
  Match encoder_columns() const {
    Match match = types;
    extend(match, {0, 1}, saved_types);
    const Match place = by_place(groups, saved_groups);
    extend(match, place, saved_types + 2);
    extend(match, place, saved_types + 2 + saved_groups);
    return match;
  }
  /// Columns of the partition network: the type's embedding, features that mean the same
  /// everywhere; not node2vec, whose directions are a graph's own, nor the column of a type's index
  /// where that counts other types.
  Match unit_columns(int64_t columns) const {
    Match match(static_cast<size_t>(columns), -1);
    if (type_width != saved_type_width || own != saved_own) return match;
    for (int64_t i = 0; i < type_width + own; ++i) match[i] = i;
    if (type_index && !same_types) match[type_width + own - 1] = -1;
    return match;
  }
  bool matches(const Parameters::Weight& weight, const SavedArray& from, Match& rows,
               Match& columns) const {
    rows = same(weight.rows());
    columns = same(weight.columns());
    const std::string& name = weight.name;
    if (name == "partition.embedding.weight")
      rows = types;
    else if (name == "partition.first.weight")
      columns = unit_columns(weight.columns());
    else if (name == "partition.out.weight" || name == "partition.out.bias")
      rows = by_place(groups, saved_groups);
    else if (name == "schedule.forward.input.weight" || name == "schedule.backward.input.weight")
      columns = encoder_columns();
    else if (name == "schedule.device_embedding.weight" || name == "schedule.out.weight")
      return same_devices && weight.shape == from.shape;
    else
      return weight.shape == from.shape;
    return true;
  }
};

int64_t copy_matched(const Parameters::Weight& weight, const Match& rows, const Match& columns,
                     const SavedArray& from, float* to) {
  const int64_t from_rows = from.shape.empty() ? 1 : from.shape[0];
  const auto count = static_cast<int64_t>(from.bytes.size() / sizeof(float));
  const int64_t from_columns = from_rows > 0 ? count / from_rows : 0;
  int64_t copied = 0;
  for (int64_t r = 0; r < weight.rows(); ++r) {
    for (int64_t c = 0; c < weight.columns(); ++c) {
      const int64_t row = rows[r], column = columns[c];
      if (row < 0 || column < 0 || row >= from_rows || column >= from_columns) continue;
      const auto at = static_cast<size_t>(row * from_columns + column) * sizeof(float);
      std::memcpy(to + r * weight.columns() + c, from.bytes.data() + at, sizeof(float));
      ++copied;
    }
  }
  return copied;
}

}  // namespace

/// Everything of graph and cluster that a policy's numbers depend on.
uint64_t Agent::Impl::problem_hash() const {
  Hasher hash;
  hash.add(static_cast<uint64_t>(problem->operators()));
  hash.add(static_cast<uint64_t>(problem->devices()));
  for (const int32_t unit : problem->graph().units()) hash.add(static_cast<uint64_t>(unit));
  for (const auto& type : units.types) hash.add(type);
  for (const auto& edge : units.edges)
    hash.add(static_cast<uint64_t>(edge.from)).add(static_cast<uint64_t>(edge.to));
  for (const int64_t size : units.output_bytes) hash.add(static_cast<uint64_t>(size));
  for (int32_t d = 0; d < problem->devices(); ++d)
    for (const int64_t cost : problem->costs(d)) hash.add(static_cast<uint64_t>(cost));
  return hash.value();
}

void Agent::save(const std::string& path) const {
  const auto& self = *impl_;
  std::map<std::string, std::string> options;
  for (const auto& [name, value] : self.options.list()) options[name] = value;
  JsonWriter listed;
  listed.begin_object();
  for (const auto& [name, value] : options) listed.key(name).text(value);
  listed.end_object();
  std::map<std::string, std::string> metadata;
  const auto state = [&](const char* name, auto number) {
    metadata[name] = fmt::to_string(number);
  };
  metadata["options"] = listed.take();
  metadata["types"] = JsonWriter().texts(self.features.type_names).take();
  state("own_columns", self.features.own_columns);
  state("type_width", self.partition_shape.type_width());
  state("groups", self.groups);
  state("devices", self.problem->devices());
  state("problem", self.problem_hash());
  state("gradient_steps", self.weights.steps);
  // A batch that was sampled but not learned from is sampled again.
  state("batches", self.batch - (self.sampled ? 1 : 0));
  state("baseline", bits(self.baseline));
  state("squares", bits(self.squares));
  std::vector<SavedArray> arrays;
  const auto values = floats(self.weights.values), first = floats(self.weights.first_moment);
  const auto second = floats(self.weights.second_moment), prior = floats(self.partition.prior);
  for (const auto& weight : self.layout.weights())
    arrays.push_back({weight.name,
                      "F32",
                      weight.shape,
                      {reinterpret_cast<const char*>(values.data() + weight.offset),
                       static_cast<size_t>(weight.count) * sizeof(float)}});
  arrays.push_back(saved_floats(kAdamFirst, first));
  arrays.push_back(saved_floats(kAdamSecond, second));
  arrays.push_back(saved_floats(kPrior, prior));
  arrays.push_back(saved_floats(kDevicePrior, self.device_prior));
  write_arrays(path, arrays, metadata);
}

double Agent::load(const std::string& path) {
  auto& self = *impl_;
  const Saved saved = read_saved(path);
  const auto hidden = saved.options()["hidden"];
  const auto own = fmt::format("{}", static_cast<double>(self.options.hidden));
  if (hidden != own)
    saved.file.refuse("the saved policy has option 'hidden' = {}, this one {}", hidden, own);
  const auto names = saved.get<std::vector<std::string>>("types");
  std::map<std::string, int64_t> number;
  for (size_t i = 0; i < names.size(); ++i) number.emplace(names[i], static_cast<int64_t>(i));
  Match types;
  for (const auto& name : self.features.type_names)
    types.push_back(number.contains(name) ? number[name] : -1);
  const WeightMatch match{types,
                          static_cast<int64_t>(names.size()),
                          self.groups,
                          saved.get<int64_t>("groups"),
                          self.features.own_columns,
                          saved.get<int64_t>("own_columns"),
                          self.partition_shape.type_width(),
                          saved.get<int64_t>("type_width"),
                          saved.get<int64_t>("devices") == self.problem->devices(),
                          self.options.features.type_index,
                          names == self.features.type_names};
  if (match.saved_groups < 1) saved.file.refuse("the saved policy is damaged (its groups)");
  int64_t copied = 0;
  auto values = floats(self.weights.values);
  for (const auto& weight : self.layout.weights()) {
    const auto* from = saved.file.find(weight.name);
    Match rows, columns;
    if (from && match.matches(weight, *from, rows, columns))
      copied += copy_matched(weight, rows, columns, *from, values.data() + weight.offset);
  }
  self.weights.values.copy_(torch::tensor(values));
  self.weights_changed();
  self.forget_batch();
  return static_cast<double>(copied) / static_cast<double>(self.layout.size());
}

void Agent::resume(const std::string& path) {
  auto& self = *impl_;
  const Saved saved = read_saved(path);
  auto before = saved.options();
  for (const auto& [name, value] : self.options.list())
    if (before[name] != value)
      saved.file.refuse("the saved run has option '{}' = {}, this one {}", name, before[name], value);
  if (saved.get<uint64_t>("problem") != self.problem_hash())
    saved.file.refuse("the saved run belongs to another graph or cluster");
  std::vector<float> values;
  bool same = true;
  for (const auto& weight : self.layout.weights()) {
    const auto* from = saved.file.find(weight.name);
    if (!(same = same && from && from->shape == weight.shape)) break;
    const auto more = saved.numbers(weight.name.c_str());
    values.insert(values.end(), more.begin(), more.end());
  }
  const auto first = saved.numbers(kAdamFirst), second = saved.numbers(kAdamSecond);
  const auto prior = saved.numbers(kPrior), device_prior = saved.numbers(kDevicePrior);
  if (!same || std::min(first.size(), second.size()) != values.size() ||
      std::max(first.size(), second.size()) != values.size() ||
      !fits(prior.size(), self.units.size() * self.groups) ||
      !fits(device_prior.size(), self.groups * self.problem->devices()))
    saved.file.refuse("the saved run has other weights than these options give");
  self.weights.steps = saved.get<int64_t>("gradient_steps");
  self.batch = saved.get<uint64_t>("batches");
  self.baseline = std::bit_cast<double>(saved.get<uint64_t>("baseline"));
  self.squares = std::bit_cast<double>(saved.get<uint64_t>("squares"));
  self.weights.values.copy_(torch::tensor(values));
  self.weights.first_moment.copy_(torch::tensor(first));
  self.weights.second_moment.copy_(torch::tensor(second));
  self.partition.prior =
      prior.empty() ? torch::Tensor()
                    : self.to_device(torch::tensor(prior).view({self.units.size(), self.groups}));
  self.device_prior = device_prior;
  self.weights_changed();
  self.forget_batch();
}

}  // namespace trinity
