#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace trinity {

/// Index of `name` in `words`. Throws ArgumentError "unknown <what> '<name>'" with the nearest word
/// and the full list; `what` is what the words name ("queue model").
size_t parse_word(std::string_view what, std::string_view name, std::span<const char* const> words);

/// Nearest divisors of `size` below and above `parts`, for messages: "2 or 4".
std::string divisors_near(int64_t size, int64_t parts);

}  // namespace trinity
