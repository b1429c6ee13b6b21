#pragma once

#include <atomic>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace trinity {

/// A value that its copies have together until one of them is written to: copying and freeing one
/// counts a reference. Reading is as with a T; what writes says so, by edit(). Threads may have
/// copies of one value, as they may have Ts.
template <class T>
class Shared {
 public:
  Shared() = default;
  Shared(T value) {  // NOLINT: a T is one
    if (!value.empty()) value_ = std::make_shared<T>(std::move(value));
  }

  operator const T&() const { return get(); }  // NOLINT: it is one
  const T& get() const {
    static const T kEmpty;
    return value_ ? *value_ : kEmpty;
  }
  /// This one's own value. What was got of it before is no longer of this one.
  T& edit() {
    if (!value_) {
      value_ = std::make_shared<T>();
    } else if (value_.use_count() > 1) {
      value_ = std::make_shared<T>(*value_);
    } else {
      std::atomic_thread_fence(std::memory_order_acquire);  // another thread's may have gone
    }
    return *value_;
  }

  auto begin() const { return get().begin(); }
  auto end() const { return get().end(); }
  size_t size() const { return value_ ? value_->size() : 0; }
  bool empty() const { return !value_ || value_->empty(); }
  void clear() { value_.reset(); }
  friend bool operator==(const Shared& a, const Shared& b) {
    return a.value_ == b.value_ || a.get() == b.get();
  }

 private:
  std::shared_ptr<T> value_;
};

template <class T>
class SharedList : public Shared<std::vector<T>> {
 public:
  using Shared<std::vector<T>>::Shared;
  SharedList(std::initializer_list<T> list) : SharedList(std::vector<T>(list)) {}

  const T& operator[](size_t i) const { return this->get()[i]; }
  const T& at(size_t i) const { return this->get().at(i); }
  const T& front() const { return this->get().front(); }
  const T& back() const { return this->get().back(); }
  void push_back(T value) { this->edit().push_back(std::move(value)); }
};

template <class T>
class SharedMap : public Shared<std::map<std::string, T>> {
 public:
  using Map = std::map<std::string, T>;
  using Shared<Map>::Shared;
  SharedMap(std::initializer_list<typename Map::value_type> list) : SharedMap(Map(list)) {}

  auto find(const std::string& name) const { return this->get().find(name); }
  bool contains(const std::string& name) const { return this->get().contains(name); }
  const T& at(const std::string& name) const { return this->get().at(name); }
  T& operator[](const std::string& name) { return this->edit()[name]; }
  void emplace(std::string name, T value) {
    this->edit().emplace(std::move(name), std::move(value));
  }
  void erase(const std::string& name) {
    if (contains(name)) this->edit().erase(name);
  }
};

}  // namespace trinity
