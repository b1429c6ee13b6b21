#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>

#include "distribute/communication_stream.h"
#include "distribute/job.h"
#include "distribute/message.h"

namespace trinity {

struct GroupOptions {
  std::string name;  ///< prefix of its keys in the store
  int rank = 0, size = 1;
  std::string address;  ///< of this machine, to which the others connect (Gloo)
  int gpu = -1;              ///< index of this rank's GPU: collectives run over NCCL; -1: Gloo
  InjectedLink link;
};

/// Throws Error if this program was built without NCCL.
void require_nccl();

/// The ranks of a scope, connected by Gloo, and the stream on which their collectives run.
/// Collectives block and are called on the stream. With a GPU, reductions and broadcasts are copied
/// there and run over NCCL; barriers and messages use Gloo. send() and receive() may be called from
/// any thread.
class Group {
 public:
  Group(const JobStore& store, const GroupOptions& options);
  ~Group();

  void all_reduce(const at::Tensor& tensor, const AllReduce& options);
  void broadcast(const at::Tensor& tensor, int root);
  void barrier();
  /// Point-to-point; may be called on any thread.
  std::unique_ptr<Message> send(const at::Tensor& tensor, int to, int32_t tag);
  std::unique_ptr<Message> receive(const at::Tensor& tensor, int from, int32_t tag);

  int64_t begun = 0;

 private:
  void delay(double bytes, bool is_broadcast) const;
  void connect_nccl(const JobStore& store);
  at::Tensor staged(const at::Tensor& tensor) const;

  GroupOptions options_;
  struct Backend;
  std::unique_ptr<Backend> backend_;

 public:
  CommunicationStream stream;  // last: its thread ends before the backend is destroyed
};

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

struct Job::Groups {
  std::unique_ptr<JobStore> store;
  std::array<std::unique_ptr<Group>, 3> scopes;
  std::unique_ptr<SlowLink> link;  ///< for messages to other nodes; null: not slowed

  /// Waits until all collectives are complete; false if that takes longer than `timeout_s`.
  bool drain(double timeout_s);
};

}  // namespace trinity
