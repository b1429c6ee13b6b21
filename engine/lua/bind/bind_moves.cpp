#include <algorithm>
#include <map>
#include <optional>

#include "base/index.h"
#include "lua/bind/bind_ranker.h"
#include "lua/bind/module.h"
#include "search/placement/move_features.h"

// Moves of placements, and what a step looks like to them, for scripts that search themselves.

namespace trinity::lua {

/// Draws moves and their features.
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
  std::vector<int32_t> placement(at(space.problem().operators()));
  placement_arg(L, index, space.problem(), placement.data());
  return space.assignment(placement);
}

/// moves(problem, { seed =, evenly_one_in =, groups =, memory_share = }) -> moves
int moves_new(lua_State* L) {
  const auto problem = object_arg<BoundProblem>(L, 1, "problem").problem;
  table_arg(L, 2, "options");
  Fields fields(L, 2, "moves");
  const auto seed = static_cast<uint64_t>(fields.integer("seed", 1, 0, int64_t{1} << 53));
  MoveMix mix;
  mix.evenly_one_in = static_cast<int32_t>(fields.integer("evenly_one_in", 2, 1, 1000000));
  mix.groups = fields.boolean("groups", false);
  const double memory_share = fields.number("memory_share", 0);
  fields.refuse_unknown();
  const RandomStream random(seed, "moves of a script");
  push_object(L, std::make_shared<BoundMoves>(problem, random, mix, memory_share));
  return 1;
}

/// moves:look(placement): simulates it; features and seeds are by its step from then on.
int moves_look(lua_State* L) {
  auto& self = object_arg<BoundMoves>(L, 1);
  self.state.refresh(assignment_arg(L, 2, self.space));
  self.moves.focus(self.state.blame());
  return 0;
}

/// moves:draw(placement, count, temperature, features, device_of) -> how many: different moves that
/// change something, and a row of features of each; where every unit is. temperature: a share of the
/// step.
int moves_draw(lua_State* L) {
  auto& self = object_arg<BoundMoves>(L, 1);
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
  lua_pushinteger(L, static_cast<lua_Integer>(self.drawn.size()));
  return 1;
}

const Move& drawn_arg(lua_State* L, const BoundMoves& self) {
  return self.drawn.at(at(integer_arg(L, 2, "i", 1, std::ssize(self.drawn)) - 1));
}

/// moves:move(i) -> list of units, device, kind of the drawn move i
int moves_move(lua_State* L) {
  push_move(L, drawn_arg(L, object_arg<BoundMoves>(L, 1)));
  return 3;
}

/// moves:apply(i, placement): changes the placement by the drawn move i
int moves_apply(lua_State* L) {
  const auto& self = object_arg<BoundMoves>(L, 1);
  const auto& move = drawn_arg(L, self);
  auto assignment = assignment_arg(L, 3, self.space);
  move.apply(assignment);
  fill_from_1(L, 3, "placement", self.space.placement(assignment));
  return 0;
}

/// step_state(problem, placement) -> state
int state_new(lua_State* L) {
  auto bound = std::make_shared<BoundState>(object_arg<BoundProblem>(L, 1, "problem").problem);
  bound->state.refresh(assignment_arg(L, 2, bound->space));
  push_object(L, std::move(bound));
  return 1;
}

/// state:counts() -> step in seconds, unit edges
int state_counts(lua_State* L) {
  const auto& self = object_arg<BoundState>(L, 1);
  lua_pushnumber(L, self.state.step_ns() * 1e-9);
  lua_pushinteger(L, static_cast<lua_Integer>(self.space.graph().edges.size()));
  return 2;
}

std::vector<double> by_unit(const BoundState& self, double (*value)(const StepState&, int32_t)) {
  std::vector<double> values;
  for (int32_t u = 0; u < self.space.units(); ++u) values.push_back(value(self.state, u) * 1e-9);
  return values;
}

std::vector<double> by_unit_and_device(const BoundState& self,
                                       double (StepState::*value)(int32_t, int32_t) const) {
  std::vector<double> values;
  for (int32_t u = 0; u < self.space.units(); ++u)
    for (int32_t d = 0; d < self.space.devices(); ++d)
      values.push_back((self.state.*value)(u, d) * 1e-9);
  return values;
}

std::vector<double> by_edge(const BoundState& self, double StepState::Edge::*value) {
  std::vector<double> values;
  for (int32_t e = 0; e < std::ssize(self.space.graph().edges); ++e)
    values.push_back(self.state.edge(e).*value * 1e-9);
  return values;
}

std::vector<double> by_device(const BoundState& self, double StepState::Device::*value,
                              double factor) {
  std::vector<double> values;
  for (int32_t d = 0; d < self.space.devices(); ++d)
    values.push_back(self.state.device(d).*value * factor);
  return values;
}

