#pragma once

#include <algorithm>
#include <boost/container/small_vector.hpp>
#include <cmath>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/free_aside.h"
#include "base/index.h"
#include "base/stop.h"
#include "graph/graph.h"
#include "graph/meaning.h"
#include "graph/nameless.h"
#include "graph/operator_types.h"
#include "graph/replicas.h"

// Internal to this folder: the base of the class that builds buckets, and the collectives and servers that synchronise
// replicas.

namespace trinity {

/// Groups of a stage's replicas that are built, of all that the stage has. Refers to its arguments. Immutable.
class ReplicaGroups {
 public:
  using Groups = std::vector<std::vector<int32_t>>;  ///< [group]: its replicas that are built, ascending

  /// replicas: [stage], the number that are built.
  ReplicaGroups(std::span<const int32_t> replicas, const ReplicaOptions& options)
      : replicas_(replicas), options_(options) {}

  /// Number of replicas, including those that are not built.
  int32_t all_replicas_of(int32_t stage) const { return std::max(options_.of, replicas_[stage]); }
  /// Number of members of a group of alike(), including those that are not built.
  int64_t all_of(const std::vector<int32_t>& group, int32_t spread) const {
    return options_.of > 1 ? options_.of / spread : static_cast<int64_t>(group.size());
  }
  /// Groups that hold the same weights, which are sharded over `spread` ranks.
  Groups alike(int32_t stage, int32_t spread) const {
    Groups groups(at(std::min(spread, all_replicas_of(stage))));
    for (int32_t replica = 0; replica < replicas_[stage]; ++replica)
      groups[at(number_of(replica) % spread)].push_back(replica);
    std::erase_if(groups, [](const auto& group) { return group.empty(); });
    return groups;
  }
  /// Runs of this length.
  Groups runs_of(int32_t length, int32_t stage) const {
    Groups runs;
    for (int32_t replica = 0; replica < replicas_[stage]; ++replica) {
      const bool begins = replica == 0 || number_of(replica) / length != number_of(replica - 1) / length;
      if (begins) runs.emplace_back();
      runs.back().push_back(replica);
    }
    return runs;
  }
  /// The groups' members in each inner group.
  Groups within(const Groups& groups) const {
    Groups runs;
    for (const auto& group : groups)
      for (size_t i = 0; i < group.size(); ++i) {
        if (i == 0 || group[i] / options_.inner != group[i - 1] / options_.inner)
          runs.emplace_back();
        runs.back().push_back(group[i]);
      }
    return runs;
  }
  /// Groups over which the states of such weights are sharded.
  Groups sharers(int32_t stage, int32_t spread) const {
    const auto groups = alike(stage, spread);
    return options_.inner > 1 ? within(groups) : groups;
  }

 private:
  /// Index among all replicas of one that is built.
  int32_t number_of(int32_t replica) const {
    return options_.numbers.empty() ? replica : options_.numbers[at(replica)];
  }

  std::span<const int32_t> replicas_;
  const ReplicaOptions& options_;
};

/// The copies of a graph's operators, their inputs and collectives. Used once. Not thread-safe.
class ReplicaCopies {
 protected:
  ReplicaCopies(const Graph& graph, std::span<const int32_t> stage, std::span<const int32_t> replicas,
                const ReplicaOptions& options)
      : graph_(graph),
        stage_(stage),
        replicas_(replicas),
        options_(options),
        groups_(replicas, options),
        meaning_(has_meaning(graph)),
        in_place_(options.at_share.size() == 1 && options.at_share[0] == &graph),
        builder_(in_place_ ? GraphBuilder(graph) : GraphBuilder(graph.name())),
        whole_(graph.tensors().size(), false),
        pieces_(graph.tensors().size()),
        ids_(at(graph.operator_count())) {
    for (const int32_t s : stage) most_ = std::max(most_, replicas[at(s)]);  // a stage may have no operator
  }

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

  /// Groups of replicas that take part in simultaneous collectives.
  using Groups = ReplicaGroups::Groups;

  struct Origin {
    int32_t op, stage, replica;
    int32_t turn = -1;  // as Replicated::turn; -1: the replica
  };

  int32_t replicas_of(int32_t op) const { return replicas_[stage_[op]]; }
  int32_t id_of(int32_t op, int32_t replica) const { return ids_[op][replica]; }
  const Operator& producer(int32_t tensor) const {
    return graph_.op(graph_.tensor(tensor).producer);
  }

