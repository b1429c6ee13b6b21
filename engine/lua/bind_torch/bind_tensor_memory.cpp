#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/alloc_cpu.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <sstream>

#include "base/process.h"
#include "base/units.h"
#include "libtorch/setup.h"
#include "lua/bind_torch/open.h"
#include "lua/bind_torch/tensor.h"

// Memory of tensors. Lua's collector sees 16 bytes per handle, so it would let gigabytes of dead
// tensors lie. LibTorch's allocator on the CPU is replaced by one that counts live bytes and
// refuses what the machine cannot give; pushing a tensor runs a full collection once live bytes
// have grown much since the last one (Torch7's way). Memory on GPUs is not counted: close() such
// tensors early.

namespace trinity::lua {
namespace {

std::atomic<int64_t> g_live_bytes{0};
std::atomic<int64_t> g_collect_at{int64_t{256} << 20};

/// From this size on an allocation asks Linux first what the machine can still give.
constexpr int64_t kLargeBytes = int64_t{256} << 20;

int64_t machine_bytes() {
  static const int64_t bytes = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  return bytes;
}

/// Bytes that can be allocated without swapping; all memory if Linux does not report them.
int64_t available_bytes() {
  std::istringstream file(system_text("/proc/meminfo"));
  std::string name, unit;
  for (int64_t kibibytes = 0; file >> name >> kibibytes; std::getline(file, unit))
    if (name == "MemAvailable:") return kibibytes * 1024;
  return machine_bytes();
}

/// Linux would grant more than there is and kill the process later.
void refuse_too_much(size_t bytes) {
  if (bytes < static_cast<size_t>(kLargeBytes)) return;
  const int64_t live = g_live_bytes, available = available_bytes();
  if (bytes < static_cast<size_t>(available)) return;
  throw LimitError("no memory for {} in addition to {} of tensors in use: {} available",
                   format_bytes(static_cast<int64_t>(std::min(bytes, static_cast<size_t>(INT64_MAX)))),
                   format_bytes(live), format_bytes(available));
}

void release(void* memory) {
  if (!memory) return;
  g_live_bytes -= static_cast<int64_t>(malloc_usable_size(memory));
  c10::free_cpu(memory);
}

/// LibTorch 1.13 declares allocate() const and has no copy_data(), 2.x both otherwise; hence no
/// `override` here.
class CountingAllocator : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) const { return make(bytes); }
  c10::DataPtr allocate(size_t bytes) { return make(bytes); }
  c10::DeleterFnPtr raw_deleter() const { return &release; }
  void copy_data(void* to, const void* from, size_t bytes) const { std::memcpy(to, from, bytes); }

 private:
  static c10::DataPtr make(size_t bytes) {
    const auto cpu = c10::Device(c10::DeviceType::CPU);
    refuse_too_much(bytes);
    void* memory = c10::alloc_cpu(bytes);
    if (memory) g_live_bytes += static_cast<int64_t>(malloc_usable_size(memory));
    return {memory, memory, &release, cpu};
  }
};

}  // namespace

void count_tensor_memory() {
  static std::once_flag once;
  std::call_once(once, [] {
    static CountingAllocator allocator;
    c10::SetCPUAllocator(&allocator);
    use_one_torch_thread();
  });
}

int64_t live_tensor_bytes() { return g_live_bytes; }

int push_tensor(lua_State* L, const at::Tensor& x) {
  push_object(L, std::make_shared<at::Tensor>(x));
  if (g_live_bytes > g_collect_at) {
    lua_gc(L, LUA_GCCOLLECT, 0);
    const int64_t live = g_live_bytes;
    const int64_t room = std::max<int64_t>(0, machine_bytes() - live);
    g_collect_at = live + std::max(kLargeBytes, std::min(live, room) / 2);
  }
  return 1;
}

}  // namespace trinity::lua
