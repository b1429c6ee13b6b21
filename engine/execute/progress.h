#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace trinity {

/// Numbers by name that a checkpoint keeps beside weights for whoever runs the training: what its
/// schedules have come to.
using Notes = std::map<std::string, double>;

/// How far a training has come.
struct Progress {
  int64_t steps = 0;
  Notes notes;
};

}  // namespace trinity
