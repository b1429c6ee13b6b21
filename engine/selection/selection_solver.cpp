#include "selection/selection_solver.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <tuple>

#include "base/index.h"
#include "base/stop.h"
#include "selection/selection_exact.h"
#include "selection/selection_memory.h"
#include "selection/selection_model.h"
#include "selection/selection_search.h"

namespace trinity {
namespace {

bool all_whole(const std::vector<double>& costs) {
  return std::all_of(costs.begin(), costs.end(), [](double cost) {
    return cost >= SelectionProblem::kForbidden || (std::trunc(cost) == cost);
  });
}

class Solver {
 public:
  Solver(const SelectionProblem& problem, const SelectionOptions& options, ThreadPool& pool)
      : problem_(problem),
        options_(options),
        pool_(pool),
        rounds_(options.rounds),
        start_(Clock::now()),
        whole_(all_whole(problem.node_costs) && all_whole(problem.edge_costs)) {}

  SelectionResult run() {
    try {
      solve();
    } catch (const Interrupted&) {
      result_.stopped = true;
    }
    finish();
    return std::move(result_);
  }

 private:
  using Clock = std::chrono::steady_clock;

  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

  void tell(const char* phase, double cost, double bound) {
    constexpr double kPause = 0.1;  // seconds
    if (!options_.progress || seconds() < told_ + kPause) return;
    told_ = seconds();
    options_.progress({phase, told_, cost, bound});
  }

  void solve() {
    if (solve_plainly(describe_given())) return;
    solve_model(true);
    // States that never fit may still be part of the selection that exceeds the limit least.
    if (!infeasible_ || !problem_.usage_limit) return;
    constexpr int64_t kFew = 8;
    rounds_ = std::min(rounds_, kFew);
    solve_model(false);
    prove_infeasible();
  }

  void solve_model(bool fitting) {
    const auto go_on = [this] {
      tell("reducing", kInfinity, -kInfinity);
      return seconds() < options_.seconds / 2;
    };
    auto model = make_selection_model(problem_, go_on, fitting);
    if (model.infeasible) return prove_infeasible();
    const SelectionMemory memory(problem_, model);
    const auto room = memory.room();
    if (std::any_of(room.begin(), room.end(), [](int64_t free) { return free < 0; })) {
      result_.choice = some_choice(true);
      return prove_infeasible();
    }
    if (solve_exactly(model, memory)) return;
    if (memory.slots() > 0 && try_all(model)) return;
    search(model, memory);
  }

  /// PaSE's measures of the unreduced graph; returns its elimination order.
  EliminationOrder describe_given() {
    constexpr double kMost = 1e13;
    std::vector<int32_t> states;
    for (int32_t v = 0; v < problem_.nodes(); ++v) states.push_back(problem_.strategies(v));
    std::vector<std::pair<int32_t, int32_t>> edges;
    for (const auto& edge : problem_.edges) edges.emplace_back(edge.from, edge.to);
    auto elimination = elimination_order(states, edges, EliminationRule::generate_seq, kMost);
    if (elimination.complete) {
      result_.widest_set = elimination.widest_set;
      result_.largest_table = elimination.largest_combinations;
    }
    return elimination;
  }

  /// Eliminates on the unreduced tables if that costs little more than reading them, because
  /// reduction reads every entry several times. Returns false otherwise.
  bool solve_plainly(const EliminationOrder& elimination) {
    constexpr double kLooks = 4;  // at an entry
    const auto entries = static_cast<double>(problem_.edge_costs.size());
    if (problem_.usage_limit || !elimination.complete ||
        elimination.combinations > kLooks * entries ||
        elimination_bytes(elimination) > static_cast<double>(options_.table_bytes))
      return false;
    return run_elimination(plain_selection_model(problem_), elimination);
  }

  /// Returns false if elimination would take too much, or its selection exceeds the limit.
  bool solve_exactly(const SelectionModel& model, const SelectionMemory& memory) {
    constexpr double kCombinationsPerSecond = 2e8;
    std::vector<int32_t> states;
    for (const auto& node : model.nodes) states.push_back(node.states());
    std::vector<std::pair<int32_t, int32_t>> edges;
    for (const auto& edge : model.edges) edges.emplace_back(edge.u, edge.v);
    // If the limit may bind, elimination is a guess worth one second.
    const double work =
        kCombinationsPerSecond * (memory.slots() > 0 ? 1.0 : std::max(1.0, options_.seconds));
    auto elimination = elimination_order(states, edges, EliminationRule::generate_seq, work);
    auto other = elimination_order(states, edges, EliminationRule::smallest_table, work);
    if (!elimination.complete || (other.complete && other.combinations < elimination.combinations))
      elimination = std::move(other);
    if (!elimination.complete || elimination.combinations > work ||
        elimination_bytes(elimination) > static_cast<double>(options_.table_bytes))
      return false;
    return run_elimination(model, elimination);
  }

  /// Returns false if the best selection exceeds the limit, or it takes longer than expected.
  bool run_elimination(const SelectionModel& model, const EliminationOrder& elimination) try {
    constexpr double kEliminated = 0.9;  // of the time; the rest is for a search instead
    const auto deadline = Deadline::in(kEliminated * options_.seconds - seconds());
    const auto tick = [this] { tell("eliminating", kInfinity, -kInfinity); };
    const auto best = eliminate(model, elimination, pool_, tick, deadline);
    result_.table_entries = static_cast<int64_t>(elimination.table_entries);
    result_.peak_table_entries = static_cast<int64_t>(elimination.peak_entries);
    if (!(best.cost < kInfinity)) {
      prove_infeasible();
      return true;
    }
    result_.bound = best.cost;
    return take(model, best.states);
  } catch (const TimeIsUp&) {
    return false;
  }

