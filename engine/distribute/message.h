#pragma once

#include <cstdint>

namespace at {
class Tensor;
}

namespace trinity {

/// A tensor on its way between two ranks (Job::send, Job::receive). Kept until it has arrived.
class Message {
 public:
  virtual ~Message() = default;
  /// Waits for its end; false when abort() came first. Throws what the connection throws.
  virtual bool wait() = 0;
  /// Ends the waiting, from another thread.
  virtual void abort() = 0;
};

}  // namespace trinity