  const Graph* at_share(int32_t op) const {
    const auto s = at(stage_[op]);
    return s < options_.at_share.size() ? options_.at_share[s] : nullptr;
  }

  /// Marks tensors without samples: weights, and all that updates read or write.
  void find_whole() {
    for (const auto& op : graph_.operators()) {
      if (is_variable(op) || op.phase == Phase::update)
        for (const int32_t output : op.outputs) whole_[output] = true;
      if (op.phase == Phase::update)
        for (const int32_t input : op.inputs) whole_[input] = true;
    }
  }

  /// The operator as a replica of its stage runs it.
  Operator shared(int32_t op) const {
    if (const Graph* share = at_share(op)) return share->op(op);
    Operator copy = graph_.op(op);
    const auto parts = static_cast<double>(replicas_of(op));
    if (copy.phase == Phase::update || parts == 1) return copy;
    const auto weights = static_cast<double>(copy.parameter_bytes());
    copy.flops /= parts;
    copy.traffic_bytes =
        std::max(copy.traffic_bytes - weights, 0.0) / parts + std::min(copy.traffic_bytes, weights);
    if (copy.measured()) copy.measured_time_s /= parts;
    copy.workspace_bytes =
        static_cast<int64_t>(std::ceil(static_cast<double>(copy.workspace_bytes) / parts));
    return copy;
  }

  /// The tensor as a replica of its producer's stage writes it.
  Tensor shared_tensor(int32_t tensor) const {
    Tensor copy = graph_.tensor(tensor);
    const int64_t parts = whole_[tensor] ? 1 : replicas_of(copy.producer);
    if (options_.zero_stage > 0 && is_joined(copy.producer)) {
      const int64_t members = joined_members(copy.producer);
      copy.bytes = (copy.bytes + members - 1) / members;
      copy.shape.clear();
      return copy;
    }
    if (const Graph* share = at_share(copy.producer)) {
      const auto& same = share->tensor(share->op(copy.producer).outputs[output_number(tensor)]);
      copy.shape = same.shape;
      copy.bytes = same.bytes;
    } else if (parts > 1) {
      copy.shape.clear();
      copy.bytes = (copy.bytes + parts - 1) / parts;
    }
    return copy;
  }

  int32_t output_number(int32_t tensor) const { return tensor - producer(tensor).outputs.front(); }

  void add_copy(int32_t op, int32_t replica) {
    const bool same = in_place_ && replica == 0;
    if (!same) {
      Operator added = shared(op);
      added.name = name_made_of(added.name, [&] { return added.name; }) + '@' + std::to_string(replica);
      added.inputs.clear();
      builder_.add_operator(std::move(added));
    }
    const int32_t id = static_cast<int32_t>(origin_.size());
    auto& copy = builder_.op(id);
    if (same) builder_.rename(id, name_made_of(copy.name, [&] { return copy.name; }) + "@0");
    if (is_fetch(op, replica)) {
      copy.type = "WeightCopy";
      copy.flops = 0;
      copy.persistent_bytes = copy.workspace_bytes = 0;
      copy.traffic_bytes = static_cast<double>(weight_bytes(op));
    }
    if (is_joined(op) && options_.zero_stage > 0) copy.type = "ReduceScatter";
    if (comes_every_time(op)) copy.phase = Phase::backward;
    if (meaning_) state_copy(copy, op, replica);
    ids_[op].push_back(id);
    origin_.push_back({op, stage_[op], replica});
    stop_.step();
    for (const int32_t output : graph_.op(op).outputs) add_pieces(output, id, replica);
    if (sent_.contains({op, 0})) {
      Tensor token;
      token.name = name_of([&] { return copy_name(graph_.op(op).name + "/sent", replica); });
      sent_[{op, replica}] = builder_.add_output(id, std::move(token));
    }
    const bool hands_out = server_.contains(op) && !is_fetch(op, replica);
    const bool meets = options_.meeting == Meeting::weights;
    if (hands_out || (meets && is_update(op) && gather_of(op) < 0)) hand_on(op, id, replica);
    if (meets && gathers(op) && graph_.op(op).phase == Phase::update)
      for (const int32_t share : graph_.op(op).inputs)
        hand_on(graph_.tensor(share).producer, id, replica);
  }

