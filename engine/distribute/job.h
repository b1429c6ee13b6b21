#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

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

/// A link between nodes that is slower than the real one, for experiments on one machine: every
/// collective that crosses nodes ends later by what the formulas of manual/simulator.md
/// "Collectives" (ring) give for this latency and bandwidth. The sleep is on the stream's thread,
/// so computation goes on meanwhile, and later collectives of the same scope queue behind it, as on
/// a wire. So do a rank's messages to other nodes (distribute/slow_link.h).
struct InjectedLink {
  double latency_s = 0;
  double bandwidth_bytes_per_s = 0;  ///< 0: no limit
  double delay_s(double bytes, int members, bool is_broadcast) const;
};

/// What carries collectives.
enum class Collectives : uint8_t { gloo, nccl };
/// Throws ArgumentError naming the accepted words.
Collectives parse_collectives(std::string_view name);

/// What all ranks must have alike, each a line of text; compared when they join.
struct Identity {
  std::string program, script, arguments;
};

struct JobOptions {
  double join_timeout_s = 25;  ///< for all ranks to come
  Identity identity;
  Timeouts timeouts;
  InjectedLink link;
  /// NCCL needs a LibTorch with CUDA and a GPU for every rank of a node; tensors travel over it.
  Collectives collectives = Collectives::gloo;
};

enum class Reduction : uint8_t { sum, mean, max };
/// Throws ArgumentError naming the accepted words.
Reduction parse_reduction(std::string_view name);

struct AllReduce {
  Scope scope = Scope::world;
  Reduction reduction = Reduction::sum;
};

/// The processes of one training, joined over c10d with Gloo or NCCL. One a process. Tensors of
/// collectives are contiguous, on the processor, and not to be touched between begin and wait.
///
/// When a rank dies, hangs or leaves, every process of the job ends: one message, then exit status
/// 1. No exception tells of it, because the script of a rank that hangs could not catch it either.
class Job {
 public:
  /// Meets all other ranks. Throws Error when they do not come, when two have one rank, when they
  /// disagree on the size of the job or are not alike (JobOptions::identity), or when nodes have
  /// different numbers of ranks. A store that does not answer ends the process with a message.
  static std::shared_ptr<Job> join(const LaunchVariables& variables, const JobOptions& options);
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  int rank() const { return variables_.rank; }
  int size() const { return variables_.size; }
  int node() const { return node_; }
  int nodes() const { return nodes_; }
  int local_rank() const { return local_rank_; }
  /// The GPU whose tensors collectives take, beside those of the processor; -1: none (Gloo).
  int gpu() const { return options_.collectives == Collectives::nccl ? local_rank_ : -1; }
  int local_size() const { return size() / nodes_; }
  const std::string& source() const { return variables_.source; }
  int members(Scope scope) const;

  /// Reduces a tensor in place over the ranks of a scope. Begun in the same order by all of them.
  std::shared_ptr<Work> begin_all_reduce(const at::Tensor& tensor, const AllReduce& options);
  /// Copies the tensor of the scope's member number `root` to all its members.
  std::shared_ptr<Work> begin_broadcast(const at::Tensor& tensor, Scope scope, int root);
  /// Replaces values by their sums over all ranks, the same bits on each, and waits.
  void sum(std::span<float> values);
  void sum(std::span<double> values);
  /// Begins to send a contiguous tensor on the processor to a rank, or to receive one of its size.
  /// The n-th message that a rank sends another with a tag is the n-th that this one receives
  /// with it, so that ranks need no common order. On any thread; not in a job of one process.
  std::shared_ptr<Message> send(const at::Tensor& tensor, int to, int32_t tag);
  std::shared_ptr<Message> receive(const at::Tensor& tensor, int from, int32_t tag);
  /// A connection ended: the judge finds out whose, and this process ends with the job. Throws
  /// Interrupted where Ctrl-C comes.
  [[noreturn]] void end_broken(const std::string& what, const std::string& failure);
  /// Waits until it is done, or until the job ends. Throws Interrupted on Ctrl-C.
  void wait(const Work& work);
  /// Waits for all ranks.
  void barrier();

  /// Ends the job unless all ranks give the same text about `what`: names the rank that differs
  /// from most, and its first line that differs. `place` begins the message.
  void agree(const std::string& place, const std::string& what, const std::string& text);
  /// Ends the job with a message.
  [[noreturn]] void fail(const std::string& message);
  /// Says goodbye. Rank 0, if it keeps the store, waits for the others. Safe to repeat.
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
  StoreWatch* joining_ = nullptr;  // while this meets the others
  std::unique_ptr<JobStore> server_, store_;
  std::unique_ptr<Groups> groups_;
  std::unique_ptr<Monitor> monitor_;
  bool closed_ = false;
};

}  // namespace trinity
