#include "formats/export/safetensors.h"

#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"

namespace trinity {
namespace {

using Json = nlohmann::json;

static_assert(std::endian::native == std::endian::little, "arrays are saved in the byte order of "
                                                          "the machine");

constexpr std::string_view kOldPolicy = "trinity policy\n";
constexpr std::string_view kHashed = R"({"__metadata__":{"fnv1a":")";
constexpr size_t kLengthBytes = sizeof(uint64_t), kHashDigits = 16, kMostDimensions = 16;

struct Dtype {
  std::string_view name;
  uint64_t bytes;
};
constexpr Dtype kDtypes[] = {{"F32", 4}, {"F64", 8}, {"I64", 8}, {"BOOL", 1}};

/// Position of the hash in a file that has one.
std::string_view hash_in(std::string_view content) {
  return content.substr(kLengthBytes + kHashed.size(), kHashDigits);
}

std::string hash_of(std::string content) {
  content.replace(kLengthBytes + kHashed.size(), kHashDigits, kHashDigits, '0');
  return fmt::format("{:016x}", Hasher().add(content).value());
}

std::vector<int64_t> numbers(const SavedArrays& file, const Json& entry, const std::string& name,
                             const char* key) {
  const auto fail = [&](const std::string& what) {
    file.refuse("tensor '{}': {}", name, what);
  };
  std::vector<int64_t> values;
  if (!entry.is_object() || !entry.contains(key) || !entry[key].is_array() ||
      entry[key].size() > kMostDimensions)
    fail(fmt::format("expected a list '{}'", key));
  for (const auto& value : entry[key]) {
    if (!value.is_number_unsigned() || value.get<uint64_t>() > (uint64_t{1} << 53))
      fail(fmt::format("'{}' contains a value that is not a whole number from 0", key));
    values.push_back(value.get<int64_t>());
  }
  return values;
}

SavedArray read_array(const SavedArrays& file, const Json& entry, const std::string& name,
                      std::string_view data) {
  const auto fail = [&](const std::string& what) {
    file.refuse("tensor '{}': {}", name, what);
  };
  const auto shape = numbers(file, entry, name, "shape");
  const auto offsets = numbers(file, entry, name, "data_offsets");
  if (!entry.contains("dtype") || !entry["dtype"].is_string()) fail("expected a text 'dtype'");
  const auto dtype = entry["dtype"].get<std::string>();
  const auto* known = std::find_if(std::begin(kDtypes), std::end(kDtypes),
                                   [&](const Dtype& item) { return item.name == dtype; });
  if (known == std::end(kDtypes)) fail("expected dtype F32, F64, I64 or BOOL, got " + dtype);
  double bytes = static_cast<double>(known->bytes);
  for (const int64_t extent : shape) bytes *= static_cast<double>(extent);
  if (offsets.size() != 2 || offsets[0] > offsets[1] ||
      static_cast<size_t>(offsets[1]) > data.size() ||
      static_cast<double>(offsets[1] - offsets[0]) != bytes)
    fail("data_offsets do not fit shape and file");
  const auto begin = static_cast<size_t>(offsets[0]), end = static_cast<size_t>(offsets[1]);
  return {name, dtype, shape, data.substr(begin, end - begin)};
}

/// Checks that every byte after the header belongs to exactly one tensor, as the format requires.
void check_covered(const SavedArrays& file, std::string_view data) {
  std::vector<const SavedArray*> sorted;
  for (const auto& array : file.arrays)
    if (!array.bytes.empty()) sorted.push_back(&array);
  const auto begin = [&](const SavedArray* array) {
    return static_cast<size_t>(array->bytes.data() - data.data());
  };
  std::sort(sorted.begin(), sorted.end(),
            [&](const auto* a, const auto* b) { return begin(a) < begin(b); });
  size_t covered = 0;
  for (const auto* array : sorted) {
    if (begin(array) != covered)
      file.refuse("tensor '{}': data_offsets begin at {}, expected {}, where the bytes before it end", array->name,
                  begin(array), covered);
    covered += array->bytes.size();
  }
  if (covered != data.size())
    file.refuse("{} bytes after the last tensor", data.size() - covered);
}

}  // namespace

const SavedArray* SavedArrays::find(std::string_view name) const {
  for (const auto& array : arrays)
    if (array.name == name) return &array;
  return nullptr;
}

void write_arrays(const std::string& path, const std::vector<SavedArray>& arrays,
                  const std::map<std::string, std::string>& metadata) {
  JsonWriter header;
  header.begin_object().key("__metadata__").begin_object();
  header.key("fnv1a").text(std::string(kHashDigits, '0'));
  for (const auto& [name, text] : metadata) header.key(name).text(text);
  header.end_object();
  std::string data;
  for (const auto& array : arrays) {
    const size_t begin = data.size();
    data += array.bytes;
    header.key(array.name).begin_object().key("dtype").text(array.dtype);
    header.key("shape").integers(array.shape);
    header.key("data_offsets").integers(std::array{begin, data.size()}).end_object();
  }
  std::string text = header.end_object().take();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const auto length = static_cast<uint64_t>(text.size());
  auto content = std::string(reinterpret_cast<const char*>(&length), kLengthBytes) + text + data;
  content.replace(kLengthBytes + kHashed.size(), kHashDigits, hash_of(content));
  write_file(path, content);
}

SavedArrays read_arrays(const std::string& path, bool hashed) {
  SavedArrays file{path, read_file(path), {}, {}, false};
  const std::string_view content = file.content;
  if (content.starts_with(kOldPolicy))
    file.refuse(
        "a policy saved by an older version of trinity, which is no longer read: run its search "
        "again");
  uint64_t length = 0;
  if (content.size() >= kLengthBytes) std::memcpy(&length, content.data(), kLengthBytes);
  if (content.size() < kLengthBytes || length > content.size() - kLengthBytes)
    file.refuse("not a safetensors file, or cut short (its header does not fit)");
  const auto text = content.substr(kLengthBytes, length);
  const auto data = content.substr(kLengthBytes + length);
  file.hashed = text.starts_with(kHashed) && hash_in(content).size() == kHashDigits;
  if (file.hashed && hash_in(content) != hash_of(file.content))
    file.refuse("changed or cut short since it was written (its hash does not match)");
  TidyJson parsed;
  const auto fault = parse_json(text, parsed);
  const Json& header = parsed.value;
  if (fault || !header.is_object())
    file.refuse("not a safetensors file: its header, from byte {}: {}", kLengthBytes + 1,
                fault ? *fault : "expected an object");
  if (hashed && !file.hashed)
    file.refuse("not saved by this version of trinity, or changed since (it has no hash)");
  for (const auto& [name, entry] : header.items()) {
    if (name != "__metadata__") {
      file.arrays.push_back(read_array(file, entry, name, data));
      continue;
    }
    for (const auto& [key, value] : entry.items())
      if (value.is_string()) file.metadata[key] = value.get<std::string>();
  }
  check_covered(file, data);
  return file;
}

}  // namespace trinity
