#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/words.h"
#include "distribute/communication_stream.h"
#include "distribute/heartbeat.h"
#include "distribute/monitor.h"
#include "distribute/store.h"
#include "launch/launch_variables.h"

namespace at {
class Tensor;
}

namespace trinity {

class Group;
class Message;

/// A simulated slower link between nodes, for experiments on one machine. Every collective that
/// crosses nodes ends later by the time of the ring formulas in manual/simulator.md "Collectives"
/// for this latency and bandwidth. The stream's thread sleeps, so computation continues and later
/// collectives of the same scope queue, as on a real link. Messages to other nodes are delayed, too
/// (distribute/groups.h).
struct InjectedLink {
  double latency_s = 0;
  double bandwidth_bytes_per_s = 0;  ///< 0: no limit
  double delay_s(double bytes, int members, bool is_broadcast) const;
};

/// Backend of collectives.
enum class Collectives : uint8_t { gloo, nccl };
template <>
inline constexpr auto kWords<Collectives> = words("backend", "gloo", "nccl");

/// Properties that must be equal on all ranks, each a line of text; compared when they join.
struct Identity {
  std::string program, script, arguments;
};

struct JobOptions {
  double join_timeout_s = 25;  ///< time limit for all ranks to join
  Identity identity;
  Timeouts timeouts;
  InjectedLink link;
  /// NCCL requires a LibTorch with CUDA and one GPU per rank of a node; tensors travel over it.
  Collectives collectives = Collectives::gloo;
};

enum class Reduction : uint8_t { sum, mean, max };
template <>
inline constexpr auto kWords<Reduction> = words("reduction", "sum", "mean", "max");

struct AllReduce {
  Scope scope = Scope::world;
  Reduction reduction = Reduction::sum;
};

/// The processes of one training job, connected by c10d with Gloo or NCCL. One per process. Tensors
/// of collectives are contiguous, on the CPU, and must not be accessed between begin and wait.
///
/// If a rank dies, hangs or leaves, every process of the job ends: one message, then exit status 1.
/// This is not an exception, because the script of a hanging rank could not catch it. Used by the
/// script's thread; send() and receive() may be called from any thread.
class Job {
 public:
  /// Joins all other ranks. Throws Error if they do not come, if two have the same rank, if they
  /// disagree on the size of the job or on JobOptions::identity, or if nodes have different numbers
  /// of ranks. A store that does not answer ends the process with a message.
  static std::shared_ptr<Job> join(const LaunchVariables& variables, const JobOptions& options);
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  int rank() const { return variables_.rank; }
  int size() const { return variables_.size; }
  int node() const { return node_; }
  int nodes() const { return nodes_; }
  int local_rank() const { return local_rank_; }
  /// GPU whose tensors collectives accept in addition to CPU tensors; -1: none (Gloo).
  int gpu() const { return options_.collectives == Collectives::nccl ? local_rank_ : -1; }
  int local_size() const { return size() / nodes_; }
  const std::string& source() const { return variables_.source; }
  int members(Scope scope) const;

  /// Reduces a tensor in place over the ranks of a scope. All of them must begin in the same order.
  std::shared_ptr<Work> begin_all_reduce(const at::Tensor& tensor, const AllReduce& options);
  /// Copies the tensor of the scope's member `root` to all its members.
  std::shared_ptr<Work> begin_broadcast(const at::Tensor& tensor, Scope scope, int root);
  /// Replaces values by their sums over all ranks, bit-identical on each. Blocks.
  void sum(std::span<float> values);
  void sum(std::span<double> values);
  /// Starts sending a contiguous CPU tensor to a rank, or receiving one of its size. The n-th
  /// message from one rank to another with a tag matches the n-th receive with that tag, so ranks
  /// need no common order. Thread-safe; not available in a job of one process.
  std::shared_ptr<Message> send(const at::Tensor& tensor, int to, int32_t tag);
  std::shared_ptr<Message> receive(const at::Tensor& tensor, int from, int32_t tag);
  /// To be called when a connection breaks: the judge finds the rank at fault, and this process
  /// ends with the job. Throws Interrupted after Ctrl-C.
  [[noreturn]] void end_broken(const std::string& what, const std::string& failure);
  /// Waits for completion, or for the end of the job. Throws Interrupted after Ctrl-C.
  void wait(const Work& work);
  /// Waits for all ranks.
  void barrier();

  /// Ends the job unless all ranks pass the same text: names the rank that differs from the
  /// majority, and its first differing line. `place` begins the message, `what` names the text.
  void agree(const std::string& place, const std::string& what, const std::string& text);
  /// Ends the job with a message.
  [[noreturn]] void fail(const std::string& message);
  /// Leaves the job. Rank 0, if it hosts the store, waits for the others. Idempotent.
  void close();

 private:
  struct Groups;
  Job(LaunchVariables variables, JobOptions options);
  void meet();
  void say_hello(StoreWatch& watch);
  void take_rank();
  void compare_identities();
  void find_nodes(const std::vector<std::string>& hellos);
  void connect_groups(std::unique_ptr<JobStore> store);
  void check_joining(int missing, double waited_s);
  [[noreturn]] void fail_joining(const std::string& message);
  [[noreturn]] void end_without_store(const std::string& failure) const;
  std::vector<Seen> seen_ranks() const;
  std::string keeper() const { return variables_.has_store ? "the launcher" : "rank 0"; }
  std::string store_advice() const;
  std::string address_advice() const;
  std::string await(const std::string& topic, int r);
  std::vector<std::string> gather(const std::string& topic, const std::string& text);
  std::shared_ptr<Work> begin(const std::string& what, Scope scope,
                              std::function<void(Group&)> body);
  std::string key(const std::string& name) const;
  bool keeps_store() const { return rank() == 0 && !variables_.has_store; }

  LaunchVariables variables_;
  JobOptions options_;
  int node_ = 0, nodes_ = 1, local_rank_ = 0;
  bool on_one_host_ = true;
  int64_t meetings_ = 0, agreements_ = 0;
  std::vector<int> node_of_, local_rank_of_;
  std::vector<std::string> host_of_;
  StoreWatch* joining_ = nullptr;  // while joining
  std::unique_ptr<JobStore> server_, store_;
  std::unique_ptr<Groups> groups_;
  std::unique_ptr<Monitor> monitor_;
  bool closed_ = false;
};

}  // namespace trinity
