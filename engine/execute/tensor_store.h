#pragma once

#include <atomic>
#include <vector>

#include "execute/run_layout.h"
#include "libtorch/torch.h"

namespace trinity {

/// Tensors that wait for readers, by slot of a RunLayout and micro-batch. A tensor is released
/// after its last reader. Not thread-safe for one slot: the worker of its device writes it, and
/// others read from their own slots.
class TensorStore {
 public:
  explicit TensorStore(const RunLayout& layout)
      : layout_(layout),
        values_(layout.slots().size() * static_cast<size_t>(layout.micro_batches())) {}

  /// Removes all tensors and resets read counts.
  void clear() {
    for (int32_t m = 0; m < layout_.micro_batches(); ++m)
      for (size_t slot = 0; slot < layout_.slots().size(); ++slot) {
        Value& value = at(static_cast<int32_t>(slot), m);
        value.tensor = at::Tensor();
        value.readers = layout_.readers(static_cast<int32_t>(slot), m);
      }
  }

  /// Stores a tensor, unless nothing will read it.
  void keep(int32_t slot, int32_t micro_batch, at::Tensor tensor) {
    Value& value = at(slot, micro_batch);
    if (value.readers > 0) value.tensor = std::move(tensor);
  }

  at::Tensor& read(int32_t slot, int32_t micro_batch) { return at(slot, micro_batch).tensor; }

  /// Counts one read; the last one releases the tensor.
  void release(int32_t slot, int32_t micro_batch) {
    Value& value = at(slot, micro_batch);
    if (--value.readers == 0) value.tensor = at::Tensor();
  }

 private:
  struct Value {
    at::Tensor tensor;
    std::atomic<int32_t> readers{0};
  };

  Value& at(int32_t slot, int32_t micro_batch) {
    return values_[static_cast<size_t>(micro_batch) * layout_.slots().size() +
                   static_cast<size_t>(slot)];
  }

  const RunLayout& layout_;
  std::vector<Value> values_;
};

}  // namespace trinity
