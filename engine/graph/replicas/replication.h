#pragma once

#include <algorithm>
#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/index.h"
#include "base/stop.h"
#include "graph/graph.h"
#include "graph/meaning.h"
#include "graph/nameless.h"
#include "graph/replicas.h"

// Internal to this folder: shared by replication.cpp (copies and their inputs) and `meetings.cpp`
// (buckets, and the collectives and servers that synchronise replicas).

namespace trinity {

/// Builds the graph of all replicas. Used once: construct, run, discard. Not thread-safe.
class Replication {
 public:
  /// `group`: [operator]; a bucket holds gradients of one group, which lies within one stage.
  Replication(const Graph& graph, std::span<const int32_t> stage, std::span<const int32_t> replicas,
              std::span<const int32_t> group, const ReplicaOptions& options)
      : graph_(graph),
        stage_(stage),
        replicas_(replicas),
        group_(group),
        options_(options),
        meaning_(has_meaning(graph)),
        in_place_(options.at_share.size() == 1 && options.at_share[0] == &graph),
        builder_(in_place_ ? GraphBuilder(graph) : GraphBuilder(graph.name())),
        whole_(graph.tensors().size(), false),
        pieces_(graph.tensors().size()),
        ids_(at(graph.operator_count())) {
    for (const int32_t s : stage) most_ = std::max(most_, replicas[at(s)]);  // a stage may have no operator
  }

  Replicated run();

 private:
  /// Start of a part of the batch, as a fraction: part / parts.
  struct Cut {
    int64_t part, parts;
    bool before(const Cut& other) const { return part * other.parts < other.part * parts; }
    double share() const { return static_cast<double>(part) / static_cast<double>(parts); }
  };

  /// A piece of a copy's output: the samples between two cuts.
  struct Piece {
    Cut from, to;
    int32_t tensor;  // index in the builder
  };

  /// Tensors that replicas synchronise together: gradients, in order of production, or weights.
  struct Bucket {
    int32_t stage, spread;
    std::vector<int32_t> items;  // original tensors; for weights: tensors + update
    int64_t bytes = 0;
  };

  /// Groups of replicas that take part in simultaneous collectives.
  using Groups = std::vector<std::vector<int32_t>>;

  struct Origin {
    int32_t op, stage, replica;
    int32_t turn = -1;  // as Replicated::turn; -1: the replica
  };

  int32_t replicas_of(int32_t op) const { return replicas_[stage_[op]]; }
  /// Number of replicas, including those that are not built.
  int32_t all_replicas_of(int32_t stage) const { return std::max(options_.of, replicas_[stage]); }
  /// Index among all replicas of one that is built.
  int32_t number_of(int32_t replica) const {
    return options_.numbers.empty() ? replica : options_.numbers[at(replica)];
  }
  /// Number of members of a group of alike(), including those that are not built.
  int64_t all_of(const std::vector<int32_t>& group, int32_t spread) const {
    return options_.of > 1 ? options_.of / spread : static_cast<int64_t>(group.size());
  }
  int32_t id_of(int32_t op, int32_t replica) const { return ids_[op][replica]; }
  const Operator& producer(int32_t tensor) const {
    return graph_.op(graph_.tensor(tensor).producer);
  }

  const Graph* at_share(int32_t op) const;
  /// Marks tensors without samples: weights, and all that updates read or write.
  void find_whole();
  /// The operator as a replica of its stage runs it.
  Operator shared(int32_t op) const;
  /// The tensor as a replica of its producer's stage writes it.
  Tensor shared_tensor(int32_t tensor) const;
  int32_t output_number(int32_t tensor) const { return tensor - producer(tensor).outputs.front(); }

  void add_copy(int32_t op, int32_t replica);
  /// Writes the attributes of a copy (graph/meaning.h).
  void state_copy(Operator& copy, int32_t op, int32_t replica) const;
  /// Groups of replicas over which the states of an operator are sharded.
  Groups sharers(int32_t op) const;
  bool gathers(int32_t op) const {
    return !options_.gathered.empty() && options_.gathered[op] > 0;
  }
  static int64_t place_among(const Groups& groups, int32_t replica);

