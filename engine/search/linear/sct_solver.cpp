#include "search/linear/sct_solver.h"

#include <ClpEventHandler.hpp>
#include <ClpSimplex.hpp>
#include <ClpSolve.hpp>
#include <algorithm>
#include <memory>

#include "base/index.h"
#include "base/stop.h"

namespace trinity {
namespace {

/// What the term that prefers savings may cost, in parts of w.
constexpr double kSavings = 1e-3;

/// An operator with so many edges makes Clp's presolve slow (its time grows by their square: 46 s
/// for 4,000), and the primal simplex without it fast (0.4 s).
constexpr int32_t kHub = 1000;

int32_t most_edges_of_one(const SctProgram& program) {
  std::vector<int32_t> out(program.time.size(), 0), in(program.time.size(), 0);
  int32_t most = 0;
  for (const auto& edge : program.edges) most = std::max({most, ++out[edge.from], ++in[edge.to]});
  return most;
}

/// Collects the program row by row. Columns: x of every edge, s of every operator, w.
class Rows {
 public:
  explicit Rows(const SctProgram& program, double scale)
      : edges_(static_cast<int32_t>(program.edges.size())),
        operators_(static_cast<int32_t>(program.time.size())) {
    std::vector<int32_t> out(program.time.size(), 0);
    for (const auto& edge : program.edges) ++out[edge.from];
    for (int32_t e = 0; e < edges_; ++e) {
      const auto& [from, to, wire, joined] = program.edges[e];
      add(start(from), 1);
      add(start(to), -1);
      if (!joined) add(e, wire * scale);
      end_row(-COIN_DBL_MAX, -program.time[from] * scale);
    }
    for (int32_t o = 0; o < operators_; ++o) {
      if (out[o] > 0) continue;  // the rows of edges say the same of all others
      add(start(o), 1);
      add(makespan(), -1);
      end_row(-COIN_DBL_MAX, -program.time[o] * scale);
    }
    add_degrees(program, [](const auto& edge) { return edge.from; });
    add_degrees(program, [](const auto& edge) { return edge.to; });
  }

  int32_t start(int32_t op) const { return edges_ + op; }
  int32_t makespan() const { return edges_ + operators_; }

  void load(const std::vector<double>& objective, ClpSimplex& model) const {
    const auto columns = static_cast<size_t>(makespan()) + 1;
    const std::vector<double> lower(columns, 0);
    std::vector<double> upper(columns, COIN_DBL_MAX);
    std::fill(upper.begin(), upper.begin() + edges_, 1.0);
    const CoinPackedMatrix matrix(false, row_.data(), column_.data(), value_.data(),
                                  static_cast<CoinBigIndex>(value_.size()));
    model.loadProblem(matrix, lower.data(), upper.data(), objective.data(), low_.data(),
                      high_.data());
  }

 private:
  void add(int32_t column, double value) {
    row_.push_back(static_cast<int>(low_.size()));
    column_.push_back(column);
    value_.push_back(value);
  }
  void end_row(double low, double high) {
    low_.push_back(low);
    high_.push_back(high);
  }
  /// The sum of x over the edges of an operator is at least their number less one. Says nothing of
  /// a single edge.
  template <typename End>
  void add_degrees(const SctProgram& program, End end) {
    std::vector<std::vector<int32_t>> edges_of(at(operators_));
    for (int32_t e = 0; e < edges_; ++e)
      if (!program.edges[e].joined) edges_of[end(program.edges[e])].push_back(e);
    for (const auto& list : edges_of) {
      if (list.size() < 2) continue;
      for (const int32_t e : list) add(e, 1);
      end_row(static_cast<double>(list.size()) - 1, COIN_DBL_MAX);
    }
  }

  int32_t edges_, operators_;
  std::vector<int> row_, column_;
  std::vector<double> value_, low_, high_;
};

/// ClpSolve.hpp: 0 lets Clp take SIGINT while it solves, and Ctrl-C never reaches us; 1 does not.
constexpr int kInterruptOption = 2;

/// Lets a wish to stop end the solver.
class StopOnWish : public ClpEventHandler {
 public:
  int event(Event) override { return stop_flag().load(std::memory_order_relaxed) ? 5 : -1; }
  ClpEventHandler* clone() const override { return new StopOnWish(*this); }
};

/// Solves by Clp. Where that runs out of memory the model stays: what is left of it is freed twice
/// by its destructor.
std::unique_ptr<ClpSimplex> solved(const Rows& rows, const std::vector<double>& objective,
                                   const SctLimits& limits, bool hub) {
  auto model = std::make_unique<ClpSimplex>();
  try {
    model->setLogLevel(0);
    rows.load(objective, *model);
    model->setMaximumIterations(limits.most_iterations);
    const StopOnWish stop;
    model->passInEventHandler(&stop);
    ClpSolve options;
    options.setSolveType(hub ? ClpSolve::usePrimal : ClpSolve::useDual);
    options.setPresolveType(hub ? ClpSolve::presolveOff : ClpSolve::presolveOn);
    options.setSpecialOption(kInterruptOption, 1);
    model->initialSolve(options);
  } catch (...) {
    static_cast<void>(model.release());
    throw;
  }
  return model;
}

/// Fills x and makespan; false when the solver stopped before the optimum.
bool solve(const SctProgram& program, const SctLimits& limits, double longest,
           FavouriteChildren& result) {
  double wires = 0;
  for (const auto& edge : program.edges) wires += edge.wire;
  if (longest <= 0) longest = 1;
  const double scale = 1000 / longest;  // the solver's tolerances are absolute
  const Rows rows(program, scale);
  std::vector<double> objective(at(rows.makespan()) + 1, 0);
  objective.back() = 1;
  double least = 0;  // w is no less than the path of operators alone
  for (const double time : program.time) least = std::max(least, time * scale);
  for (size_t e = 0; e < program.edges.size() && wires > 0; ++e)
    objective[e] = kSavings * least * program.edges[e].wire / wires;

  const auto model = solved(rows, objective, limits, most_edges_of_one(program) > kHub);
  poll_stop();
  result.iterations = model->numberIterations();
  if (model->status() != 0) return false;
  const double* solution = model->primalColumnSolution();
  result.x.assign(solution, solution + program.edges.size());
  result.makespan = solution[rows.makespan()] / scale;
  return true;
}

}  // namespace
}  // namespace trinity

extern "C" bool trinity_solve_sct(const trinity::SctProgram& program,
                                  const trinity::SctLimits& limits, double longest,
                                  trinity::FavouriteChildren& result) {
  return trinity::solve(program, limits, longest, result);
}
