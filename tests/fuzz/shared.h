#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstring>
#include <string>
#include <string_view>

#include "base/error.h"
#include "fuzz/coverage.h"
#include "fuzz/mutate.h"

namespace trinity::fuzz {

/// What supervisor and worker share, beyond the worker's death.
struct Shared {
  static constexpr size_t kArenaBytes = size_t{1} << 28;
  static constexpr uint32_t kMostEntries = 1 << 16;

  std::atomic<uint64_t> inputs;      ///< begun
  std::atomic<bool> running, ready;  ///< an input runs; the session has begun
  std::atomic<uint32_t> replayed;    ///< of the entries that were there at the beginning
  uint32_t seeds;                    ///< how many those are
  uint32_t count;                    ///< of entries
  size_t used;                       ///< of the arena
  size_t begin[kMostEntries], size[kMostEntries];
  char message[4096];
  uint64_t known[64];  ///< failures already reported, by their texts
  size_t known_count;
  size_t input_size;
  char input[kMostBytes];
  uint8_t seen[kPairs];
  char arena[kArenaBytes];

  std::string entry(size_t i) const { return {arena + begin[i], size[i]}; }

  /// Adds an input while there is room.
  void add(std::string_view text) {
    if (count == kMostEntries || text.size() > kArenaBytes - used) return;
    std::memcpy(arena + used, text.data(), text.size());
    begin[count] = used, size[count] = text.size();
    used += text.size(), ++count;
  }
};

/// Zeroed memory that children share.
template <class T>
class SharedMemory {
 public:
  explicit SharedMemory(size_t count) : bytes_(count * sizeof(T)) {
    memory_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory_ == MAP_FAILED) throw LimitError("no memory to share");
  }
  ~SharedMemory() { munmap(memory_, bytes_); }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  T* get() const { return static_cast<T*>(memory_); }

 private:
  size_t bytes_;
  void* memory_;
};

/// The worker's part: begins a session in `folder`, runs inputs until `lifetime_s` is over or the
/// corpus is replayed and `only_replay`. Returns the exit status for the process.
int run_worker(const Target& target, Shared& shared, uint8_t* places, const std::string& folder,
               uint64_t seed, uint64_t number, double lifetime_s, bool only_replay);

}  // namespace trinity::fuzz
