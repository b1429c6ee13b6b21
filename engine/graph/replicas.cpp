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
#include "graph/meaning.h"
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

/// Gradients that are reduced together.
struct Bucket {
  int32_t stage;
  std::vector<int32_t> gradients;  // tensors of the original graph, in the order of production
  int64_t bytes = 0;
};

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
    const AsideOnStop aside(reduced_, pieces_);
    find_whole();
    for (int32_t replica = 0; replica < most_; ++replica)
      for (int32_t op = 0; op < graph_.operator_count(); ++op)
        if (replica < replicas_of(op)) add_copy(op, replica);
    connect(false);
    copy_collectives();
    for (size_t op = 0; op < options_.gathered.size(); ++op)
      if (options_.gathered[op] > 0) join_copies(static_cast<int32_t>(op));
    fill_buckets();
    for (size_t k = 0; k < buckets_.size(); ++k) add_all_reduce(k);
    connect(true);
    colocate();
    return finish();
  }

 private:
  struct Origin {
    int32_t op, stage, replica;
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
    copy.name = fmt::format("{}@{}", graph_.op(op).name, replica);
    copy.inputs.clear();
    if (copy.forward >= 0) {
      const int32_t of = std::min(replica, replicas_of(copy.forward) - 1);
      copy.forward = id_of(copy.forward, of);
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
      piece.name = fmt::format("{}@{}", piece.name, replica);
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
      const auto reduced = reduced_.find({input, replica});
      if (reduced != reduced_.end() && reads_reduced(op)) {
        builder_.read(id_of(op, replica), reduced->second);
        continue;
      }
      const int32_t from = graph_.tensor(input).producer;
      if (whole_[input] && replicas_of(from) != replicas_of(op)) refuse_whole(input, op);
      for (const auto& piece : pieces_[input])
        if (begin.before(piece.to) && piece.from.before(end))
          builder_.read(id_of(op, replica), piece.tensor);
    }
  }

  /// Whether an operator reads gradients behind their reduction. At level 1 what sums them within a
  /// replica comes first.
  bool reads_reduced(int32_t op) const {
    const auto& about = graph_.op(op);
    return about.phase == Phase::update && (options_.shard != 1 || about.collective < 0);
  }

  /// Whether a tensor is a gradient that is reduced over the replicas.
  bool is_reduced(int32_t tensor) const {
    const int32_t op = graph_.tensor(tensor).producer;
    if (!whole_[tensor] || is_variable(graph_.op(op)) || replicas_of(op) == 1) return false;
    if (options_.shard != 1) return graph_.op(op).phase == Phase::backward;
    const auto [first, last] = boost::out_edges(op, graph_.csr());
    return std::any_of(first, last, [&](const auto& edge) {
      const auto reader = static_cast<int32_t>(boost::target(edge, graph_.csr()));
      const auto& about = graph_.op(reader);
      return graph_.csr()[edge].tensor == tensor && about.phase == Phase::update &&
             about.forward >= 0 && about.collective < 0;
    });
  }

  /// The copies of a gather of weights become members of a collective.
  void join_copies(int32_t op) {
    Collective collective;
    collective.kind = CollectiveKind::all_gather;
    collective.name = graph_.op(op).name;
    collective.algorithm = options_.algorithm;
    collective.bytes = options_.gathered[op];
    for (int32_t replica = 0; replica < replicas_of(op); ++replica)
      collective.members.push_back(id_of(op, replica));
    builder_.add_collective(std::move(collective));
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
    std::map<int32_t, size_t> open;  // by group
    for (int32_t t = 0; t < static_cast<int32_t>(graph_.tensors().size()); ++t) {
      const int32_t op = graph_.tensor(t).producer;
      if (!is_reduced(t)) continue;
      const int64_t bytes = shared_tensor(t).bytes;
      const auto found = open.find(group_[op]);
      if (found == open.end() || buckets_[found->second].bytes + bytes > options_.bucket_bytes) {
        open[group_[op]] = buckets_.size();
        buckets_.push_back({stage_[op], {}, 0});
      }
      auto& bucket = buckets_[open[group_[op]]];
      bucket.gradients.push_back(t);
      bucket.bytes += bytes;
    }
  }

  bool one_unit(const Bucket& bucket) const {
    return std::all_of(bucket.gradients.begin(), bucket.gradients.end(), [&](int32_t gradient) {
      return producer(gradient).unit == producer(bucket.gradients[0]).unit;
    });
  }

  void add_all_reduce(size_t k) {
    const Bucket& bucket = buckets_[k];
    Collective collective;
    collective.name = fmt::format("all_reduce{}", k);
    collective.algorithm = options_.algorithm;
    collective.bytes = bucket.bytes;
    const bool scatter = options_.shard > 0;
    if (scatter) {
      collective.kind = CollectiveKind::reduce_scatter;
      collective.name = fmt::format("reduce_scatter{}", k);
    }
    for (int32_t replica = 0; replica < replicas_[bucket.stage]; ++replica) {
      Operator member;
      member.name = fmt::format("{}@{}", collective.name, replica);
      member.type = scatter ? "ReduceScatter" : "AllReduce";
      member.phase = options_.shard >= 2 ? Phase::backward : Phase::update;
      member.traffic_bytes = 0;
      if (meaning_) {
        member.attributes["replica"] = int64_t{replica};
        member.attributes["replicas"] = int64_t{replicas_[bucket.stage]};
        if (scatter) member.attributes["shares"] = int64_t{replicas_[bucket.stage]};
      }
      const int32_t id = builder_.add_operator(std::move(member));
      origin_.push_back({-1, bucket.stage, replica});
      for (const int32_t gradient : bucket.gradients) {
        const auto& piece = pieces_[gradient][replica];
        builder_.read(id, piece.tensor);
        Tensor reduced = builder_.tensor(piece.tensor);
        reduced.name = fmt::format("{}/reduced@{}", graph_.tensor(gradient).name, replica);
        if (scatter) {
          const int64_t shares = replicas_[bucket.stage];
          reduced.bytes = (reduced.bytes + shares - 1) / shares;
          reduced.shape.clear();
        }
        reduced_[{gradient, replica}] = builder_.add_output(id, std::move(reduced));
      }
      if (one_unit(bucket))
        builder_.colocate(id, id_of(graph_.tensor(bucket.gradients[0]).producer, replica));
      collective.members.push_back(id);
    }
    builder_.add_collective(std::move(collective));
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
    copy.name = fmt::format("{}@{}", copy.name, replica);
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
  std::map<std::pair<int32_t, int32_t>, int32_t> reduced_;  // by gradient and replica
  std::vector<Bucket> buckets_;
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
  if (!options.device_of.empty() && options.device_of.size() != count)
    throw ArgumentError(
        fmt::format("replicating graph '{}': expected the devices of {} operators, got {}",
                    graph.name(), count, options.device_of.size()));
  const std::vector<int32_t> stage(count, 0);
  if (replicas == 1) {
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