  /// Writes the attributes of a copy (graph/meaning.h).
  void state_copy(Operator& copy, int32_t op, int32_t replica) const {
    copy.attributes["replica"] = int64_t{replica};
    copy.attributes["replicas"] = int64_t{replicas_of(op)};
    if (copy.attributes.contains("shares") || gathers(op))
      copy.attributes["share"] = place_among(groups_.sharers(stage_[op], spread_of(op)), replica);
    if (!is_update(op)) return;
    const bool alone = options_.meeting == Meeting::weights || options_.meeting == Meeting::apart;
    if (alone) copy.attributes["mean_of"] = int64_t{options_.inner};
    if (options_.meeting == Meeting::in_turn) copy.attributes["mean_of"] = int64_t{1};
    if (options_.meeting == Meeting::weights)
      copy.attributes["every"] = int64_t{on_occasion() ? 0 : options_.every};
  }

  bool gathers(int32_t op) const {
    return !options_.gathered.empty() && options_.gathered[op] > 0;
  }

  static int64_t place_among(const Groups& groups, int32_t replica) {
    for (const auto& group : groups)
      for (size_t place = 0; place < group.size(); ++place)
        if (group[place] == replica) return static_cast<int64_t>(place);
    return 0;
  }

  bool is_update(int32_t op) const {
    const auto& about = graph_.op(op);
    return about.phase == Phase::update && about.collective < 0 && about.forward >= 0;
  }

  int64_t weight_bytes(int32_t update) const {
    return graph_.op(graph_.op(update).forward).trainable_bytes();
  }
  /// Encoding of weights among the items of buckets.
  int32_t item_of(int32_t update) const {
    return static_cast<int32_t>(graph_.tensors().size()) + update;
  }

  /// The gather of updated weights that reads an update's shard; -1: none.
  int32_t gather_of(int32_t update) const {
    for (const int32_t reader : graph_.readers(update))
      if (gathers(reader)) return reader;
    return -1;
  }

  /// Adds to a copy an output with the weights of an update, for synchronisation after it.
  void hand_on(int32_t update, int32_t id, int32_t replica) {
    Tensor weights;
    weights.name = copy_name(graph_.op(update).name + "/weights", replica);
    weights.bytes = weight_bytes(update);
    joined_[{item_of(update), replica}] = builder_.add_output(id, std::move(weights));
  }

  /// True if a copy of an update fetches weights updated by a server.
  bool is_fetch(int32_t op, int32_t replica) const {
    const auto found = server_.find(op);
    return found != server_.end() &&
           (options_.meeting == Meeting::in_turn || found->second != replica);
  }

  int32_t spread_of(int32_t op) const { return options_.spread.empty() ? 1 : options_.spread[op]; }

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
    return static_cast<int64_t>(here) * groups_.all_of(groups_.alike(stage_[op], spread)[0], spread);
  }

  /// True if the producer or a reader of the tensor is such a member, or a local sum that one
  /// reads.
  bool meets_joined(int32_t tensor) const {
    const int32_t op = graph_.tensor(tensor).producer;
    if (options_.joined.empty() || is_joined(op)) return !options_.joined.empty();
    return std::ranges::any_of(graph_.readers_of(tensor), [&](int32_t reader) {
      const auto& about = graph_.op(reader);
      if (is_joined(reader) || about.collective < 0 || about.phase != Phase::update)
        return is_joined(reader);
      const auto place = std::find(about.inputs.begin(), about.inputs.end(), tensor);
      const auto sum = at(place - about.inputs.begin());
      return sum < about.outputs.size() && meets_joined(about.outputs[sum]);
    });
  }

  /// True for such an operator of phase update, or a local sum that one reads, if gradients are
  /// scattered after every micro-batch: its copies have phase backward.
  bool comes_every_time(int32_t op) const {
    const auto& about = graph_.op(op);
    return options_.zero_stage >= 2 && about.phase == Phase::update && about.collective >= 0 &&
           std::any_of(about.outputs.begin(), about.outputs.end(),
                       [&](int32_t output) { return meets_joined(output); });
  }

  /// Connects copies to copies of their forward operators, which may have higher numbers.
  void name_forwards() {
    for (int32_t op = 0; op < graph_.operator_count(); ++op) {
      const int32_t forward = graph_.op(op).forward;
      for (int32_t replica = 0; forward >= 0 && replica < replicas_of(op); ++replica)
        builder_.op(id_of(op, replica)).forward =
            id_of(forward, std::min(replica, replicas_of(forward) - 1));
    }
  }

