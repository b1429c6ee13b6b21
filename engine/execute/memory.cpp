#include "execute/memory.h"

#include <c10/core/CPUAllocator.h>
#ifdef TRINITY_CUDA
#include <c10/cuda/CUDACachingAllocator.h>
#endif

#include <array>
#include <cstring>
#include <mutex>
#include <unordered_map>

#include "base/error.h"
#include "base/hash.h"
#include "base/units.h"
#include "libtorch/torch.h"

namespace trinity {
namespace {

thread_local std::shared_ptr<MemoryAccount> g_account;

/// Account of each block, by address, in sections with a lock each. Blocks keep the addresses of
/// LibTorch's own allocator, because some callers free by address alone.
class Ledger {
 public:
  struct Entry {
    std::shared_ptr<MemoryAccount> account;
    int64_t bytes = 0;
  };

  void write(void* block, Entry entry) {
    Part& part = part_of(block);
    const std::lock_guard lock(part.mutex);
    part.entries[block] = std::move(entry);
  }

  /// Removes and returns the entry; empty for a block that is not counted.
  Entry take(void* block) {
    Part& part = part_of(block);
    const std::lock_guard lock(part.mutex);
    const auto found = part.entries.find(block);
    if (found == part.entries.end()) return {};
    Entry entry = std::move(found->second);
    part.entries.erase(found);
    return entry;
  }

 private:
  struct Part {
    std::mutex mutex;
    std::unordered_map<void*, Entry> entries;
  };
  Part& part_of(void* block) {
    return parts_[mix64(reinterpret_cast<uintptr_t>(block)) % parts_.size()];
  }
  std::array<Part, 64> parts_;
};

c10::DeleterFnPtr g_free = nullptr;  // LibTorch's own

/// Never destroyed: blocks outlive static objects.
Ledger& ledger() {
  static auto* made = new Ledger;
  return *made;
}

void free_block(void* block) {
  const auto entry = ledger().take(block);
  if (entry.account) entry.account->remove(entry.bytes);
  g_free(block);
}

/// Wraps LibTorch's own allocator; threads without an account are unaffected.
class CountingAllocator final : public c10::Allocator {
 public:
  explicit CountingAllocator(c10::Allocator* own) : own_(own) {}

  // LibTorch 1.13 declares it const, 2.3 does not: one of the two overrides.
  c10::DataPtr allocate(size_t bytes) const { return counted(bytes); }
  c10::DataPtr allocate(size_t bytes) { return counted(bytes); }
  void copy_data(void* to, const void* from, size_t count) const { std::memcpy(to, from, count); }
  c10::DeleterFnPtr raw_deleter() const override { return free_block; }

 private:
  c10::DataPtr counted(size_t bytes) const {
    const auto account = g_account;
    if (!account || bytes == 0) return own_->allocate(bytes);
    account->add(static_cast<int64_t>(bytes));
    try {
      auto memory = own_->allocate(bytes);
      void* block = memory.get();
      const auto device = memory.device();
      memory.release_context();
      ledger().write(block, {account, static_cast<int64_t>(bytes)});
      return {block, block, free_block, device};
    } catch (const std::exception&) {
      account->remove(static_cast<int64_t>(bytes));
      throw LimitError("out of memory: the system refused {} in addition to {}",
                       format_bytes(static_cast<int64_t>(bytes)), format_bytes(account->current_bytes()));
    }
  }

  c10::Allocator* own_;
};

/// Replaces an allocator whose blocks can be freed by address, as LibTorch's can.
void install() {
  static std::once_flag once;
  std::call_once(once, [] {
    g_free = c10::GetCPUAllocator()->raw_deleter();
    if (!g_free) return;
    static CountingAllocator counting(c10::GetCPUAllocator());
    c10::SetCPUAllocator(&counting);
  });
}

/// Bytes of this process's tensors on a GPU.
struct GpuBytes {
  int64_t current = 0, peak = 0;  // since restart_gpu_peak()
};

#ifdef TRINITY_CUDA
GpuBytes gpu_bytes(int32_t gpu) {
  const auto stats =
      c10::cuda::CUDACachingAllocator::getDeviceStats(static_cast<c10::DeviceIndex>(gpu));
  const auto& all = stats.allocated_bytes[0];  // [0]: small and large blocks together
  return {all.current, all.peak};
}
void restart_gpu_peak(int32_t gpu) {
  c10::cuda::CUDACachingAllocator::resetPeakStats(static_cast<c10::DeviceIndex>(gpu));
}
#else
GpuBytes gpu_bytes(int32_t) { return {}; }
void restart_gpu_peak(int32_t) {}
#endif

}  // namespace

void MemoryAccount::open() {
  if (gpu_ >= 0) others_ = gpu_bytes(gpu_).current - held_;
}

void MemoryAccount::close() {
  if (gpu_ >= 0) held_ = gpu_bytes(gpu_).current - others_;
}

int64_t MemoryAccount::current_bytes() const {
  return gpu_ < 0 ? current_.load() : gpu_bytes(gpu_).current - others_;
}

int64_t MemoryAccount::peak_bytes() const {
  return gpu_ < 0 ? peak_.load() : gpu_bytes(gpu_).peak - others_;
}

void MemoryAccount::restart_peak() {
  if (gpu_ < 0)
    peak_ = current_.load();
  else
    restart_gpu_peak(gpu_);
}

void MemoryAccount::add(int64_t bytes) {
  const int64_t now = current_ += bytes;
  if (limit_bytes_ > 0 && now > limit_bytes_) {
    current_ -= bytes;
    throw LimitError("out of memory: {} in addition to {}, limit {}", format_bytes(bytes), format_bytes(now - bytes),
                     format_bytes(limit_bytes_));
  }
  int64_t most = peak_;
  while (now > most && !peak_.compare_exchange_weak(most, now)) {
  }
}

AccountScope::AccountScope(std::shared_ptr<MemoryAccount> account) {
  install();
  outer_ = std::exchange(g_account, std::move(account));
}

AccountScope::~AccountScope() { g_account = std::move(outer_); }

}  // namespace trinity
