#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace trinity {

/// Computes when the nodes of a data-parallel training finish their batches, from the seconds that
/// the parts of a step take (scripts/studies/papers/daso_training.lua simulates them). Nodes with
/// equal batches need no clock of their own: an epoch is a sum. For DASO every node has a clock
/// that starts at 0, and so has the link between the nodes, which carries one all-reduce at a time
/// while the nodes continue. Not thread-safe.
class ReplicaClock {
 public:
  /// By node: seconds of a batch of its slowest replica alone, and of its replicas with gradients
  /// averaged inside the node (empty where no step() is together). Throws ArgumentError for no
  /// node, lists of two lengths, seconds below 0 or none.
  ReplicaClock(std::vector<double> alone_s, std::vector<double> together_s);

  /// A batch of the slowest node, nobody averaging.
  double compute_s() const { return compute_s_; }

  /// An epoch of `batches` with parameters averaged over all every `steps` batches, and at its end.
  double local_sgd_epoch_s(int64_t batches, int64_t steps, double average_s) const;
  /// An epoch with gradients sent to servers and parameters back, which takes all replicas together
  /// `all_s` and one alone `one_s`. In step: batch and exchange in turn. Asynchronous: a replica
  /// runs independently, unless the servers' links are slower.
  double server_epoch_s(int64_t batches, double all_s, double one_s, bool asynchronous) const;

  /// When the last node has finished all batches so far.
  double latest_s() const;
  /// Every node computes a batch: alone, or together with the replicas inside it.
  void step(bool together);
  /// All nodes begin a batch when the last is there, and end it `step_s` later.
  void step_of_all(double step_s);
  /// Something that takes every node so long.
  void add(double seconds);
  /// An all-reduce over nodes, which takes `sum_s` and starts once all nodes and the link are free.
  void send(double sum_s);
  /// The batch is over: what it sent is under way from now on.
  void end_batch();
  /// Nodes wait for what this batch sent. Throws ArgumentError where that is nothing, as
  /// wait_for_earlier() does.
  void wait_for_sent();
  /// Nodes wait for what an earlier batch sent.
  void wait_for_earlier();

 private:
  void wait(std::optional<double>& until_s);

  std::vector<double> alone_s_, together_s_, now_s_;
  double compute_s_ = 0, wire_free_s_ = 0;
  std::optional<double> sent_s_, earlier_s_;  // when these sums are there
};

}  // namespace trinity
