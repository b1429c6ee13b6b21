// Saved policies. A file is
//   "trinity policy\n", version (uint32), length of the header (uint64), header (JSON),
//   weights, Adam's first and second moments, the constant logits of both networks (float32),
//   hash of everything before (uint64, hash.h);
// all numbers little-endian. The header names the weights with their shapes, the options, the
// types of the vocabulary and the state that is no array. Doubles stand in it as their bits.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "learn/agent_impl.h"

namespace trinity {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kMagic = "trinity policy\n";
constexpr uint32_t kVersion = 1;
constexpr size_t kFixed = kMagic.size() + sizeof(uint32_t) + 2 * sizeof(uint64_t);
constexpr int64_t kMostNumbers = int64_t{1} << 31;

static_assert(std::endian::native == std::endian::little, "policies are saved as they lie");

template <class Number>
void append(std::string& out, const Number* values, size_t count) {
  out.append(reinterpret_cast<const char*>(values), count * sizeof(Number));
}

template <class Number>
Number number_at(const std::string& content, size_t at) {
  Number value;
  std::memcpy(&value, content.data() + at, sizeof value);
  return value;
}

uint64_t hash_of(std::string_view bytes) { return Hasher().add(bytes).value(); }

[[noreturn]] void refuse(const std::string& path, const std::string& reason) {
  throw FileError(fmt::format("{}: {}", path, reason));
}

/// A saved policy, checked as far as it can be without a problem at hand.
struct Saved {
  Json header;
  std::vector<Parameters::Weight> weights;
  std::vector<float> values, first, second, prior, device_prior;

