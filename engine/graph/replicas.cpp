#include "graph/replicas.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <string>

#include "base/error.h"
#include "base/free_aside.h"
#include "base/index.h"
#include "graph/experts.h"
#include "graph/meaning.h"
#include "graph/nameless.h"
#include "graph/operator_types.h"

namespace trinity {
namespace {

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

  Replicated run() {
    const AsideOnStop aside(joined_, pieces_);
    find_whole();
    fill_buckets();
    for (int32_t replica = 0; replica < most_; ++replica)
      for (int32_t op = 0; op < graph_.operator_count(); ++op)
        if (replica < replicas_of(op)) add_copy(op, replica);
    name_forwards();
    connect(false);
    copy_collectives();
    for (int32_t op = 0; op < graph_.operator_count(); ++op)
      if ((!options_.gathered.empty() && options_.gathered[op] > 0) ||
          (options_.ranks > 1 && is_exchange(graph_.op(op))))
        join_copies(op);
    for (size_t k = 0; k < buckets_.size(); ++k) reduce(k);
    connect(true);
    for (size_t k = 0; k < weights_.size(); ++k) average(k);
    colocate();
    return finish();
  }

 private:
  struct Origin {
    int32_t op, stage, replica;
  };

  int32_t replicas_of(int32_t op) const { return replicas_[stage_[op]]; }
  /// Those that are not made too.
  int32_t all_replicas_of(int32_t stage) const { return std::max(options_.of, replicas_[stage]); }
  int32_t id_of(int32_t op, int32_t replica) const { return ids_[op][replica]; }
  const Operator& producer(int32_t tensor) const {
    return graph_.op(graph_.tensor(tensor).producer);
  }
  const Graph* at_share(int32_t op) const {
    const auto s = at(stage_[op]);
    return s < options_.at_share.size() ? options_.at_share[s] : nullptr;
  }

  /// Weights and what updates read or write have no samples.
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
    Operator copy = shared(op);
    copy.name = copy_name(graph_.op(op).name, replica);
    copy.inputs.clear();
    if (is_fetch(op, replica)) {
      copy.type = "WeightCopy";
      copy.flops = 0;
      copy.persistent_bytes = copy.workspace_bytes = 0;
      copy.traffic_bytes = static_cast<double>(weight_bytes(op));
    }
    if (meaning_) {
      copy.attributes["replica"] = int64_t{replica};
      copy.attributes["replicas"] = int64_t{replicas_of(op)};
    }
    const int32_t id = builder_.add_operator(std::move(copy));
    ids_[op].push_back(id);
    origin_.push_back({op, stage_[op], replica});
    stop_.step();
    for (const int32_t output : graph_.op(op).outputs) add_pieces(output, id, replica);
    const bool hands_out = server_.contains(op) && !is_fetch(op, replica);
    if (hands_out || (options_.meeting == Meeting::weights && is_update(op))) {
      Tensor weights;
      weights.name = copy_name(graph_.op(op).name + "/weights", replica);
      weights.bytes = weight_bytes(op);
      joined_[{item_of(op), replica}] = builder_.add_output(id, std::move(weights));
    }
  }

  bool is_update(int32_t op) const {
    const auto& about = graph_.op(op);
    return about.phase == Phase::update && about.collective < 0 && about.forward >= 0;
  }
  int64_t weight_bytes(int32_t update) const {
    return graph_.op(graph_.op(update).forward).trainable_bytes();
  }
  /// Weights among the items of buckets.
  int32_t item_of(int32_t update) const {
    return static_cast<int32_t>(graph_.tensors().size()) + update;
  }
  /// Whether a copy of an update takes the weights that a server has updated.
  bool is_fetch(int32_t op, int32_t replica) const {
    const auto found = server_.find(op);
    return found != server_.end() && found->second != replica;
  }

