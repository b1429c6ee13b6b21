#pragma once

#include <string>

// How LibTorch is set up in this process; names no type of it.

namespace trinity {

/// Makes LibTorch and its BLAS use one thread in the calling thread, and malloc keep freed memory
/// (tensors of some megabytes would otherwise be mapped and cleared anew every time).
void use_one_torch_thread();

/// LibTorch's version and the BLAS library that the process has loaded, for a start-up line;
/// `slow` is set when it is the reference BLAS (about 16 times slower than OpenBLAS).
struct TorchDescription {
  std::string text;
  bool slow = false;
};
TorchDescription describe_torch();

}  // namespace trinity
