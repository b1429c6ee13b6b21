#include "base/words.h"

#include "base/error.h"

namespace trinity {

size_t parse_word(std::string_view what, std::string_view name,
                  std::span<const char* const> words) {
  for (size_t i = 0; i < words.size(); ++i)
    if (name == words[i]) return i;
  const std::vector<std::string> known(words.begin(), words.end());
  throw ArgumentError(fmt::format("unknown {} '{}'{} (known: {})", what, name,
                                  suggestion(name, known), fmt::join(known, ", ")));
}

}  // namespace trinity
