#include <cmath>

#include "lua/bind/module.h"
#include "lua/host/interrupt.h"
#include "selection/selection_solver.h"

// Strategy-selection problems and their solver (selection/selection_solver.h). Nodes, strategies
// and edges count from 1 here, but in the tables of files from 0.

namespace trinity::lua {
namespace {

/// Lists of numbers, one after the other.
struct Rows {
  std::vector<double> values;
  std::vector<int64_t> offset{0};

  size_t size() const { return offset.size() - 1; }
  std::span<const double> operator[](size_t i) const {
    return std::span(values).subspan(at(offset[i]), at(offset[i + 1] - offset[i]));
  }
};

/// Reads a table as a problem. Nodes and messages count from `first`.
class ProblemReader {
 public:
  ProblemReader(lua_State* L, int first) : L_(L), first_(first) {}

  SelectionProblem read() {
    Fields fields(L_, 1, "problem");
    problem_.name = fields.string("name", "");
    const auto limit = fields.number("usage_limit");
    if (limit) problem_.usage_limit = whole(*limit, [] { return "usage_limit"; });
    part(fields, "nodes", &ProblemReader::read_nodes);
    part(fields, "edges", &ProblemReader::read_edges);
    fields.refuse_unknown();
    try {
      problem_.check(first_);
    } catch (const ArgumentError& error) {
      refuse("{}", error.what());
    }
    return std::move(problem_);
  }

 private:
  template <class... Values>
  [[noreturn]] static void refuse(fmt::format_string<Values...> text, Values&&... values) {
    throw WrongArgument(1, "problem", fmt::format(text, std::forward<Values>(values)...));
  }

  template <class Place>
  static int64_t whole(double value, Place place) {
    if (!(value >= 0 && value <= 0x1p53) || value != std::floor(value))
      refuse("{}: expected a whole number from 0 to 2^53, got {}", place(), value);
    return static_cast<int64_t>(value);
  }

  void part(Fields& fields, const char* key, void (ProblemReader::*read_part)(Fields&)) {
    if (!fields.push_table(key)) refuse("field '{}' is missing", key);
    Fields inner(L_, lua_gettop(L_), key);
    (this->*read_part)(inner);
    lua_pop(L_, 1);
  }

  std::optional<Rows> rows(Fields& fields, const char* key) {
    if (!fields.push_table(key)) return std::nullopt;
    Rows rows;
    const auto place = [&](int i) { return fmt::format("{}.{}[{}]", fields.owner(), key, i - 1 + first_); };
    for_each(L_, lua_gettop(L_), [&](int i) {
      if (lua_type(L_, -1) != LUA_TTABLE)
        refuse("{}: expected a list of numbers, got {}", place(i), type_name(L_, -1));
      for_each(L_, lua_gettop(L_), [&](int j) {
        if (lua_type(L_, -1) != LUA_TNUMBER)
          refuse("{}[{}]: expected a number, got {}", place(i), j - 1 + first_, type_name(L_, -1));
        rows.values.push_back(lua_tonumber(L_, -1));
      });
      rows.offset.push_back(std::ssize(rows.values));
    });
    lua_pop(L_, 1);
    return rows;
  }
  Rows required_rows(Fields& fields, const char* key) {
    auto found = rows(fields, key);
    if (!found) refuse("field '{}.{}' is missing", fields.owner(), key);
    return std::move(*found);
  }

  static void same_count(const Rows& rows, const char* path, size_t count, const char* of) {
    if (rows.size() != count)
      refuse("{}: expected {} lists (one for each {}), got {}", path, count, of, rows.size());
  }
  /// The two whole numbers in a row.
  std::pair<int64_t, int64_t> pair(const Rows& rows, size_t i, const char* path) const {
    const auto place = [&] { return fmt::format("{}[{}]", path, at(first_) + i); };
    if (rows[i].size() != 2) refuse("{}: expected two numbers, got {}", place(), rows[i].size());
    return {whole(rows[i][0], place), whole(rows[i][1], place)};
  }

  void read_nodes(Fields& fields) {
    auto costs = required_rows(fields, "costs");
    const auto usages = rows(fields, "usages"), intervals = rows(fields, "intervals");
    fields.refuse_unknown();
    if (usages.has_value() != intervals.has_value())
      refuse("expected both nodes.usages and nodes.intervals, or neither");
    if (usages) same_count(*usages, "nodes.usages", costs.size(), "node");
    if (usages) same_count(*intervals, "nodes.intervals", costs.size(), "node");
    for (size_t v = 0; usages && v < costs.size(); ++v) {
      const auto row = (*usages)[v];
      if (row.size() != costs[v].size())
        refuse("nodes.usages[{}]: expected {} entries (one per strategy), got {}", at(first_) + v, costs[v].size(),
               row.size());
      for (size_t s = 0; s < row.size(); ++s)
        problem_.usages.push_back(whole(
            row[s], [&] { return fmt::format("nodes.usages[{}][{}]", at(first_) + v, at(first_) + s); }));
      const auto [start, end] = pair(*intervals, v, "nodes.intervals");
      problem_.live.push_back({start, end});
    }
    if (!usages) problem_.usages.assign(costs.values.size(), 0);
    problem_.live.resize(costs.size(), {0, 0});
    problem_.node_costs = std::move(costs.values);
    problem_.node_offset = std::move(costs.offset);
  }

  void read_edges(Fields& fields) {
    const auto ends = required_rows(fields, "nodes");
    auto costs = required_rows(fields, "costs");
    fields.refuse_unknown();
    same_count(costs, "edges.costs", ends.size(), "edge");
    for (size_t e = 0; e < ends.size(); ++e) {
      const auto [from, to] = pair(ends, e, "edges.nodes");
      for (const int64_t node : {from, to})
        if (node < first_ || node - first_ >= problem_.nodes())
          refuse("edges.nodes[{}]: node {} does not exist (there are {}, counted from {})", at(first_) + e, node,
                 problem_.nodes(), first_);
      problem_.edges.push_back({static_cast<int32_t>(from) - first_, static_cast<int32_t>(to) - first_});
    }
    problem_.edge_costs = std::move(costs.values);
    problem_.edge_offset = std::move(costs.offset);
  }

  lua_State* L_;
  int first_;
  SelectionProblem problem_;
};

/// selection_problem({name=, nodes={costs=, usages=, intervals=}, edges={nodes=, costs=},
/// usage_limit=}[, first number of nodes, 1]) -> selection problem
auto selection_problem(lua_State* L, Table<"problem">, Optional<Integer<"first", 0, 1>> first) {
  return std::make_shared<const SelectionProblem>(ProblemReader(L, first ? static_cast<int>(*first) : 1).read());
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

 private:
  lua_State* L_;
  int index_;
};

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
    TRINITY_BIND("selection_problem", selection_problem), TRINITY_BIND("solve_selection", selection_solve)};

}  // namespace

void open_selection(lua_State* L) {
  register_type<const SelectionProblem>(L, kSelection);
  register_functions(L, kSelectionFunctions);
}

}  // namespace trinity::lua
