#pragma once

#include <array>
#include <memory>
#include <string>

#include "distribute/job.h"
#include "distribute/message.h"
#include "distribute/slow_link.h"

namespace trinity {

struct GroupOptions {
  std::string name;  ///< begins its keys in the store
  int rank = 0, size = 1;
  std::string address;  ///< of this machine, at which the others connect (Gloo)
  int gpu = -1;              ///< number of this rank's: NCCL carries collectives; -1: Gloo
  InjectedLink link;
};

/// Throws Error where this program has no NCCL.
void require_nccl();

/// The ranks of a scope, connected by Gloo, and the stream that their collectives run on.
/// Collectives here block, and are called on the stream. With a GPU, reductions and broadcasts go
/// over NCCL by way of a copy there; barriers and messages stay with Gloo.
class Group {
 public:
  Group(const JobStore& store, const GroupOptions& options);
  ~Group();

  void all_reduce(const at::Tensor& tensor, const AllReduce& options);
  void broadcast(const at::Tensor& tensor, int root);
  void barrier();
  /// Point to point, beside the collectives; may be called on any thread.
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
  CommunicationStream stream;  // last: its thread ends before the backend goes
};

struct Job::Groups {
  std::unique_ptr<JobStore> store;
  std::array<std::unique_ptr<Group>, 3> scopes;
  std::unique_ptr<SlowLink> link;  ///< for messages to other nodes; null: as fast as it is

  /// Waits until all that was begun has ended; false when that takes longer than `timeout_s`.
  bool drain(double timeout_s);
};

}  // namespace trinity
