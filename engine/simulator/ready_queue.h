#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace trinity {

/// Storage of a ReadyQueue. It outlives the queue, so that runs allocate nothing. One per thread.
class ReadyStore {
 public:
  static constexpr size_t kNear = 64;
  static constexpr uint64_t kNone = ~uint64_t{0};

  ReadyStore() {
    near_[0] = kNone;  // sentinel: stops every insertion
  }

  /// Reserves space for `keys` keys.
  void resize(size_t keys) { far_.resize(keys); }
  void clear() { far_size_ = 0; }
  uint64_t* near() { return near_ + 1; }
  size_t far_size() const { return far_size_; }

  [[gnu::noinline]] void push_far(uint64_t key) {
    size_t at = far_size_++;
    while (at > 0 && far_[(at - 1) / 4] > key) {
      far_[at] = far_[(at - 1) / 4];
      at = (at - 1) / 4;
    }
    far_[at] = key;
  }

  /// Moves the larger half of a full array, which is at its front, to the heap.
  [[gnu::noinline]] void spill() {
    for (size_t i = 0; i < kNear / 2; ++i) push_far(near()[i]);
    std::copy(near() + kNear / 2, near() + kNear, near());
  }

  /// Fills the empty array from the heap; returns its new size.
  [[gnu::noinline]] size_t refill() {
    const size_t count = std::min(far_size_, kNear / 2);
    for (size_t i = count; i-- > 0;) near()[i] = pop_far();
    return count;
  }

 private:
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

  uint64_t near_[kNear + 1];   // a sentinel, then keys in descending order
  std::vector<uint64_t> far_;  // a 4-ary heap
  size_t far_size_ = 0;
};

/// Min-priority queue of 64-bit keys below ~0. Few keys wait at a time, so the smallest are in a
/// short sorted array, whose insertion costs one mispredicted branch; when it is full, the larger
/// ones move to a heap. A value type whose address is never taken, so that loops keep it in
/// registers. Not thread-safe.
class ReadyQueue {
 public:
  explicit ReadyQueue(ReadyStore& store) : store_(&store), near_(store.near()), top_(near_) {
    store.clear();
  }

  [[gnu::always_inline]] void push(uint64_t key) {
    if (key > limit_) [[unlikely]] {
      store_->push_far(key);
      return;
    }
    uint64_t* at = top_++;
    for (uint64_t above = at[-1]; above < key; above = at[-1]) *at-- = above;
    *at = key;
    if (top_ == near_ + ReadyStore::kNear) [[unlikely]] {
      store_->spill();
      top_ = near_ + ReadyStore::kNear / 2;
      limit_ = near_[0];
    }
  }

  /// The heap is only inspected when the array has run out.
  [[gnu::always_inline]] bool empty() {
    if (top_ != near_) [[likely]]
      return false;
    if (store_->far_size() == 0) return true;
    top_ = near_ + store_->refill();
    limit_ = store_->far_size() > 0 ? near_[0] : ReadyStore::kNone;
    return false;
  }

  /// True if a key below `key` is waiting. Requires a non-empty queue.
  bool below(uint64_t key) const { return top_[-1] < key; }

  /// Removes and returns the minimum. Requires that empty() has returned false.
  [[gnu::always_inline]] uint64_t pop() { return *--top_; }

 private:
  ReadyStore* store_;
  uint64_t* near_;
  uint64_t* top_;
  uint64_t limit_ = ReadyStore::kNone;  // larger keys go to the heap
};

/// Min-priority queue of events, by (first, second): a sorted array while there are few, which is
/// the usual case for one device, a 4-ary heap beyond. Not thread-safe.
class EventQueue {
 public:
  struct Entry {
    int64_t first, second;
    bool before(const Entry& other) const {
      return first < other.first || (first == other.first && second < other.second);
    }
  };
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

  bool empty() const { return entries_.empty(); }
  size_t size() const { return entries_.size(); }
  void clear() {
    entries_.clear();
    sorted_ = true;
    first_ = kNever;
  }
  /// The minimum. Requires a non-empty queue.
  const Entry& front() const { return sorted_ ? entries_.back() : entries_.front(); }
  /// `first` of the minimum, or kNever.
  int64_t first() const { return first_; }

  void push(Entry entry) {
    first_ = std::min(first_, entry.first);
    size_t at = entries_.size();
    entries_.push_back(entry);
    Entry* const all = entries_.data();
    if (sorted_) {
      for (; at > 0 && all[at - 1].before(entry); --at) all[at] = all[at - 1];
      all[at] = entry;
      if (entries_.size() > kSorted) to_heap();
      return;
    }
    for (; at > 0 && entry.before(all[(at - 1) / 4]); at = (at - 1) / 4)
      all[at] = all[(at - 1) / 4];
    all[at] = entry;
  }

  /// Removes the minimum; returns its `second`.
  int64_t pop() {
    if (!sorted_) return pop_heap();
    const int64_t second = entries_.back().second;
    entries_.pop_back();
    first_ = empty() ? kNever : entries_.back().first;
    return second;
  }

 private:
  static constexpr size_t kSorted = 32;

  [[gnu::noinline]] void to_heap() {
    std::vector<Entry>& all = entries_;
    for (size_t i = 0, j = all.size() - 1; i < j; ++i, --j) std::swap(all[i], all[j]);
    sorted_ = false;  // an ascending array is a heap
  }

  [[gnu::noinline]] int64_t pop_heap() {
    Entry* const all = entries_.data();
    const int64_t second = all[0].second;
    const Entry last = entries_.back();
    entries_.pop_back();
    const size_t size = entries_.size();
    size_t at = 0;
    for (size_t child = 1; child < size; child = 4 * at + 1) {
      size_t least = child;
      for (size_t other = child + 1; other < std::min(child + 4, size); ++other)
        if (all[other].before(all[least])) least = other;
      if (!all[least].before(last)) break;
      all[at] = all[least];
      at = least;
    }
    if (size > 0)
      all[at] = last;
    else
      sorted_ = true;
    first_ = size > 0 ? all[0].first : kNever;
    return second;
  }

  std::vector<Entry> entries_;
  int64_t first_ = kNever;
  bool sorted_ = true;  // descending; else a heap
};

}  // namespace trinity
