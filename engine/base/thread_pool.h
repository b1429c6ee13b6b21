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

/// A fixed set of threads that share the items of one loop at a time. Which thread runs which item
/// is open; callers write result i to slot i, so that results never depend on it.
///
/// Any thread may begin a loop: a second one waits for its turn. A loop begun inside an item runs
/// in the thread of that item, all of it, under that thread's number: the others are busy.
/// Two pools must not begin loops of each other from inside: each would wait for the other's turn.
///
/// By hand on purpose, for fork's sake: no pool of a library works on in a forked child.
/// Survives fork(): threads do not cross it, so in a forked child every pool, inherited or new,
/// runs its loops in the calling thread. Fork while no loop runs.
class ThreadPool {
 public:
  /// `threads` counts the calling thread: 1 runs everything in the caller. 0 takes one per core.
  /// `start` runs on every worker before this returns (thread-local settings). Throws LimitError
  /// where the system gives fewer threads.
  explicit ThreadPool(int threads = 0, std::function<void()> start = {});
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// The number that body's `thread` stays below; a child keeps that of its parent's pool.
  int threads() const { return threads_; }

  /// Calls body(item, thread) for every item in [0, count), thread in [0, threads()). Returns when
  /// all have ended. The exception of the lowest failing item is thrown again, so that errors too
  /// are the same for any thread count.
  void parallel_for(int count, const std::function<void(int item, int thread)>& body);

  /// Calls body on every thread but the calling one, once (thread-local settings that came later
  /// than `start`). It must not throw; not from inside an item.
  void on_each(const std::function<void()>& body);

 private:
  struct Shared;
  int threads_;
  std::unique_ptr<Shared> shared_;
};

/// Values that are expensive to make, by key: those of the latest keys, up to a total size. One
/// thread makes a value while others that ask for its key wait; threads that ask for other keys do
/// not. What make() throws reaches its caller, and the next one tries again. make() must not ask the
/// same object. Thread-safe; a linear search over the keys.
template <class Key, class Value>
class Latest {
 public:
  using Size = std::function<int64_t(const Value&)>;

  /// Keeps values of at most `room` together, and always the latest; size_of: 1 each by default. It
  /// is called under a lock, for values that other threads use.
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

  /// Under the lock. A value that is being made stays, so that nobody makes it twice.
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
  std::mutex mutex_;  // of all below
  std::list<std::shared_ptr<Entry>> entries_;  // the latest first
};

/// Objects that one thread at a time works with, kept for the next one. Thread-safe.
template <class Object>
class Idle {
 public:
  /// use(object) with an idle object, or with that of make(), a std::unique_ptr<Object>, where there is
  /// none. An object whose use throws is dropped.
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
