#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace trinity {

/// What a ReadyQueue keeps its keys in; lives longer than it, so that nothing is allocated a run.
class ReadyStore {
 public:
  static constexpr size_t kNear = 64;
  static constexpr uint64_t kNone = ~uint64_t{0};

  ReadyStore() {
    near_[0] = kNone;  // stops every insertion
  }

  /// Makes room for `keys` keys at once.
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

  /// The larger half of a full array, which lies first, goes to the heap.
  [[gnu::noinline]] void spill() {
    for (size_t i = 0; i < kNear / 2; ++i) push_far(near()[i]);
    std::copy(near() + kNear / 2, near() + kNear, near());
  }

  /// Fills the empty array from the heap; returns how many keys it holds now.
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

  uint64_t near_[kNear + 1];   // a stopper, then keys descending
  std::vector<uint64_t> far_;  // a 4-ary heap
  size_t far_size_ = 0;
};

/// The least of many 64-bit keys below ~0. Few are waiting at a time, so the smallest live in a
/// short sorted array, whose insertion costs one branch that the processor cannot foresee; only
/// when it is full do the larger ones move to a heap. A value without an address of its own, so
/// that a loop keeps it in registers.
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

  /// Empty: what is in the heap is only looked at when the array has run out.
  [[gnu::always_inline]] bool empty() {
    if (top_ != near_) [[likely]]
      return false;
    if (store_->far_size() == 0) return true;
    top_ = near_ + store_->refill();
    limit_ = store_->far_size() > 0 ? near_[0] : ReadyStore::kNone;
    return false;
  }

  /// Whether a key below `key` is waiting. Not for an empty queue.
  bool below(uint64_t key) const { return top_[-1] < key; }

  /// The least key, removed. Only after empty() has said no.
  [[gnu::always_inline]] uint64_t pop() { return *--top_; }

 private:
  ReadyStore* store_;
  uint64_t* near_;
  uint64_t* top_;
  uint64_t limit_ = ReadyStore::kNone;  // larger keys go to the heap
};

/// The least of many events, by (first, second). A sorted array while there are few, which is what
/// a simulation mostly has waiting for one device, and a 4-ary heap beyond.
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
  /// The least entry. Not for an empty queue.
  const Entry& front() const { return sorted_ ? entries_.back() : entries_.front(); }
  /// The `first` of the least, or kNever.
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

  /// Removes the least; returns its `second`.
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
    sorted_ = false;  // ascending: a heap
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
