#pragma once

#include <cstdint>
#include <string>

namespace trinity {

/// What happens in a step beside what happens in every one (attribute `occasion`, graph/meaning.h).
struct Occasion {
  std::string name;        ///< "gradients", "send0", "merge0", "hand_out0", ...
  bool rounded = false;    ///< of what sends: as bfloat16
  int64_t age = 0;         ///< of what merges: how many steps ago it was sent
  double own_weight = 0;   ///< the same: what a member's own weights count, each of those sent 1
};

}  // namespace trinity
