#pragma once

#include "distribute/store.h"
#include "libtorch/torch.h"

// The only header that includes c10d, LibTorch's collectives. TRINITY_NCCL is defined if LibTorch
// has CUDA and NCCL's header exists (CMakeLists.txt).

// c10d's headers are empty without these macros.
#ifndef USE_C10D_GLOO
#define USE_C10D_GLOO
#endif

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wall"
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#ifdef TRINITY_NCCL
#include <c10/cuda/CUDAFunctions.h>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>
#endif
#pragma GCC diagnostic pop

namespace trinity {
struct JobStore::Parts {
  c10::intrusive_ptr<c10d::TCPStore> store;
};
}  // namespace trinity
