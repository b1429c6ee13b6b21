#include <cmath>

#include "formats/instances/selection_json.h"
#include "lua/bind/module.h"
#include "lua/host/interrupt.h"
#include "selection/selection_solver.h"

// Strategy-selection problems and their solver (selection/selection_solver.h). Nodes, strategies
// and edges count from 1 here.

namespace trinity::lua {
namespace {

/// The numbers of the list on top of the stack, for field `path` of a problem.
std::vector<double> numbers_on_top(lua_State* L, const std::string& path) {
  if (lua_type(L, -1) != LUA_TTABLE)
    throw WrongArgument(1, "problem", "{}: expected a list of numbers, got {}", path, type_name(L, -1));
  std::vector<double> numbers;
  for_each(L, lua_gettop(L), [&](int i) {
    if (lua_type(L, -1) != LUA_TNUMBER)
      throw WrongArgument(1, "problem", "{}[{}]: expected a number, got {}", path, i, type_name(L, -1));
    numbers.push_back(lua_tonumber(L, -1));
  });
  return numbers;
}

int64_t whole(double value, const std::string& path, double low) {
  if (!(value >= low && value <= 0x1p53) || value != std::floor(value))
    throw WrongArgument(1, "problem", "{}: expected a whole number from {} to 2^53, got {}", path, low, value);
  return static_cast<int64_t>(value);
}

/// Rows of numbers, a list of lists in field `key` of an object called `owner`.
using Rows = std::vector<std::vector<double>>;
std::optional<Rows> read_rows(lua_State* L, Fields& fields, const char* key) {
  if (!fields.push_table(key)) return std::nullopt;
  Rows rows;
  for_each(L, lua_gettop(L), [&](int i) {
    rows.push_back(numbers_on_top(L, fmt::format("{}.{}[{}]", fields.owner(), key, i)));
  });
  lua_pop(L, 1);
  return rows;
}

Rows required_rows(lua_State* L, Fields& fields, const char* key) {
  auto rows = read_rows(L, fields, key);
  if (!rows)
    throw WrongArgument(1, "problem", "field '{}.{}' is missing", fields.owner(), key);
  return std::move(*rows);
}

void same_count(const Rows& rows, const char* path, size_t count, const char* of) {
  if (rows.size() != count)
    throw WrongArgument(1, "problem", "{}: expected {} lists (one for each {}), got {}", path, count, of, rows.size());
}

void pair_only(const std::vector<double>& row, const std::string& path) {
  if (row.size() != 2)
    throw WrongArgument(1, "problem", "{}: expected two numbers, got {}", path, row.size());
}

void read_nodes(lua_State* L, SelectionProblem& problem) {
  Fields fields(L, lua_gettop(L), "nodes");
  const auto costs = required_rows(L, fields, "costs");
  const auto usages = read_rows(L, fields, "usages");
  const auto intervals = read_rows(L, fields, "intervals");
  fields.refuse_unknown();
  if (usages.has_value() != intervals.has_value())
    throw WrongArgument(1, "problem", "expected both nodes.usages and nodes.intervals, or neither");
  if (usages) same_count(*usages, "nodes.usages", costs.size(), "node");
  if (usages) same_count(*intervals, "nodes.intervals", costs.size(), "node");
  for (size_t v = 0; v < costs.size(); ++v) {
    std::vector<int64_t> usage;
    SelectionProblem::Interval live{0, 0};
    if (usages) {
      for (size_t i = 0; i < (*usages)[v].size(); ++i)
        usage.push_back(
            whole((*usages)[v][i], fmt::format("nodes.usages[{}][{}]", v + 1, i + 1), 0));
      const auto path = fmt::format("nodes.intervals[{}]", v + 1);
      pair_only((*intervals)[v], path);
      live = {whole((*intervals)[v][0], path, 0), whole((*intervals)[v][1], path, 0)};
    } else {
      usage.assign(costs[v].size(), 0);
    }
    problem.node_costs.insert(problem.node_costs.end(), costs[v].begin(), costs[v].end());
    problem.usages.insert(problem.usages.end(), usage.begin(), usage.end());
    if (usage.size() != costs[v].size())
      throw WrongArgument(1, "problem", "nodes.usages[{}]: expected {} entries (one per strategy), got {}", v + 1,
                          costs[v].size(), usage.size());
    problem.live.push_back(live);
    problem.node_offset.push_back(static_cast<int64_t>(problem.node_costs.size()));
  }
}

void read_edges(lua_State* L, SelectionProblem& problem) {
  Fields fields(L, lua_gettop(L), "edges");
  const auto ends = required_rows(L, fields, "nodes");
  const auto costs = required_rows(L, fields, "costs");
  fields.refuse_unknown();
  same_count(costs, "edges.costs", ends.size(), "edge");
  for (size_t e = 0; e < ends.size(); ++e) {
    const auto path = fmt::format("edges.nodes[{}]", e + 1);
    pair_only(ends[e], path);
    int32_t pair[2];
    for (size_t i = 0; i < 2; ++i) {
      const int64_t node = whole(ends[e][i], path, 0);
      if (node < 1 || node > problem.nodes())
        throw WrongArgument(1, "problem", "{}: node {} does not exist (there are {}, counted from 1)", path, node,
                            problem.nodes());
      pair[i] = static_cast<int32_t>(node) - 1;
    }
    problem.edges.push_back({pair[0], pair[1]});
    problem.edge_costs.insert(problem.edge_costs.end(), costs[e].begin(), costs[e].end());
    problem.edge_offset.push_back(static_cast<int64_t>(problem.edge_costs.size()));
  }
}

/// selection_problem({name=, nodes={costs=, usages=, intervals=}, edges={nodes=, costs=},
/// usage_limit=}) -> selection problem
auto selection_problem(lua_State* L) {
  table_arg(L, 1, "problem");
  SelectionProblem problem;
  Fields fields(L, 1, "problem");
  problem.name = fields.string("name", "");
  const auto limit = fields.number("usage_limit");
  if (limit) problem.usage_limit = whole(*limit, "usage_limit", 0);
  for (const char* part : {"nodes", "edges"}) {
    if (!fields.push_table(part))
      throw WrongArgument(1, "problem", "field '{}' is missing", part);
    if (std::string_view(part) == "nodes")
      read_nodes(L, problem);
    else
      read_edges(L, problem);
    lua_pop(L, 1);
  }
  fields.refuse_unknown();
  try {
    problem.check(1);
  } catch (const ArgumentError& error) {
    throw WrongArgument(1, "problem", error.what());
  }
  return std::make_shared<const SelectionProblem>(std::move(problem));
}

/// The progress function at a stack index, called at most some times a second. An error in it ends
/// the work and is raised afterwards.
class ProgressCall {
 public:
  ProgressCall(lua_State* L, int index) : L_(L), index_(index) { function_arg(L, index, "progress"); }
  void operator()(const SelectionProgress& progress) {
    lua_pushvalue(L_, index_);
    push(L_, record("phase", progress.phase, "seconds", progress.seconds, "cost", progress.cost, "bound", progress.bound));
    call_function(L_, 1, 0);
  }
  void operator()(double share) {
    lua_pushvalue(L_, index_);
    lua_pushnumber(L_, share);
    call_function(L_, 1, 0);
  }