  /// Keeps a selection if it is feasible; returns true if it is, and thus optimal.
  bool take(const SelectionModel& model, const std::vector<int32_t>& states) {
    result_.choice = expand_states(model, problem_.nodes(), states);
    result_.optimal = score_selection(problem_, result_.choice).feasible();
    if (result_.optimal) result_.bound = kInfinity;  // finish() lowers it to the cost
    return result_.optimal;
  }

  void prove_infeasible() {
    infeasible_ = true;
    result_.optimal = true;
    result_.bound = kInfinity;
  }

  /// Enumerates all selections if they are few. Keeps the first of the cheapest or, if none fits,
  /// the first with the smallest peak among those without forbidden entries.
  bool try_all(const SelectionModel& model) {
    constexpr double kMost = 1e8;  // node and edge evaluations
    double count = static_cast<double>(problem_.nodes()) + static_cast<double>(model.edges.size());
    for (const auto& node : model.nodes) count *= node.states();
    if (count > kMost) return false;
    std::vector<int32_t> states(model.nodes.size(), 0), best;
    double best_cost = kInfinity;
    int64_t least_peak = std::numeric_limits<int64_t>::max();
    for (bool more = true; more; more = next(model, states)) {
      stop_.step();
      const double cost = model.cost(states);
      if (!(cost < best_cost)) continue;
      const auto choice = expand_states(model, problem_.nodes(), states);
      const auto score = score_selection(problem_, choice);
      if (score.feasible()) {
        best_cost = cost;
        best = states;
      } else if (best.empty() && !score.forbidden && score.peak_usage < least_peak) {
        least_peak = score.peak_usage;
        result_.choice = choice;
      }
    }
    if (best.empty())
      prove_infeasible();
    else
      take(model, best);
    return true;
  }
  static bool next(const SelectionModel& model, std::vector<int32_t>& states) {
    for (size_t v = states.size(); v-- > 0;) {
      if (++states[v] < model.nodes[v].states()) return true;
      states[v] = 0;
    }
    return false;
  }

  void search(SelectionModel& model, const SelectionMemory& memory) {
    SelectionSearchOptions how;
    how.seed = options_.seed;
    how.rounds = rounds_;
    how.whole = whole_;
    constexpr double kSearched = 0.99;  // of the time; the rest is for finishing the search
    how.seconds_left = [this] { return kSearched * options_.seconds - seconds(); };
    how.go_on = [this, &how](double cost, double bound) {
      bound = std::max(bound, result_.bound);
      tell("searching", cost, bound);
      return how.seconds_left() > 0 && !proves(bound, cost, whole_);
    };
    const auto found = search_selection(model, memory, how, pool_);
    result_.stopped = found.stopped;
    result_.bound = std::max(result_.bound, found.bound);
    result_.choice = expand_states(model, problem_.nodes(), found.states);
    result_.optimal = found.bound == kInfinity;  // the search has proven infeasibility
  }

  /// Fallback: the cheapest strategy of every node; or (by_usage) the allowed one with the smallest
  /// usage, which gives the smallest peak.
  std::vector<int32_t> some_choice(bool by_usage) const {
    std::vector<int32_t> choice;
    for (int32_t v = 0; v < problem_.nodes(); ++v) {
      const auto costs = problem_.costs(v);
      const auto usage = problem_.usage(v);
      const auto key = [&](int32_t s) {
        return std::tuple(by_usage && costs[at(s)] >= SelectionProblem::kForbidden,
                          by_usage ? usage[at(s)] : 0, costs[at(s)]);
      };
      int32_t least = 0;
      for (int32_t s = 1; s < problem_.strategies(v); ++s)
        if (key(s) < key(least)) least = s;
      choice.push_back(least);
    }
    return choice;
  }

  void finish() {
    if (result_.choice.size() != at(problem_.nodes())) result_.choice = some_choice(false);
    const auto score = score_selection(problem_, result_.choice);
    result_.cost = score.cost;
    result_.peak_usage = score.peak_usage;
    result_.feasible = score.feasible();
    if (result_.feasible) {
      if (whole_ && std::isfinite(result_.bound)) result_.bound = std::ceil(result_.bound - 1e-6);
      result_.optimal = result_.optimal || proves(result_.bound, result_.cost, whole_);
      result_.bound = result_.optimal ? result_.cost : std::min(result_.bound, result_.cost);
    }
    result_.seconds = seconds();
  }

  const SelectionProblem& problem_;
  const SelectionOptions& options_;
  ThreadPool& pool_;
  int64_t rounds_;
  Clock::time_point start_;
  bool whole_, infeasible_ = false;
  double told_ = 0;
  SelectionResult result_;
  StopPoll stop_;
};

}  // namespace

SelectionResult solve_selection(const SelectionProblem& problem, const SelectionOptions& options,
                                ThreadPool& pool) {
  problem.check();
  return Solver(problem, options, pool).run();
}

}  // namespace trinity