  int32_t spread_of(int32_t op) const { return options_.spread.empty() ? 1 : options_.spread[op]; }
  /// Replicas that hold the same weights.
  Groups alike(int32_t stage, int32_t spread) const {
    Groups groups(at(std::min(spread, replicas_[stage])));
    for (int32_t replica = 0; replica < replicas_[stage]; ++replica)
      groups[at(replica % spread)].push_back(replica);
    return groups;
  }
  /// Those of every group in one run of `inner`.
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
  /// Those of every group in the same place of their runs.
  Groups across(const Groups& groups) const {
    Groups lines;
    for (const auto& group : groups) {
      const size_t from = lines.size();
      for (const auto& run : within({group}))
        for (size_t i = 0; i < run.size(); ++i) {
          if (lines.size() == from + i) lines.emplace_back();
          lines[from + i].push_back(run[i]);
        }
    }
    return lines;
  }

  /// Copies serve the copies of the forward operators, which may have later numbers.
  void name_forwards() {
    for (int32_t op = 0; op < graph_.operator_count(); ++op) {
      const int32_t forward = graph_.op(op).forward;
      for (int32_t replica = 0; forward >= 0 && replica < replicas_of(op); ++replica)
        builder_.op(id_of(op, replica)).forward =
            id_of(forward, std::min(replica, replicas_of(forward) - 1));
    }
  }