  const Parameters::Weight* find(const std::string& name) const {
    for (const auto& weight : weights)
      if (weight.name == name) return &weight;
    return nullptr;
  }
};

void read_weights(Saved& saved, int64_t& total) {
  for (const auto& entry : saved.header.at("weights")) {
    Parameters::Weight weight{entry.at("name").get<std::string>(),
                              entry.at("shape").get<std::vector<int64_t>>(), total, 1};
    for (const int64_t extent : weight.shape) {
      if (extent < 1 || extent > kMostNumbers || weight.count > kMostNumbers / extent)
        throw Error("a weight's shape is out of range");
      weight.count *= extent;
    }
    if ((total += weight.count) > kMostNumbers) throw Error("too many weights");
    saved.weights.push_back(std::move(weight));
  }
}

void read_arrays(const std::string& content, size_t at, size_t end, Saved& saved) {
  int64_t total = 0;
  read_weights(saved, total);
  const auto prior = saved.header.at("prior").get<int64_t>();
  const auto device_prior = saved.header.at("device_prior").get<int64_t>();
  if (std::min(prior, device_prior) < 0 || std::max(prior, device_prior) > kMostNumbers)
    throw Error("the constant logits are out of range");
  const auto numbers = static_cast<size_t>(3 * total + prior + device_prior);
  if (end - at != numbers * sizeof(float))
    throw Error("its arrays have another length than stated");
  const auto take = [&](std::vector<float>& to, int64_t count) {
    to.resize(static_cast<size_t>(count));
    std::memcpy(to.data(), content.data() + at, to.size() * sizeof(float));
    at += to.size() * sizeof(float);
  };
  take(saved.values, total);
  take(saved.first, total);
  take(saved.second, total);
  take(saved.prior, prior);
  take(saved.device_prior, device_prior);
  for (const auto* array :
       {&saved.values, &saved.first, &saved.second, &saved.prior, &saved.device_prior})
    for (const float value : *array)
      if (!std::isfinite(value)) throw Error("a number in it is not finite");
}

Saved read_saved(const std::string& path) {
  const std::string content = read_file(path);
  if (!content.starts_with(kMagic)) refuse(path, "not a policy saved by trinity");
  if (content.size() < kFixed) refuse(path, "the saved policy is cut off");
  const auto version = number_at<uint32_t>(content, kMagic.size());
  if (version != kVersion)
    refuse(path, fmt::format("a policy of format version {}, this program reads version {}",
                             version, kVersion));
  const size_t body = content.size() - sizeof(uint64_t);
  if (number_at<uint64_t>(content, body) != hash_of({content.data(), body}))
    refuse(path, "the saved policy is damaged or cut off (its hash does not agree)");
  const size_t at = kMagic.size() + sizeof version;
  const auto length = number_at<uint64_t>(content, at);
  const size_t start = at + sizeof length;
  if (length > body - start) refuse(path, "the saved policy is damaged (length of its header)");
  Saved saved;
  try {
    const auto* text = content.data() + start;
    saved.header = Json::parse(text, text + length);
    read_arrays(content, start + length, body, saved);
  } catch (const Json::exception&) {
    refuse(path, "the saved policy is damaged (its header)");
  } catch (const Error& error) {
    refuse(path, fmt::format("the saved policy is damaged ({})", error.what()));
  }
  return saved;
}

/// Runs what reads a header; entries that are missing or of another kind make the file damaged.
template <class Body>
auto reading(const std::string& path, Body body) {
  try {
    return body();
  } catch (const Json::exception&) {
    refuse(path, "the saved policy is damaged (its header lacks an entry)");
  }
}

/// Whether constant logits are absent or complete.
bool fits(size_t count, int64_t wanted) {
  return count == 0 || count == static_cast<size_t>(wanted);
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
struct Transfer {
  const Saved& saved;
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
    for (int64_t i = 0; i < type_width + own; ++i) match[static_cast<size_t>(i)] = i;
    if (type_index && !same_types) match[static_cast<size_t>(type_width + own - 1)] = -1;
    return match;
  }
  bool matches(const Parameters::Weight& weight, const Parameters::Weight& from, Match& rows,
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
                     const Parameters::Weight& from, const Saved& saved, float* to) {
  int64_t copied = 0;
  for (int64_t r = 0; r < weight.rows(); ++r) {
    for (int64_t c = 0; c < weight.columns(); ++c) {
      const int64_t row = rows[static_cast<size_t>(r)], column = columns[static_cast<size_t>(c)];
      if (row < 0 || column < 0 || row >= from.rows() || column >= from.columns()) continue;
      to[r * weight.columns() + c] =
          saved.values[static_cast<size_t>(from.offset + row * from.columns() + column)];
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
  Json header;
  for (const auto& weight : self.parameters.weights())
    header["weights"].push_back({{"name", weight.name}, {"shape", weight.shape}});
  for (const auto& [name, value] : self.options.list()) header["options"][name] = value;
  header["types"] = self.features.type_names;
  header["own_columns"] = self.features.own_columns;
  header["type_width"] = self.partition_shape.type_width();
  header["groups"] = self.groups;
  header["devices"] = self.problem->devices();
  header["problem"] = self.problem_hash();
  header["prior"] = self.partition->prior.size();
  header["device_prior"] = self.device_prior.size();
  header["gradient_steps"] = self.adam.steps;
  // A batch that was drawn but not learned from is drawn again.
  header["batches"] = self.batch - (self.sampled ? 1 : 0);
  header["baseline"] = bits(self.baseline);
  header["squares"] = bits(self.squares);
  const std::string text = header.dump();
  std::string content(kMagic);
  append(content, &kVersion, 1);
  const uint64_t length = text.size();
  append(content, &length, 1);
  content += text;
  const std::vector<float>& prior = self.partition->prior;
  for (const auto* array :
       {&self.parameters.values, &self.adam.first, &self.adam.second, &prior, &self.device_prior})
    append(content, array->data(), array->size());
  const uint64_t hash = hash_of(content);
  append(content, &hash, 1);
  write_file(path, content);
}

double Agent::load(const std::string& path) {
  auto& self = *impl_;
  const Saved saved = read_saved(path);
  return reading(path, [&] {
    const auto hidden = saved.header.at("options").at("hidden").get<std::string>();
    const auto own = fmt::format("{}", static_cast<double>(self.options.hidden));
    if (hidden != own)
      refuse(path,
             fmt::format("the saved policy has option 'hidden' = {}, this one {}", hidden, own));
    const auto names = saved.header.at("types").get<std::vector<std::string>>();
    std::map<std::string, int64_t> number;
    for (size_t i = 0; i < names.size(); ++i) number.emplace(names[i], static_cast<int64_t>(i));
    Match types;
    for (const auto& name : self.features.type_names)
      types.push_back(number.contains(name) ? number[name] : -1);
    const auto entry = [&](const char* name) { return saved.header.at(name).get<int64_t>(); };
    const Transfer transfer{saved,
                            types,
                            static_cast<int64_t>(names.size()),
                            self.groups,
                            entry("groups"),
                            self.features.own_columns,
                            entry("own_columns"),
                            self.partition_shape.type_width(),
                            entry("type_width"),
                            entry("devices") == self.problem->devices(),
                            self.options.features.type_index,
                            names == self.features.type_names};
    if (transfer.saved_groups < 1) refuse(path, "the saved policy is damaged (its groups)");
    int64_t copied = 0;
    for (const auto& weight : self.parameters.weights()) {
      const auto* from = saved.find(weight.name);
      Match rows, columns;
      if (from && transfer.matches(weight, *from, rows, columns))
        copied += copy_matched(weight, rows, columns, *from, saved,
                               self.parameters.values.data() + weight.offset);
    }
    self.pack();
    self.forget_batch();
    return static_cast<double>(copied) / static_cast<double>(self.parameters.size());
  });
}

void Agent::resume(const std::string& path) {
  auto& self = *impl_;
  const Saved saved = read_saved(path);
  reading(path, [&] {
    for (const auto& [name, value] : self.options.list()) {
      const auto before = saved.header.at("options").at(name).get<std::string>();
      if (before != value)
        refuse(path,
               fmt::format("the saved run has option '{}' = {}, this one {}", name, before, value));
    }
    if (saved.header.at("problem").get<uint64_t>() != self.problem_hash())
      refuse(path, "the saved run is of another graph or cluster");
    if (saved.values.size() != self.parameters.values.size() ||
        !fits(saved.prior.size(), self.units.size() * self.groups) ||
        !fits(saved.device_prior.size(), self.groups * self.problem->devices()))
      refuse(path, "the saved run has other weights than these options give");
    const auto number = [&](const char* name) { return saved.header.at(name).get<uint64_t>(); };
    const double baseline = std::bit_cast<double>(number("baseline"));
    const double squares = std::bit_cast<double>(number("squares"));
    self.adam.steps = static_cast<int64_t>(number("gradient_steps"));
    self.batch = number("batches");
    self.baseline = baseline;
    self.squares = squares;
    self.parameters.values = saved.values;
    self.adam.first = saved.first;
    self.adam.second = saved.second;
    self.partition->prior = saved.prior;
    self.device_prior = saved.device_prior;
    if (self.torch_policy) self.torch_policy->set_prior(saved.prior);
    self.pack();
    self.forget_batch();
  });
}

}  // namespace trinity
