#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

namespace trinity {

/// What the tensors of one worker take on the processor, as LibTorch's allocator hands it out:
/// weights, values, what autograd saved and what kernels need while they run. A block counts for
/// the worker that asked for it until it is freed, whoever frees it. Blocks that libraries below
/// LibTorch take for themselves (a BLAS's buffers) are not seen.
class MemoryAccount {
 public:
  /// Of device `name`; `limit_bytes` 0: no limit.
  MemoryAccount(std::string name, int64_t limit_bytes)
      : name_(std::move(name)), limit_bytes_(limit_bytes) {}

  /// Throws LimitError when the limit would be passed.
  void add(int64_t bytes);
  void remove(int64_t bytes) { current_ -= bytes; }
  int64_t current_bytes() const { return current_; }
  int64_t peak_bytes() const { return peak_; }
  void restart_peak() { peak_ = current_.load(); }
  const std::string& name() const { return name_; }

 private:
  std::string name_;
  int64_t limit_bytes_;
  std::atomic<int64_t> current_{0}, peak_{0};
};

/// While it lives, what this thread allocates counts for an account. Elsewhere nothing is counted.
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
