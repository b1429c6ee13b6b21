// Protobuf messages as trees of fields. Which length-delimited fields are messages is not in the
// bytes: one whose bytes read as fields to the end counts as one, names that do so as well.
#include <iterator>
#include <optional>

#include "base/random.h"
#include "fuzz/target.h"

namespace trinity::fuzz {
namespace {

constexpr int kDeepest = 12;

struct Field {
  uint64_t tag = 0;  // number << 3 | `wire type`
  uint64_t number = 0;
  std::string bytes;  // of a length-delimited field that is no message, or fixed 4 or 8 bytes
  std::vector<Field> fields;
  bool is_message = false;
};

std::optional<uint64_t> read_varint(std::string_view& text) {
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 64 && !text.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(text[0]);
    text.remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

void write_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

bool read_message(std::string_view text, int depth, std::vector<Field>& fields);

bool read_bytes(std::string_view& text, size_t size, Field& field) {
  if (size > text.size()) return false;
  field.bytes = text.substr(0, size);
  text.remove_prefix(size);
  return true;
}

bool read_field(std::string_view& text, int depth, Field& field) {
  const auto tag = read_varint(text);
  if (!tag || *tag >> 3 == 0) return false;
  field.tag = *tag;
  switch (*tag & 7) {
    case 0: {
      const auto number = read_varint(text);
      field.number = number.value_or(0);
      return number.has_value();
    }
    case 1:
      return read_bytes(text, 8, field);
    case 5:
      return read_bytes(text, 4, field);
    case 2: {
      const auto size = read_varint(text);
      if (!size || !read_bytes(text, *size, field)) return false;
      field.is_message = depth < kDeepest && field.bytes.size() > 1 &&
                         read_message(field.bytes, depth + 1, field.fields);
      return true;
    }
    default:
      return false;
  }
}

bool read_message(std::string_view text, int depth, std::vector<Field>& fields) {
  while (!text.empty()) {
    Field field;
    if (!read_field(text, depth, field)) return fields.clear(), false;
    fields.push_back(std::move(field));
  }
  return true;
}

void write_message(std::string& out, const std::vector<Field>& fields) {
  for (const auto& field : fields) {
    write_varint(out, field.tag);
    if ((field.tag & 7) == 0) {
      write_varint(out, field.number);
      continue;
    }
    std::string inner;
    if (field.is_message) write_message(inner, field.fields);
    const auto& bytes = field.is_message ? inner : field.bytes;
    if ((field.tag & 7) == 2) write_varint(out, bytes.size());
    out += bytes;
  }
}

/// A random list of fields in the tree, the deeper the likelier.
std::vector<Field>& any_list(std::vector<Field>& fields, RandomStream& random) {
  for (int tries = 0; tries < 4 && !fields.empty(); ++tries) {
    auto& field = fields[random.below(fields.size())];
    if (field.is_message && random.below(8) > 0) return any_list(field.fields, random);
  }
  return fields;
}

void change_value(Field& field, RandomStream& random) {
  constexpr uint64_t kNumbers[] = {0,
                                   1,
                                   2,
                                   3,
                                   7,
                                   8,
                                   16,
                                   24,
                                   63,
                                   64,
                                   255,
                                   256,
                                   0x7fffffff,
                                   0x80000000,
                                   uint64_t{1} << 40,
                                   uint64_t{1} << 62,
                                   uint64_t{1} << 63,
                                   ~uint64_t{0},
                                   ~uint64_t{0} - 1,
                                   ~uint64_t{0} >> 1};
  if ((field.tag & 7) == 0) {
    field.number = kNumbers[random.below(std::size(kNumbers))];
    return;
  }
  field.is_message = false;
  if (field.bytes.empty() || random.below(4) == 0) field.bytes += static_cast<char>(random.next());
  auto& byte = field.bytes[random.below(field.bytes.size())];
  byte = static_cast<char>(random.below(4) == 0 ? random.next() : kNumbers[random.below(10)]);
  if (random.below(8) == 0) field.bytes.resize(random.below(field.bytes.size() + 1));
}

void change(std::vector<Field>& fields, std::vector<Field>& others, RandomStream& random) {
  auto& list = any_list(fields, random);
  if (list.empty()) return;
  const auto at = static_cast<std::ptrdiff_t>(random.below(list.size()));
  auto& field = list[at];
  switch (random.below(7)) {
    case 0:
      list.erase(list.begin() + at);
      return;
    case 1:
      list.insert(list.begin() + at, Field(field));
      return;
    case 2:
      std::swap(field, list[random.below(list.size())]);
      return;
    case 3: {
      auto& from = any_list(others, random);
      if (!from.empty()) field = Field(from[random.below(from.size())]);
      return;
    }
    case 4:
      field.tag = (random.below(24) + 1) << 3 | (field.tag & 7);
      return;
    default:
      change_value(field, random);
  }
}

}  // namespace

std::string mutate_protobuf(std::string_view message, std::string_view other,
                            uint64_t seed) {
  std::vector<Field> fields, others;
  if (!read_message(message, 0, fields)) return std::string(message);
  read_message(other, 0, others);
  RandomStream random(seed);
  change(fields, others, random);
  std::string out;
  write_message(out, fields);
  return out;
}

}  // namespace trinity::fuzz
