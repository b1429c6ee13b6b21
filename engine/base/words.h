#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trinity {

/// Index of `name` in `words`. Throws ArgumentError "unknown <what> '<name>'" with the nearest word
/// and the full list; `what` is what the words name ("queue model").
size_t parse_word(std::string_view what, std::string_view name, std::span<const char* const> words);

template <size_t count>
struct WordList {
  const char* what;
  std::array<const char*, count> all;
};
template <class... Texts>
constexpr WordList<sizeof...(Texts)> words(const char* what, Texts... all) {
  return {what, {all...}};
}
/// The words of an enumeration: what they name, and one per value in order. Specialised once per type.
template <class Choice>
inline constexpr int kWords = 0;

template <class Choice>
const char* choice_name(Choice value) {
  return kWords<Choice>.all[static_cast<size_t>(value)];
}
/// Throws the error of parse_word().
template <class Choice>
Choice parse_choice(std::string_view name) {
  return static_cast<Choice>(parse_word(kWords<Choice>.what, name, kWords<Choice>.all));
}

/// The words of a text, between spaces.
std::vector<std::string_view> words_of(std::string_view text);

/// Values by each of the words that they are listed with.
template <class Value>
std::map<std::string_view, Value> by_word(std::initializer_list<std::pair<Value, std::string_view>> list) {
  std::map<std::string_view, Value> values;
  for (const auto& [value, text] : list)
    for (const auto word : words_of(text)) values.emplace(word, value);
  return values;
}

/// Nearest divisors of `size` below and above `parts`, for messages: "2 or 4".
std::string divisors_near(int64_t size, int64_t parts);

}  // namespace trinity
