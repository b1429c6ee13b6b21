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

/// ranker({ hidden = widths, seed =, told = }) -> ranker with weights as they are drawn
int ranker_new(lua_State* L) {
  table_arg(L, 1, "options");
  Fields fields(L, 1, "ranker options");
  std::vector<int32_t> hidden;
  if (fields.push_table("hidden")) {
    for_each(L, lua_gettop(L), [&](int) {
      hidden.push_back(static_cast<int32_t>(integer_arg(L, lua_gettop(L), "hidden", 1, 1024)));
    });
    lua_pop(L, 1);
  }
  const auto seed = static_cast<uint64_t>(fields.integer("seed", 1, 0, int64_t{1} << 53));
  const bool told = fields.boolean("told", false);
  fields.refuse_unknown();
  auto bound = std::make_shared<BoundRanker>();
  bound->network = std::make_shared<MoveNetwork>(std::move(hidden), seed, told);
  push_object(L, std::move(bound));
  return 1;
}

/// ranker:score(features, count, scores): rows of kMoveFeatureCount numbers; double arrays
int ranker_score(lua_State* L) {
  const auto& self = object_arg<BoundRanker>(L, 1);
  const auto features = numbers_arg(L, 2, "features");
  const auto scores = numbers_arg(L, 4, "scores");
  const auto count = integer_arg(L, 3, "count", 1, std::ssize(scores));
  if (features.size() < at(count) * kMoveFeatures.size())
    throw WrongArgument(2, "features",
                        fmt::format("expected {} rows of {} numbers", count, kMoveFeatures.size()));
  const std::vector<float> rows(features.begin(), features.end());
  std::vector<float> out(at(count));
  self.network->score(rows.data(), static_cast<int32_t>(count), out.data());
  std::copy(out.begin(), out.end(), scores.begin());
  return 0;
}

/// load_ranker(path) -> ranker, notes
int ranker_load(lua_State* L) {
  auto saved = load_move_network(string_arg(L, 1, "path"));
  auto bound = std::make_shared<BoundRanker>();
  bound->network = std::move(saved.network);
  push_object(L, std::move(bound));
  push_notes(L, saved.notes);
  return 2;
}

/// ranker:save(path, notes): notes are texts by name
int ranker_save(lua_State* L) {
  const auto& self = object_arg<BoundRanker>(L, 1);
  save_move_network(*self.network, string_arg(L, 2, "path"), notes_arg(L, 3));
  return 0;
}

/// ranker:about() -> widths of the hidden layers, number of weights, whether it is told everything
int ranker_about(lua_State* L) {
  const auto& network = *object_arg<BoundRanker>(L, 1).network;
  push_numbers(L, network.hidden());
  lua_pushnumber(L, static_cast<double>(network.parameters().size() - 2 * network.inputs()));
  lua_pushboolean(L, network.is_told());
  return 3;
}

/// move_features() -> names of the features of moves
int move_features(lua_State* L) {
  push_list(L, kMoveFeatures,
            [&](std::string_view name) { lua_pushlstring(L, name.data(), name.size()); });
  return 1;
}

/// training_options() -> those of move_trainer() but for the seed, as OptionList has them
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
int trainer_new(lua_State* L) {
  const auto& ranker = object_arg<BoundRanker>(L, 1, "ranker");
  table_arg(L, 2, "options");
  Fields fields(L, 2, "training options");
  MoveTrainingOptions options;
  read_training(fields, options);
  push_object(L, std::make_shared<MoveTrainer>(ranker.network, options, shared_pool()));
  return 1;
}

/// trainer:set(options): changes those that are given
int trainer_set(lua_State* L) {
  auto& self = object_arg<MoveTrainer>(L, 1);
  table_arg(L, 2, "options");
  Fields fields(L, 2, "training options");
  auto options = self.options();
  read_training(fields, options);
  self.set_options(options);
  return 0;
}

/// trainer:add(problem, placements)
int trainer_add(lua_State* L) {
  auto& self = object_arg<MoveTrainer>(L, 1);
  const auto problem = object_arg<BoundProblem>(L, 2, "problem").problem;
  table_arg(L, 3, "placements");
  std::vector<std::vector<int32_t>> starts;
  for_each(L, 3, [&](int) {
    starts.emplace_back(at(problem->operators()));
    placement_arg(L, lua_gettop(L), *problem, starts.back().data());
  });
  self.add(problem, starts);
  return 0;
}

