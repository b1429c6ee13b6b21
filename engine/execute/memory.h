#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

namespace trinity {

/// What the tensors of one worker take, as LibTorch's allocator hands it out: weights, values, what
/// autograd saved and what kernels need while they run. A block counts for the worker that asked for
/// it until it is freed, whoever frees it. Blocks that libraries below LibTorch take for themselves
/// (a BLAS's buffers) are not seen.
///
/// Of a GPU LibTorch counts all that this process has there, so the worker's is what changes between
/// open() and close(); workers that share a GPU each count what all of them change. No limit holds
/// there.
class MemoryAccount {
 public:
  /// Of device `name`; `limit_bytes` 0: no limit; `gpu` -1: a processor's.
  MemoryAccount(std::string name, int64_t limit_bytes, int32_t gpu = -1)
      : name_(std::move(name)), limit_bytes_(limit_bytes), gpu_(gpu) {}

  /// Throws LimitError when the limit would be passed.
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
  int64_t held_ = 0, others_ = 0;  // on the GPU: this account's when it was closed, everybody else's
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
