#pragma once

#include <cstddef>

namespace trinity {

/// A part of trinity that depends on large external libraries: a shared library that is opened on
/// first use. The program therefore starts in milliseconds and works, as far as possible, without
/// these libraries.
struct LatePart {
  const char* file;   ///< "libtrinity_torch.so"
  const char* needs;  ///< for messages: "LibTorch (Debian package libtorch-dev)"
  /// Memory that opening takes, in bytes, plus an amount per core of the machine: address space
  /// (including a malloc arena for a thread without one) and private memory. OpenBLAS, which
  /// reserves 128 MiB per thread, hangs if RLIMIT_AS (ulimit -v) or RLIMIT_DATA (ulimit -d,
  /// --memory-limit) leaves less.
  size_t address_bytes = 0, private_bytes = 0, bytes_of_core = 0;
};

inline constexpr LatePart kTorchPart{"libtrinity_torch.so",
                                     "LibTorch (Debian's package libtorch-dev)",
                                     size_t{652} << 20, size_t{124} << 20, size_t{130} << 20};
inline constexpr LatePart kOnnxPart{
    "libtrinity_onnx.so", "ONNX's and protobuf's libraries (Debian's package libonnx-dev)"};

/// True if the part was built; its libraries may still be missing on this machine.
bool is_built(const LatePart& part);

/// True if it has been opened in this process.
bool is_open(const LatePart& part);

/// Opens the part if necessary; returns the address of its function `symbol`. Throws Error that
/// says what is missing. Thread-safe.
void* late_symbol(const LatePart& part, const char* symbol);

template <class Function>
Function* late(const LatePart& part, const char* symbol) {
  return reinterpret_cast<Function*>(late_symbol(part, symbol));
}

/// Private memory that opening a part takes on this machine, in bytes; 0 if it was not measured.
size_t opening_bytes(const LatePart& part);

/// Called before and after a part is opened, with the approximate memory that opening takes
/// (opening_bytes) and that belongs to no script.
struct LateHooks {
  void (*before)(size_t bytes) = nullptr;
  void (*after)(size_t bytes) = nullptr;
};
void set_late_hooks(const LateHooks& hooks);

}  // namespace trinity