int push_report(lua_State* L, const MoveTrainer::Report& report) {
  lua_newtable(L);
  set_field(L, "trials", static_cast<double>(report.trials));
  set_field(L, "improving", static_cast<double>(report.improving));
  set_field(L, "loss", report.loss);
  set_field(L, "entropy", report.entropy);
  set_field(L, "clipped_share", report.clipped);
  set_field(L, "best_share", report.best_share);
  return 1;
}

int32_t episodes_arg(lua_State* L) {
  return static_cast<int32_t>(integer_arg(L, 2, "episodes", 1, 1 << 20));
}

/// trainer:imitate(episodes) -> report; see MoveTrainer
int trainer_imitate(lua_State* L) {
  return push_report(L, object_arg<MoveTrainer>(L, 1).imitate(episodes_arg(L)));
}

/// trainer:reinforce(episodes) -> report; see MoveTrainer
int trainer_reinforce(lua_State* L) {
  return push_report(L, object_arg<MoveTrainer>(L, 1).reinforce(episodes_arg(L)));
}

/// trainer:learn(kind, searchers, shares) -> report: as imitate() or reinforce(), from searches by
/// annealing with `record`, which lose their record; shares: best found / start of each
int trainer_learn(lua_State* L) {
  auto& self = object_arg<MoveTrainer>(L, 1);
  const auto kind = string_arg(L, 2, "kind");
  table_arg(L, 3, "searchers");
  table_arg(L, 4, "shares");
  std::vector<MoveTrainer::Episode> episodes;
  for_each(L, 3, [&](int i) {
    auto* annealing =
        dynamic_cast<Annealing*>(object_arg<BoundSearcher>(L, lua_gettop(L)).searcher.get());
    if (!annealing) throw WrongArgument(3, "searchers", "expected annealings");
    lua_rawgeti(L, 4, i);
    episodes.push_back({annealing->take_choices(), number_arg(L, lua_gettop(L), "share")});
    lua_pop(L, 1);
  });
  return push_report(L, kind == "imitate" ? self.imitate(episodes) : self.reinforce(episodes));
}

/// trainer:episodes() -> how many were learned from
int trainer_episodes(lua_State* L) {
  return push_number(L, static_cast<double>(object_arg<MoveTrainer>(L, 1).episodes()));
}

/// trainer:save(path, notes): the ranker and what the training goes on from
int trainer_save(lua_State* L) {
  object_arg<MoveTrainer>(L, 1).save(string_arg(L, 2, "path"), notes_arg(L, 3));
  return 0;
}

/// trainer:resume(path) -> notes
int trainer_resume(lua_State* L) {
  push_notes(L, object_arg<MoveTrainer>(L, 1).resume(string_arg(L, 2, "path")));
  return 1;
}

constexpr luaL_Reg kRanker[] = {TRINITY_BIND("save", ranker_save),
                                TRINITY_BIND("score", ranker_score),
                                TRINITY_BIND("about", ranker_about)};
constexpr luaL_Reg kTrainer[] = {
    TRINITY_BIND("add", trainer_add),         TRINITY_BIND("set", trainer_set),
    TRINITY_BIND("imitate", trainer_imitate), TRINITY_BIND("reinforce", trainer_reinforce),
    TRINITY_BIND("learn", trainer_learn),     TRINITY_BIND("episodes", trainer_episodes),
    TRINITY_BIND("save", trainer_save),       TRINITY_BIND("resume", trainer_resume)};
constexpr luaL_Reg kRankerFunctions[] = {
    TRINITY_BIND("ranker", ranker_new), TRINITY_BIND("load_ranker", ranker_load),
    TRINITY_BIND("move_features", move_features),
    TRINITY_BIND("training_options", training_options), TRINITY_BIND("move_trainer", trainer_new)};

}  // namespace

void push_notes(lua_State* L, const std::map<std::string, std::string>& notes) {
  lua_newtable(L);
  for (const auto& [name, text] : notes) set_field(L, name.c_str(), text);
}

std::map<std::string, std::string> notes_arg(lua_State* L, int index) {
  table_arg(L, index, "notes");
  std::map<std::string, std::string> notes;
  lua_pushnil(L);
  while (lua_next(L, index) != 0) {
    if (lua_type(L, -2) != LUA_TSTRING || lua_type(L, -1) != LUA_TSTRING)
      throw WrongArgument(index, "notes", "expected texts by name");
    notes[lua_tostring(L, -2)] = lua_tostring(L, -1);
    lua_pop(L, 1);
  }
  return notes;
}