  bool is_update(int32_t op) const;
  int64_t weight_bytes(int32_t update) const {
    return graph_.op(graph_.op(update).forward).trainable_bytes();
  }
  /// Encoding of weights among the items of buckets.
  int32_t item_of(int32_t update) const {
    return static_cast<int32_t>(graph_.tensors().size()) + update;
  }
  /// The gather of updated weights that reads an update's shard; -1: none.
  int32_t gather_of(int32_t update) const;
  /// Adds to a copy an output with the weights of an update, for synchronisation after it.
  void hand_on(int32_t update, int32_t id, int32_t replica);
  /// True if a copy of an update fetches weights updated by a server.
  bool is_fetch(int32_t op, int32_t replica) const;

  int32_t spread_of(int32_t op) const { return options_.spread.empty() ? 1 : options_.spread[op]; }
  /// Groups of replicas that hold the same weights.
  Groups alike(int32_t stage, int32_t spread) const;
  /// True for a member of a collective that joins all replicas (`joined`).
  bool is_joined(int32_t op) const {
    const int32_t collective = graph_.op(op).collective;
    return collective >= 0 && !options_.joined.empty() && options_.joined[at(collective)];
  }
  /// Number of members of such a collective.
  int64_t joined_members(int32_t op) const {
    const auto& members = graph_.collectives()[graph_.op(op).collective].members;
    const size_t here = options_.joined_of > 0 ? at(options_.joined_of) : members.size();
    const int32_t spread = spread_of(members[0]);
    return static_cast<int64_t>(here) * all_of(alike(stage_[op], spread)[0], spread);
  }
  /// True if the producer or a reader of the tensor is such a member, or a local sum that one
  /// reads.
  bool meets_joined(int32_t tensor) const;
  /// True for such an operator of phase update, or a local sum that one reads, if gradients are
  /// scattered after every micro-batch: its copies have phase backward.
  bool comes_every_time(int32_t op) const;
  /// Makes one collective of the copies of one that joins all replicas, per group of replicas.
  void join_collective(size_t c);
  /// Sets the shards that the updates after such a reduction have.
  void state_share(int32_t sum, int32_t replica, int64_t place);
  /// Operators that gather together with this one, itself included; empty: it follows another one.
  std::vector<int32_t> gathers_with(int32_t op) const;
  /// The groups' members in each inner group.
  Groups within(const Groups& groups) const;
  /// The groups' members at equal positions of the inner groups.
  Groups across(const Groups& groups) const;

  /// Connects copies to copies of their forward operators, which may have higher numbers.
  void name_forwards();
  /// Cuts at which readers' parts of the batch begin within the part of a replica, and its ends.
  std::vector<Cut> cuts_of(int32_t tensor, int32_t replica) const;
  void add_pieces(int32_t tensor, int32_t id, int32_t replica);

  /// Connects the updates, or all other operators: updates read the outputs of all-reduces.
  void connect(bool updates);
  /// Connects a copy's inputs: reduced gradients, tensors of its own replica, or the pieces of
  /// another stage that overlap its part of the batch.
  void connect(int32_t op, int32_t replica);

  bool have_servers() const {
    return options_.meeting == Meeting::servers || options_.meeting == Meeting::in_turn;
  }
  /// True if local sums of gradients come before their reduction.
  bool sums_first() const { return options_.zero_stage == 1 || have_servers(); }
  /// True if the operator reads gradients after their reduction.
  bool reads_reduced(int32_t op) const;
  /// True if the tensor is a gradient that is reduced over the replicas.
  bool is_reduced(int32_t tensor) const;

  /// Joins the copies of a gather of weights, or of an exchange of tokens, into collectives.
  void join_copies(int32_t op);
  Groups runs_of(int32_t length, int32_t stage) const;
  static std::string copy_name(const std::string& name, int32_t replica) {
    return name_of([&] { return fmt::format("{}@{}", name, replica); });
  }
  static std::string numbered(const std::string& name, size_t number, size_t of) {
    return of > 1 ? name_of([&] { return fmt::format("{}.{}", name, number); }) : name;
  }
  [[noreturn]] void refuse_whole(int32_t tensor, int32_t reader) const;

