// Synchronisation of replicas: buckets of gradients or weights, collectives, servers.
#include <set>

#include "graph/experts.h"
#include "graph/replicas/copies.h"

namespace trinity {
namespace {

/// Adds what keeps the copies together. Used once: construct, run, discard.
class Replication : ReplicaCopies {
 public:
  Replication(const Graph& graph, std::span<const int32_t> stage, std::span<const int32_t> replicas,
              std::span<const int32_t> group, const ReplicaOptions& options)
      : ReplicaCopies(graph, stage, replicas, options), group_(group) {}

  Replicated run() {
    const AsideOnStop aside(joined_, pieces_);
    for (const int32_t op : options_.behind)
      if (op >= 0) sent_[{op, 0}] = -1;
    for (size_t op = 0; op < options_.together.size(); ++op)
      if (const int32_t number = options_.together[op]; number >= 0) {
        together_.resize(std::max(together_.size(), at(number) + 1));
        together_[at(number)].push_back(static_cast<int32_t>(op));
      }
    find_whole();
    fill_buckets();
    size_t operators = 0, tensors = 0;
    for (int32_t op = 0; op < graph_.operator_count(); ++op) {
      operators += at(replicas_of(op));
      tensors += at(replicas_of(op)) * graph_.op(op).outputs.size();
    }
    builder_.reserve(operators, tensors);
    builder_.take_collectives();
    for (int32_t replica = 0; replica < most_; ++replica)
      for (int32_t op = 0; op < graph_.operator_count(); ++op)
        if (replica < replicas_of(op)) add_copy(op, replica);
    name_forwards();
    connect(false);
    copy_collectives();
    for (int32_t op = 0; op < graph_.operator_count(); ++op)
      if (gathers(op) || (options_.ranks > 1 && is_exchange(graph_.op(op)))) join_copies(op);
    for (size_t k = 0; k < buckets_.size(); ++k) reduce(k);
    connect(true);
    for (int32_t op = 0; op < graph_.operator_count() && !sent_.empty(); ++op)
      for (int32_t replica = 0; replica < replicas_of(op); ++replica) wait_for_send(op, replica);
    for (size_t k = 0; k < weights_.size(); ++k) average(k);
    colocate();
    return finish();
  }

 private:
  /// Tensors that replicas synchronise together: gradients, in order of production, or weights.
  struct Bucket {
    int32_t stage, spread;
    std::vector<int32_t> items;  // original tensors; for weights: tensors + update
    int64_t bytes = 0;
  };

  /// Makes one collective of the copies of one that joins all replicas, per group of replicas.
  void join_collective(size_t c) {
    const auto& of = graph_.collectives()[c];
    const auto groups = groups_.alike(stage_[of.members[0]], spread_of(of.members[0]));
    for (size_t g = 0; g < groups.size(); ++g) {
      Collective all = of;
      all.members.clear();
      all.name = numbered(of.name, g, groups.size());
      all.algorithm = options_.algorithm;
      if (options_.zero_stage > 0) all.kind = CollectiveKind::reduce_scatter;
      for (const int32_t replica : groups[g])
        for (const int32_t member : of.members) {
          const int32_t id = id_of(member, replica);
          const auto place = static_cast<int64_t>(all.members.size());
          all.members.push_back(id);
          if (!meaning_ || options_.zero_stage == 0) continue;
          builder_.op(id).attributes["share"] = place;
          builder_.op(id).attributes["shares"] = joined_members(member);
          state_share(member, replica, place);
        }
      builder_.add_collective(std::move(all));
    }
  }

  /// Sets the shards that the updates after such a reduction have.
  void state_share(int32_t sum, int32_t replica, int64_t place) {
    for (const int32_t update : graph_.readers(sum)) {
      if (graph_.op(update).collective >= 0) {  // shards are reduced again
        state_share(update, replica, place);
        continue;
      }
      builder_.op(id_of(update, replica)).attributes["share"] = place;
      auto& forward = builder_.op(id_of(graph_.op(update).forward, replica)).attributes;
      if (forward.contains("shares")) forward["share"] = place;
    }
  }

