#include "lua/bind/bind_ranker.h"

#include <algorithm>
#include <cmath>

#include "base/index.h"
#include "learn/move_options.h"
#include "lua/bind/module.h"
#include "lua/bind/option_list.h"
#include "lua/bind/option_reader.h"
#include "search/placement/annealing.h"

namespace trinity::lua {

template <>
inline constexpr const char* kTypeName<BoundRanker> = "ranker";
template <>
inline constexpr const char* kTypeName<MoveTrainer> = "move trainer";

namespace {

/// ranker({ hidden = widths, seed =, memory_features = }) -> ranker with random initial weights
auto ranker_new(lua_State* L, Options<"ranker options"> fields) {
  std::vector<int32_t> hidden;
  const auto read = [&](int) {
    hidden.push_back(static_cast<int32_t>(integer_arg(L, lua_gettop(L), "hidden", 1, 1024)));
  };
  fields.table("hidden", [&] { for_each(L, lua_gettop(L), read); });
  const auto seed = static_cast<uint64_t>(fields.integer("seed", 1, 0, int64_t{1} << 53));
  const bool memory_features = fields.boolean("memory_features", false);
  fields.refuse_unknown();
  auto bound = std::make_shared<BoundRanker>();
  bound->network = std::make_shared<MoveNetwork>(std::move(hidden), seed, memory_features);
  return bound;
}

/// ranker:score(features, count, scores): rows of kMoveFeatureCount numbers; double arrays
void ranker_score(lua_State* L, const BoundRanker& self) {
  const auto features = numbers_arg(L, 2, "features");
  const auto scores = numbers_arg(L, 4, "scores");
  const auto count = integer_arg(L, 3, "count", 1, std::ssize(scores));
  if (features.size() < at(count) * kMoveFeatures.size())
    throw WrongArgument(2, "features", "expected {} rows of {} numbers", count, kMoveFeatures.size());
  const std::vector<float> rows(features.begin(), features.end());
  std::vector<float> out(at(count));
  self.network->score(rows.data(), static_cast<int32_t>(count), out.data());
  std::copy(out.begin(), out.end(), scores.begin());
}

/// load_ranker(path) -> ranker, notes
auto ranker_load(Text<"path"> path) {
  auto saved = load_move_network(path);
  auto bound = std::make_shared<BoundRanker>();
  bound->network = std::move(saved.network);
  return std::tuple(std::move(bound), std::move(saved.notes));
}

/// ranker:save(path, notes): notes are texts by name
void ranker_save(lua_State* L, const BoundRanker& self, Text<"path"> path) {
  save_move_network(*self.network, path, notes_arg(L, 3));
}

/// ranker:about() -> widths of the hidden layers, number of weights, whether it has memory features
auto ranker_about(const BoundRanker& self) {
  const auto& network = *self.network;
  return std::tuple(network.hidden(), network.parameters().size() - 2 * network.inputs(),
                    network.reads_memory_features());
}

/// move_features() -> names of the features of moves
auto move_features() { return kMoveFeatures; }

/// training_options() -> the options of move_trainer() but for the seed, as OptionList has them
int training_options(lua_State* L) {
  lua_newtable(L);
  each_training_option(MoveTrainingOptions{}, OptionList{L});
  return 1;
}

void read_training(Fields& fields, MoveTrainingOptions& options) {
  options.seed = static_cast<uint64_t>(
      fields.integer("seed", static_cast<int64_t>(options.seed), 0, int64_t{1} << 53));
  each_training_option(options, OptionReader{fields});
  fields.refuse_unknown();
}

/// move_trainer(ranker, options) -> trainer, which changes the ranker
auto trainer_new(const BoundRanker& ranker, Options<"training options"> fields) {
  MoveTrainingOptions options;
  read_training(fields, options);
  return std::make_shared<MoveTrainer>(ranker.network, options, shared_pool());
}

/// trainer:set(options): changes those that are given
void trainer_set(MoveTrainer& self, Options<"training options"> fields) {
  auto options = self.options();
  read_training(fields, options);
  self.set_options(options);
}

/// trainer:add(problem, placements)
void trainer_add(lua_State* L, MoveTrainer& self, const BoundProblem& of, Table<"placements"> placements) {
  const auto problem = of.problem;
  std::vector<std::vector<int32_t>> starts;
  for_each(L, placements, [&](int) { starts.push_back(placement_arg(L, lua_gettop(L), *problem)); });
  self.add(problem, starts);
}

auto report_of(const MoveTrainer::Report& report) {
  return record("trials", report.trials, "improving", report.improving, "loss", report.loss, "entropy", report.entropy,
                "clipped_share", report.clipped, "best_share", report.best_share);
}

using Episodes = Integer<"episodes", 1, 1 << 20>;

/// trainer:imitate(episodes), trainer:reinforce(episodes) -> report; see MoveTrainer
auto trainer_imitate(MoveTrainer& self, Episodes episodes) {
  return report_of(self.imitate(static_cast<int32_t>(episodes)));
}
auto trainer_reinforce(MoveTrainer& self, Episodes episodes) {
  return report_of(self.reinforce(static_cast<int32_t>(episodes)));
}

/// trainer:learn(kind, searchers, shares) -> report: as imitate() or reinforce(), from searches by
/// annealing with `record`, which lose their record; shares: best found / start of each
auto trainer_learn(lua_State* L, MoveTrainer& self, Text<"kind"> kind, Table<"searchers">, Table<"shares">) {
  std::vector<MoveTrainer::Episode> episodes;
  for_each(L, 3, [&](int i) {
    auto* annealing =
        dynamic_cast<Annealing*>(object_arg<BoundSearcher>(L, lua_gettop(L)).searcher.get());
    if (!annealing) throw WrongArgument(3, "searchers", "expected annealings");
    lua_rawgeti(L, 4, i);
    episodes.push_back({annealing->take_choices(), number_arg(L, lua_gettop(L), "share")});
    lua_pop(L, 1);
  });
  return report_of(kind == "imitate" ? self.imitate(episodes) : self.reinforce(episodes));
}

/// trainer:save(path, notes): the ranker and the state of the training
void trainer_save(lua_State* L, MoveTrainer& self, Text<"path"> path) { self.save(path, notes_arg(L, 3)); }

/// trainer:resume(path) -> notes
auto trainer_resume(MoveTrainer& self, Text<"path"> path) { return self.resume(path); }

constexpr luaL_Reg kRanker[] = {
    TRINITY_BIND("save", ranker_save), TRINITY_BIND("score", ranker_score), TRINITY_BIND("about", ranker_about)};
constexpr luaL_Reg kTrainer[] = {
    TRINITY_BIND("add", trainer_add), TRINITY_BIND("set", trainer_set), TRINITY_BIND("imitate", trainer_imitate),
    TRINITY_BIND("reinforce", trainer_reinforce), TRINITY_BIND("learn", trainer_learn),
    TRINITY_BIND("episodes", [](const MoveTrainer& self) { return self.episodes(); }),
    TRINITY_BIND("save", trainer_save), TRINITY_BIND("resume", trainer_resume)};
constexpr luaL_Reg kRankerFunctions[] = {
    TRINITY_BIND("ranker", ranker_new), TRINITY_BIND("load_ranker", ranker_load),
    TRINITY_BIND("move_features", move_features), TRINITY_BIND("training_options", training_options),
    TRINITY_BIND("move_trainer", trainer_new)};

}  // namespace

std::map<std::string, std::string> notes_arg(lua_State* L, int index) {
  table_arg(L, index, "notes");
  std::map<std::string, std::string> notes;
  for_each_entry(L, index, [&] {
    if (lua_type(L, -2) != LUA_TSTRING || lua_type(L, -1) != LUA_TSTRING)
      throw WrongArgument(index, "notes", "expected a table of strings by name");
    notes[lua_tostring(L, -2)] = lua_tostring(L, -1);
  });
  return notes;
}

namespace {

/// Writes the devices of units for a script.
void fill_devices(const Assignment& assignment, std::span<int32_t> device_of) {
  TRINITY_CHECK_EQ(device_of.size(), assignment.size());
  for (size_t unit = 0; unit < assignment.size(); ++unit) device_of[unit] = assignment[unit] + 1;
}

}  // namespace

Loan<LuaRanker> LuaRanker::lend(lua_State* L, int function, int features, int scores, int device_of) {
  function_arg(L, function, "rank");
  function_ = function;
  features_ = numbers_arg(L, features, "features");
  scores_ = numbers_arg(L, scores, "scores");
  device_of_ = integers_arg(L, device_of, "device_of");
  L_ = L;
  return Loan<LuaRanker>(this);
}

void LuaRanker::show(std::span<const Move> moves, const Assignment& assignment) {
  moves_ = moves;
  if (L_) fill_devices(assignment, device_of_);
}

void LuaRanker::score(const float* features, int32_t count, float* scores) {
  const size_t numbers = at(count) * at(kMoveFeatureCount);
  if (!L_ || features_.size() < numbers || scores_.size() < at(count))
    throw Error("internal error: searcher: expected a rank function and an array that holds the "
                "candidates");
  std::copy(features, features + numbers, features_.begin());
  lua_pushvalue(L_, function_);
  lua_pushinteger(L_, count);
  call_function(L_, 1, 0);
  for (int32_t i = 0; i < count; ++i) {
    const auto score = static_cast<float>(scores_[i]);
    if (!std::isfinite(score))
      throw Error("rank: score {} is {}, expected a finite number", i + 1, score);
    scores[i] = score;
  }
}

Loan<LuaAcceptance> LuaAcceptance::lend(lua_State* L, int function) {
  function_arg(L, function, "accept");
  function_ = function;
  L_ = L;
  return Loan<LuaAcceptance>(this);
}

double LuaAcceptance::rise(double progress, double drawn) {
  if (!L_) throw Error("internal error: searcher: expected an accept function, got none");
  lua_pushvalue(L_, function_);
  lua_pushnumber(L_, progress);
  lua_pushnumber(L_, drawn);
  call_function(L_, 2, 1);
  const double rise = lua_tonumber(L_, -1);
  lua_pop(L_, 1);
  return rise;
}

Loan<LuaMoves> LuaMoves::lend(lua_State* L, int function, int device_of, int units) {
  function_arg(L, function, "moves");
  function_ = function;
  device_of_ = integers_arg(L, device_of, "device_of");
  units_ = integers_arg(L, units, "units");
  L_ = L;
  return Loan<LuaMoves>(this);
}

bool LuaMoves::draw(int32_t seed, const Assignment& assignment, Move& move) {
  if (!L_) throw Error("internal error: searcher: expected a function that proposes moves, got "
                       "none");
  fill_devices(assignment, device_of_);
  lua_pushvalue(L_, function_);
  lua_pushinteger(L_, seed + 1);
  call_function(L_, 1, 2);
  const auto count = static_cast<size_t>(lua_tointeger(L_, -2));
  move.device = static_cast<int32_t>(lua_tointeger(L_, -1)) - 1;
  lua_pop(L_, 2);
  move.units.clear();
  if (move.device < 0 || move.device >= devices_)
    throw Error("moves: device {}, expected 1 to {}", move.device + 1, devices_);
  for (const int32_t unit : units_.first(std::min(count, units_.size()))) {
    if (unit < 1 || unit > std::ssize(assignment))
      throw Error("moves: unit {}, expected 1 to {}", unit, assignment.size());
    move.units.push_back(unit - 1);
  }
  return !move.units.empty();
}

std::shared_ptr<MoveRanker> ranker_field(lua_State* L, Fields& fields, const char* key) {
  fields.push_any(key);
  std::shared_ptr<MoveRanker> ranker;
  if (lua_isboolean(L, -1) && lua_toboolean(L, -1))
    ranker = std::make_shared<LuaRanker>();
  else if (!lua_isnil(L, -1) && !lua_isboolean(L, -1))  // a copy: one per search
    ranker = std::make_shared<MoveNetwork>(*object_arg<BoundRanker>(L, lua_gettop(L)).network);
  lua_pop(L, 1);
  return ranker;
}

void open_ranker(lua_State* L) {
  register_functions(L, kRankerFunctions);
  register_type<BoundRanker>(L, kRanker);
  register_type<MoveTrainer>(L, kTrainer);
}

}  // namespace trinity::lua