namespace {

void expect_function(lua_State* L, int index, const char* name) {
  if (lua_type(L, index) != LUA_TFUNCTION)
    throw WrongArgument(index, name,
                        fmt::format("expected a function, got {}", type_name(L, index)));
}

/// Calls the function below `arguments` on the stack.
void call(lua_State* L, int arguments, int results) {
  if (lua_pcall(L, arguments, results, 0) == 0) return;
  const char* text = lua_tostring(L, -1);
  const std::string message = text ? text : "an error that is not a string";
  lua_pop(L, 1);
  throw Error(message);
}

/// Tells a script where units are.
void fill_devices(const Assignment& assignment, std::span<int32_t> device_of) {
  TRINITY_CHECK_EQ(device_of.size(), assignment.size());
  for (size_t unit = 0; unit < assignment.size(); ++unit) device_of[unit] = assignment[unit] + 1;
}

}  // namespace

LuaRanker::Loan::Loan(LuaRanker& ranker, lua_State* L, int function, int features, int scores,
                      int device_of)
    : ranker_(ranker) {
  expect_function(L, function, "rank");
  ranker.function_ = function;
  ranker.features_ = numbers_arg(L, features, "features");
  ranker.scores_ = numbers_arg(L, scores, "scores");
  ranker.device_of_ = integers_arg(L, device_of, "device_of");
  ranker.L_ = L;
}

void LuaRanker::show(std::span<const Move> moves, const Assignment& assignment) {
  moves_ = moves;
  if (L_) fill_devices(assignment, device_of_);
}

void LuaRanker::score(const float* features, int32_t count, float* scores) {
  const size_t numbers = at(count) * at(kMoveFeatureCount);
  if (!L_ || features_.size() < numbers || scores_.size() < at(count))
    throw Error("searcher: no rank function with room for the candidates was given");
  std::copy(features, features + numbers, features_.begin());
  lua_pushvalue(L_, function_);
  lua_pushinteger(L_, count);
  call(L_, 1, 0);
  for (int32_t i = 0; i < count; ++i) {
    const auto score = static_cast<float>(scores_[i]);
    if (!std::isfinite(score))
      throw Error(fmt::format("rank: score {} is {}, expected a finite number", i + 1, score));
    scores[i] = score;
  }
}

LuaAcceptance::Loan::Loan(LuaAcceptance& acceptance, lua_State* L, int function)
    : acceptance_(acceptance) {
  expect_function(L, function, "accept");
  acceptance.function_ = function;
  acceptance.L_ = L;
}

double LuaAcceptance::rise(double progress, double drawn) {
  if (!L_) throw Error("searcher: no accept function was given");
  lua_pushvalue(L_, function_);
  lua_pushnumber(L_, progress);
  lua_pushnumber(L_, drawn);
  call(L_, 2, 1);
  const double rise = lua_tonumber(L_, -1);
  lua_pop(L_, 1);
  return rise;
}

LuaMoves::Loan::Loan(LuaMoves& moves, lua_State* L, int function, int device_of, int units)
    : moves_(moves) {
  expect_function(L, function, "moves");
  moves.function_ = function;
  moves.device_of_ = integers_arg(L, device_of, "device_of");
  moves.units_ = integers_arg(L, units, "units");
  moves.L_ = L;
}

bool LuaMoves::draw(int32_t seed, const Assignment& assignment, Move& move) {
  if (!L_) throw Error("searcher: no function that gives moves was given");
  fill_devices(assignment, device_of_);
  lua_pushvalue(L_, function_);
  lua_pushinteger(L_, seed + 1);
  call(L_, 1, 2);
  const auto count = static_cast<size_t>(lua_tointeger(L_, -2));
  move.device = static_cast<int32_t>(lua_tointeger(L_, -1)) - 1;
  lua_pop(L_, 2);
  move.units.clear();
  if (move.device < 0 || move.device >= devices_)
    throw Error(fmt::format("moves: device {}, expected 1 to {}", move.device + 1, devices_));
  for (const int32_t unit : units_.first(std::min(count, units_.size()))) {
    if (unit < 1 || unit > std::ssize(assignment))
      throw Error(fmt::format("moves: unit {}, expected 1 to {}", unit, assignment.size()));
    move.units.push_back(unit - 1);
  }
  return !move.units.empty();
}

std::shared_ptr<MoveRanker> ranker_field(lua_State* L, Fields& fields, const char* key) {
  fields.push_any(key);
  std::shared_ptr<MoveRanker> ranker;
  if (lua_isboolean(L, -1) && lua_toboolean(L, -1))
    ranker = std::make_shared<LuaRanker>();
  else if (!lua_isnil(L, -1) && !lua_isboolean(L, -1))  // a copy: one a search
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