  /// Operators that gather together with this one, itself included; empty: it follows another one.
  std::vector<int32_t> gathers_with(int32_t op) const {
    if (options_.together.empty() || options_.together[op] < 0) return {op};
    const auto& all = together_[at(options_.together[op])];
    return all[0] == op ? std::vector<int32_t>(all.begin(), all.end()) : std::vector<int32_t>{};
  }

  /// The groups' members at equal positions of the inner groups.
  Groups across(const Groups& groups) const {
    Groups lines;
    for (const auto& group : groups) {
      const size_t from = lines.size();
      for (const auto& run : groups_.within({group}))
        for (size_t i = 0; i < run.size(); ++i) {
          if (lines.size() == from + i) lines.emplace_back();
          lines[from + i].push_back(run[i]);
        }
    }
    return lines;
  }

  /// True if the tensor is a gradient that is reduced over the replicas.
  bool is_reduced(int32_t tensor) const {
    if (meets_joined(tensor)) return false;
    const int32_t op = graph_.tensor(tensor).producer;
    const bool alone = groups_.all_replicas_of(stage_[op]) <= spread_of(op);
    if (!whole_[tensor] || is_variable(graph_.op(op)) || alone)
      return false;
    if (!sums_first()) return graph_.op(op).phase == Phase::backward;
    return std::ranges::any_of(graph_.readers_of(tensor), [&](int32_t reader) {
      const auto& about = graph_.op(reader);
      return about.phase == Phase::update && about.forward >= 0 && about.collective < 0;
    });
  }

  /// Joins the copies of a gather of weights, or of an exchange of tokens, into collectives.
  void join_copies(int32_t op) {
    const bool exchange = is_exchange(graph_.op(op));
    const auto gathers = exchange ? std::vector{op} : gathers_with(op);
    if (gathers.empty()) return;
    const auto groups = exchange ? groups_.runs_of(options_.ranks, stage_[op])
                                 : groups_.sharers(stage_[op], spread_of(op));
    for (size_t g = 0; g < groups.size(); ++g) {
      Collective collective;
      collective.kind = exchange ? CollectiveKind::all_to_all : CollectiveKind::all_gather;
      collective.name = numbered(graph_.op(op).name, g, groups.size());
      if (!exchange) collective.algorithm = options_.algorithm;
      collective.bytes = exchange ? graph_.tensor(graph_.op(op).outputs[0]).bytes
                                  : options_.gathered[op];
      for (const int32_t replica : groups[g])
        for (const int32_t member : gathers) {
          const int32_t id = id_of(member, replica);
          if (meaning_ && gathers.size() > 1)
            builder_.op(id).attributes["share"] = static_cast<int64_t>(collective.members.size());
          collective.members.push_back(id);
        }
      builder_.add_collective(std::move(collective));
    }
  }

  /// Requires tensors in the order of their producers.
  void fill_buckets() {
    const bool gradients =
        options_.meeting == Meeting::gradients || options_.inner > 1 || have_servers();
    for (int32_t t = 0; gradients && t < static_cast<int32_t>(graph_.tensors().size()); ++t)
      if (is_reduced(t)) fill(buckets_, t, graph_.tensor(t).producer, shared_tensor(t).bytes);
    for (int32_t op = 0; op < graph_.operator_count(); ++op)
      if (options_.meeting == Meeting::weights && is_update(op) && replicas_of(op) > spread_of(op))
        fill(weights_, item_of(op), op, weight_bytes(op));
    for (size_t k = 0; have_servers() && k < buckets_.size(); ++k)
      for (const int32_t gradient : buckets_[k].items) give_to_server(gradient, k);
  }

  void fill(std::vector<Bucket>& buckets, int32_t item, int32_t op, int64_t bytes) const {
    const auto found =
        std::find_if(buckets.rbegin(), buckets.rend(), [&](const Bucket& bucket) {
          const int32_t first = bucket.items[0];
          const auto tensors = static_cast<int32_t>(graph_.tensors().size());
          const int32_t of = first < tensors ? graph_.tensor(first).producer : first - tensors;
          return group_[of] == group_[op] && bucket.spread == spread_of(op);
        });
    if (found == buckets.rend() || found->bytes + bytes > options_.bucket_bytes) {
      buckets.push_back({stage_[op], spread_of(op), {item}, bytes});
      return;
    }
    found->items.push_back(item);
    found->bytes += bytes;
  }

