#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/error.h"

namespace trinity {

/// The process that hosts the store is gone. Immutable.
class StoreError : public Error {
 public:
  using Error::Error;
};

/// The job's key-value store, shared by all ranks and hosted by one process (c10d's TCPStore, the
/// protocol of torchrun). Not thread-safe: every thread has its own connection. All methods throw
/// StoreError if the host is gone.
class JobStore {
 public:
  /// Hosts a store on this machine; port 0 picks a free one. Throws Error on failure.
  static std::unique_ptr<JobStore> serve(const std::string& address, int port);
  /// Connects to a store; retries for `timeout_s`, then throws Error.
  static std::unique_ptr<JobStore> connect(const std::string& address, int port, double timeout_s);
  ~JobStore();

  void set(const std::string& key, const std::string& value);
  /// nullopt if the key is not set.
  std::optional<std::string> get(const std::string& key);
  /// Adds to a counter (initially 0) and returns the sum.
  int64_t add(const std::string& key, int64_t value);
  int port() const;

  struct Parts;
  const Parts& parts() const { return *parts_; }

 private:
  explicit JobStore(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace trinity
