#include "fuzz/mutate.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <optional>

namespace trinity::fuzz {
namespace {

constexpr size_t kMostWords = 4000;

/// Values at which readers of numbers go wrong.
const char* const kNumbers[] = {"0",
                                "1",
                                "-1",
                                "-0",
                                "0.5",
                                "2",
                                "64",
                                "255",
                                "65536",
                                "1e-300",
                                "1e300",
                                "1e308",
                                "-1e308",
                                "1e999",
                                "4e-324",
                                "2147483647",
                                "2147483648",
                                "-2147483649",
                                "4294967296",
                                "1000000000",
                                "9007199254740993",
                                "1e15",
                                "9223372036854775807",
                                "9223372036854775808",
                                "-9223372036854775808",
                                "18446744073709551616",
                                "123456789012345678901234567890",
                                "1e18",
                                "0x10",
                                "nan",
                                "inf",
                                "-inf",
                                "1.",
                                ".5",
                                "01",
                                "1e",
                                "--1"};

/// What replaces a whole value.
const char* const kValues[] = {"null",  "true",        "false",       "\"\"",   "[]",
                               "{}",    "[[]]",        "\"x\"",       "[0]",    "{\"a\":1}",
                               "\"1\"", "\"\\u0000\"", "\"\\ud800\"", "[null]", "\"../x\""};

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

bool is_digit(char c) { return c >= '0' && c <= '9'; }

struct Range {
  size_t begin, end;
};

/// The token around `at`: a quoted text, a word or number, or one byte.
Range token_at(const std::string& text, size_t at) {
  const auto part = [&](char c) { return is_word(c) || c == '.' || c == '+' || c == '-'; };
  if (text[at] == '"') {
    const auto end = text.find('"', at + 1);
    return {at, end == std::string::npos ? at + 1 : end + 1};
  }
  Range range{at, at + 1};
  if (!part(text[at])) return range;
  while (range.begin > 0 && part(text[range.begin - 1])) --range.begin;
  while (range.end < text.size() && part(text[range.end])) ++range.end;
  return range;
}

/// The innermost brackets around `at`, or after it.
std::optional<Range> span_at(const std::string& text, size_t at) {
  const auto begin = text.find_first_of("[{(", at);
  if (begin == std::string::npos) return std::nullopt;
  int depth = 0;
  for (size_t i = begin; i < text.size(); ++i) {
    if (std::strchr("[{(", text[i]) && text[i]) ++depth;
    if (std::strchr("]})", text[i]) && text[i] && --depth == 0) return Range{begin, i + 1};
  }
  return std::nullopt;
}

}  // namespace

Mutator::Mutator(uint64_t seed, Grammar grammar) : random_(seed, "fuzz"), grammar_(grammar) {}

void Mutator::learn(std::string_view input) {
  for (size_t i = 0; i < input.size() && words_.size() < kMostWords;) {
    size_t end = i + 1;
    if (is_word(input[i]))
      while (end < input.size() && is_word(input[end])) ++end;
    const std::string word(input.substr(i, end - i));
    if (word.size() > 1 && word.size() < 64 && !is_digit(word[0]) &&
        std::find(words_.begin(), words_.end(), word) == words_.end())
      words_.push_back(word);
    i = end;
  }
}

std::string Mutator::mutate(std::string input, const std::string& other) {
  const size_t changes = size_t{1} << below(4);
  for (size_t i = 0; i < changes; ++i) change(input, other);
  if (input.size() > kMostBytes) input.resize(kMostBytes);
  return input;
}

void Mutator::change(std::string& input, const std::string& other) {
  if (grammar_ == Grammar::protobuf && !one_in(4))
    input = mutate_protobuf(input, other, random_);
  else if (grammar_ == Grammar::text && !one_in(4))
    change_text(input, other);
  else
    change_bytes(input, other);
}

void Mutator::change_bytes(std::string& input, const std::string& other) {
  switch (below(8)) {
    case 0:
    case 1:
      return flip(input);
    case 2:
      return overwrite_integer(input);
    case 3:
      return insert_bytes(input);
    case 4:
      return erase(input);
    case 5:
      return repeat(input);
    case 6:
      return splice(input, other);
    default:
      input.resize(below(input.size() + 1));
  }
}

void Mutator::change_text(std::string& input, const std::string& other) {
  switch (below(10)) {
    case 0:
    case 1:
    case 2:
      return replace_number(input);
    case 3:
      return use_word(input);
    case 4:
    case 5:
      return replace_token(input, other);
    case 6:
    case 7:
    case 8:
      return change_span(input, other);
    default:
      return nest(input);
  }
}

void Mutator::flip(std::string& input) {
  if (!input.empty()) input[below(input.size())] ^= static_cast<char>(1 << below(8));
}

void Mutator::overwrite_integer(std::string& input) {
  constexpr uint64_t kIntegers[] = {0,
                                    1,
                                    0x7f,
                                    0x80,
                                    0xff,
                                    0x7fff,
                                    0x7fffffff,
                                    0x80000000,
                                    0xffffffff,
                                    0x100000000,
                                    ~uint64_t{0},
                                    uint64_t{1} << 63,
                                    ~uint64_t{0} >> 1};
  const size_t width = size_t{1} << below(4);
  if (input.size() < width) return;
  uint64_t value = kIntegers[below(std::size(kIntegers))];
  if (one_in(4)) value = random_.next();
  std::memcpy(&input[below(input.size() - width + 1)], &value, width);
}

void Mutator::insert_bytes(std::string& input) {
  std::string bytes;
  for (size_t i = below(8) + 1; i > 0; --i) bytes += static_cast<char>(below(256));
  input.insert(below(input.size() + 1), bytes);
}

void Mutator::erase(std::string& input) {
  if (input.empty()) return;
  const size_t begin = below(input.size());
  input.erase(begin, below(std::min<size_t>(input.size() - begin, one_in(3) ? 1000 : 16)) + 1);
}

void Mutator::repeat(std::string& input) {
  if (input.empty()) return;
  const size_t begin = below(input.size());
  const auto part = input.substr(begin, below(std::min<size_t>(64, input.size() - begin)) + 1);
  std::string all;
  for (size_t i = one_in(8) ? below(2000) : below(4) + 1; i > 0; --i) all += part;
  if (input.size() + all.size() <= kMostBytes) input.insert(begin, all);
}

void Mutator::splice(std::string& input, const std::string& other) {
  if (other.empty()) return;
  const size_t begin = below(other.size());
  const auto part = other.substr(begin, below(other.size() - begin) + 1);
  const size_t at = below(input.size() + 1);
  if (one_in(2)) return static_cast<void>(input.replace(at, std::string::npos, part));
  input.insert(at, part);
}

std::string Mutator::any_word() {
  if (one_in(4) || words_.empty()) return kValues[below(std::size(kValues))];
  const auto& word = words_[below(words_.size())];
  return one_in(2) ? word : '"' + word + '"';
}

void Mutator::use_word(std::string& input) {
  const size_t at = below(input.size() + 1);
  input.insert(at, any_word());
}

void Mutator::replace_number(std::string& input) {
  const size_t at = input.find_first_of("0123456789", below(input.size() + 1));
  if (at == std::string::npos) return;
  const auto range = token_at(input, at);
  std::string number = kNumbers[below(std::size(kNumbers))];
  if (one_in(4)) number = std::to_string(below(20));
  input.replace(range.begin, range.end - range.begin, number);
}

void Mutator::replace_token(std::string& input, const std::string& other) {
  if (input.empty()) return;
  const auto range = token_at(input, below(input.size()));
  std::string text = any_word();
  if (one_in(3) && !other.empty()) {
    const auto from = token_at(other, below(other.size()));
    text = other.substr(from.begin, from.end - from.begin);
  } else if (one_in(4)) {
    text.clear();
  }
  input.replace(range.begin, range.end - range.begin, text);
}

void Mutator::change_span(std::string& input, const std::string& other) {
  const auto range = span_at(input, below(input.size() + 1));
  if (!range) return;
  const size_t size = range->end - range->begin;
  const auto span = input.substr(range->begin, size);
  const auto another = span_at(other, below(other.size() + 1));
  switch (below(5)) {
    case 0:
      input.replace(range->begin, size, kValues[below(std::size(kValues))]);
      return;
    case 1:
      input.erase(range->begin, size);
      if (range->begin < input.size() && input[range->begin] == ',') input.erase(range->begin, 1);
      return;
    case 2:
      input.insert(range->begin, span + ',');
      return;
    case 3: {
      const auto here = span_at(input, below(input.size() + 1));
      if (here) input.replace(here->begin, here->end - here->begin, span);
      return;
    }
    default:
      if (another)
        input.replace(range->begin, size,
                      other.substr(another->begin, another->end - another->begin));
  }
}

void Mutator::nest(std::string& input) {
  constexpr const char* kOpeners[][2] = {{"[", "]"}, {"{\"a\":", "}"}, {"(", ")"}, {"[[", "]]"}};
  const auto& [open, close] = kOpeners[below(std::size(kOpeners))];
  const auto range = span_at(input, below(input.size() + 1));
  const Range place = range.value_or(Range{0, input.size()});
  const size_t depth = size_t{1} << below(one_in(8) ? 15 : 8);
  std::string before, after;
  for (size_t i = 0; i < depth; ++i) before += open, after += close;
  input.insert(place.end, after);
  input.insert(place.begin, before);
}

}  // namespace trinity::fuzz
