// The placement of a lowered graph, and the part of a strategy that determines the graph.
#include <algorithm>
#include <map>

#include "base/index.h"
#include "graph/subgraph.h"
#include "strategy/lower.h"
#include "strategy/mesh_schedule.h"
#include "strategy/mesh_words.h"

namespace trinity {
namespace {

/// A visitor that resets fields.
struct WordResetter {
  Parallelism& given;
  KeptBy result;
  const Parallelism plain = {};

  template <class Get>
  void operator()(const MeshWord& word, Get get) {
    if ((word.free & result) != 0) get(given) = get(plain);
  }
  void group(const char*, auto words) { words(); }
};

}  // namespace

Parallelism without(Parallelism given, KeptBy result) {
  each_mesh_word(WordResetter{given, result});
  return given;
}

Strategy structure_of(const Strategy& strategy) {
  Strategy same = strategy;
  if (!same.parallelism) return same;
  auto& given = *same.parallelism;
  const std::string schedule = choice_name(schedule_of(given));
  given = without(std::move(given), kStructure);
  given.schedule = schedule == "gpipe" ? "1f1b" : schedule;
  if (given.mesh.data == 1) given.sync = {};
  if (given.mesh.context == 1) given.cp_comm_type = {};
  if (given.mesh.placement == 1) given.inside.clear();
  given.sync.every = std::min(given.sync.every, 1);
  same.placement.clear();
  same.schedule = {};
  return same;
}

bool goes_in_rings(const Parallelism& given) {
  return given.cp_comm_type == ContextKind::ring && given.mesh.context > 1;
}

bool joins_context(const Parallelism& given) {
  return given.mesh.context > 1 &&
         (given.sync.kind == Synchronise::all_reduce || given.mesh.data == 1);
}

int32_t shard_group(const Parallelism& given) {
  const auto& way = given.sync;
  if (joins_context(given)) return given.mesh.data * given.mesh.context;
  if (given.mesh.data == 1) return 1;
  return way.in_runs() ? way.inner : given.mesh.data;
}

bool copies_are_alike(const Parallelism& given) {
  return given.sync.kind == Synchronise::all_reduce;
}

Arrangement arrange(const LoweredGraph& made, const Strategy& strategy) {
  if (!strategy.parallelism) {
    Arrangement same{made.each(&OperatorRole::device), made.home, strategy.schedule};
    if (!same.schedule.stage.empty()) same.schedule.stage = made.each(&OperatorRole::stage);
    return same;
  }
  const auto& given = *strategy.parallelism;
  const auto& mesh = given.mesh;
  std::vector<int32_t> device;
  for (int32_t stage = 0; stage < mesh.pipeline; ++stage)
    for (int32_t replica = 0; replica < mesh.data; ++replica)
      for (int32_t part = 0; part < mesh.width(); ++part)
        device.push_back(mesh.device(stage, replica, part));
  const auto placed = [&](const std::vector<int32_t>& ranks) {
    std::vector<int32_t> devices(ranks.size());
    std::transform(ranks.begin(), ranks.end(), devices.begin(),
                   [&](int32_t r) { return device[r]; });
    return devices;
  };
  Arrangement result{placed(made.each(&OperatorRole::device)), placed(made.home), {}};
  result.schedule.name = given.tasks.empty() ? choice_name(schedule_of(given)) : given.schedule;
  result.schedule.tasks = given.tasks;
  result.schedule.micro_batches = given.micro_batches;
  result.schedule.stage = made.each(&OperatorRole::stage);
  if (!made.turn.empty()) {
    result.schedule.name = kRoundRobin;
    result.schedule.stage = made.turn;
  }
  return result;
}

LoweredGraph kept(LoweredGraph whole, const std::vector<bool>& operators) {
  auto part = subgraph(whole.graph, operators);
  const auto keep = [](auto& list, const std::vector<int32_t>& numbers) {
    const auto all = std::move(list);
    list.clear();
    for (const int32_t number : numbers)
      if (!all.empty()) list.push_back(all[at(number)]);
  };
  keep(whole.roles, part.origin);
  keep(whole.turn, part.origin);
  keep(whole.collective, part.collective);
  keep(whole.joined, part.collective);
  keep(whole.among, part.collective);
  whole.graph = std::move(part.graph);
  return whole;
}

namespace {

/// Builds repeated(). A copy is a pipeline group at a distance from the one of its class. Used once.
class LaneRepeats {
 public:
  LaneRepeats(const LoweredGraph& replica, const std::vector<bool>& devices)
      : replica_(replica), graph_(replica.graph), width_(replica.of.mesh.width()), builder_(graph_.name()) {
    const auto& kinds = replica.lanes;
    copies_on_.resize(devices.size());
    for (size_t d = 0; d < devices.size(); ++d) {
      if (!devices[d]) continue;
      const auto lane = static_cast<int32_t>(d) % width_, kind = kinds[at(lane)];
      const auto found = std::find(distances_.begin(), distances_.end(), lane - kind);
      copies_on_[d - at(lane) + at(kind)].push_back(static_cast<int32_t>(found - distances_.begin()));
      if (found == distances_.end()) distances_.push_back(lane - kind);
    }
    ids_.assign(distances_.size() * at(graph_.operator_count()), -1);
    tensors_.assign(distances_.size() * graph_.tensors().size(), -1);
  }

