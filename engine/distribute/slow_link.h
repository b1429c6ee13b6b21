#pragma once

#include <functional>
#include <memory>

#include "distribute/communication_stream.h"
#include "distribute/job.h"
#include "distribute/message.h"

namespace trinity {

/// A rank's messages to other nodes over an injected link: one goes behind the other at its bandwidth,
/// and arrives its latency later. They leave on a thread of their own, in the order in which they came.
class SlowLink {
 public:
  explicit SlowLink(InjectedLink link) : link_(link) {}

  /// Calls `send` when a message of so many bytes would have arrived.
  std::shared_ptr<Message> send(double bytes, std::function<std::unique_ptr<Message>()> send);

 private:
  class Delayed;
  InjectedLink link_;
  double free_s_ = 0;  // when the last message has left; of the stream's thread
  CommunicationStream stream_;  // last: its thread ends first
};

}  // namespace trinity
