#pragma once

#include <cstdint>
#include <string>

namespace trinity {

/// A conditional operation that happens in a step (attribute `occasion`, graph/meaning.h).
struct Occasion {
  std::string name;        ///< "gradients", "send0", "merge0", "hand_out0", ...
  bool rounded = false;    ///< sends: as bfloat16
  int64_t age = 0;         ///< merges: number of steps since the send
  double own_weight = 0;  ///< merges: weight of a member's own weights; each sent copy has weight 1
};

}  // namespace trinity
