// operator new of the test program and all its libraries: counts allocations and fails on demand.

#include "support/failing_new.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<int64_t> g_made{0}, g_failing{0}, g_live{0};
std::atomic<bool> g_lasting{false};

void* take(std::size_t bytes, std::size_t alignment) {
  const int64_t number = g_made.fetch_add(1, std::memory_order_relaxed) + 1, failing = g_failing;
  if (number == failing || (g_lasting && failing > 0 && number > failing)) throw std::bad_alloc();
  void* memory =
      alignment <= alignof(std::max_align_t)
          ? std::malloc(bytes > 0 ? bytes : 1)
          : std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (!memory) throw std::bad_alloc();
  g_live.fetch_add(1, std::memory_order_relaxed);
  return memory;
}

/// Without an exception, as std::stable_sort allocates its buffer.
void* try_to_take(std::size_t bytes, std::size_t alignment) noexcept {
  try {
    return take(bytes, alignment);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void give(void* memory) noexcept {
  if (memory) g_live.fetch_sub(1, std::memory_order_relaxed);
  std::free(memory);
}

}  // namespace

namespace trinity::test {

int64_t fail_allocation(int64_t nth, bool lasting) {
  g_lasting = lasting;
  g_failing = nth;
  return g_made.exchange(0);
}

int64_t live_blocks() { return g_live; }

}  // namespace trinity::test

void* operator new(std::size_t bytes) { return take(bytes, 1); }
void* operator new[](std::size_t bytes) { return take(bytes, 1); }
void* operator new(std::size_t bytes, std::align_val_t align) {
  return take(bytes, static_cast<std::size_t>(align));
}
void* operator new[](std::size_t bytes, std::align_val_t align) {
  return take(bytes, static_cast<std::size_t>(align));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return try_to_take(bytes, 1);
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return try_to_take(bytes, 1);
}
void operator delete(void* memory) noexcept { give(memory); }
void operator delete[](void* memory) noexcept { give(memory); }
void operator delete(void* memory, std::size_t) noexcept { give(memory); }
void operator delete[](void* memory, std::size_t) noexcept { give(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { give(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { give(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { give(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { give(memory); }
