#pragma once

#include <array>
#include <cstddef>

#include "base/error.h"

// Options that are declared once: each_..._option(options, visit) calls visit for every option in a
// fixed order, with its name in scripts, files and errors, its value, its range and a line of help:
//   visit(name, number, least, most, help)
//   visit(name, flag, help)
//   visit(name, text, help)
//   visit(name, choice, words, help)    the value is an index into words
// From these come range checks, the reader of a script's table, the lists in checkpoints, and the
// declarations for editors and the reference.

namespace trinity {

/// Throws ArgumentError for a number out of range.
inline void check_option(const char* name, double value, double least, double most) {
  if (!(value >= least && value <= most))
    throw ArgumentError("option '{}': expected {} to {}, got {}", name, least, most, value);
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
