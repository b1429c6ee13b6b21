#include <optional>

#include "base/words.h"
#include "learn/move_options.h"
#include "lua/bind/bind_ranker.h"
#include "lua/bind/module.h"
#include "lua/bind/option_list.h"
#include "lua/bind/option_reader.h"
#include "search/partition/fm.h"
#include "search/partition/metis.h"
#include "search/partition/partition_options.h"
#include "search/partition/row_cut.h"
#include "search/partition/scotch.h"
#include "search/pipeline/max_load_cut.h"
#include "search/placement/annealing.h"
#include "search/placement/exhaustive.h"
#include "search/placement/in_flight.h"
#include "search/placement/local_search.h"
#include "search/placement/mcmc.h"
#include "search/placement/search_options.h"

namespace trinity::lua {

namespace {

constexpr int64_t kMostEvaluations = int64_t{1} << 40;
using Evaluations = Integer<"evaluations", 1, kMostEvaluations>;

/// Field `starts`: a list of placements.
std::vector<Assignment> read_starts(lua_State* L, Fields& fields, const PlacementSpace& space) {
  std::vector<Assignment> starts;
  const auto read = [&](int) {
    starts.push_back(space.assignment(placement_arg(L, lua_gettop(L), space.problem())));
  };
  fields.table("starts", [&] { for_each(L, lua_gettop(L), read); });
  return starts;
}

/// Options that searches share.
struct Common {
  uint64_t seed;
  int64_t evaluations;
  std::vector<Assignment> starts;
};

uint64_t seed_of(Fields& fields) {
  return static_cast<uint64_t>(fields.integer("seed", 1, 0, int64_t{1} << 53));
}

Common read_common(lua_State* L, Fields& fields, const PlacementSpace& space) {
  return {seed_of(fields), fields.integer("evaluations", 2000, 1, kMostEvaluations),
          read_starts(L, fields, space)};
}

/// Field `moves`: whether a function of the script gives the moves.
std::shared_ptr<MoveSource> read_source(Fields& fields, const PlacementSpace& space) {
  if (!fields.boolean("moves", false)) return nullptr;
  return std::make_shared<LuaMoves>(space.devices());
}

std::unique_ptr<Searcher> annealing(Fields& fields, const PlacementSpace& space, Common common) {
  AnnealingOptions o;
  o.seed = common.seed;
  o.evaluations = common.evaluations;
  o.starts = std::move(common.starts);
  each_annealing_option(o, OptionReader{fields});
  o.ranking.ranker = ranker_field(fields.state(), fields, "ranker");
  each_ranking_option(o.ranking, OptionReader{fields});
  o.ranking.record = fields.boolean("record", false);
  o.ranking.memory_share = fields.number("memory_share", 0);
  if (fields.boolean("accept", false)) o.accept = std::make_shared<LuaAcceptance>();
  o.mix.source = read_source(fields, space);
  return std::make_unique<Annealing>(space, o);
}

std::unique_ptr<Searcher> local_search(Fields& fields, const PlacementSpace& space, Common common) {
  LocalSearchOptions o;
  o.seed = common.seed;
  o.starts = std::move(common.starts);
  o.mix.source = read_source(fields, space);
  return std::make_unique<LocalSearch>(space, o);
}

std::unique_ptr<Searcher> mcmc(Fields& fields, const PlacementSpace& space, Common common) {
  McmcOptions o;
  o.seed = common.seed;
  o.evaluations = common.evaluations;
  o.starts = std::move(common.starts);
  each_mcmc_option(o, OptionReader{fields});
  o.value_per_ms = 1e-3;  // seconds
  return std::make_unique<Mcmc>(space, o);
}

std::unique_ptr<Searcher> exhaustive(Fields&, const PlacementSpace& space, Common) {
  return std::make_unique<Exhaustive>(space);
}

/// The entry of a table of methods, or an error that lists them.
template <class Table>
const auto& find_method(const Table& table, const std::string& name) {
  std::vector<const char*> names;
  for (const auto& [known, unused] : table) names.push_back(known.c_str());
  return std::next(table.begin(), static_cast<std::ptrdiff_t>(parse_word("method", name, names)))->second;
}

/// searcher(problem, method, options) -> searcher; options: seed, evaluations (the budget), starts
/// (placements), and the method's own.
auto searcher_new(lua_State* L, const BoundProblem& of, Text<"method"> method, Options<"searcher"> fields) {
  using Make = std::unique_ptr<Searcher> (*)(Fields&, const PlacementSpace&, Common);
  static const std::map<std::string, Make> kMethods = {{"annealing", annealing},
                                                       {"exhaustive", exhaustive},
                                                       {"local_search", local_search},
                                                       {"mcmc", mcmc}};
  auto bound = std::make_shared<BoundSearcher>(of.problem);
  const auto make = find_method(kMethods, method);
  auto common = read_common(L, fields, bound->space);
  bound->searcher = make(fields, bound->space, std::move(common));
  if (const auto* annealing = dynamic_cast<const Annealing*>(bound->searcher.get())) {
    bound->rank = std::dynamic_pointer_cast<LuaRanker>(annealing->options().ranking.ranker);
    bound->accept = std::dynamic_pointer_cast<LuaAcceptance>(annealing->options().accept);
  }
  if (const auto* moving = dynamic_cast<const MovingSearch*>(bound->searcher.get()))
    bound->moves = std::dynamic_pointer_cast<LuaMoves>(moving->mix().source);
  fields.refuse_unknown();
  return bound;
}

/// searcher:ask(batch, most) -> count, limit: writes at most `most` placements into the arrays of
/// the list; of values above `limit` only that they are above will matter. 0 at the end. Functions
/// of a script follow with their arrays, nil for the missing ones:
/// searcher:ask(batch, most, rank, features, scores, accept, moves, device_of, units), see LuaRanker,
/// LuaAcceptance and LuaMoves.
auto searcher_ask(lua_State* L, BoundSearcher& self, Table<"batch">) {
  const auto room = static_cast<int64_t>(lua_objlen(L, 2));
  const auto most = integer_arg(L, 3, "most", 1, std::max<int64_t>(1, room));
  const auto ranking = self.rank ? self.rank->lend(L, 4, 5, 6, 9) : nullptr;
  const auto accepting = self.accept ? self.accept->lend(L, 7) : nullptr;
  const auto moving = self.moves ? self.moves->lend(L, 8, 9, 10) : nullptr;
  const auto trials = self.searcher->ask(static_cast<int32_t>(most));
  for (size_t i = 0; i < trials.placements.size(); ++i) {
    lua_rawgeti(L, 2, static_cast<int>(i) + 1);
    fill_from_1(L, lua_gettop(L), "placement", trials.placements[i]);
    lua_pop(L, 1);
  }
  self.asked = trials.placements.size();
  return std::tuple(self.asked, trials.limit);
}

/// searcher:tell(values, excess_memory_bytes): values of the last placements, smaller is better; double arrays.
void searcher_tell(lua_State* L, BoundSearcher& self) {
  const auto value = numbers_arg(L, 2, "values");
  const auto bytes = numbers_arg(L, 3, "excess_memory_bytes");
  if (value.size() < self.asked || bytes.size() < self.asked)
    throw ArgumentError("expected {} values and excesses, got {} and {}", self.asked, value.size(), bytes.size());
  std::vector<Score> scores;
  for (size_t i = 0; i < self.asked; ++i) {
    if (!(bytes[i] >= 0 && bytes[i] < 9e18))
      throw ArgumentError("excess {} is {}, expected 0 or more", i + 1, bytes[i]);
    scores.push_back({static_cast<int64_t>(bytes[i]), value[i]});
  }
  self.searcher->tell(scores);
  self.asked = 0;
}

/// searcher:candidate(i) -> list of units, device, kind of a move that was ranked last, where the
/// ranker is a function
int searcher_candidate(lua_State* L, const BoundSearcher& self) {
  const auto moves = self.rank ? self.rank->moves() : std::span<const Move>();
  push_move(L, moves[at(integer_arg(L, 2, "i", 1, std::ssize(moves)) - 1)]);
  return 3;
}

auto searcher_evaluations(const BoundSearcher& self) { return self.searcher->evaluations(); }

/// searcher:progress(share): how much of a wall-clock budget is used, 0 to 1.
void searcher_progress(BoundSearcher& self, Number<"share"> share) {
  if (!(share >= 0)) throw WrongArgument(2, "share", "expected 0 to 1");
  self.searcher->set_progress(std::min(1.0, share.value));
}

/// searcher:ranking() -> { seconds =, trials =, improving =, plain_trials =, plain_improving = } as
/// RankedMoves::Report has them; nil where nothing ranks.
int searcher_ranking(lua_State* L, const BoundSearcher& self) {
  const auto* annealing = dynamic_cast<const Annealing*>(self.searcher.get());
  const auto* report = annealing ? annealing->ranking() : nullptr;
  if (!report) return 0;
  push(L, record("seconds", report->seconds, "trials", report->trials, "improving", report->improving, "plain_trials",
                 report->plain_trials, "plain_improving", report->plain_improving));
  return 1;
}

/// searcher:best(placement) -> value or nil: writes the best placement so far, if any.
std::optional<double> searcher_best(lua_State* L, BoundSearcher& self) {
  if (!self.searcher->best()) return std::nullopt;
  fill_from_1(L, 2, "placement", self.searcher->best_placement());
  return self.searcher->best()->value;
}

/// run_in_flight(searcher, in_flight, evaluations): runs an annealing by step times on all threads,
/// for this number of further evaluations.
void run_in_flight(BoundSearcher& bound, Integer<"in_flight", 1, 4096> in_flight, Evaluations evaluations) {
  auto* annealing = dynamic_cast<Annealing*>(bound.searcher.get());
  if (!annealing || bound.rank || bound.asked > 0)
    throw WrongArgument(1, "searcher", "expected an annealing of the engine without open "
                                       "placements");
  auto& pool = shared_pool();
  bound.give_simulators(static_cast<size_t>(pool.threads()));
  trinity::run_in_flight(*annealing, bound.simulators, static_cast<int32_t>(in_flight), evaluations, pool);
}

/// Result of a constructive method: a placement, or why there is none.
struct Construction {
  std::vector<int32_t> placement;
  std::string reason;  // of no placement
};

Construction from_assignment(const PlacementSpace& space, const Assignment& assignment) {
  return {space.placement(assignment), {}};
}

using Construct = Construction (*)(lua_State*, Fields&, const PlacementSpace&);

Construction metis(lua_State*, Fields& fields, const PlacementSpace& space) {
  MetisOptions o;
  o.seed = seed_of(fields);
  each_partition_option(o, OptionReader{fields});
  return from_assignment(space, metis_partition(space, o));
}

Construction scotch(lua_State*, Fields& fields, const PlacementSpace& space) {
  ScotchOptions o;
  o.seed = seed_of(fields);
  each_partition_option(o, OptionReader{fields});
  return from_assignment(space, scotch_map(space, o));
}

Construction fm(lua_State*, Fields& fields, const PlacementSpace& space) {
  FmOptions o;
  o.seed = seed_of(fields);
  each_partition_option(o, OptionReader{fields});
  return from_assignment(space, fm_partition(space, o));
}

Construction max_load(lua_State* L, Fields& fields, const PlacementSpace& space) {
  MaxLoadLimits limits;
  limits.seconds = fields.number("seconds", limits.seconds);
  auto cut = max_load_cut(make_load_instance(space.problem()), limits);
  if (!cut.feasible)
    return {{},
            cut.exact || limits.seconds >= 1e9
                ? "no contiguous cut fits the memory"
                : fmt::format("no contiguous cut that fits was found in {:g} s", limits.seconds)};
  set_boolean(L, "exact", cut.exact);
  return {std::move(cut.device), {}};
}

/// method_options(name) -> the options of a searcher or construction that are its own, as
/// OptionList has them
int method_options(lua_State* L, Text<"name"> name) {
  lua_newtable(L);
  if (name == "annealing") {
    OptionList list{L};
    each_annealing_option(AnnealingOptions{}, list);
    each_ranking_option(RankingOptions{}, list);
  }
  if (name == "mcmc") each_mcmc_option(McmcOptions{}, OptionList{L});
  if (name == "fm") each_partition_option(FmOptions{}, OptionList{L});
  if (name == "metis") each_partition_option(MetisOptions{}, OptionList{L});
  if (name == "scotch") each_partition_option(ScotchOptions{}, OptionList{L});
  return 1;
}

/// construct(problem, method, options, placement) -> facts, or nil and why there is no placement.
/// Fills the placement. Facts: whether max_load is exact.
int search_construct(lua_State* L, const BoundProblem& of, Text<"method"> method, Options<"construct"> fields) {
  static const std::map<std::string, Construct> kMethods = {
      {"fm", fm}, {"max_load", max_load}, {"metis", metis}, {"scotch", scotch}};
  const auto construct = find_method(kMethods, method);
  lua_settop(L, 4);
  const PlacementSpace space(*of.problem);
  lua_newtable(L);
  const auto made = construct(L, fields, space);
  fields.refuse_unknown();
  if (made.placement.empty()) return push_results(L, std::tuple(nullptr, made.reason));
  fill_from_1(L, 4, "placement", made.placement);
  return 1;
}

/// cut_row(work, parts) -> the part of every element, from 1; see row_cut.h.
auto search_cut_row(Numbers<"work"> work, Integer<"parts", 1, 4096> parts) {
  return from_1(cut_row(work, static_cast<int32_t>(parts)));
}

constexpr luaL_Reg kSearcher[] = {
    TRINITY_BIND("ask", searcher_ask), TRINITY_BIND("tell", searcher_tell),
    TRINITY_BIND("candidate", searcher_candidate), TRINITY_BIND("evaluations", searcher_evaluations),
    TRINITY_BIND("progress", searcher_progress), TRINITY_BIND("ranking", searcher_ranking),
    TRINITY_BIND("best", searcher_best)};
constexpr luaL_Reg kSearchFunctions[] = {
    TRINITY_BIND("searcher", searcher_new), TRINITY_BIND("run_in_flight", run_in_flight),
    TRINITY_BIND("construct", search_construct),
    TRINITY_BIND("method_options", method_options), TRINITY_BIND("cut_row", search_cut_row)};

}  // namespace

void open_search(lua_State* L) {
  register_functions(L, kSearchFunctions);
  register_type<BoundSearcher>(L, kSearcher);
}

}  // namespace trinity::lua