  /// Requires tensors in the order of their producers.
  void fill_buckets();
  void fill(std::vector<Bucket>& buckets, int32_t item, int32_t op, int64_t bytes) const;
  int32_t server_of(size_t bucket, int32_t replicas) const {
    return static_cast<int32_t>(bucket % at(std::min(options_.servers, replicas)));
  }
  /// If only updates read a gradient of the bucket, they run on its server alone.
  void give_to_server(int32_t gradient, size_t bucket);
  bool one_unit(const Bucket& bucket) const;

  /// Adds the reduction of a bucket's gradients.
  void reduce(size_t k);
  /// Adds averaging of weights after the updates: over all replicas; or over the first of every
  /// inner group, which broadcasts the result; with sharded weights every position averages its
  /// shard.
  void average(size_t k);
  /// The same conditionally: each position of the inner groups sends, merges and broadcasts.
  void average_on_occasion(size_t k);
  /// Adds the Send of a replica's weights of a bucket.
  void add_send(const Bucket& bucket, const std::string& name, int32_t replica);
  bool on_occasion() const { return options_.on_occasion && meaning_; }
  int32_t current(int32_t item, int32_t replica) const;
  /// Adds one collective per group of replicas, on the present tensors of a bucket.
  void add_step(const Bucket& bucket, const std::string& name, CollectiveKind kind, Phase phase,
                const Groups& groups);
  /// Adds the member at a position of a group.
  int32_t add_member(const Bucket& bucket, const std::string& name, CollectiveKind kind,
                     Phase phase, const std::vector<int32_t>& group, size_t place);
  /// Makes a member wait for the tensors that the stages of its gradients send.
  void wait_for_sends(const Bucket& bucket, int32_t member, int32_t replica);
  void wait_for_send(int32_t op, int32_t replica);

  /// Sums a bucket's gradients of all replicas on one device.
  void add_server(const Bucket& bucket, size_t k);
  /// Updates a bucket's weights there by the gradients of one replica after the other.
  void add_turns(const Bucket& bucket, size_t k);
  Operator turn_of(size_t k, int32_t replica, int32_t server) const;
  /// Updates that read gradients of a bucket, in the order of the gradients.
  std::vector<int32_t> updates_of(const Bucket& bucket) const;

  /// Keeps each unit's operators of one stage together in every replica.
  void colocate();
  void copy_collectives();
  int32_t replicas_of_collective(size_t c) const;
  void copy_collective(size_t c, int32_t replica);
  Replicated finish();

  const Graph& graph_;
  std::span<const int32_t> stage_, replicas_, group_;
  const ReplicaOptions& options_;
  bool meaning_;  // copies get attributes (graph/meaning.h)
  bool in_place_;  // replicas have the whole graph's costs: the first one's copies are the operators themselves
  GraphBuilder builder_;
  std::vector<bool> whole_;                 // [tensor]: it has no samples to divide
  /// Lists that almost always have one or two entries, and then allocate nothing.
  template <class T, size_t N>
  using ShortLists = std::vector<boost::container::small_vector<T, N>>;
  ShortLists<Piece, 1> pieces_;   // [tensor], in order of replica and cut
  ShortLists<int32_t, 2> ids_;    // in the builder: copies of an operator
  ShortLists<int32_t, 2> together_;  // operators by their index in ReplicaOptions::together
  std::vector<Origin> origin_;              // [operator of the builder]
  std::map<std::pair<int32_t, int32_t>, int32_t> joined_;  // by item of a bucket and replica
  std::vector<Bucket> buckets_, weights_;
  bool starts_ = false;  // collectives that are being added wait for nothing
  // if set, these collectives merge
  const std::map<std::pair<int32_t, int32_t>, int32_t>* merged_ = nullptr;
  std::string occasion_;  // of collectives that are being added (graph/meaning.h)
  std::map<std::pair<int32_t, int32_t>, int32_t> sent_;  // tokens by operator and replica
  std::map<int32_t, int32_t> server_;  // update made by one replica alone: that replica
  int32_t most_ = 0;  // maximum number of replicas of a stage
  StopPoll stop_;
};

}  // namespace trinity
