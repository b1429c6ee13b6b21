#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace trinity {

/// The least of many 64-bit keys, below ~0. Few are waiting at a time, so the smallest live in a
/// short sorted array, whose insertion costs one branch that the processor cannot foresee; only
/// when it is full do the larger ones move to a 4-ary heap.
class ReadyQueue {
 public:
  /// Room for `keys` keys at once.
  explicit ReadyQueue(size_t keys) : far_(keys) {
    near_[0] = ~uint64_t{0};  // stops every insertion
  }

  void clear() {
    top_ = near_ + 1;
    far_size_ = 0;
    limit_ = ~uint64_t{0};
  }

  void push(uint64_t key) {
    if (key > limit_) [[unlikely]] {
      push_far(key);
      return;
    }
    uint64_t* at = top_++;
    for (uint64_t above = at[-1]; above < key; above = at[-1]) *at-- = above;
    *at = key;
    if (top_ == near_ + 1 + kNear) [[unlikely]]
      spill();
  }

  bool empty() const { return top_ == near_ + 1 && far_size_ == 0; }

  /// Whether a key below `key` is waiting.
  bool below(uint64_t key) const {
    return top_ > near_ + 1 ? top_[-1] < key : far_size_ > 0 && far_[0] < key;
  }

  /// The least key, removed. Not when empty.
  uint64_t pop() {
    if (top_ == near_ + 1) [[unlikely]]
      refill();
    return *--top_;
  }

 private:
  static constexpr size_t kNear = 64;

  /// The larger half of the array, which lies first, goes to the heap.
  void spill() {
    for (size_t i = 1; i <= kNear / 2; ++i) push_far(near_[i]);
    std::copy(near_ + 1 + kNear / 2, near_ + 1 + kNear, near_ + 1);
    top_ = near_ + 1 + kNear / 2;
    limit_ = near_[1];
  }

  void refill() {
    const size_t count = std::min(far_size_, kNear / 2);
    for (size_t i = count; i > 0; --i) near_[i] = pop_far();
    top_ = near_ + 1 + count;
    limit_ = far_size_ > 0 ? near_[1] : ~uint64_t{0};
  }

  void push_far(uint64_t key) {
    size_t at = far_size_++;
    while (at > 0 && far_[(at - 1) / 4] > key) {
      far_[at] = far_[(at - 1) / 4];
      at = (at - 1) / 4;
    }
    far_[at] = key;
  }

  uint64_t pop_far() {
    const uint64_t top = far_[0], key = far_[--far_size_];
    size_t at = 0;
    for (size_t first = 1; first < far_size_; first = 4 * at + 1) {
      size_t least = first;
      for (size_t child = first + 1; child < std::min(first + 4, far_size_); ++child)
        if (far_[child] < far_[least]) least = child;
      if (far_[least] >= key) break;
      far_[at] = far_[least];
      at = least;
    }
    far_[at] = key;
    return top;
  }

  uint64_t near_[kNear + 1];  // [1, top_): descending
  uint64_t* top_ = near_ + 1;
  uint64_t limit_ = ~uint64_t{0};  // larger keys go to the heap
  std::vector<uint64_t> far_;
  size_t far_size_ = 0;
};

}  // namespace trinity
