#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "execute/weights.h"

namespace trinity {

/// Weights as a file of format safetensors (formats/export/safetensors.h): "<operator>/<parameter>"
/// of the graph that was lowered, so that any strategy reads what any other wrote. A checkpoint has
/// the optimiser's numbers too, and the steps that were made. Throws FileError.
void write_weights(const std::string& path, const std::vector<NamedTensor>& values, int64_t steps);

struct ReadWeights {
  std::vector<NamedTensor> values;
  int64_t steps = 0;
};
/// Throws FileError for other files, and for kinds of numbers other than F32 and F64.
ReadWeights read_weights(const std::string& path);

}  // namespace trinity