  /// Cuts at which readers' parts of the batch begin within the part of a replica, and its ends.
  std::vector<Cut> cuts_of(int32_t tensor, int32_t replica) const {
    const int32_t op = graph_.tensor(tensor).producer;
    const int64_t own = replicas_of(op);
    std::vector<Cut> cuts = {{replica, own}, {replica + 1, own}};
    if (whole_[tensor]) return cuts;
    for (const int32_t reader : graph_.readers_of(tensor)) {
      const int64_t parts = replicas_of(reader);
      for (int64_t part = replica * parts / own; part <= (replica + 1) * parts / own; ++part) {
        const Cut cut{part, parts};
        if (Cut{replica, own}.before(cut) && cut.before({replica + 1, own})) cuts.push_back(cut);
      }
    }
    std::sort(cuts.begin(), cuts.end(), [](const Cut& a, const Cut& b) { return a.before(b); });
    cuts.erase(std::unique(cuts.begin(), cuts.end(),
                           [](const Cut& a, const Cut& b) { return !a.before(b) && !b.before(a); }),
               cuts.end());
    return cuts;
  }

  void add_pieces(int32_t tensor, int32_t id, int32_t replica) {
    if (replicas_.size() == 1) {  // all readers are of the same replica
      Tensor all = shared_tensor(tensor);
      all.name = copy_name(all.name, replica);
      const int64_t parts = replicas_[0];
      const bool same = in_place_ && replica == 0;
      const int32_t made = same ? tensor : builder_.add_output(id, std::move(all));
      if (same) builder_.replace(tensor, std::move(all));
      pieces_[tensor].push_back({{replica, parts}, {replica + 1, parts}, made});
      return;
    }
    const auto cuts = cuts_of(tensor, replica);
    const Tensor all = shared_tensor(tensor);
    const double begin = cuts.front().share(), length = cuts.back().share() - begin;
    int64_t given = 0;
    for (size_t k = 0; k + 1 < cuts.size(); ++k) {
      Tensor piece = all;
      piece.name = copy_name(piece.name, replica);
      if (cuts.size() > 2) {
        piece.name += fmt::format(".{}", k);
        piece.shape.clear();
      }
      const double upto = (cuts[k + 1].share() - begin) / length;
      const int64_t end =
          k + 2 == cuts.size() ? all.bytes : std::llround(static_cast<double>(all.bytes) * upto);
      piece.bytes = end - given;
      given = end;
      pieces_[tensor].push_back({cuts[k], cuts[k + 1], builder_.add_output(id, piece)});
    }
  }

  /// Connects the updates, or all other operators: updates read the outputs of all-reduces.
  void connect(bool updates) {
    for (int32_t op = 0; op < graph_.operator_count(); ++op)
      if ((graph_.op(op).phase == Phase::update) == updates)
        for (int32_t replica = 0; replica < replicas_of(op); ++replica) connect(op, replica);
  }

  /// Connects a copy's inputs: reduced gradients, tensors of its own replica, or the pieces of
  /// another stage that overlap its part of the batch.
  void connect(int32_t op, int32_t replica) {
    stop_.step();
    const Cut begin{replica, replicas_of(op)}, end{replica + 1, replicas_of(op)};
    const bool takes_sums = reads_reduced(op);
    if (in_place_ && replica == 0) {
      if (!takes_sums && !is_fetch(op, replica)) return;
      builder_.op(op).inputs.clear();
    }
    for (const int32_t input : graph_.op(op).inputs) {
      const auto reduced = takes_sums ? joined_.find({input, replica}) : joined_.end();
      if (reduced != joined_.end()) {
        builder_.read(id_of(op, replica), reduced->second);
        continue;
      }
      if (is_fetch(op, replica)) {
        const int32_t of = options_.meeting == Meeting::in_turn ? replica : server_.at(op);
        builder_.read(id_of(op, replica), joined_.at({item_of(op), of}));
        break;
      }
      const int32_t from = graph_.tensor(input).producer;
      if (whole_[input] && replicas_of(from) != replicas_of(op)) refuse_whole(input, op);
      for (const auto& piece : pieces_[input])
        if (begin.before(piece.to) && piece.from.before(end))
          builder_.read(id_of(op, replica), piece.tensor);
    }
  }

  bool have_servers() const {
    return options_.meeting == Meeting::servers || options_.meeting == Meeting::in_turn;
  }
  /// True if local sums of gradients come before their reduction.
  bool sums_first() const { return options_.zero_stage == 1 || have_servers(); }

  /// True if the operator reads gradients after their reduction.
  bool reads_reduced(int32_t op) const {
    const auto& about = graph_.op(op);
    return about.phase == Phase::update && (!sums_first() || about.collective < 0);
  }

