#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace trinity {

/// What bytes of a device's memory are there for.
enum class MemoryOwner : uint8_t {
  weights,               ///< trainable ones and others, in all versions that a stream keeps
  optimizer,             ///< state that stays from step to step
  gradients,             ///< of weights: what updates and reductions read
  activations,           ///< outputs of forward operators, first or recomputed
  activation_gradients,  ///< outputs of backward operators that no update reads
  delayed,   ///< of both, what only weight parts of a backward pass in two still wait for
  received,  ///< copies from other devices that nobody here has read yet
  gathered,  ///< weights gathered for their use (ZeRO-3) or after their update
  workspace
};
inline constexpr size_t kMemoryOwners = 9;
const char* memory_owner_name(MemoryOwner owner);

/// Bytes by owner.
using OwnedBytes = std::array<int64_t, kMemoryOwners>;

/// A tensor or workspace that a device holds from the first to the last of some of its slots.
struct HeldTensor {
  int32_t first = 0, last = 0;  ///< positions of the record
  int64_t bytes = 0;
  int32_t task = 0;     ///< who writes it
  int32_t output = -1;  ///< which of its outputs; -1: its workspace
  bool copy = false;    ///< on a device that it was sent to
};

}  // namespace trinity