/// What state:values() knows by name.
const std::map<std::string, std::vector<double> (*)(const BoundState&)>& state_values_by_name() {
  using State = BoundState;
  static const std::map<std::string, std::vector<double> (*)(const State&)> kValues = {
      {"computation_blame_s",
       [](const State& s) {
         return by_unit(
             s, [](const StepState& t, int32_t u) { return t.blame().of(u).computation_ns; });
       }},
      {"held_blame_s",
       [](const State& s) {
         return by_unit(s, [](const StepState& t, int32_t u) { return t.blame().of(u).held_ns; });
       }},
      {"queue_blame_s",
       [](const State& s) {
         return by_unit(s, [](const StepState& t, int32_t u) { return t.blame().of(u).queue_ns; });
       }},
      {"transfer_blame_s",
       [](const State& s) {
         return by_unit(s,
                        [](const StepState& t, int32_t u) { return t.blame().of(u).transfer_ns; });
       }},
      {"wait_s",
       [](const State& s) {
         return by_unit(s, [](const StepState& t, int32_t u) { return t.unit(u).wait_ns; });
       }},
      {"slack_s",
       [](const State& s) {
         return by_unit(s, [](const StepState& t, int32_t u) { return t.unit(u).slack_ns; });
       }},
      {"peak_bytes",
       [](const State& s) {
         std::vector<double> bytes;
         for (int32_t u = 0; u < s.space.units(); ++u) bytes.push_back(s.state.unit(u).peak_bytes);
         return bytes;
       }},
      {"tight_s",
       [](const State& s) {
         return by_unit(s, [](const StepState& t, int32_t u) { return t.unit(u).tight_ns; });
       }},
      {"collision_s",
       [](const State& s) { return by_unit_and_device(s, &StepState::collision_ns); }},
      {"crowd_s", [](const State& s) { return by_unit_and_device(s, &StepState::crowd_ns); }},
      {"room_s", [](const State& s) { return by_edge(s, &StepState::Edge::room_ns); }},
      {"critical_s", [](const State& s) { return by_edge(s, &StepState::Edge::critical_ns); }},
      {"busy_s", [](const State& s) { return by_device(s, &StepState::Device::busy_ns, 1e-9); }},
      {"memory_bytes",
       [](const State& s) { return by_device(s, &StepState::Device::memory_bytes, 1); }},
      {"operator_slack_s", [](const State& s) {
         std::vector<double> values;
         for (int32_t op = 0; op < s.problem->operators(); ++op)
           values.push_back(static_cast<double>(s.state.slack_ns(op)) * 1e-9);
         return values;
       }}};
  return kValues;
}

/// state:values(name, out)
int state_values(lua_State* L) {
  const auto& self = object_arg<BoundState>(L, 1);
  fill_numbers(L, 3, "out", state_values_by_name().at(string_arg(L, 2, "name"))(self));
  return 0;
}

/// problem:operator_times(device, out): seconds of every operator on a device
int problem_operator_times(lua_State* L) {
  const auto& problem = *object_arg<BoundProblem>(L, 1).problem;
  const auto device = static_cast<int32_t>(integer_arg(L, 2, "device", 1, problem.devices()) - 1);
  std::vector<double> times_s;
  for (const int64_t time_ns : problem.costs(device))
    times_s.push_back(static_cast<double>(time_ns) * 1e-9);
  fill_numbers(L, 3, "out", times_s);
  return 0;
}

constexpr luaL_Reg kMoves[] = {TRINITY_BIND("look", moves_look), TRINITY_BIND("draw", moves_draw),
                               TRINITY_BIND("move", moves_move),
                               TRINITY_BIND("apply", moves_apply)};
constexpr luaL_Reg kState[] = {TRINITY_BIND("counts", state_counts),
                               TRINITY_BIND("values", state_values)};
constexpr luaL_Reg kProblemTimes[] = {TRINITY_BIND("operator_times", problem_operator_times)};
constexpr luaL_Reg kMovesFunctions[] = {TRINITY_BIND("moves", moves_new),
                                        TRINITY_BIND("step_state", state_new)};

}  // namespace

void push_move(lua_State* L, const Move& move) {
  static constexpr const char* kKinds[] = {"unit", "cluster", "chain", "range", "group", "swap"};
  push_numbers(L, move.units, 1);
  lua_pushinteger(L, move.device + 1);
  lua_pushstring(L, kKinds[static_cast<size_t>(move.kind)]);
}

void open_moves(lua_State* L) {
  register_functions(L, kMovesFunctions);
  register_type<BoundMoves>(L, kMoves);
  register_type<BoundState>(L, kState);
  luaL_getmetatable(L, kTypeName<BoundProblem>);
  lua_getfield(L, -1, "__index");
  register_functions(L, kProblemTimes, kTypeName<BoundProblem>, true);
  lua_pop(L, 2);
}

}  // namespace trinity::lua
