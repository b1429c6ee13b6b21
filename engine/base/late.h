#pragma once

#include <cstddef>

namespace trinity {

/// A part of trinity that stands on large libraries of others: a library of its own beside this
/// one, opened when something of it is first asked for. A program starts in milliseconds that way,
/// and works without them as far as it can.
struct LatePart {
  const char* file;   ///< "libtrinity_torch.so"
  const char* needs;  ///< what a message says of it: "LibTorch (Debian package libtorch-dev)"
  /// What opening it takes, in bytes, and more for each core that the machine has: address space,
  /// with an arena of malloc's for a thread that has none yet, and private memory. OpenBLAS, which
  /// keeps 128 MiB for each of its threads, waits for ever where RLIMIT_AS (ulimit -v) or
  /// RLIMIT_DATA (ulimit -d, --memory-limit) leaves less.
  size_t address_bytes = 0, private_bytes = 0, bytes_of_core = 0;
};

inline constexpr LatePart kTorchPart{"libtrinity_torch.so",
                                     "LibTorch (Debian's package libtorch-dev)",
                                     size_t{652} << 20, size_t{124} << 20, size_t{130} << 20};
inline constexpr LatePart kOnnxPart{
    "libtrinity_onnx.so", "ONNX's and protobuf's libraries (Debian's package libonnx-dev)"};

/// Whether it was built; its libraries may still be missing on this machine.
bool is_built(const LatePart& part);

/// Whether it has been opened in this process.
bool is_open(const LatePart& part);

/// Opens it, if that was not done yet; returns the address of its function `symbol`. Throws Error
/// saying what is missing.
void* late_symbol(const LatePart& part, const char* symbol);

template <class Function>
Function* late(const LatePart& part, const char* symbol) {
  return reinterpret_cast<Function*>(late_symbol(part, symbol));
}

/// Private memory that opening a part takes on this machine, in bytes; 0 where nobody measured it.
size_t opening_bytes(const LatePart& part);

/// Called before and after a part is opened, which takes memory that belongs to no script: about so
/// many bytes (opening_bytes).
struct LateHooks {
  void (*before)(size_t bytes) = nullptr;
  void (*after)(size_t bytes) = nullptr;
};
void set_late_hooks(const LateHooks& hooks);

}  // namespace trinity
