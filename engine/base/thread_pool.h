#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <list>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace trinity {

/// A fixed set of threads that share the items of one loop at a time. The assignment of items to
/// threads is unspecified; callers write result i to slot i, so results never depend on it.
///
/// Any thread may start a loop; a second loop waits for the first. A loop started inside an item
/// runs completely in that item's thread, under its thread number. Two pools must not start loops
/// of each other from inside items: this deadlocks.
///
/// An implementation of our own, because pools of libraries do not work in a forked child. Threads
/// do not survive fork(), so in a child every pool, inherited or new, runs its loops in the calling
/// thread. Fork only while no loop runs.
class ThreadPool {
 public:
  /// `threads` counts the calling thread: 1 runs everything in the caller, 0 uses one thread per
  /// core. `start` runs on every worker before the constructor returns (thread-local settings).
  /// Throws LimitError if the system provides fewer threads.
  explicit ThreadPool(int threads = 0, std::function<void()> start = {});
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// Upper limit of body's `thread`; a forked child keeps the limit of its parent's pool.
  int threads() const { return threads_; }

  /// Calls body(item, thread) for every item in [0, count), thread in [0, threads()). Returns when
  /// all have ended. Rethrows the exception of the lowest failing item, so errors do not depend on
  /// the number of threads.
  void parallel_for(int count, const std::function<void(int item, int thread)>& body);

  /// Calls body once on every thread except the caller (thread-local settings changed after
  /// `start`). It must not throw. Not allowed inside an item.
  void on_each(const std::function<void()>& body);

 private:
  struct Shared;
  int threads_;
  std::unique_ptr<Shared> shared_;
};

/// Cache of values that are expensive to make: the values of the latest keys, up to a total size.
/// One thread makes a value while others that request its key wait; requests for other keys do not
/// wait. An exception of make() reaches its caller, and the next request tries again. make() must
/// not use the same cache. Thread-safe; searches the keys linearly.
template <class Key, class Value>
class Latest {
 public:
  using Size = std::function<int64_t(const Value&)>;

  /// Keeps values with at most `room` in total, and always the latest; size_of: 1 each by default.
  /// size_of is called under a lock, for values that other threads use.
  explicit Latest(int64_t room, Size size_of = {}) : room_(room), size_of_(std::move(size_of)) {}

  /// make() returns a std::shared_ptr<Value>, not null.
  template <class Make>
  std::shared_ptr<Value> find(const Key& key, Make make) {
    const auto entry = entry_of(key);
    if (auto value = value_of(*entry)) return value;
    const std::lock_guard making(entry->making);
    if (auto value = value_of(*entry)) return value;
    std::shared_ptr<Value> made;
    try {
      made = make();
    } catch (...) {
      const std::lock_guard lock(mutex_);
      entries_.remove(entry);
      throw;
    }
    const std::lock_guard lock(mutex_);
    entry->value = made;
    forget();
    return made;
  }

 private:
  struct Entry {
    explicit Entry(const Key& of) : key(of) {}
    Key key;
    std::mutex making;
    std::shared_ptr<Value> value;  // null until it is made
  };

  std::shared_ptr<Entry> entry_of(const Key& key) {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(entries_.begin(), entries_.end(),
                                    [&](const auto& entry) { return entry->key == key; });
    if (found == entries_.end())
      entries_.push_front(std::make_shared<Entry>(key));
    else
      entries_.splice(entries_.begin(), entries_, found);
    return entries_.front();
  }

  std::shared_ptr<Value> value_of(const Entry& entry) {
    const std::lock_guard lock(mutex_);
    return entry.value;
  }

  /// Requires the lock. Values that are being made stay, so that none is made twice.
  void forget() {
    int64_t size = 0;
    for (auto entry = entries_.begin(); entry != entries_.end();) {
      const auto& value = (*entry)->value;
      if (value) size += size_of_ ? size_of_(*value) : 1;
      const bool goes = value && size > room_ && entry != entries_.begin();
      entry = goes ? entries_.erase(entry) : std::next(entry);
    }
  }

  int64_t room_;
  Size size_of_;
  std::mutex mutex_;  // guards the members below
  std::list<std::shared_ptr<Entry>> entries_;  // latest first
};

/// Pool of objects that one thread at a time uses. Thread-safe.
template <class Object>
class Idle {
 public:
  /// Calls use(object) with an idle object or, if there is none, a new one from make(), which
  /// returns std::unique_ptr<Object>. An object whose use throws is discarded.
  template <class Make, class Use>
  auto with(Make make, Use use) {
    auto object = take();
    if (!object) object = make();
    auto result = use(*object);
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(object));
    return result;
  }

 private:
  std::unique_ptr<Object> take() {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) return nullptr;
    auto object = std::move(idle_.back());
    idle_.pop_back();
    return object;
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<Object>> idle_;
};

}  // namespace trinity