  int32_t server_of(size_t bucket, int32_t replicas) const {
    return static_cast<int32_t>(bucket % at(std::min(options_.servers, replicas)));
  }

  /// If only updates read a gradient of the bucket, they run on its server alone.
  void give_to_server(int32_t gradient, size_t bucket) {
    const int32_t op = graph_.tensor(gradient).producer;
    const auto server = server_of(bucket, replicas_of(op));
    for (const int32_t reader : graph_.readers_of(gradient))
      if (is_update(reader)) server_[reader] = server;
  }

  bool one_unit(const Bucket& bucket) const {
    return std::all_of(bucket.items.begin(), bucket.items.end(), [&](int32_t gradient) {
      return producer(gradient).unit == producer(bucket.items[0]).unit;
    });
  }

  /// Adds the reduction of a bucket's gradients.
  void reduce(size_t k) {
    const Bucket& bucket = buckets_[k];
    if (options_.meeting == Meeting::servers) return add_server(bucket, k);
    if (options_.meeting == Meeting::in_turn) return add_turns(bucket, k);
    using Kind = CollectiveKind;
    const Phase phase = options_.zero_stage >= 2 ? Phase::backward : Phase::update;
    const Groups all = groups_.alike(bucket.stage, bucket.spread);
    const Groups runs = groups_.sharers(bucket.stage, bucket.spread);
    const auto name = [&](const char* what) {
      return name_of([&] { return fmt::format("{}{}", what, k); });
    };
    if (options_.meeting != Meeting::gradients) {
      if (options_.zero_stage > 0)  // in every step: an inner group has one state
        return add_step(bucket, name("reduce_scatter"), Kind::reduce_scatter, phase, runs);
      occasion_ = on_occasion() ? "gradients" : "";
      add_step(bucket, name("all_reduce"), Kind::all_reduce, phase, runs);
      occasion_.clear();
      return;
    }
    if (options_.inner < 2 || runs[0].size() < 2) {
      const bool scatter = options_.zero_stage > 0 && options_.inner < 2;
      return scatter
                 ? add_step(bucket, name("reduce_scatter"), Kind::reduce_scatter, phase, all)
                 : add_step(bucket, name("all_reduce"), Kind::all_reduce, Phase::update, all);
    }
    add_step(bucket, name("reduce_scatter"), Kind::reduce_scatter, phase, runs);
    add_step(bucket, name("all_reduce"), Kind::all_reduce, Phase::update, across(all));
    if (options_.zero_stage == 0) add_step(bucket, name("all_gather"), Kind::all_gather, phase, runs);
  }

  /// Adds averaging of weights after the updates: over all replicas; or over the first of every
  /// inner group, which broadcasts the result; with sharded weights every position averages its
  /// shard.
  void average(size_t k) {
    if (on_occasion()) return average_on_occasion(k);
    const Bucket& bucket = weights_[k];
    Groups groups = groups_.alike(bucket.stage, bucket.spread);
    if (options_.inner > 1) groups = across(groups);
    const size_t lines = groups_.alike(bucket.stage, bucket.spread).size();
    const bool hands_out = options_.inner > 1 && options_.zero_stage < 3;
    if (hands_out) {
      Groups first;
      for (size_t g = 0; g < groups.size(); g += groups.size() / lines) first.push_back(groups[g]);
      groups = std::move(first);
    }
    const auto name = fmt::format("average{}", k);
    const auto updated = joined_;
    starts_ = options_.late;
    add_step(bucket, name, CollectiveKind::all_reduce, Phase::update, groups);
    starts_ = false;
    if (!hands_out) return;
    merged_ = options_.late ? &updated : nullptr;
    add_step(bucket, fmt::format("hand_out{}", k), CollectiveKind::broadcast, Phase::update,
             groups_.within(groups_.alike(bucket.stage, bucket.spread)));
    merged_ = nullptr;
  }

