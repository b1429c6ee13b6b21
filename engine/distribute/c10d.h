#pragma once

#include "distribute/store.h"
#include "learn/torch.h"

// The one place of the room that includes c10d, LibTorch's collectives. TRINITY_GLOO is defined
// where LibTorch was built with Gloo and Gloo's headers are there (CMakeLists.txt).

#ifdef TRINITY_GLOO
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wall"
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#pragma GCC diagnostic pop

namespace trinity {
struct JobStore::Parts {
  c10::intrusive_ptr<c10d::TCPStore> store;
};
}  // namespace trinity
#else
namespace trinity {
struct JobStore::Parts {};
}  // namespace trinity
#endif
