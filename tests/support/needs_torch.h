#pragma once

#include <doctest/doctest.h>

#include "base/late.h"

namespace trinity::test {

/// TEST_CASE("..." * test::needs_torch) is skipped by name if trinity is built without LibTorch.
struct NeedsTorch {
  void fill(doctest::detail::TestCase& test) const {
    test.m_description = "LibTorch";
    test.m_skip = !is_built(kTorchPart);
  }
};
inline constexpr NeedsTorch needs_torch;

}  // namespace trinity::test
