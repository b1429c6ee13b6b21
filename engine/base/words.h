#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace trinity {

/// The position of `name` among `words`. Throws ArgumentError "unknown <what> '<name>'" with the
/// nearest word and the list of all; `what` is what the words name ("queue model").
size_t parse_word(std::string_view what, std::string_view name, std::span<const char* const> words);

/// The divisors of `size` nearest to `parts`, below and above, for messages: "2 or 4".
std::string divisors_near(int64_t size, int64_t parts);

}  // namespace trinity
