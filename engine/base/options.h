#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "base/error.h"

// Options that are declared once: each_..._option(options, visit) calls visit for every option, in
// a fixed order, with its name for scripts, files and errors, its value, what it may be and a line
// of help:
//   visit(name, number, least, most, help)
//   visit(name, flag, help)
//   visit(name, text, help)
//   visit(name, choice, words, help)    a choice's value is its place among the words
// From there come checks, the reader of a script's table, the lists of checkpoints and the
// declaration that editors and the reference have.

namespace trinity {

/// Throws ArgumentError for a number out of its range.
inline void check_option(const char* name, double value, double least, double most) {
  if (!(value >= least && value <= most))
    throw ArgumentError(
        fmt::format("option '{}': expected {} to {}, got {}", name, least, most, value));
}

/// A visitor that throws ArgumentError for the first option out of its range.
struct OptionRanges {
  void operator()(const char* name, double value, double least, double most, const char*) const {
    check_option(name, value, least, most);
  }
  template <class Value>
  void operator()(const char*, const Value&, const char*) const {}
  template <class Choice, size_t Words>
  void operator()(const char*, Choice, const std::array<const char*, Words>&, const char*) const {}
};

}  // namespace trinity