  /// Where readers' parts of the batch begin within the part of a replica, and its ends.
  std::vector<Cut> cuts_of(int32_t tensor, int32_t replica) const {
    const int32_t op = graph_.tensor(tensor).producer;
    const int64_t own = replicas_of(op);
    std::vector<Cut> cuts = {{replica, own}, {replica + 1, own}};
    if (whole_[tensor]) return cuts;
    const auto [first, last] = boost::out_edges(op, graph_.csr());
    for (auto edge = first; edge != last; ++edge) {
      if (graph_.csr()[*edge].tensor != tensor) continue;
      const int64_t parts = replicas_of(static_cast<int32_t>(boost::target(*edge, graph_.csr())));
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

  /// Connects the updates, or all else: updates read what all-reduces write.
  void connect(bool updates) {
    for (int32_t op = 0; op < graph_.operator_count(); ++op)
      if ((graph_.op(op).phase == Phase::update) == updates)
        for (int32_t replica = 0; replica < replicas_of(op); ++replica) connect(op, replica);
  }

  /// Makes a copy read what its originals read: reduced gradients, its own replica's tensors, or
  /// the pieces of another stage's that its part of the batch overlaps.
  void connect(int32_t op, int32_t replica) {
    stop_.step();
    const Cut begin{replica, replicas_of(op)}, end{replica + 1, replicas_of(op)};
    for (const int32_t input : graph_.op(op).inputs) {
      const auto reduced = joined_.find({input, replica});
      if (reduced != joined_.end() && reads_reduced(op)) {
        builder_.read(id_of(op, replica), reduced->second);
        continue;
      }
      if (is_fetch(op, replica)) {
        builder_.read(id_of(op, replica), joined_.at({item_of(op), server_.at(op)}));
        break;
      }
      const int32_t from = graph_.tensor(input).producer;
      if (whole_[input] && replicas_of(from) != replicas_of(op)) refuse_whole(input, op);
      for (const auto& piece : pieces_[input])
        if (begin.before(piece.to) && piece.from.before(end))
          builder_.read(id_of(op, replica), piece.tensor);
    }
  }

  /// Whether what sums gradients within a replica comes before their reduction.
  bool sums_first() const { return options_.shard == 1 || options_.meeting == Meeting::servers; }
  /// Whether an operator reads gradients behind their reduction.
  bool reads_reduced(int32_t op) const {
    const auto& about = graph_.op(op);
    return about.phase == Phase::update && (!sums_first() || about.collective < 0);
  }

  /// Whether a tensor is a gradient that is reduced over the replicas.
  bool is_reduced(int32_t tensor) const {
    const int32_t op = graph_.tensor(tensor).producer;
    const bool alone = all_replicas_of(stage_[op]) <= spread_of(op);
    if (!whole_[tensor] || is_variable(graph_.op(op)) || alone)
      return false;
    if (!sums_first()) return graph_.op(op).phase == Phase::backward;
    const auto [first, last] = boost::out_edges(op, graph_.csr());
    return std::any_of(first, last, [&](const auto& edge) {
      const auto reader = static_cast<int32_t>(boost::target(edge, graph_.csr()));
      const auto& about = graph_.op(reader);
      return graph_.csr()[edge].tensor == tensor && about.phase == Phase::update &&
             about.forward >= 0 && about.collective < 0;
    });
  }

  /// The copies of a gather of weights, or of an exchange of tokens, become members of collectives.
  void join_copies(int32_t op) {
    const bool exchange = is_exchange(graph_.op(op));
    auto groups = alike(stage_[op], exchange ? 1 : spread_of(op));
    if (exchange) groups = runs_of(options_.ranks, stage_[op]);
    if (!exchange && options_.inner > 1) groups = within(groups);
    for (size_t g = 0; g < groups.size(); ++g) {
      Collective collective;
      collective.kind = exchange ? CollectiveKind::all_to_all : CollectiveKind::all_gather;
      collective.name = numbered(graph_.op(op).name, g, groups.size());
      if (!exchange) collective.algorithm = options_.algorithm;
      collective.bytes = exchange ? graph_.tensor(graph_.op(op).outputs[0]).bytes
                                  : options_.gathered[op];
      for (const int32_t replica : groups[g]) collective.members.push_back(id_of(op, replica));
      builder_.add_collective(std::move(collective));
    }
  }
  Groups runs_of(int32_t length, int32_t stage) const {
    Groups runs;
    for (int32_t replica = 0; replica < replicas_[stage]; ++replica) {
      if (replica % length == 0) runs.emplace_back();
      runs.back().push_back(replica);
    }
    return runs;
  }
  static std::string copy_name(const std::string& name, int32_t replica) {
    return name_of([&] { return fmt::format("{}@{}", name, replica); });
  }
  static std::string numbered(const std::string& name, size_t number, size_t of) {
    return of > 1 ? name_of([&] { return fmt::format("{}.{}", name, number); }) : name;
  }

  [[noreturn]] void refuse_whole(int32_t tensor, int32_t reader) const {
    const int32_t from = graph_.tensor(tensor).producer;
    throw ArgumentError(fmt::format(
        "replicating the stages of graph '{}': tensor '{}' has no samples to share out, and goes "
        "from stage {} with {} replicas to stage {} with {}",
        graph_.name(), graph_.tensor(tensor).name, stage_[from] + 1, replicas_of(from),
        stage_[reader] + 1, replicas_of(reader)));
  }

  /// Tensors are in the order of their producers.
  void fill_buckets() {
    const bool gradients = options_.meeting == Meeting::gradients || options_.inner > 1 ||
                           options_.meeting == Meeting::servers;
    for (int32_t t = 0; gradients && t < static_cast<int32_t>(graph_.tensors().size()); ++t)
      if (is_reduced(t)) fill(buckets_, t, graph_.tensor(t).producer, shared_tensor(t).bytes);
    for (int32_t op = 0; op < graph_.operator_count(); ++op)
      if (options_.meeting == Meeting::weights && is_update(op) && replicas_of(op) > spread_of(op))
        fill(weights_, item_of(op), op, weight_bytes(op));
    for (size_t k = 0; options_.meeting == Meeting::servers && k < buckets_.size(); ++k)
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

  /// Who reads a gradient of a bucket updates on its server alone.
  void give_to_server(int32_t gradient, size_t bucket) {
    const int32_t op = graph_.tensor(gradient).producer;
    const auto server = server_of(bucket, replicas_of(op));
    const auto [first, last] = boost::out_edges(op, graph_.csr());
    for (auto edge = first; edge != last; ++edge) {
      const auto reader = static_cast<int32_t>(boost::target(*edge, graph_.csr()));
      if (graph_.csr()[*edge].tensor == gradient && is_update(reader)) server_[reader] = server;
    }
  }

  bool one_unit(const Bucket& bucket) const {
    return std::all_of(bucket.items.begin(), bucket.items.end(), [&](int32_t gradient) {
      return producer(gradient).unit == producer(bucket.items[0]).unit;
    });
  }

  /// What the copies of a bucket's gradients become for the updates.
  void reduce(size_t k) {
    const Bucket& bucket = buckets_[k];
    if (options_.meeting == Meeting::servers) return add_server(bucket, k);
    using Kind = CollectiveKind;
    const Phase phase = options_.shard >= 2 ? Phase::backward : Phase::update;
    const Groups all = alike(bucket.stage, bucket.spread);
    const Groups runs = options_.inner > 1 ? within(all) : all;
    const auto name = [&](const char* what) {
      return name_of([&] { return fmt::format("{}{}", what, k); });
    };
    if (options_.meeting != Meeting::gradients)
      return add_step(bucket, name("all_reduce"), Kind::all_reduce, phase, runs);
    if (options_.inner < 2 || runs[0].size() < 2) {
      const bool scatter = options_.shard > 0 && options_.inner < 2;
      return scatter
                 ? add_step(bucket, name("reduce_scatter"), Kind::reduce_scatter, phase, all)
                 : add_step(bucket, name("all_reduce"), Kind::all_reduce, Phase::update, all);
    }
    add_step(bucket, name("reduce_scatter"), Kind::reduce_scatter, phase, runs);
    add_step(bucket, name("all_reduce"), Kind::all_reduce, Phase::update, across(all));
    if (options_.shard == 0) add_step(bucket, name("all_gather"), Kind::all_gather, phase, runs);
  }

  /// Weights behind the updates: averaged over all, or over the first of every run, who hands them
  /// out.
  void average(size_t k) {
    const Bucket& bucket = weights_[k];
    Groups groups = alike(bucket.stage, bucket.spread);
    if (options_.inner > 1) groups = across(groups);
    const size_t lines = alike(bucket.stage, bucket.spread).size();
    if (options_.inner > 1) {
      Groups first;
      for (size_t g = 0; g < groups.size(); g += groups.size() / lines) first.push_back(groups[g]);
      groups = std::move(first);
    }
    const auto name = fmt::format("average{}", k);
    add_step(bucket, name, CollectiveKind::all_reduce, Phase::update, groups);
    if (options_.inner > 1)
      add_step(bucket, fmt::format("hand_out{}", k), CollectiveKind::broadcast, Phase::update,
               within(alike(bucket.stage, bucket.spread)));
  }

  int32_t current(int32_t item, int32_t replica) const {
    const auto found = joined_.find({item, replica});
    return found == joined_.end() ? pieces_[item][replica].tensor : found->second;
  }

  /// Collectives of groups of replicas on what they have of a bucket by now.
  void add_step(const Bucket& bucket, const std::string& name, CollectiveKind kind, Phase phase,
                const Groups& groups) {
    for (size_t g = 0; g < groups.size(); ++g) {
      if (groups[g].size() < 2 && options_.of < 2) continue;
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

  /// The member at a place of a group of replicas.
  int32_t add_member(const Bucket& bucket, const std::string& name, CollectiveKind kind,
                     Phase phase, const std::vector<int32_t>& group, size_t place) {
    constexpr const char* kTypes[] = {"AllReduce", "ReduceScatter", "AllGather", "Broadcast"};
    const int32_t replica = group[place];
    const auto members = std::max<int64_t>(static_cast<int64_t>(group.size()), options_.of);
    Operator member;
    member.name = copy_name(name, replica);
    member.type = kTypes[static_cast<size_t>(kind)];
    member.phase = phase;
    member.traffic_bytes = 0;
    if (meaning_) {
      member.attributes["replica"] = static_cast<int64_t>(place);
      member.attributes["replicas"] = members;
      if (kind == CollectiveKind::reduce_scatter) member.attributes["shares"] = members;
    }
    const int32_t id = builder_.add_operator(std::move(member));
    origin_.push_back({-1, bucket.stage, replica});
    const auto tensors = static_cast<int32_t>(graph_.tensors().size());
    for (const int32_t item : bucket.items) {
      const int32_t read = current(item, replica);
      builder_.read(id, read);
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
    if (bucket.items[0] < tensors && one_unit(bucket))
      builder_.colocate(id, id_of(graph_.tensor(bucket.items[0]).producer, replica));
    return id;
  }

  /// Sums a bucket's gradients of all replicas on the device of one.
  void add_server(const Bucket& bucket, size_t k) {
    const auto members = replicas_[bucket.stage];
    const int32_t server = server_of(k, members);
    Operator sum;
    sum.name = fmt::format("server{}@{}", k, server);
    sum.type = "Sum";
    sum.phase = Phase::update;
    sum.flops = static_cast<double>(bucket.bytes) / 4 * (members - 1);
    const int32_t id = builder_.add_operator(std::move(sum));
    origin_.push_back({-1, bucket.stage, server});
    for (const int32_t gradient : bucket.items) {
      for (int32_t i = 0; i < members; ++i)  // first its own, where the sum is placed
        builder_.read(id, pieces_[gradient][(server + i) % members].tensor);
      Tensor made = builder_.tensor(pieces_[gradient][server].tensor);
      made.name = fmt::format("{}/reduced@{}", graph_.tensor(gradient).name, server);
      joined_[{gradient, server}] = builder_.add_output(id, std::move(made));
    }
  }

  /// A unit's operators of one stage stay together in every replica.
  void colocate() {
    for (int32_t unit = 0; unit < graph_.unit_count(); ++unit) {
      std::map<int32_t, int32_t> first;  // of every stage
      for (const int32_t op : graph_.unit(unit)) {
        const int32_t lead = first.emplace(stage_[op], op).first->second;
        for (int32_t replica = 0; replica < replicas_of(op); ++replica)
          builder_.colocate(id_of(lead, replica), id_of(op, replica));
      }
    }
  }

  void copy_collectives() {
    for (int32_t replica = 0; replica < most_; ++replica)
      for (size_t c = 0; c < graph_.collectives().size(); ++c)
        if (replica < replicas_of_collective(c)) copy_collective(c, replica);
  }

  int32_t replicas_of_collective(size_t c) const {
    const auto& collective = graph_.collectives()[c];
    const int32_t count = replicas_of(collective.members.front());
    for (const int32_t member : collective.members)
      if (replicas_of(member) != count)
        throw ArgumentError(fmt::format(
            "replicating the stages of graph '{}': collective '{}' has members in stages of {} "
            "and of {} replicas",
            graph_.name(), collective.name, count, replicas_of(member)));
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
    for (const int32_t number : numbers) {
      stop_.step();
      const auto& origin = origin_[number];
      result.origin.push_back(origin.op);
      result.stage.push_back(origin.stage);
      result.replica.push_back(origin.replica);
    }
    return result;
  }

  const Graph& graph_;
  std::span<const int32_t> stage_, replicas_, group_;
  const ReplicaOptions& options_;
  bool meaning_;  // whether attributes say what copies mean (graph/meaning.h)
  GraphBuilder builder_;
  std::vector<bool> whole_;                 // per tensor: it has no samples to share out
  std::vector<std::vector<Piece>> pieces_;  // per tensor, in order of replica and cut
  std::vector<std::vector<int32_t>> ids_;   // in the builder: of the copies of an operator
  std::vector<Origin> origin_;              // per operator of the builder
  std::map<std::pair<int32_t, int32_t>, int32_t> joined_;  // by item of a bucket and replica
  std::vector<Bucket> buckets_, weights_;
  std::map<int32_t, int32_t> server_;  // of updates that one replica alone makes: which
  int32_t most_ = 0;  // replicas of any stage
  StopPoll stop_;
};

void check_share(const Graph& graph, const Graph& share, size_t s) {
  bool same = share.operator_count() == graph.operator_count() &&
              share.collectives().size() == graph.collectives().size();
  for (int32_t op = 0; same && op < graph.operator_count(); ++op)
    same = share.op(op).name == graph.op(op).name &&
           share.op(op).outputs.size() == graph.op(op).outputs.size();
  if (!same)
    throw ArgumentError(
        fmt::format("replicating the stages of graph '{}': the graph at the share of stage {} has "
                    "other operators",
                    graph.name(), s + 1));
}

/// That so many copies of every operator and of its tensors can be numbered.
void check_copies(const Graph& graph, std::span<const int32_t> stage,
                  std::span<const int32_t> replicas) {
  size_t copies = 0, tensors = 0;
  for (int32_t op = 0; op < graph.operator_count(); ++op) {
    copies += at(replicas[stage[op]]);
    tensors += at(replicas[stage[op]]) * graph.op(op).outputs.size();
  }
  if (copies > kMaxOperators || tensors > std::numeric_limits<int32_t>::max())
    throw LimitError(fmt::format("replicating graph '{}': {} copies of operators are more than {}",
                                 graph.name(), copies, kMaxOperators));
}

/// That lists of operators are of this graph, and that runs and ranks divide the replicas.
void check_groups(const Graph& graph, int32_t replicas, const ReplicaOptions& options) {
  const auto owner = fmt::format("replicating graph '{}'", graph.name());
  const auto count = at(graph.operator_count());
  const auto check = [&](const char* what, size_t size) {
    if (size > 0 && size != count)
      throw ArgumentError(
          fmt::format("{}: expected the {} of {} operators, got {}", owner, what, count, size));
  };
  check("devices", options.device_of.size());
  check("spread", options.spread.size());
  check("gathered bytes", options.gathered.size());
  if (options.ranks < 1 || replicas % options.ranks != 0)
    throw ArgumentError(
        fmt::format("{}: {} ranks do not divide {} replicas", owner, options.ranks, replicas));
  if (options.inner > 1 && replicas % options.inner != 0)
    throw ArgumentError(
        fmt::format("{}: runs of {} do not divide {} replicas", owner, options.inner, replicas));
  if (options.inner > 1 && options.inner % options.ranks != 0 && options.ranks % options.inner != 0)
    throw ArgumentError(
        fmt::format("{}: runs of {} replicas and {} ranks: neither divides the other", owner,
                    options.inner, options.ranks));
  if (options.meeting == Meeting::servers && options.servers < 1)
    throw ArgumentError(
        fmt::format("{}: expected at least 1 server, got {}", owner, options.servers));
}

void check_bucket(const Graph& graph, const ReplicaOptions& options) {
  if (options.bucket_bytes < 1)
    throw ArgumentError(fmt::format("replicating graph '{}': bucket_bytes must be at least 1, got {}",
                                    graph.name(), options.bucket_bytes));
}

void check_stages(const Graph& graph, std::span<const int32_t> stage,
                  std::span<const int32_t> replicas, const ReplicaOptions& options) {
  const auto owner = fmt::format("replicating the stages of graph '{}'", graph.name());
  if (stage.size() != at(graph.operator_count()))
    throw ArgumentError(fmt::format("{}: expected the stages of {} operators, got {}", owner,
                                    graph.operator_count(), stage.size()));
  for (size_t s = 0; s < replicas.size(); ++s) {
    if (replicas[s] < 1)
      throw ArgumentError(fmt::format("{}: stage {} has {} replicas, expected at least 1", owner,
                                      s + 1, replicas[s]));
    if (s < options.at_share.size() && options.at_share[s])
      check_share(graph, *options.at_share[s], s);
  }
  for (int32_t op = 0; op < graph.operator_count(); ++op)
    if (stage[op] < 0 || at(stage[op]) >= replicas.size())
      throw ArgumentError(fmt::format("{}: operator '{}' is in stage {}, expected 1 to {}", owner,
                                      graph.op(op).name, stage[op] + 1, replicas.size()));
}

}  // namespace

Replicated replicate(const Graph& graph, int32_t replicas, const ReplicaOptions& options) {
  if (replicas < 1)
    throw ArgumentError(fmt::format("replicating graph '{}': expected at least 1 replica, got {}",
                                    graph.name(), replicas));
  check_bucket(graph, options);
  const auto count = at(graph.operator_count());
  check_groups(graph, replicas, options);
  const std::vector<int32_t> stage(count, 0);
  if (std::max(replicas, options.of) == 1) {
    std::vector<int32_t> origin(count);
    std::iota(origin.begin(), origin.end(), 0);
    return {graph, std::move(origin), stage, stage};
  }
  check_copies(graph, stage, {&replicas, 1});
  ReplicaOptions whole = options;
  whole.at_share = {&graph};
  const auto group = options.device_of.empty() ? graph.units() : options.device_of;
  return Replication(graph, stage, {&replicas, 1}, group, whole).run();
}

Replicated replicate_stages(const Graph& graph, std::span<const int32_t> stage,
                            std::span<const int32_t> replicas, const ReplicaOptions& options) {
  check_bucket(graph, options);
  check_stages(graph, stage, replicas, options);
  check_copies(graph, stage, replicas);
  return Replication(graph, stage, replicas, stage, options).run();
}

}  // namespace trinity
