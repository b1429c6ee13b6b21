#pragma once

namespace at {
class Tensor;
}

namespace trinity {

/// A tensor in transfer between two ranks (Job::send, Job::receive). To be kept until it has
/// arrived. One thread waits; abort() may come from another.
class Message {
 public:
  virtual ~Message() = default;
  /// Waits for completion; false if abort() was called first. Throws the connection's errors.
  virtual bool wait() = 0;
  /// Ends the wait; called from another thread.
  virtual void abort() = 0;
};

}  // namespace trinity
