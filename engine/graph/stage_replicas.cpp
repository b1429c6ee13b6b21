#include "graph/stage_replicas.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <unordered_map>

#include "base/error.h"
#include "graph/operator_types.h"

namespace trinity {
namespace {

constexpr int32_t kMostReplicas = 1024;

size_t at(int32_t i) { return static_cast<size_t>(i); }

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

class StageReplication {
 public:
  StageReplication(const Graph& graph, std::span<const int32_t> stage,
                   std::span<const int32_t> replicas, const StageReplicaOptions& options)
      : graph_(graph),
        stage_(stage),
        replicas_(replicas),
        options_(options),
        builder_(graph.name()),
        whole_(graph.tensors().size(), false),
        pieces_(graph.tensors().size()),
        first_id_(at(graph.operator_count()), -1) {}

  StageReplicated run() {
    find_whole();
    for (int32_t op = 0; op < graph_.operator_count(); ++op)
      for (int32_t replica = 0; replica < replicas_of(op); ++replica) add_copy(op, replica);
    for (int32_t op = 0; op < graph_.operator_count(); ++op)
      if (graph_.op(op).phase != Phase::update)
        for (int32_t replica = 0; replica < replicas_of(op); ++replica) connect(op, replica);
    fill_buckets();
    for (int32_t op = 0; op < graph_.operator_count(); ++op)
      if (graph_.op(op).phase == Phase::update)
        for (int32_t replica = 0; replica < replicas_of(op); ++replica) connect(op, replica);
    colocate();
    copy_collectives();
    return finish();
  }

 private:
  struct Origin {
    int32_t op, stage, replica;
  };

  int32_t replicas_of(int32_t op) const { return replicas_[at(stage_[at(op)])]; }
  int32_t id_of(int32_t op, int32_t replica) const { return first_id_[at(op)] + replica; }
  const Operator& producer(int32_t tensor) const {
    return graph_.op(graph_.tensor(tensor).producer);
  }
  const Graph* at_share(int32_t op) const {
    const auto s = at(stage_[at(op)]);
    return s < options_.at_share.size() ? options_.at_share[s] : nullptr;
  }

