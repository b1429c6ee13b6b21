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

// Of this room alone: what replication.cpp (copies and what they read) and meetings.cpp (buckets,
// and the collectives and servers in which replicas meet) share.

namespace trinity {

/// Builds the graph of all replicas.
class Replication {
 public:
  /// `group`: per operator; a bucket holds gradients of one group, which is within one stage.
  Replication(const Graph& graph, std::span<const int32_t> stage, std::span<const int32_t> replicas,
              std::span<const int32_t> group, const ReplicaOptions& options)
      : graph_(graph),
        stage_(stage),
        replicas_(replicas),
        group_(group),
        options_(options),
        meaning_(has_meaning(graph)),
        builder_(graph.name()),
        whole_(graph.tensors().size(), false),
        pieces_(graph.tensors().size()),
        ids_(at(graph.operator_count())) {
    for (const int32_t count : replicas) most_ = std::max(most_, count);
  }

  Replicated run();

 private:
  /// Where a part of the batch begins: part / parts of it.
  struct Cut {
    int64_t part, parts;
    bool before(const Cut& other) const { return part * other.parts < other.part * parts; }
    double share() const { return static_cast<double>(part) / static_cast<double>(parts); }
  };

  /// A piece of a copy's output: the samples from one cut to another.
  struct Piece {
    Cut from, to;
    int32_t tensor;  // in the builder
  };

  /// What is joined over replicas together: gradients, in the order of production, or weights.
  struct Bucket {
    int32_t stage, spread;
    std::vector<int32_t> items;  // tensors of the original graph; of weights tensors + update
    int64_t bytes = 0;
  };

  /// Replicas that take part in collectives of one kind at the same time.
  using Groups = std::vector<std::vector<int32_t>>;

  struct Origin {
    int32_t op, stage, replica;
    int32_t turn = -1;  // of Replicated::turn; -1: the replica
  };

  int32_t replicas_of(int32_t op) const { return replicas_[stage_[op]]; }
  /// Those that are not made too.
  int32_t all_replicas_of(int32_t stage) const { return std::max(options_.of, replicas_[stage]); }
  /// The number of a replica that is made among all.
  int32_t number_of(int32_t replica) const {
    return options_.numbers.empty() ? replica : options_.numbers[at(replica)];
  }
  /// Members of a group of alike(), those that are not made too.
  int64_t all_of(const std::vector<int32_t>& group, int32_t spread) const {
    return options_.of > 1 ? options_.of / spread : static_cast<int64_t>(group.size());
  }
  int32_t id_of(int32_t op, int32_t replica) const { return ids_[op][replica]; }
  const Operator& producer(int32_t tensor) const {
    return graph_.op(graph_.tensor(tensor).producer);
  }

  const Graph* at_share(int32_t op) const;
  /// Weights and what updates read or write have no samples.
  void find_whole();
  /// The operator as a replica of its stage runs it.
  Operator shared(int32_t op) const;
  /// The tensor as a replica of its producer's stage writes it.
  Tensor shared_tensor(int32_t tensor) const;
  int32_t output_number(int32_t tensor) const { return tensor - producer(tensor).outputs.front(); }

  void add_copy(int32_t op, int32_t replica);
  /// What a copy is among the others (graph/meaning.h).
  void state_copy(Operator& copy, int32_t op, int32_t replica) const;
  /// Replicas that share out the states of an operator.
  Groups sharers(int32_t op) const;
  bool gathers(int32_t op) const {
    return !options_.gathered.empty() && options_.gathered[op] > 0;
  }
  static int64_t place_among(const Groups& groups, int32_t replica);

