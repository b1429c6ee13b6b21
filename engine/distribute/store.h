#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/error.h"

namespace trinity {

/// The process that keeps the store is gone.
class StoreError : public Error {
 public:
  using Error::Error;
};

/// The job's store: texts by key that all ranks share, kept by one process (c10d's TCPStore, the
/// protocol of torchrun). Not for several threads at once: every thread has its own connection.
/// All methods throw StoreError when the process that keeps the store is gone.
class JobStore {
 public:
  /// Keeps a store on this machine; port 0 takes a free one. Throws Error when it cannot.
  static std::unique_ptr<JobStore> serve(const std::string& address, int port);
  /// Connects to one; retries for `timeout_s`, then throws Error.
  static std::unique_ptr<JobStore> connect(const std::string& address, int port, double timeout_s);
  ~JobStore();

  void set(const std::string& key, const std::string& value);
  /// nullopt when nobody has set it.
  std::optional<std::string> get(const std::string& key);
  /// Adds to a counter (from 0) and returns the sum.
  int64_t add(const std::string& key, int64_t value);
  int port() const;

  struct Parts;
  const Parts& parts() const { return *parts_; }

 private:
  explicit JobStore(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace trinity
