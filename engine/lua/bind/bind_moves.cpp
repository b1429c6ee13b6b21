#include <algorithm>
#include <map>

#include "base/index.h"
#include "lua/bind/bind_ranker.h"
#include "lua/bind/module.h"
#include "search/placement/move_features.h"

// Moves of placements, and what a step looks like to them, for scripts that search themselves.

namespace trinity::lua {

/// Samples moves and their features.
struct BoundMoves {
  BoundMoves(std::shared_ptr<const Problem> bound, RandomStream random, const MoveMix& mix,
             double memory_share)
      : problem(std::move(bound)),
        space(*problem),
        state(space, true),
        writer(state, memory_share),
        moves(space, random, mix) {}
  std::shared_ptr<const Problem> problem;
  PlacementSpace space;
  StepState state;
  MoveFeatures writer;
  Moves moves;
  std::vector<Move> drawn;
};

/// The state of one placement's step.
struct BoundState {
  explicit BoundState(std::shared_ptr<const Problem> bound)
      : problem(std::move(bound)), space(*problem), state(space, true) {}
  std::shared_ptr<const Problem> problem;
  PlacementSpace space;
  StepState state;
};

template <>
inline constexpr const char* kTypeName<BoundMoves> = "moves";
template <>
inline constexpr const char* kTypeName<BoundState> = "step state";

namespace {

Assignment assignment_arg(lua_State* L, int index, const PlacementSpace& space) {
  return space.assignment(placement_arg(L, index, space.problem()));
}

/// moves(problem, { seed =, evenly_one_in =, groups =, memory_share = }) -> moves
auto moves_new(const BoundProblem& of, Options<"moves"> fields) {
  const auto seed = static_cast<uint64_t>(fields.integer("seed", 1, 0, int64_t{1} << 53));
  MoveMix mix;
  mix.evenly_one_in = static_cast<int32_t>(fields.integer("evenly_one_in", 2, 1, 1000000));
  mix.groups = fields.boolean("groups", false);
  const double memory_share = fields.number("memory_share", 0);
  fields.refuse_unknown();
  const RandomStream random(seed, "moves of a script");
  return std::make_shared<BoundMoves>(of.problem, random, mix, memory_share);
}

/// moves:look(placement): simulates it; features and seeds are by its step from then on.
void moves_look(lua_State* L, BoundMoves& self) {
  self.state.refresh(assignment_arg(L, 2, self.space));
  self.moves.focus(self.state.blame());
}

/// moves:draw(placement, count, temperature, features, device_of) -> how many: different moves that
/// change something, and a row of features of each; where every unit is. temperature: a share of the
/// step.
size_t moves_draw(lua_State* L, BoundMoves& self) {
  const auto assignment = assignment_arg(L, 2, self.space);
  const auto count = integer_arg(L, 3, "count", 1, 1 << 20);
  const double temperature_ns = number_arg(L, 4, "temperature") * self.state.step_ns();
  const auto features = numbers_arg(L, 5, "features");
  TRINITY_CHECK_EQ(features.size(), at(count) * kMoveFeatures.size());
  fill_from_1(L, 6, "device_of", assignment);
  self.drawn.clear();
  std::vector<uint64_t> keys = {self.space.key(assignment)};
  std::array<float, kMoveFeatures.size()> row;
  for (int64_t draw = 0; draw < 4 * count && std::ssize(self.drawn) < count; ++draw) {
    const Move& move = self.moves.draw_set(assignment, self.space.units());
    if (!self.writer.write(move, assignment, temperature_ns, row.data())) continue;
    auto after = assignment;
    move.apply(after);
    const auto key = self.space.key(after);
    if (std::find(keys.begin(), keys.end(), key) != keys.end()) continue;
    keys.push_back(key);
    std::copy(row.begin(), row.end(), features.data() + self.drawn.size() * row.size());
    self.drawn.push_back(move);
  }
  return self.drawn.size();
}

const Move& drawn_arg(lua_State* L, const BoundMoves& self) {
  return self.drawn.at(at(integer_arg(L, 2, "i", 1, std::ssize(self.drawn)) - 1));
}

/// moves:move(i) -> list of units, device, kind of the sampled move i
int moves_move(lua_State* L, const BoundMoves& self) {
  push_move(L, drawn_arg(L, self));
  return 3;
}

/// moves:apply(i, placement): changes the placement by the sampled move i
void moves_apply(lua_State* L, const BoundMoves& self) {
  const auto& move = drawn_arg(L, self);
  auto assignment = assignment_arg(L, 3, self.space);
  move.apply(assignment);
  fill_from_1(L, 3, "placement", self.space.placement(assignment));
}

/// step_state(problem, placement) -> state
auto state_new(lua_State* L, const BoundProblem& of) {
  auto bound = std::make_shared<BoundState>(of.problem);
  bound->state.refresh(assignment_arg(L, 2, bound->space));
  return bound;
}

/// state:counts() -> step in seconds, unit edges
auto state_counts(const BoundState& self) {
  return std::tuple(self.state.step_ns() * 1e-9, self.space.graph().edges.size());
}

/// The values that state:values() knows by name: numbers of a step by operator, by unit (and device), by edge of units,
/// by device.
std::vector<double> numbers_of(const BoundState& self, const std::string& name) {
  using Blamed = std::remove_cvref_t<decltype(self.state.blame().of(0))>;
  using Unit = std::remove_cvref_t<decltype(self.state.unit(0))>;
  static const std::map<std::string, double Blamed::*> kBlames = {{"computation_blame_s", &Blamed::computation_ns},
                                                                  {"held_blame_s", &Blamed::held_ns},
                                                                  {"queue_blame_s", &Blamed::queue_ns},
                                                                  {"transfer_blame_s", &Blamed::transfer_ns}};
  static const std::map<std::string, double Unit::*> kUnits = {
      {"wait_s", &Unit::wait_ns}, {"slack_s", &Unit::slack_ns}, {"tight_s", &Unit::tight_ns}};
  const auto& state = self.state;
  std::vector<double> values;
  const auto each = [&](int64_t count, auto value) {
    for (int32_t i = 0; i < count; ++i) values.push_back(value(i));
  };
  const int32_t devices = self.space.devices(), units = self.space.units();
  const int64_t edges = std::ssize(self.space.graph().edges);
  if (const auto blame = kBlames.find(name); blame != kBlames.end())
    each(units, [&](int32_t u) { return state.blame().of(u).*blame->second * 1e-9; });
  else if (const auto of = kUnits.find(name); of != kUnits.end())
    each(units, [&](int32_t u) { return state.unit(u).*of->second * 1e-9; });
  else if (name == "peak_bytes")
    each(units, [&](int32_t u) { return state.unit(u).peak_bytes; });
  else if (name == "collision_s")
    each(int64_t{units} * devices, [&](int32_t i) { return state.collision_ns(i / devices, i % devices) * 1e-9; });
  else if (name == "crowd_s")
    each(int64_t{units} * devices, [&](int32_t i) { return state.crowd_ns(i / devices, i % devices) * 1e-9; });
  else if (name == "room_s")
    each(edges, [&](int32_t e) { return state.edge(e).room_ns * 1e-9; });
  else if (name == "critical_s")
    each(edges, [&](int32_t e) { return state.edge(e).critical_ns * 1e-9; });
  else if (name == "busy_s")
    each(devices, [&](int32_t d) { return state.device(d).busy_ns * 1e-9; });
  else if (name == "memory_bytes")
    each(devices, [&](int32_t d) { return state.device(d).memory_bytes; });
  else if (name == "operator_slack_s")
    each(self.problem->operators(), [&](int32_t op) { return static_cast<double>(state.slack_ns(op)) * 1e-9; });
  else
    throw WrongArgument(2, "name", "unknown values '{}'", name);
  return values;
}

/// state:values(name, out)
void state_values(lua_State* L, const BoundState& self, Text<"name"> name) {
  fill_numbers(L, 3, "out", numbers_of(self, name));
}

/// problem:operator_times(device, out): seconds of every operator on a device
void problem_operator_times(lua_State* L, const BoundProblem& of) {
  const auto& problem = *of.problem;
  const auto device = static_cast<int32_t>(integer_arg(L, 2, "device", 1, problem.devices()) - 1);
  std::vector<double> times_s;
  for (const int64_t time_ns : problem.costs(device))
    times_s.push_back(static_cast<double>(time_ns) * 1e-9);
  fill_numbers(L, 3, "out", times_s);
}

constexpr luaL_Reg kMoves[] = {
    TRINITY_BIND("look", moves_look), TRINITY_BIND("draw", moves_draw), TRINITY_BIND("move", moves_move),
    TRINITY_BIND("apply", moves_apply)};
constexpr luaL_Reg kState[] = {TRINITY_BIND("counts", state_counts), TRINITY_BIND("values", state_values)};
constexpr luaL_Reg kProblemTimes[] = {TRINITY_BIND("operator_times", problem_operator_times)};
constexpr luaL_Reg kMovesFunctions[] = {TRINITY_BIND("moves", moves_new), TRINITY_BIND("step_state", state_new)};

}  // namespace

void push_move(lua_State* L, const Move& move) {
  static constexpr const char* kKinds[] = {"unit", "cluster", "chain", "range", "group", "swap"};
  push_results(L, std::tuple(from_1(move.units), move.device + 1, kKinds[static_cast<size_t>(move.kind)]));
}

void open_moves(lua_State* L) {
  register_functions(L, kMovesFunctions);
  register_type<BoundMoves>(L, kMoves);
  register_type<BoundState>(L, kState);
  add_methods<BoundProblem>(L, kProblemTimes);
}

}  // namespace trinity::lua
