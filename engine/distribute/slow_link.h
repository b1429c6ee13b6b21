#pragma once

#include <functional>
#include <memory>

#include "distribute/communication_stream.h"
#include "distribute/job.h"
#include "distribute/message.h"

namespace trinity {

/// A rank's messages to other nodes over a simulated slow link: they are serialised at its
/// bandwidth and arrive its latency later. They are sent on a thread of their own, in order.
class SlowLink {
 public:
  explicit SlowLink(InjectedLink link) : link_(link) {}

  /// Calls `send` when a message of this many bytes would have arrived.
  std::shared_ptr<Message> send(double bytes, std::function<std::unique_ptr<Message>()> send);

 private:
  class Delayed;
  InjectedLink link_;
  double free_s_ = 0;  // when the last message has left; used by the stream's thread
  CommunicationStream stream_;  // last: its thread ends first
};

}  // namespace trinity
