#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

// Values with cheap copies.

namespace trinity {

/// A copy-on-write value: copies share it until one of them is written to; copying and freeing
/// count a reference. Reads as a T; writes go through edit(). Not thread-safe, but threads may hold
/// copies of one value, as they may hold separate Ts.
template <class T>
class Shared {
 public:
  Shared() = default;
  Shared(T value) {  // NOLINT: implicit
    if (!value.empty()) value_ = std::make_shared<T>(std::move(value));
  }

  operator const T&() const { return get(); }  // NOLINT: implicit
  const T& get() const {
    static const T kEmpty;
    return value_ ? *value_ : kEmpty;
  }
  /// This copy's own value for writing. Earlier references to the value no longer refer to this
  /// copy.
  T& edit() {
    if (!value_) {
      value_ = std::make_shared<T>();
    } else if (value_.use_count() > 1) {
      value_ = std::make_shared<T>(*value_);
    } else {
      std::atomic_thread_fence(std::memory_order_acquire);  // another thread's copy may have gone
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

/// A copy-on-write vector. Not thread-safe; threads may hold copies of one value (see Shared).
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

/// A copy-on-write map by name. Not thread-safe; threads may hold copies of one value (see Shared).
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

/// A list of plain values with inline storage for up to N: such a list allocates nothing. Otherwise
/// like std::vector. Not thread-safe.
template <class T, uint32_t N>
class ShortList {
  static_assert(std::is_trivially_copyable_v<T> && N * sizeof(T) >= sizeof(T*));

 public:
  using value_type = T;
  using iterator = T*;
  using const_iterator = const T*;

  ShortList() = default;
  ShortList(std::initializer_list<T> list) { append(list.begin(), list.end()); }
  ShortList(const std::vector<T>& list) {  // NOLINT: implicit
    append(list.data(), list.data() + list.size());
  }
  ShortList(const ShortList& other) { append(other.begin(), other.end()); }
  ShortList(ShortList&& other) noexcept { take(other); }
  ShortList& operator=(const ShortList& other) {
    if (this == &other) return *this;
    size_ = 0;
    append(other.begin(), other.end());
    return *this;
  }
  ShortList& operator=(ShortList&& other) noexcept {
    if (this == &other) return *this;
    free_memory();
    take(other);
    return *this;
  }
  ~ShortList() { free_memory(); }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* data() { return in_place() ? reinterpret_cast<T*>(store_) : many(); }
  const T* data() const { return const_cast<ShortList*>(this)->data(); }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }
  T& operator[](size_t i) { return data()[i]; }
  const T& operator[](size_t i) const { return data()[i]; }
  const T& at(size_t i) const {
    if (i >= size_) throw std::out_of_range("ShortList");
    return data()[i];
  }
  const T& front() const { return data()[0]; }
  T& back() { return data()[size_ - 1]; }
  const T& back() const { return data()[size_ - 1]; }

  void clear() { size_ = 0; }
  void reserve(size_t count) {
    if (count > room_) grow(count);
  }
  void push_back(T value) {
    if (size_ == room_) grow(2 * size_t{room_});
    data()[size_++] = value;
  }
  /// The range must not be part of this list.
  void append(const T* first, const T* last) {
    const auto count = static_cast<size_t>(last - first);
    if (count == 0) return;
    reserve(size_ + count);
    std::memcpy(data() + size_, first, count * sizeof(T));
    size_ += static_cast<uint32_t>(count);
  }
  void erase(const T* first, const T* last) {
    std::copy(last, std::as_const(*this).end(), begin() + (first - data()));
    size_ -= static_cast<uint32_t>(last - first);
  }

  friend bool operator==(const ShortList& a, const ShortList& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  bool in_place() const { return room_ == N; }
  T* many() const {
    T* found;
    std::memcpy(&found, store_, sizeof(found));
    return found;
  }
  void grow(size_t count) {
    T* made = new T[count];
    std::memcpy(made, data(), size_ * sizeof(T));
    free_memory();
    std::memcpy(store_, &made, sizeof(made));
    room_ = static_cast<uint32_t>(count);
  }
  void take(ShortList& other) {
    std::memcpy(store_, other.store_, sizeof(store_));
    size_ = std::exchange(other.size_, 0);
    room_ = std::exchange(other.room_, N);
  }
  void free_memory() {
    if (!in_place()) delete[] many();
  }

  uint32_t size_ = 0, room_ = N;
  alignas(T) alignas(T*) std::byte store_[N * sizeof(T)] = {};  // the values, or a pointer to them
};

}  // namespace trinity
