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
