#include "graph/replicas/replication.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "base/error.h"
#include "base/free_aside.h"
#include "graph/experts.h"
#include "graph/operator_types.h"

namespace trinity {

Replicated Replication::run() {
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

const Graph* Replication::at_share(int32_t op) const {
  const auto s = at(stage_[op]);
  return s < options_.at_share.size() ? options_.at_share[s] : nullptr;
}

void Replication::find_whole() {
  for (const auto& op : graph_.operators()) {
    if (is_variable(op) || op.phase == Phase::update)
      for (const int32_t output : op.outputs) whole_[output] = true;
    if (op.phase == Phase::update)
      for (const int32_t input : op.inputs) whole_[input] = true;
  }
}

Operator Replication::shared(int32_t op) const {
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

Tensor Replication::shared_tensor(int32_t tensor) const {
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

void Replication::add_copy(int32_t op, int32_t replica) {
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

int32_t Replication::gather_of(int32_t update) const {
  for (const int32_t reader : graph_.readers(update))
    if (gathers(reader)) return reader;
  return -1;
}

void Replication::hand_on(int32_t update, int32_t id, int32_t replica) {
  Tensor weights;
  weights.name = copy_name(graph_.op(update).name + "/weights", replica);
  weights.bytes = weight_bytes(update);
  joined_[{item_of(update), replica}] = builder_.add_output(id, std::move(weights));
}

void Replication::state_copy(Operator& copy, int32_t op, int32_t replica) const {
  copy.attributes["replica"] = int64_t{replica};
  copy.attributes["replicas"] = int64_t{replicas_of(op)};
  if (copy.attributes.contains("shares") || gathers(op))
    copy.attributes["share"] = place_among(sharers(op), replica);
  if (!is_update(op)) return;
  const bool alone = options_.meeting == Meeting::weights || options_.meeting == Meeting::apart;
  if (alone) copy.attributes["mean_of"] = int64_t{options_.inner};
  if (options_.meeting == Meeting::in_turn) copy.attributes["mean_of"] = int64_t{1};
  if (options_.meeting == Meeting::weights)
    copy.attributes["every"] = int64_t{on_occasion() ? 0 : options_.every};
}

Replication::Groups Replication::sharers(int32_t op) const {
  const auto groups = alike(stage_[op], spread_of(op));
  return options_.inner > 1 ? within(groups) : groups;
}

int64_t Replication::place_among(const Groups& groups, int32_t replica) {
  for (const auto& group : groups)
    for (size_t place = 0; place < group.size(); ++place)
      if (group[place] == replica) return static_cast<int64_t>(place);
  return 0;
}

bool Replication::is_update(int32_t op) const {
  const auto& about = graph_.op(op);
  return about.phase == Phase::update && about.collective < 0 && about.forward >= 0;
}

bool Replication::is_fetch(int32_t op, int32_t replica) const {
  const auto found = server_.find(op);
  return found != server_.end() &&
         (options_.meeting == Meeting::in_turn || found->second != replica);
}

void Replication::name_forwards() {
  for (int32_t op = 0; op < graph_.operator_count(); ++op) {
    const int32_t forward = graph_.op(op).forward;
    for (int32_t replica = 0; forward >= 0 && replica < replicas_of(op); ++replica)
      builder_.op(id_of(op, replica)).forward =
          id_of(forward, std::min(replica, replicas_of(forward) - 1));
  }
}

std::vector<Replication::Cut> Replication::cuts_of(int32_t tensor, int32_t replica) const {
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

void Replication::add_pieces(int32_t tensor, int32_t id, int32_t replica) {
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

void Replication::connect(bool updates) {
  for (int32_t op = 0; op < graph_.operator_count(); ++op)
    if ((graph_.op(op).phase == Phase::update) == updates)
      for (int32_t replica = 0; replica < replicas_of(op); ++replica) connect(op, replica);
}

void Replication::connect(int32_t op, int32_t replica) {
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

void Replication::refuse_whole(int32_t tensor, int32_t reader) const {
  const int32_t from = graph_.tensor(tensor).producer;
  throw ArgumentError("replicating the stages of graph '{}': tensor '{}' has no batch dimension to split, but is sent "
                      "from stage {} with {} replicas to stage {} with {}", graph_.name(), graph_.tensor(tensor).name,
                      stage_[from] + 1, replicas_of(from), stage_[reader] + 1, replicas_of(reader));
}

void Replication::colocate() {
  for (int32_t unit = 0; unit < graph_.unit_count(); ++unit) {
    std::map<int32_t, int32_t> first;  // [stage]
    for (const int32_t op : graph_.unit(unit)) {
      const int32_t lead = first.emplace(stage_[op], op).first->second;
      for (int32_t replica = in_place_ ? 1 : 0; replica < replicas_of(op); ++replica)
        builder_.colocate(id_of(lead, replica), id_of(op, replica));
    }
  }
}

void Replication::copy_collectives() {
  const auto joined = [&](size_t c) { return !options_.joined.empty() && options_.joined[c]; };
  for (int32_t replica = 0; replica < most_; ++replica)
    for (size_t c = 0; c < graph_.collectives().size(); ++c)
      if (!joined(c) && replica < replicas_of_collective(c)) copy_collective(c, replica);
  for (size_t c = 0; c < graph_.collectives().size(); ++c)
    if (joined(c)) join_collective(c);
}

int32_t Replication::replicas_of_collective(size_t c) const {
  const auto& collective = graph_.collectives()[c];
  const int32_t count = replicas_of(collective.members.front());
  for (const int32_t member : collective.members)
    if (replicas_of(member) != count)
      throw ArgumentError("replicating the stages of graph '{}': collective '{}' has members in stages of {} and of {} "
                          "replicas", graph_.name(), collective.name, count, replicas_of(member));
  return count;
}

void Replication::copy_collective(size_t c, int32_t replica) {
  Collective copy = graph_.collectives()[c];
  const int64_t parts = replicas_of(copy.members.front());
  const Graph* share = at_share(copy.members.front());
  copy.bytes = share ? share->collectives()[c].bytes : (copy.bytes + parts - 1) / parts;
  copy.name = copy_name(copy.name, replica);
  for (int32_t& member : copy.members) member = id_of(member, replica);
  builder_.add_collective(std::move(copy));
}

Replicated Replication::finish() {
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

}  // namespace trinity
