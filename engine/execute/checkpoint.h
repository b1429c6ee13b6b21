#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "execute/weights.h"

namespace trinity {

/// Weights as a file of format safetensors (formats/export/safetensors.h): "<operator>/<parameter>"
/// of the graph that was lowered, so that any strategy reads what any other wrote. A checkpoint has
/// the optimiser's numbers too, the steps that were made, and by name what else the course of a
/// training depends on. Throws FileError.
void write_weights(const std::string& path, const std::vector<NamedTensor>& values, int64_t steps,
                   const std::map<std::string, double>& course);

struct ReadWeights {
  std::vector<NamedTensor> values;
  int64_t steps = 0;
  std::map<std::string, double> course;
};
/// Throws FileError for other files, and for kinds of numbers other than F32 and F64.
/// checkpoint: one that was changed or cut short is refused, too.
ReadWeights read_weights(const std::string& path, bool checkpoint);

}  // namespace trinity