  bool is_update(int32_t op) const;
  int64_t weight_bytes(int32_t update) const {
    return graph_.op(graph_.op(update).forward).trainable_bytes();
  }
  /// Weights among the items of buckets.
  int32_t item_of(int32_t update) const {
    return static_cast<int32_t>(graph_.tensors().size()) + update;
  }
  /// The gather of updated weights that an update's share goes into; -1: none.
  int32_t gather_of(int32_t update) const;
  /// Gives a copy an output of the weights of an update, for what meets behind it.
  void hand_on(int32_t update, int32_t id, int32_t replica);
  /// Whether a copy of an update takes the weights that a server has updated.
  bool is_fetch(int32_t op, int32_t replica) const;

  int32_t spread_of(int32_t op) const { return options_.spread.empty() ? 1 : options_.spread[op]; }
  /// Replicas that hold the same weights.
  Groups alike(int32_t stage, int32_t spread) const;
  /// Whether an operator is a member of a collective that joins all replicas (`joined`).
  bool is_joined(int32_t op) const {
    const int32_t collective = graph_.op(op).collective;
    return collective >= 0 && !options_.joined.empty() && options_.joined[at(collective)];
  }
  /// How many members such a collective has.
  int64_t joined_members(int32_t op) const {
    const auto& members = graph_.collectives()[graph_.op(op).collective].members;
    const size_t here = options_.joined_of > 0 ? at(options_.joined_of) : members.size();
    const int32_t spread = spread_of(members[0]);
    return static_cast<int64_t>(here) * all_of(alike(stage_[op], spread)[0], spread);
  }
  /// Whether what writes or reads a tensor is such a member, or a sum that one reads.
  bool meets_joined(int32_t tensor) const;
  /// Whether an operator of phase update is one, or sums what one reads, where these scatter
  /// gradients after every micro-batch: its copies are of phase backward.
  bool comes_every_time(int32_t op) const;
  /// One collective of the copies of one that joins all replicas, for every group of replicas.
  void join_collective(size_t c);
  /// States which share the updates behind a sum of such a collective have.
  void state_share(int32_t sum, int32_t replica, int64_t place);
  /// Who gathers together with an operator, itself included; none: it follows another one.
  std::vector<int32_t> gathers_with(int32_t op) const;
  /// Those of every group in one run of `inner`.
  Groups within(const Groups& groups) const;
  /// Those of every group in the same place of their runs.
  Groups across(const Groups& groups) const;

  /// Copies serve the copies of the forward operators, which may have later numbers.
  void name_forwards();
  /// Where readers' parts of the batch begin within the part of a replica, and its ends.
  std::vector<Cut> cuts_of(int32_t tensor, int32_t replica) const;
  void add_pieces(int32_t tensor, int32_t id, int32_t replica);

  /// Connects the updates, or all else: updates read what all-reduces write.
  void connect(bool updates);
  /// Makes a copy read what its originals read: reduced gradients, its own replica's tensors, or
  /// the pieces of another stage's that its part of the batch overlaps.
  void connect(int32_t op, int32_t replica);

  bool have_servers() const {
    return options_.meeting == Meeting::servers || options_.meeting == Meeting::in_turn;
  }
  /// Whether what sums gradients within a replica comes before their reduction.
  bool sums_first() const { return options_.shard == 1 || have_servers(); }
  /// Whether an operator reads gradients behind their reduction.
  bool reads_reduced(int32_t op) const;
  /// Whether a tensor is a gradient that is reduced over the replicas.
  bool is_reduced(int32_t tensor) const;

  /// The copies of a gather of weights, or of an exchange of tokens, become members of collectives.
  void join_copies(int32_t op);
  Groups runs_of(int32_t length, int32_t stage) const;
  static std::string copy_name(const std::string& name, int32_t replica) {
    return name_of([&] { return fmt::format("{}@{}", name, replica); });
  }
  static std::string numbered(const std::string& name, size_t number, size_t of) {
    return of > 1 ? name_of([&] { return fmt::format("{}.{}", name, number); }) : name;
  }
  [[noreturn]] void refuse_whole(int32_t tensor, int32_t reader) const;