  /// Weights and what updates read or write have no samples.
  void find_whole() {
    for (const auto& op : graph_.operators()) {
      if (is_variable(op) || op.phase == Phase::update)
        for (const int32_t output : op.outputs) whole_[at(output)] = true;
      if (op.phase == Phase::update)
        for (const int32_t input : op.inputs) whole_[at(input)] = true;
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

  int64_t shared_bytes(int32_t tensor) const {
    const auto& about = graph_.tensor(tensor);
    const int32_t op = about.producer;
    if (const Graph* share = at_share(op))
      return share->tensor(share->op(op).outputs[at(output_number(tensor))]).bytes;
    const int64_t parts = whole_[at(tensor)] ? 1 : replicas_of(op);
    return (about.bytes + parts - 1) / parts;
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
    const int32_t id = builder_.add_operator(std::move(copy));
    if (replica == 0) first_id_[at(op)] = id;
    origin_.push_back({op, stage_[at(op)], replica});
    for (const int32_t output : graph_.op(op).outputs) add_pieces(output, id, replica);
  }

  /// Where readers' parts of the batch begin within the part of a replica, and its ends.
  std::vector<Cut> cuts_of(int32_t tensor, int32_t replica) const {
    const int32_t op = graph_.tensor(tensor).producer;
    const int64_t own = replicas_of(op);
    std::vector<Cut> cuts = {{replica, own}, {replica + 1, own}};
    if (whole_[at(tensor)]) return cuts;
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
    const int64_t bytes = shared_bytes(tensor);
    const double begin = cuts.front().share(), length = cuts.back().share() - begin;
    int64_t given = 0;
    for (size_t k = 0; k + 1 < cuts.size(); ++k) {
      Tensor piece = graph_.tensor(tensor);
      piece.name = fmt::format("{}@{}", piece.name, replica);
      if (cuts.size() > 2) piece.name += fmt::format(".{}", k);
      const double upto = (cuts[k + 1].share() - begin) / length;
      const int64_t end =
          k + 2 == cuts.size() ? bytes : std::llround(static_cast<double>(bytes) * upto);
      piece.shape.clear();
      piece.bytes = end - given;
      given = end;
      pieces_[at(tensor)].push_back({cuts[k], cuts[k + 1], builder_.add_output(id, piece)});
    }
  }

  /// Makes a copy read what its originals read: reduced gradients, its own replica's tensors, or
  /// the pieces of another stage's that its part of the batch overlaps.
  void connect(int32_t op, int32_t replica) {
    const Cut begin{replica, replicas_of(op)}, end{replica + 1, replicas_of(op)};
    for (const int32_t input : graph_.op(op).inputs) {
      const auto reduced = reduced_.find({input, replica});
      if (reduced != reduced_.end() && graph_.op(op).phase == Phase::update) {
        builder_.read(id_of(op, replica), reduced->second);
        continue;
      }
      const int32_t from = graph_.tensor(input).producer;
      if (whole_[at(input)] && replicas_of(from) != replicas_of(op)) refuse_whole(input, op);
      for (const auto& piece : pieces_[at(input)])
        if (begin.before(piece.to) && piece.from.before(end))
          builder_.read(id_of(op, replica), piece.tensor);
    }
  }

  [[noreturn]] void refuse_whole(int32_t tensor, int32_t reader) const {
    const int32_t from = graph_.tensor(tensor).producer;
    throw ArgumentError(fmt::format(
        "replicating the stages of graph '{}': tensor '{}' has no samples to share out, and goes "
        "from stage {} with {} replicas to stage {} with {}",
        graph_.name(), graph_.tensor(tensor).name, stage_[at(from)] + 1, replicas_of(from),
        stage_[at(reader)] + 1, replicas_of(reader)));
  }

  /// Gradients in the order in which they are produced, by stage.
  void fill_buckets() {
    std::map<int32_t, std::vector<int32_t>> open;
    std::map<int32_t, int64_t> bytes;
    for (int32_t t = 0; t < static_cast<int32_t>(graph_.tensors().size()); ++t) {
      const auto& from = producer(t);
      const int32_t op = graph_.tensor(t).producer, s = stage_[at(op)];
      if (!whole_[at(t)] || from.phase != Phase::backward || replicas_of(op) == 1) continue;
      if (!open[s].empty() && bytes[s] + shared_bytes(t) > options_.bucket_bytes) {
        add_all_reduce(s, open[s]);
        open[s].clear();
        bytes[s] = 0;
      }
      open[s].push_back(t);
      bytes[s] += shared_bytes(t);
    }
    for (const auto& [s, gradients] : open)
      if (!gradients.empty()) add_all_reduce(s, gradients);
  }

  void add_all_reduce(int32_t s, const std::vector<int32_t>& gradients) {
    Collective collective;
    collective.name = fmt::format("all_reduce{}", all_reduces_++);
    collective.algorithm = options_.algorithm;
    for (const int32_t gradient : gradients) collective.bytes += shared_bytes(gradient);
    for (int32_t replica = 0; replica < replicas_[at(s)]; ++replica) {
      Operator member;
      member.name = fmt::format("{}@{}", collective.name, replica);
      member.type = "AllReduce";
      member.phase = Phase::update;
      member.traffic_bytes = 0;
      const int32_t id = builder_.add_operator(std::move(member));
      origin_.push_back({-1, s, replica});
      for (const int32_t gradient : gradients) {
        const auto& piece = pieces_[at(gradient)][at(replica)];
        builder_.read(id, piece.tensor);
        Tensor reduced = builder_.tensor(piece.tensor);
        reduced.name += "/reduced";
        reduced_[{gradient, replica}] = builder_.add_output(id, std::move(reduced));
      }
      collective.members.push_back(id);
    }
    builder_.add_collective(std::move(collective));
  }

  /// A unit's operators of one stage stay together in every replica.
  void colocate() {
    for (int32_t unit = 0; unit < graph_.unit_count(); ++unit) {
      std::map<int32_t, int32_t> first;  // of every stage
      for (const int32_t op : graph_.unit(unit)) {
        const int32_t lead = first.emplace(stage_[at(op)], op).first->second;
        for (int32_t replica = 0; replica < replicas_of(op); ++replica)
          builder_.colocate(id_of(lead, replica), id_of(op, replica));
      }
    }
  }

  void copy_collectives() {
    for (const auto& collective : graph_.collectives()) {
      const int32_t count = replicas_of(collective.members.front());
      for (const int32_t member : collective.members)
        if (replicas_of(member) != count)
          throw ArgumentError(fmt::format(
              "replicating the stages of graph '{}': collective '{}' has members in stages of {} "
              "and of {} replicas",
              graph_.name(), collective.name, count, replicas_of(member)));
      for (int32_t replica = 0; replica < count; ++replica) {
        Collective copy = collective;
        copy.name = fmt::format("{}@{}", copy.name, replica);
        copy.bytes = (copy.bytes + count - 1) / count;
        for (int32_t& member : copy.members) member = id_of(member, replica);
        builder_.add_collective(std::move(copy));
      }
    }
  }

  /// Building renumbers the operators; their names tell where they come from.
  StageReplicated finish() {
    std::unordered_map<std::string, Origin> origin_of;
    for (size_t id = 0; id < origin_.size(); ++id)
      origin_of.emplace(builder_.op(static_cast<int32_t>(id)).name, origin_[id]);
    StageReplicated result;
    result.graph = builder_.build();
    for (const auto& op : result.graph.operators()) {
      const auto& origin = origin_of.at(op.name);
      result.origin.push_back(origin.op);
      result.stage.push_back(origin.stage);
      result.replica.push_back(origin.replica);
    }
    return result;
  }

  const Graph& graph_;
  std::span<const int32_t> stage_, replicas_;
  const StageReplicaOptions& options_;
  GraphBuilder builder_;
  std::vector<bool> whole_;                 // per tensor: it has no samples to share out
  std::vector<std::vector<Piece>> pieces_;  // per tensor, in order of replica and cut
  std::vector<int32_t> first_id_;           // in the builder: the copy of replica 0
  std::vector<Origin> origin_;              // per operator of the builder
  std::map<std::pair<int32_t, int32_t>, int32_t> reduced_;  // by gradient and replica
  int32_t all_reduces_ = 0;
};

void check_share(const Graph& graph, const Graph& share, size_t s) {
  bool same = share.operator_count() == graph.operator_count();
  for (int32_t op = 0; same && op < graph.operator_count(); ++op)
    same = share.op(op).name == graph.op(op).name &&
           share.op(op).outputs.size() == graph.op(op).outputs.size();
  if (!same)
    throw ArgumentError(
        fmt::format("replicating the stages of graph '{}': the graph at the share of stage {} has "
                    "other operators",
                    graph.name(), s + 1));
}

void check_options(const Graph& graph, std::span<const int32_t> stage,
                   std::span<const int32_t> replicas, const StageReplicaOptions& options) {
  const auto owner = fmt::format("replicating the stages of graph '{}'", graph.name());
  if (stage.size() != at(graph.operator_count()))
    throw ArgumentError(fmt::format("{}: expected the stages of {} operators, got {}", owner,
                                    graph.operator_count(), stage.size()));
  if (options.bucket_bytes < 1)
    throw ArgumentError(
        fmt::format("{}: bucket_bytes must be at least 1, got {}", owner, options.bucket_bytes));
  for (size_t s = 0; s < replicas.size(); ++s) {
    if (replicas[s] < 1)
      throw ArgumentError(fmt::format("{}: stage {} has {} replicas, expected at least 1", owner,
                                      s + 1, replicas[s]));
    if (replicas[s] > kMostReplicas)
      throw LimitError(fmt::format("{}: stage {} has {} replicas, at most {} are possible", owner,
                                   s + 1, replicas[s], kMostReplicas));
    if (s < options.at_share.size() && options.at_share[s])
      check_share(graph, *options.at_share[s], s);
  }
  size_t copies = 0;
  for (int32_t op = 0; op < graph.operator_count(); ++op) {
    const int32_t s = stage[at(op)];
    if (s < 0 || at(s) >= replicas.size())
      throw ArgumentError(fmt::format("{}: operator '{}' is in stage {}, expected 1 to {}", owner,
                                      graph.op(op).name, s + 1, replicas.size()));
    copies += at(replicas[at(s)]);
  }
  if (copies > kMaxOperators)
    throw LimitError(fmt::format("{}: {} copies are more than {}", owner, copies, kMaxOperators));
}

}  // namespace

StageReplicated replicate_stages(const Graph& graph, std::span<const int32_t> stage,
                                 std::span<const int32_t> replicas,
                                 const StageReplicaOptions& options) {
  check_options(graph, stage, replicas, options);
  return StageReplication(graph, stage, replicas, options).run();
}

}  // namespace trinity
