#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace trinity {

/// Base class of all exceptions of the engine. The text is one sentence for the user: where, what
/// was expected, what was found. Immutable, as are derived classes.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  /// Formats the text.
  template <class First, class... Rest>
  explicit Error(fmt::format_string<First, Rest...> text, First&& first, Rest&&... rest)
      : std::runtime_error(fmt::format(text, std::forward<First>(first), std::forward<Rest>(rest)...)) {}
};

/// A caller passed an unusable value (wrong value, unknown name). To be fixed in the script.
class ArgumentError : public Error {
 public:
  using Error::Error;
};

/// A file is missing, unreadable or malformed. The text names the file and, if known, the line.
class FileError : public Error {
 public:
  using Error::Error;
};

/// A limit of the engine or of the modelled machine is exceeded (too many operators, no memory).
class LimitError : public Error {
 public:
  using Error::Error;
};

/// The user asked to stop (Ctrl-C).
class Interrupted : public Error {
 public:
  Interrupted() : Error("interrupted") {}
};

/// Returns ", did you mean 'x'?" for the candidate nearest to `name` (edit distance at most 2 plus
/// a quarter of the length), or "" if none is near or `name` is longer than 256 bytes. Ties: first
/// candidate. For a name of an earlier version it is ", now called 'x'".
std::string suggestion(std::string_view name, const std::vector<std::string>& candidates);

/// The name that replaced `name`, a name of an earlier version with - or _; "" if it is none.
std::string_view renamed(std::string_view name);

[[noreturn]] void check_failed(const char* file, int line, const char* expression,
                               const std::string& values);

/// Enabled in all builds: throws Error with the expression, both values and the source position if
/// the condition is false.
#define TRINITY_CHECK_OP(a, op, b)                                                 \
  do {                                                                             \
    const auto& trinity_a = (a);                                                   \
    const auto& trinity_b = (b);                                                   \
    if (!(trinity_a op trinity_b))                                                 \
      ::trinity::check_failed(__FILE__, __LINE__, #a " " #op " " #b,               \
                              fmt::format("{} against {}", trinity_a, trinity_b)); \
  } while (false)
#define TRINITY_CHECK_EQ(a, b) TRINITY_CHECK_OP(a, ==, b)
#define TRINITY_CHECK_LE(a, b) TRINITY_CHECK_OP(a, <=, b)
#define TRINITY_CHECK_LT(a, b) TRINITY_CHECK_OP(a, <, b)

}  // namespace trinity
