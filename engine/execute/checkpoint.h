#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "execute/weights.h"

namespace trinity {

/// Weights as a safetensors file (formats/export/safetensors.h): "<operator>/<parameter>" of the
/// graph before lowering, so any strategy reads files of any other. A checkpoint also has the
/// optimiser state, the number of steps, and, by name, other numbers that the training depends on.
/// Throws FileError.
void write_weights(const std::string& path, const std::vector<NamedTensor>& values, int64_t steps,
                   const std::map<std::string, double>& course);

struct ReadWeights {
  std::vector<NamedTensor> values;
  int64_t steps = 0;
  std::map<std::string, double> course;
};
/// Throws FileError for other files and for dtypes other than F32 and F64. checkpoint: also refuses
/// files that were changed or truncated.
ReadWeights read_weights(const std::string& path, bool checkpoint);

}  // namespace trinity