  /// Tensors are in the order of their producers.
  void fill_buckets();
  void fill(std::vector<Bucket>& buckets, int32_t item, int32_t op, int64_t bytes) const;
  int32_t server_of(size_t bucket, int32_t replicas) const {
    return static_cast<int32_t>(bucket % at(std::min(options_.servers, replicas)));
  }
  /// Who reads a gradient of a bucket updates on its server alone.
  void give_to_server(int32_t gradient, size_t bucket);
  bool one_unit(const Bucket& bucket) const;

  /// What the copies of a bucket's gradients become for the updates.
  void reduce(size_t k);
  /// Weights behind the updates: averaged over all, or over the first of every run, who hands them
  /// out; of runs that share weights out each place averages its own.
  void average(size_t k);
  /// The same on occasion: what is sent, merged and handed out by each place of the runs.
  void average_on_occasion(size_t k);
  /// What sends a replica's weights of a bucket.
  void add_send(const Bucket& bucket, const std::string& name, int32_t replica);
  bool on_occasion() const { return options_.on_occasion && meaning_; }
  int32_t current(int32_t item, int32_t replica) const;
  /// Collectives of groups of replicas on what they have of a bucket by now.
  void add_step(const Bucket& bucket, const std::string& name, CollectiveKind kind, Phase phase,
                const Groups& groups);
  /// The member at a place of a group of replicas.
  int32_t add_member(const Bucket& bucket, const std::string& name, CollectiveKind kind,
                     Phase phase, const std::vector<int32_t>& group, size_t place);
  /// Makes a member wait for what its gradients' stages send.
  void wait_for_sends(const Bucket& bucket, int32_t member, int32_t replica);
  void wait_for_send(int32_t op, int32_t replica);

  /// Sums a bucket's gradients of all replicas on the device of one.
  void add_server(const Bucket& bucket, size_t k);
  /// Updates a bucket's weights there by the gradients of one replica after the other.
  void add_turns(const Bucket& bucket, size_t k);
  Operator turn_of(size_t k, int32_t replica, int32_t server) const;
  /// The updates that read gradients of a bucket, in order of the gradients.
  std::vector<int32_t> updates_of(const Bucket& bucket) const;

  /// A unit's operators of one stage stay together in every replica.
  void colocate();
  void copy_collectives();
  int32_t replicas_of_collective(size_t c) const;
  void copy_collective(size_t c, int32_t replica);
  Replicated finish();

  const Graph& graph_;
  std::span<const int32_t> stage_, replicas_, group_;
  const ReplicaOptions& options_;
  bool meaning_;  // whether attributes say what copies mean (graph/meaning.h)
  GraphBuilder builder_;
  std::vector<bool> whole_;                 // per tensor: it has no samples to share out
  /// Lists that are of one entry or two almost always, and then allocate nothing.
  template <class T, size_t N>
  using ShortLists = std::vector<boost::container::small_vector<T, N>>;
  ShortLists<Piece, 1> pieces_;   // per tensor, in order of replica and cut
  ShortLists<int32_t, 2> ids_;    // in the builder: of the copies of an operator
  ShortLists<int32_t, 2> together_;  // operators by their number in ReplicaOptions::together
  std::vector<Origin> origin_;              // per operator of the builder
  std::map<std::pair<int32_t, int32_t>, int32_t> joined_;  // by item of a bucket and replica
  std::vector<Bucket> buckets_, weights_;
  bool starts_ = false;  // collectives that are being added wait for nothing
  const std::map<std::pair<int32_t, int32_t>, int32_t>* merged_ = nullptr;  // with these they merge
  std::string occasion_;  // of the collectives that are being added (graph/meaning.h)
  std::map<std::pair<int32_t, int32_t>, int32_t> sent_;  // tokens by operator and replica
  std::map<int32_t, int32_t> server_;  // of updates that one replica alone makes: which
  int32_t most_ = 0;  // replicas of any stage
  StopPoll stop_;
};

}  // namespace trinity