 private:
  lua_State* L_;
  int index_;
};

/// read_selection(path, progress function of the share read, or nil) -> selection problem
auto selection_read(lua_State* L, Text<"path"> path) {
  ReadProgress progress;
  if (!lua_isnoneornil(L, 2)) progress = ProgressCall(L, 2);
  return std::make_shared<const SelectionProblem>(read_selection(path, progress));
}

/// Brackets a search, however it ends.
struct Searching {
  Searching() { begin_search(); }
  ~Searching() { end_search(); }
};

auto result_of(const SelectionProblem& problem, const SelectionResult& result) {
  return record("cost", result.cost, "peak_usage", result.peak_usage, "bound", result.bound, "seconds", result.seconds,
                "table_entries", result.table_entries, "peak_table_entries", result.peak_table_entries, "largest_table",
                result.largest_table, "widest_set", result.widest_set, "nodes", problem.nodes(), "edges",
                problem.edges.size(), "name", problem.name, "feasible", result.feasible, "optimal", result.optimal,
                "stopped", result.stopped, "solution", from_1(result.choice));
}

/// solve_selection(problem, {seconds=, seed=, table_bytes=, rounds=}, progress function or nil) ->
/// result
auto selection_solve(lua_State* L, Named<const SelectionProblem, "problem">, Options<"select"> fields) {
  const auto problem = handle_arg<const SelectionProblem>(L, 1);
  SelectionOptions options;
  fields.take_all("seconds", options.seconds, "seed", options.seed, "table_bytes", options.table_bytes, "rounds",
                  options.rounds);
  if (!lua_isnoneornil(L, 3)) options.progress = ProgressCall(L, 3);
  const Searching searching;
  return result_of(*problem, solve_selection(*problem, options, shared_pool()));
}

/// problem:describe() -> {name=, nodes=, edges=, strategies=, usage_limit= or nil}
auto selection_describe(const SelectionProblem& problem) {
  return record("name", problem.name, "nodes", problem.nodes(), "edges", problem.edges.size(), "strategies",
                problem.node_costs.size(), "usage_limit", problem.usage_limit);
}

/// problem:score(strategies) -> {cost=, peak_usage=, feasible=}
auto selection_score(lua_State* L, const SelectionProblem& problem, Table<"strategies">) {
  std::vector<int32_t> choice;
  for_each(L, 2, [&](int i) {
    const double value = lua_type(L, -1) == LUA_TNUMBER ? lua_tonumber(L, -1) : 0;
    const int32_t most = i <= problem.nodes() ? problem.strategies(i - 1) : 1;
    if (!(value >= 1 && value <= most) || value != std::floor(value))
      throw WrongArgument(2, "strategies", "entry {}: expected a strategy from 1 to {}, got {}", i, most,
                          type_name(L, -1));
    choice.push_back(static_cast<int32_t>(value) - 1);
  });
  if (choice.size() != static_cast<size_t>(problem.nodes()))
    throw WrongArgument(2, "strategies", "expected {} entries (one per node), got {}", problem.nodes(), choice.size());
  const auto score = score_selection(problem, choice);
  return record("cost", score.cost, "peak_usage", score.peak_usage, "feasible", score.feasible());
}

constexpr luaL_Reg kSelection[] = {
    TRINITY_BIND("describe", selection_describe), TRINITY_BIND("score", selection_score)};
constexpr luaL_Reg kSelectionFunctions[] = {
    TRINITY_BIND("selection_problem", selection_problem), TRINITY_BIND("read_selection", selection_read),
    TRINITY_BIND("solve_selection", selection_solve)};

}  // namespace

void open_selection(lua_State* L) {
  register_type<const SelectionProblem>(L, kSelection);
  register_functions(L, kSelectionFunctions);
}

}  // namespace trinity::lua