  /// The same conditionally: each position of the inner groups sends, merges and broadcasts.
  void average_on_occasion(size_t k) {
    const Bucket& bucket = weights_[k];
    const Groups all = groups_.alike(bucket.stage, bucket.spread), lines = across(all);
    // every position has another shard: all take part, in any order
    const bool apart = options_.zero_stage == 3;
    const auto updated = joined_;
    std::vector<std::map<std::pair<int32_t, int32_t>, int32_t>> sent;
    for (size_t place = 0; place < lines.size(); ++place) {
      occasion_ = fmt::format("send{}", place);
      for (size_t line = 0; line < lines.size(); ++line)
        for (const int32_t replica : lines[line])
          if (apart || line == place) add_send(bucket, fmt::format("send{}.{}", k, place), replica);
      sent.push_back(joined_);
      if (apart) joined_ = updated;
    }
    for (size_t place = 0; place < lines.size(); ++place) {
      joined_ = apart ? sent[place] : sent.back();
      occasion_ = fmt::format("merge{}", place);
      add_step(bucket, fmt::format("merge{}.{}", k, place), CollectiveKind::all_reduce,
               Phase::update, apart ? lines : Groups{lines[place]});
      if (apart) continue;
      Groups runs = groups_.within(all);
      for (auto& run : runs) {  // the sender comes first
        const auto first = run.begin() + static_cast<std::ptrdiff_t>(place);
        std::rotate(run.begin(), first, first + 1);
      }
      occasion_ = fmt::format("hand_out{}", place);
      add_step(bucket, fmt::format("hand_out{}.{}", k, place), CollectiveKind::broadcast,
               Phase::update, runs);
    }
    joined_ = sent.back();
    occasion_.clear();
  }

  /// Adds the Send of a replica's weights of a bucket.
  void add_send(const Bucket& bucket, const std::string& name, int32_t replica) {
    Operator send;
    send.name = copy_name(name, replica);
    send.type = "Send";
    send.phase = Phase::update;
    send.traffic_bytes = 0;
    send.attributes[kSource] = send.name;
    send.attributes["occasion"] = occasion_;
    const int32_t id = builder_.add_operator(std::move(send));
    origin_.push_back({-1, bucket.stage, replica});
    for (const int32_t item : bucket.items) {
      const int32_t read = current(item, replica);
      builder_.read(id, read);
      joined_[{item, replica}] = builder_.add_output(id, Tensor(builder_.tensor(read)));
    }
  }

  int32_t current(int32_t item, int32_t replica) const {
    const auto found = joined_.find({item, replica});
    return found == joined_.end() ? pieces_[item][replica].tensor : found->second;
  }

  /// Adds one collective per group of replicas, on the present tensors of a bucket.
  void add_step(const Bucket& bucket, const std::string& name, CollectiveKind kind, Phase phase,
                const Groups& groups) {
    for (size_t g = 0; g < groups.size(); ++g) {
      if (groups_.all_of(groups[g], bucket.spread) < 2) continue;
      Collective collective;
      collective.name = numbered(name, g, groups.size());
      collective.algorithm = options_.algorithm;
      collective.kind = kind;
      collective.bytes = 0;
      for (const int32_t item : bucket.items) {
        const int32_t first = groups[g][0];
        const bool whole = kind == CollectiveKind::all_gather;
        const int32_t of = whole ? pieces_[item][first].tensor : current(item, first);
        collective.bytes += builder_.tensor(of).bytes;
      }
      for (size_t place = 0; place < groups[g].size(); ++place)
        collective.members.push_back(add_member(bucket, name, kind, phase, groups[g], place));
      builder_.add_collective(std::move(collective));
    }
  }