  LoweredGraph run() {
    result_ = {.home = replica_.home, .of = replica_.of, .home_rank = replica_.home_rank, .layers = replica_.layers,
               .pipeline = replica_.pipeline, .ranks = replica_.ranks};
    for (int32_t op = 0; op < graph_.operator_count(); ++op)
      for (const int32_t copy : copies_of(op)) add(op, copy);
    for (int32_t op = 0; op < graph_.operator_count(); ++op)
      for (const int32_t copy : copies_of(op))
        if (const int32_t forward = graph_.op(op).forward; forward >= 0)
          builder_.op(id(op, copy)).forward = id(forward, copy);
    for (int32_t unit = 0; unit < graph_.unit_count(); ++unit) colocate(graph_.unit(unit));
    for (size_t c = 0; c < graph_.collectives().size(); ++c) join(c);
    std::vector<int32_t> numbers;
    result_.graph = builder_.build(&numbers);
    for (const int32_t number : numbers) result_.roles.push_back(roles_[at(number)]);
    return std::move(result_);
  }

 private:
  const std::vector<int32_t>& copies_of(int32_t op) const { return copies_on_[at(replica_.device_of(op))]; }
  int32_t device_of(int32_t op, int32_t copy) const { return replica_.device_of(op) + distances_[at(copy)]; }
  int32_t& id(int32_t op, int32_t copy) { return ids_[at(copy) * at(graph_.operator_count()) + at(op)]; }
  int32_t& tensor(int32_t number, int32_t copy) {
    return tensors_[at(copy) * graph_.tensors().size() + at(number)];
  }

  void add(int32_t op, int32_t copy) {
    Operator made = graph_.op(op);
    for (int32_t& input : made.inputs) input = tensor(input, copy);
    made.outputs.clear();
    const int32_t number = id(op, copy) = builder_.add_operator(std::move(made));
    for (const int32_t output : graph_.op(op).outputs)
      tensor(output, copy) = builder_.add_output(number, graph_.tensor(output));
    auto& role = roles_.emplace_back(replica_.roles[at(op)]);
    role.device = device_of(op, copy);
    if (role.together < 0) return;
    const auto key = std::pair(role.together, role.device % replica_.of.mesh.tensor);
    role.together = together_.emplace(key, static_cast<int32_t>(together_.size())).first->second;
  }

  void colocate(std::span<const int32_t> unit) {
    for (size_t copy = 0; copy < distances_.size(); ++copy) {
      int32_t lead = -1;
      for (const int32_t op : unit) {
        const int32_t number = id(op, static_cast<int32_t>(copy));
        if (number >= 0 && lead >= 0) builder_.colocate(lead, number);
        lead = number >= 0 ? number : lead;
      }
    }
  }

  /// The first pipeline group of a collective's group, or the copy, if the collective is over no axes.
  int32_t group_of(size_t c, int32_t device, int32_t copy) const {
    const int32_t lane = device % width_, tensor = replica_.of.mesh.tensor;
    if (!replica_.joined.empty() && replica_.joined[c]) return lane % tensor;
    const int32_t axes = graph_.collectives()[c].axes;
    return axes < 0 ? copy : first_over(axes, tensor, lane);
  }

  void join(size_t c) {
    const auto& of = graph_.collectives()[c];
    std::map<int32_t, std::vector<int32_t>> groups;
    for (const int32_t member : of.members)
      for (const int32_t copy : copies_of(member))
        groups[group_of(c, device_of(member, copy), copy)].push_back(id(member, copy));
    for (auto& [group, members] : groups) {
      Collective all = of;
      all.members = std::move(members);
      builder_.add_collective(std::move(all));
      result_.collective.push_back(replica_.collective[c]);
      if (!replica_.joined.empty()) result_.joined.push_back(replica_.joined[c]);
    }
  }

  const LoweredGraph& replica_;
  const Graph& graph_;
  const int32_t width_;
  GraphBuilder builder_;
  std::vector<int32_t> distances_;               // [copy]
  std::vector<std::vector<int32_t>> copies_on_;  // [device of a class]
  std::vector<int32_t> ids_, tensors_;           // [copy][operator or tensor]; -1: none
  std::vector<OperatorRole> roles_;              // [operator of the builder]
  std::map<std::pair<int32_t, int32_t>, int32_t> together_;
  LoweredGraph result_;
};

}  // namespace

LoweredGraph repeated(const LoweredGraph& replica, const std::vector<bool>& devices) {
  return LaneRepeats(replica, devices).run();
}

std::vector<CycleStep> cycle_of(const Strategy& strategy) {
  if (!strategy.parallelism) return {{strategy, 1}};
  const auto& given = *strategy.parallelism;
  const int32_t every = given.sync.every;
  if (!given.sync.seldom() || given.mesh.data == 1 || every < 2) return {{strategy, 1}};
  std::vector<CycleStep> steps(2, {strategy, 1});
  steps[0].strategy.parallelism->sync.every = 1;
  steps[1].strategy.parallelism->sync.every = 0;
  steps[1].count = every - 1;
  return steps;
}

}  // namespace trinity
