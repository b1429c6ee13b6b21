#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

namespace trinity {

/// Memory of one worker's tensors as allocated by LibTorch: weights, values, tensors saved by
/// autograd and temporary memory of kernels. A block counts for the worker that allocated it until
/// it is freed, by whatever thread. Memory that libraries below LibTorch allocate themselves (BLAS
/// buffers) is not seen.
///
/// For a GPU, LibTorch counts all memory of this process, so a worker's is the change between
/// open() and close(); workers that share a GPU each count the changes of all. The limit does not
/// apply there. Thread-safe.
class MemoryAccount {
 public:
  /// Account of device `name`. limit_bytes 0: no limit; gpu -1: a CPU.
  MemoryAccount(std::string name, int64_t limit_bytes, int32_t gpu = -1)
      : name_(std::move(name)), limit_bytes_(limit_bytes), gpu_(gpu) {}

  /// Throws LimitError if the limit would be exceeded.
  void add(int64_t bytes);
  void remove(int64_t bytes) { current_ -= bytes; }
  void open();
  void close();
  int64_t current_bytes() const;
  int64_t peak_bytes() const;
  void restart_peak();
  const std::string& name() const { return name_; }

 private:
  std::string name_;
  int64_t limit_bytes_;
  int32_t gpu_;
  std::atomic<int64_t> current_{0}, peak_{0};
  int64_t held_ = 0, others_ = 0;  // on the GPU: this account's when closed, everything else
};

/// RAII: during its lifetime this thread's allocations count for an account. Otherwise nothing is
/// counted.
class AccountScope {
 public:
  explicit AccountScope(std::shared_ptr<MemoryAccount> account);
  ~AccountScope();
  AccountScope(const AccountScope&) = delete;
  AccountScope& operator=(const AccountScope&) = delete;

 private:
  std::shared_ptr<MemoryAccount> outer_;
};

}  // namespace trinity