  /// Adds the member at a position of a group.
  int32_t add_member(const Bucket& bucket, const std::string& name, CollectiveKind kind,
                     Phase phase, const std::vector<int32_t>& group, size_t place) {
    constexpr const char* kTypes[] = {"AllReduce", "ReduceScatter", "AllGather", "Broadcast"};
    const int32_t replica = group[place];
    const auto members = groups_.all_of(group, bucket.spread);
    Operator member;
    member.name = copy_name(name, replica);
    member.type = kTypes[static_cast<size_t>(kind)];
    member.phase = phase;
    member.traffic_bytes = 0;
    if (meaning_) {
      member.attributes["replica"] = static_cast<int64_t>(place);
      member.attributes["replicas"] = members;
      if (kind == CollectiveKind::reduce_scatter || kind == CollectiveKind::all_gather)
        member.attributes["shares"] = members;
      if (bucket.items[0] >= static_cast<int32_t>(graph_.tensors().size())) {
        member.attributes["reduction"] = std::string("weights");
        if (occasion_.empty()) member.attributes["every"] = int64_t{options_.every};
      }
      if (!occasion_.empty()) member.attributes["occasion"] = occasion_;
    }
    const int32_t id = builder_.add_operator(std::move(member));
    const auto tensors = static_cast<int32_t>(graph_.tensors().size());
    origin_.push_back({starts_ ? bucket.items[0] - tensors : -1, bucket.stage, replica});
    for (const int32_t item : bucket.items) {
      const int32_t read = current(item, replica);
      if (!starts_) builder_.read(id, read);
      if (merged_ && merged_->at({item, replica}) != read)
        builder_.read(id, merged_->at({item, replica}));
      Tensor made = builder_.tensor(read);
      if (item < tensors)
        made.name = copy_name(graph_.tensor(item).name + "/reduced", replica);
      if (kind == CollectiveKind::reduce_scatter) {
        made.bytes = (made.bytes + members - 1) / members;
        made.shape.clear();
      } else if (kind == CollectiveKind::all_gather) {
        made = builder_.tensor(pieces_[item][replica].tensor);
      }
      joined_[{item, replica}] = builder_.add_output(id, std::move(made));
    }
    if (!sent_.empty()) wait_for_sends(bucket, id, replica);
    if (bucket.items[0] < tensors && one_unit(bucket))
      builder_.colocate(id, id_of(graph_.tensor(bucket.items[0]).producer, replica));
    return id;
  }

  /// Makes a member wait for the tensors that the stages of its gradients send.
  void wait_for_sends(const Bucket& bucket, int32_t member, int32_t replica) {
    std::set<int32_t> waited;
    for (const int32_t item : bucket.items) {
      if (at(item) >= graph_.tensors().size()) continue;  // weights
      const int32_t op = options_.behind[at(graph_.tensor(item).producer)];
      if (op >= 0 && waited.insert(op).second) builder_.read(member, sent_.at({op, replica}));
    }
  }

  void wait_for_send(int32_t op, int32_t replica) {
    const auto& about = graph_.op(op);
    const bool reduces = about.collective >= 0 && about.type == "AllReduce";
    if (!reduces || about.phase != Phase::update || options_.behind[at(op)] < 0) return;
    builder_.read(id_of(op, replica), sent_.at({options_.behind[at(op)], replica}));
  }

  /// Sums a bucket's gradients of all replicas on one device.
  void add_server(const Bucket& bucket, size_t k) {
    const auto members = replicas_[bucket.stage];
    const int32_t server = server_of(k, members);
    Operator sum;
    sum.name = fmt::format("server{}@{}", k, server);
    sum.type = "Sum";
    sum.phase = Phase::update;
    sum.flops = static_cast<double>(bucket.bytes) / 4 * (members - 1);
    if (meaning_) sum.attributes["terms"] = int64_t{members};
    const int32_t id = builder_.add_operator(std::move(sum));
    origin_.push_back({-1, bucket.stage, server});
    for (const int32_t gradient : bucket.items) {
      for (int32_t i = 0; i < members; ++i)  // first its own, on whose device the sum is
        builder_.read(id, pieces_[gradient][(server + i) % members].tensor);
      Tensor made = builder_.tensor(pieces_[gradient][server].tensor);
      made.name = fmt::format("{}/reduced@{}", graph_.tensor(gradient).name, server);
      joined_[{gradient, server}] = builder_.add_output(id, std::move(made));
    }
  }

