#pragma once

#include <memory>
#include <string>

// How LibTorch is set up in this process; names no type of it.

namespace trinity {

/// Makes LibTorch and its BLAS use one thread in the calling thread, and malloc keep freed memory
/// (tensors of some megabytes would otherwise be mapped and cleared again every time).
void use_one_torch_thread();

/// GPUs compute in the precision of their tensors (no TF32 in convolutions) and with the kernels that
/// give the same bytes every time, where LibTorch has such. Does nothing in a LibTorch without CUDA.
void use_exact_gpu_kernels();

/// While it lives, LibTorch's warnings in this thread reach standard error once in a process each, and
/// not with every kernel.
class WarningsOnce {
 public:
  WarningsOnce();
  ~WarningsOnce();

 private:
  struct Guard;
  std::unique_ptr<Guard> guard_;
};

/// LibTorch's version and the BLAS library that the process has loaded, for a start-up line;
/// `slow` is set when it is the reference BLAS (about 16 times slower than OpenBLAS).
struct TorchDescription {
  std::string text;
  bool slow = false;
};
TorchDescription describe_torch();

}  // namespace trinity