  static std::string copy_name(const std::string& name, int32_t replica) {
    return name_of([&] { return fmt::format("{}@{}", name, replica); });
  }
  static std::string numbered(const std::string& name, size_t number, size_t of) {
    return of > 1 ? name_of([&] { return fmt::format("{}.{}", name, number); }) : name;
  }

  [[noreturn]] void refuse_whole(int32_t tensor, int32_t reader) const {
    const int32_t from = graph_.tensor(tensor).producer;
    throw ArgumentError("replicating the stages of graph '{}': tensor '{}' has no batch dimension to split, but is "
                        "sent from stage {} with {} replicas to stage {} with {}", graph_.name(),
                        graph_.tensor(tensor).name, stage_[from] + 1, replicas_of(from), stage_[reader] + 1,
                        replicas_of(reader));
  }

  bool on_occasion() const { return options_.on_occasion && meaning_; }

  /// Keeps each unit's operators of one stage together in every replica.
  void colocate() {
    for (int32_t unit = 0; unit < graph_.unit_count(); ++unit) {
      std::map<int32_t, int32_t> first;  // [stage]
      for (const int32_t op : graph_.unit(unit)) {
        const int32_t lead = first.emplace(stage_[op], op).first->second;
        for (int32_t replica = in_place_ ? 1 : 0; replica < replicas_of(op); ++replica)
          builder_.colocate(id_of(lead, replica), id_of(op, replica));
      }
    }
  }

  int32_t replicas_of_collective(size_t c) const {
    const auto& collective = graph_.collectives()[c];
    const int32_t count = replicas_of(collective.members.front());
    for (const int32_t member : collective.members)
      if (replicas_of(member) != count)
        throw ArgumentError("replicating the stages of graph '{}': collective '{}' has members in stages of {} and of "
                            "{} replicas", graph_.name(), collective.name, count, replicas_of(member));
    return count;
  }

  void copy_collective(size_t c, int32_t replica) {
    Collective copy = graph_.collectives()[c];
    const int64_t parts = replicas_of(copy.members.front());
    const Graph* share = at_share(copy.members.front());
    copy.bytes = share ? share->collectives()[c].bytes : (copy.bytes + parts - 1) / parts;
    copy.name = copy_name(copy.name, replica);
    for (int32_t& member : copy.members) member = id_of(member, replica);
    builder_.add_collective(std::move(copy));
  }

  Replicated finish() {
    Replicated result;
    std::vector<int32_t> numbers;
    result.graph = builder_.build(&numbers);
    const AsideOnStop aside(result.graph);
    for (auto* list : {&result.origin, &result.stage, &result.replica}) list->reserve(numbers.size());
    for (const int32_t number : numbers) {
      stop_.step();
      const auto& origin = origin_[number];
      result.origin.push_back(origin.op);
      result.stage.push_back(origin.stage);
      result.replica.push_back(origin.replica);
      if (options_.meeting == Meeting::in_turn)
        result.turn.push_back(origin.turn >= 0 ? origin.turn : origin.replica);
    }
    return result;
  }

  const Graph& graph_;
  std::span<const int32_t> stage_, replicas_;
  const ReplicaOptions& options_;
  const ReplicaGroups groups_;
  bool meaning_;  // copies get attributes (graph/meaning.h)
  bool in_place_;  // replicas have the whole graph's costs: the first one's copies are the operators themselves
  GraphBuilder builder_;
  std::vector<bool> whole_;                 // [tensor]: it has no samples to divide
  /// Lists that almost always have one or two entries, and then allocate nothing.
  template <class T, size_t N>
  using ShortLists = std::vector<boost::container::small_vector<T, N>>;
  ShortLists<Piece, 1> pieces_;   // [tensor], in order of replica and cut
  ShortLists<int32_t, 2> ids_;    // in the builder: copies of an operator
  std::vector<Origin> origin_;              // [operator of the builder]
  std::map<std::pair<int32_t, int32_t>, int32_t> joined_;  // by item of a bucket and replica
  std::map<std::pair<int32_t, int32_t>, int32_t> sent_;  // tokens by operator and replica
  std::map<int32_t, int32_t> server_;  // update made by one replica alone: that replica
  int32_t most_ = 0;  // maximum number of replicas of a stage
  StopPoll stop_;
};

/// The graph of all replicas. group: [operator]; a bucket holds gradients of one group, which lies within one stage.
Replicated build_replicas(const Graph& graph, std::span<const int32_t> stage, std::span<const int32_t> replicas,
                          std::span<const int32_t> group, const ReplicaOptions& options);

}  // namespace trinity