  /// Updates a bucket's weights there by the gradients of one replica after the other.
  void add_turns(const Bucket& bucket, size_t k) {
    const auto members = replicas_[bucket.stage];
    const int32_t server = server_of(k, members);
    int32_t done = -1;
    for (int32_t replica = 0; replica < members; ++replica) {
      const int32_t id = builder_.add_operator(turn_of(k, replica, server));
      origin_.push_back({-1, bucket.stage, server, replica});
      for (const int32_t update : updates_of(bucket)) {
        for (const int32_t input : graph_.op(update).inputs)
          if (std::find(bucket.items.begin(), bucket.items.end(), input) != bucket.items.end())
            builder_.read(id, pieces_[input][replica].tensor);
        Tensor weights;
        weights.name = copy_name(graph_.op(update).name + "/weights", replica);
        weights.bytes = weight_bytes(update);
        joined_[{item_of(update), replica}] = builder_.add_output(id, std::move(weights));
      }
      if (replica > 0) builder_.read(id, done);
      if (replica + 1 == members) break;
      Tensor turn;  // 0 bytes: the next one waits for it
      turn.name = copy_name(fmt::format("server{}.{}/turn", k, replica), server);
      done = builder_.add_output(id, std::move(turn));
    }
  }

  /// All updates of a bucket in one operator. The first of a round reads what the server has: the
  /// states, and the weights, which do not belong to its replica.
  Operator turn_of(size_t k, int32_t replica, int32_t server) const {
    const auto updates = updates_of(buckets_[k]);
    Operator turn = graph_.op(updates[0]);
    turn.inputs.clear();
    turn.outputs.clear();
    turn.attributes.clear();
    turn.forward = -1;
    turn.name = copy_name(fmt::format("server{}.{}", k, replica), server);
    turn.persistent_bytes = 0;
    for (const int32_t update : updates) {
      const auto& of = graph_.op(update);
      if (replica == 0) turn.persistent_bytes += of.persistent_bytes + weight_bytes(update);
      if (update == updates[0]) continue;
      turn.flops += of.flops;
      turn.traffic_bytes += of.traffic_bytes;
      turn.workspace_bytes = std::max(turn.workspace_bytes, of.workspace_bytes);
      if (turn.measured()) turn.measured_time_s += of.measured_time_s;
    }
    if (!meaning_) return turn;
    turn.attributes[kSource] = turn.name;
    turn.attributes["optimiser"] = text_attribute(graph_.op(updates[0]), "optimiser");
    turn.attributes["turn"] = int64_t{replica};
    turn.attributes["replica"] = int64_t{server};
    return turn;
  }

  /// Updates that read gradients of a bucket, in the order of the gradients.
  std::vector<int32_t> updates_of(const Bucket& bucket) const {
    std::vector<int32_t> updates;
    for (const int32_t gradient : bucket.items)
      for (const int32_t reader : graph_.readers_of(gradient))
        if (is_update(reader)) updates.push_back(reader);
    return updates;
  }

  void copy_collectives() {
    const auto joined = [&](size_t c) { return !options_.joined.empty() && options_.joined[c]; };
    for (int32_t replica = 0; replica < most_; ++replica)
      for (size_t c = 0; c < graph_.collectives().size(); ++c)
        if (!joined(c) && replica < replicas_of_collective(c)) copy_collective(c, replica);
    for (size_t c = 0; c < graph_.collectives().size(); ++c)
      if (joined(c)) join_collective(c);
  }

  std::span<const int32_t> group_;
  ShortLists<int32_t, 2> together_;  // operators by their index in ReplicaOptions::together
  std::vector<Bucket> buckets_, weights_;
  bool starts_ = false;  // collectives that are being added wait for nothing
  // if set, these collectives merge
  const std::map<std::pair<int32_t, int32_t>, int32_t>* merged_ = nullptr;
  std::string occasion_;  // of collectives that are being added (graph/meaning.h)
};

}  // namespace

Replicated build_replicas(const Graph& graph, std::span<const int32_t> stage, std::span<const int32_t> replicas,
                          std::span<const int32_t> group, const ReplicaOptions& options) {
  return Replication(graph, stage, replicas, group, options).run();
}

}  // namespace trinity
