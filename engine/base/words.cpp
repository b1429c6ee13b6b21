#include "base/words.h"

#include <algorithm>

#include "base/error.h"

namespace trinity {

size_t parse_word(std::string_view what, std::string_view name,
                  std::span<const char* const> words) {
  for (size_t i = 0; i < words.size(); ++i)
    if (name == words[i]) return i;
  const std::vector<std::string> known(words.begin(), words.end());
  throw ArgumentError("unknown {} '{}'{} (known: {})", what, name, suggestion(name, known), fmt::join(known, ", "));
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const auto end = std::min(text.find(' '), text.size());
    words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

std::string divisors_near(int64_t size, int64_t parts) {
  int64_t below = std::min(parts, size), above = parts;
  while (size % below != 0) --below;
  while (above < size && size % above != 0) ++above;
  return above > parts && size % above == 0 ? fmt::format("{} or {}", below, above)
                                            : fmt::format("{}", below);
}

}  // namespace trinity
