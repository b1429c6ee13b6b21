#include "selection/selection_model.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <numeric>

#include "base/index.h"
#include "base/stop.h"
#include "selection/selection_memory.h"

// Rules, applied until none applies:
//
//   parallel  edges between the same two nodes are added; an edge from a node to itself is added to
//             its costs;
//   arc       a state without a finite pair on some edge is dropped;
//   merge     if every state of u has exactly one finite partner at v, the strategy of v follows
//             from u's: v becomes a member of u and its edges move over. On the contest's
//             problems every forbidden pair belongs to such an edge, and 35,000 nodes become 1,400;
//   split     a table a[s] + b[t] is moved to the costs of its ends;
//   infeasible  a state that exceeds the limit with the minimum usage of all others is dropped;
//   dominated  a state is dropped if another one is at most as expensive whatever the neighbours
//             do, and never uses more memory.

namespace trinity {
namespace {

/// A cost of the problem: infinite if forbidden. Sums of other costs are not truncated.
double taken(double cost) { return cost >= SelectionProblem::kForbidden ? kInfinity : cost; }

class Reducer {
 public:
  Reducer(const SelectionProblem& problem, const std::function<bool()>& go_on, bool fitting)
      : problem_(problem), go_on_(go_on), fitting_(fitting) {}

  SelectionModel run() {
    load();
    drain();
    for (int round = 0; round < kMostRounds && !infeasible_ && !late_; ++round) {
      const bool split = split_edges();
      const bool infeasible = drop_infeasible();
      drain();
      const bool dropped = !infeasible_ && drop_dominated();
      if (!split && !infeasible && !dropped) break;
      drain();
    }
    return compact();
  }

 private:
  static constexpr int kMostRounds = 4;
  static constexpr size_t kSamples = 8;
  static constexpr int64_t kStepsToAsk = 200'000;  // table entries, a fraction of a millisecond
  static constexpr int64_t kMostWork =
      2'000'000'000;  // pairs examined in the search for dominated states

  struct Node {
    std::vector<double> cost;
    std::vector<char> alive;
    int32_t states = 0;  // remaining
    bool merged = false;
    std::vector<SelectionModel::Member> members;
    std::map<int32_t, int32_t> edges;  // neighbour -> edge
  };
  struct Edge {
    int32_t u, v;
    std::vector<double> table;
    bool dead = false, queued = false;
  };

  /// Counts steps of work; returns true when time is up.
  bool late(size_t steps) {
    steps_ += static_cast<int64_t>(steps);
    if (late_ || steps_ < kStepsToAsk) return late_;
    steps_ = 0;
    poll_stop();
    late_ = go_on_ && !go_on_();
    return late_;
  }

  void load() {
    nodes_.resize(at(problem_.nodes()));
    for (int32_t v = 0; v < problem_.nodes(); ++v) {
      auto& node = nodes_[at(v)];
      const auto costs = problem_.costs(v);
      for (const double cost : costs) node.cost.push_back(taken(cost));
      node.alive.assign(costs.size(), 1);
      node.states = problem_.strategies(v);
      node.members.resize(1);
      node.members[0].node = v;
      for (int32_t s = 0; s < node.states; ++s) node.members[0].strategy.push_back(s);
    }
    for (size_t e = 0; e < problem_.edges.size(); ++e) {
      const auto [from, to] = problem_.edges[e];
      const auto table = problem_.edge_table(e);
      const size_t columns = at(problem_.strategies(to));
      late(table.size());
      if (from == to) {
        auto& cost = nodes_[at(from)].cost;
        for (size_t s = 0; s < cost.size(); ++s) cost[s] += taken(table[s * columns + s]);
      } else {
        std::vector<double> costs(table.size());
        std::transform(table.begin(), table.end(), costs.begin(), taken);
        add_table(from, to, std::move(costs));
      }
    }
    for (int32_t v = 0; v < problem_.nodes(); ++v)
      for (size_t s = 0; s < nodes_[at(v)].cost.size(); ++s)
        if (nodes_[at(v)].cost[s] == kInfinity) drop_state(v, s);
  }

  /// Processes edges until nothing changes.
  void drain() {
    while (!queue_.empty() && !infeasible_) {
      const int32_t e = queue_.front();
      if (late(edges_[at(e)].table.size() + 1)) return;
      queue_.pop_front();
      edges_[at(e)].queued = false;
      if (!edges_[at(e)].dead) revise(e);
    }
  }

  void drop_state(int32_t v, size_t state) {
    auto& node = nodes_[at(v)];
    if (!node.alive[state]) return;
    node.alive[state] = 0;
    if (--node.states == 0) infeasible_ = true;
    touch(v);
  }

  void revise(int32_t e) {
    while (!infeasible_ && (revise_side(edges_[at(e)], true) || revise_side(edges_[at(e)], false))) {
    }
    if (infeasible_) return;
    const auto& edge = edges_[at(e)];
    const auto& u = nodes_[at(edge.u)];
    const auto& v = nodes_[at(edge.v)];
    std::vector<int32_t> partner;
    // If both are possible, the side with fewer edges is merged into the other; a side with more
    // states stays.
    const bool v_follows = u.states >= v.states && follows(edge, true, partner);
    if (v_follows && (u.states > v.states || u.edges.size() >= v.edges.size()))
      return merge(e, true, partner);
    if (v.states >= u.states && follows(edge, false, partner)) return merge(e, false, partner);
  }

  /// Drops states of one side of an edge without a finite partner.
  bool revise_side(const Edge& edge, bool rows) {
    const int32_t mine = rows ? edge.u : edge.v, other = rows ? edge.v : edge.u;
    bool changed = false;
    for (size_t s = 0; s < nodes_[at(mine)].cost.size(); ++s) {
      if (!nodes_[at(mine)].alive[s]) continue;
      bool found = false;
      for (size_t t = 0; t < nodes_[at(other)].cost.size() && !found; ++t)
        found = nodes_[at(other)].alive[t] && cost(edge, rows, s, t) < kInfinity;
      if (found) continue;
      drop_state(mine, s);
      changed = true;
    }
    return changed;
  }

  void touch(int32_t v) {
    for (const auto& [other, e] : nodes_[at(v)].edges) queue(e);
  }

  void queue(int32_t e) {
    if (edges_[at(e)].queued || edges_[at(e)].dead) return;
    edges_[at(e)].queued = true;
    queue_.push_back(e);
  }
  double cost(const Edge& edge, bool from_u, size_t state, size_t other) const {
    const size_t columns = nodes_[at(edge.v)].cost.size();
    return from_u ? edge.table[state * columns + other] : edge.table[other * columns + state];
  }

  /// True if every state of one side has exactly one finite partner; `partner` receives it by state.
  bool follows(const Edge& edge, bool from_u, std::vector<int32_t>& partner) const {
    const auto& mine = nodes_[at(from_u ? edge.u : edge.v)];
    const auto& other = nodes_[at(from_u ? edge.v : edge.u)];
    partner.assign(mine.cost.size(), 0);
    for (size_t s = 0; s < mine.cost.size(); ++s) {
      if (!mine.alive[s]) continue;
      int count = 0;
      for (size_t t = 0; t < other.cost.size() && count < 2; ++t) {
        if (!other.alive[t] || !(cost(edge, from_u, s, t) < kInfinity)) continue;
        partner[s] = static_cast<int32_t>(t);
        ++count;
      }
      if (count != 1) return false;
    }
    // Tables grow by the ratio of states, which is worthwhile only for few edges.
    const size_t growth = at(mine.states) / at(std::max(1, other.states));
    return growth <= 1 || other.edges.size() <= 2 || growth * other.edges.size() <= 16;
  }

  /// Makes one end of edge e a member of the other.
  void merge(int32_t e, bool into_u, const std::vector<int32_t>& partner) {
    const int32_t keep = into_u ? edges_[at(e)].u : edges_[at(e)].v;
    const int32_t gone = into_u ? edges_[at(e)].v : edges_[at(e)].u;
    auto& to = nodes_[at(keep)];
    auto& from = nodes_[at(gone)];
    for (size_t s = 0; s < to.cost.size(); ++s)
      if (to.alive[s])
        to.cost[s] += from.cost[at(partner[s])] + cost(edges_[at(e)], into_u, s, at(partner[s]));
    remove_edge(e);
    for (auto& member : from.members) {
      std::vector<int32_t> strategy(to.cost.size());
      for (size_t s = 0; s < strategy.size(); ++s) strategy[s] = member.strategy[at(partner[s])];
      to.members.push_back({member.node, std::move(strategy)});
    }
    std::vector<std::pair<int32_t, int32_t>> moving(from.edges.begin(), from.edges.end());
    std::sort(moving.begin(), moving.end());
    for (const auto& [other, moved] : moving) move_edge(moved, gone, keep, partner);
    from = {};
    from.merged = true;
    for (size_t s = 0; s < to.cost.size(); ++s)
      if (to.alive[s] && to.cost[s] == kInfinity) drop_state(keep, s);
  }

  /// Moves an edge of `from`, whose state follows from the state of `to`, to `to`.
  void move_edge(int32_t e, int32_t from, int32_t to, const std::vector<int32_t>& partner) {
    const auto edge = std::move(edges_[at(e)]);
    edges_[at(e)] = {edge.u, edge.v, {}};
    remove_edge(e);
    const bool from_u = edge.u == from;
    const int32_t other = from_u ? edge.v : edge.u;
    const size_t rows = nodes_[at(to)].cost.size(), columns = nodes_[at(other)].cost.size();
    std::vector<double> table(rows * columns);
    for (size_t s = 0; s < rows; ++s)
      for (size_t t = 0; t < columns; ++t)
        table[s * columns + t] = cost(edge, from_u, at(partner[s]), t);
    add_table(to, other, std::move(table));
  }

  /// Adds a table of u times v to the edge between them, creating it if necessary.
  void add_table(int32_t u, int32_t v, std::vector<double> table) {
    const size_t rows = nodes_[at(u)].cost.size(), columns = nodes_[at(v)].cost.size();
    const auto [found, is_new] =
        nodes_[at(u)].edges.try_emplace(v, static_cast<int32_t>(edges_.size()));
    const int32_t e = found->second;
    if (is_new) {
      nodes_[at(v)].edges.emplace(u, e);
      edges_.push_back({u, v, std::move(table)});
    } else {
      auto& edge = edges_[at(e)];
      const bool same = edge.u == u;
      for (size_t r = 0; r < rows; ++r)
        for (size_t c = 0; c < columns; ++c) {
          edge.table[same ? r * columns + c : c * rows + r] += table[r * columns + c];
        }
    }
    queue(e);
  }

  void remove_edge(int32_t e) {
    auto& edge = edges_[at(e)];
    nodes_[at(edge.u)].edges.erase(edge.v);
    nodes_[at(edge.v)].edges.erase(edge.u);
    edge.dead = true;
    edge.table = {};
  }

  static std::vector<size_t> alive_states(const Node& node) {
    std::vector<size_t> states;
    for (size_t s = 0; s < node.alive.size(); ++s)
      if (node.alive[s]) states.push_back(s);
    return states;
  }

  bool split_edges() {
    bool any = false;
    for (int32_t e = 0; e < static_cast<int32_t>(edges_.size()); ++e) {
      if (late(edges_[at(e)].table.size() + 1)) break;
      if (!edges_[at(e)].dead && split(e)) any = true;
    }
    return any;
  }

  /// Moves a table a[s] + b[t] to the costs of its ends: b is the row of the first state.
  bool split(int32_t e) {
    const auto& edge = edges_[at(e)];
    auto& u = nodes_[at(edge.u)];
    auto& v = nodes_[at(edge.v)];
    const auto rows = alive_states(u), columns = alive_states(v);
    const size_t width = v.cost.size();
    const double* table = edge.table.data();
    const double* first = table + rows[0] * width;
    const auto differs = [&](size_t r, size_t c) {
      const double here = table[r * width + c];
      return !(here < kInfinity) ||
             here - first[c] != table[r * width + columns[0]] - first[columns[0]];
    };
    for (const size_t c : columns)
      if (!(first[c] < kInfinity)) return false;
    for (const size_t r : rows)
      for (const size_t c : columns)
        if (differs(r, c)) return false;
    for (const size_t r : rows) u.cost[r] += table[r * width + columns[0]] - first[columns[0]];
    for (const size_t c : columns) v.cost[c] += first[c];
    remove_edge(e);
    return true;
  }

  /// Changes nothing if some node has no state that fits.
  bool drop_infeasible() {
    if (!fitting_ || !problem_.usage_limit || infeasible_ || late_) return false;
    SelectionModel model;
    std::vector<int32_t> number;
    std::vector<std::vector<size_t>> alive;
    for (size_t v = 0; v < nodes_.size(); ++v) {
      if (nodes_[v].merged) continue;
      number.push_back(static_cast<int32_t>(v));
      alive.push_back(alive_states(nodes_[v]));
      model.nodes.push_back(compact_node(nodes_[v], alive.back()));
      if (late(alive.back().size() * nodes_[v].members.size())) return false;
    }
    const SelectionMemory memory(problem_, model);
    std::vector<std::vector<int32_t>> fitting;
    for (int32_t i = 0; i < model.size(); ++i) {
      fitting.push_back(memory.fitting(i, model.nodes[at(i)].states()));
      if (fitting.back().empty() || late(at(memory.slots()))) return false;
    }
    bool any = false;
    for (size_t i = 0; i < fitting.size() && !infeasible_; ++i) {
      if (fitting[i].size() == alive[i].size()) continue;
      any = true;
      std::vector<char> fits(alive[i].size(), 0);
      for (const int32_t s : fitting[i]) fits[at(s)] = 1;
      for (size_t k = 0; k < fits.size(); ++k)
        if (!fits[k]) drop_state(number[i], alive[i][k]);
    }
    return any;
  }

  bool drop_dominated() {
    int64_t work = kMostWork;
    bool any = false;
    for (int32_t v = 0; v < static_cast<int32_t>(nodes_.size()) && work > 0 && !late_; ++v) {
      const auto& node = nodes_[at(v)];
      if (node.merged || node.states < 2) continue;
      int64_t width = 1;
      for (const auto& [other, e] : node.edges)
        width += static_cast<int64_t>(nodes_[at(other)].cost.size());
      const auto sums = samples(v);
      const auto may_beat = [&](size_t better, size_t worse) {
        for (size_t j = 0; j < kSamples; ++j)
          if (sums[better * kSamples + j] > sums[worse * kSamples + j]) return false;
        return true;
      };
      work -= int64_t{node.states} * node.states;
      for (size_t worse = node.cost.size(); worse-- > 0 && work > 0;) {
        if (late(node.cost.size())) return any;
        for (size_t better = 0; better < node.cost.size() && node.alive[worse]; ++better) {
          if (better == worse || !node.alive[better] || !may_beat(better, worse)) continue;
          const auto looks = width + static_cast<int64_t>(node.members.size());
          work -= looks;
          if (late(at(looks))) return any;
          if (!beats(v, better, worse)) continue;
          drop_state(v, worse);
          any = true;
        }
      }
    }
    return any;
  }

  /// Costs of states for some states of the neighbours: [state][sample]. A dominating state is at
  /// most as expensive in every sample, which refutes most pairs quickly.
  std::vector<double> samples(int32_t v) const {
    const auto& node = nodes_[at(v)];
    std::vector<double> sums(node.cost.size() * kSamples);
    for (size_t s = 0; s < node.cost.size(); ++s)
      for (size_t j = 0; j < kSamples; ++j) sums[s * kSamples + j] = node.cost[s];
    for (const auto& [other, e] : node.edges) {
      const auto& alive = nodes_[at(other)].alive;
      for (size_t j = 0; j < kSamples; ++j) {
        size_t t = (j * alive.size() / kSamples + at(other) * j) % alive.size();
        while (!alive[t]) t = (t + 1) % alive.size();
        for (size_t s = 0; s < node.cost.size(); ++s)
          sums[s * kSamples + j] += cost(edges_[at(e)], edges_[at(e)].u == v, s, t);
      }
    }
    return sums;
  }

  bool beats(int32_t v, size_t better, size_t worse) const {
    const auto& node = nodes_[at(v)];
    if (!uses_no_more(node, better, worse)) return false;
    double gain = node.cost[better] - node.cost[worse];
    for (const auto& [other, e] : node.edges) {
      const auto& edge = edges_[at(e)];
      const bool is_u = edge.u == v;
      double most = -kInfinity;
      for (size_t t = 0; t < nodes_[at(other)].cost.size(); ++t) {
        if (!nodes_[at(other)].alive[t]) continue;
        const double of_worse = cost(edge, is_u, worse, t);
        if (of_worse < kInfinity) most = std::max(most, cost(edge, is_u, better, t) - of_worse);
      }
      gain += most;
      if (gain == kInfinity) return false;
    }
    return gain <= 0;
  }

  bool uses_no_more(const Node& node, size_t better, size_t worse) const {
    if (!problem_.usage_limit) return true;
    for (const auto& member : node.members) {
      const auto live = problem_.live[at(member.node)];
      const auto usage = problem_.usage(member.node);
      if (live.start < live.end &&
          usage[at(member.strategy[better])] > usage[at(member.strategy[worse])])
        return false;
    }
    return true;
  }

  /// The remaining model, renumbered.
  SelectionModel compact() {
    SelectionModel model;
    model.infeasible = infeasible_;
    if (infeasible_) return model;
    std::vector<int32_t> number(nodes_.size(), -1);
    std::vector<std::vector<size_t>> alive(nodes_.size());
    for (size_t v = 0; v < nodes_.size(); ++v) {
      if (nodes_[v].merged) continue;
      number[v] = model.size();
      alive[v] = alive_states(nodes_[v]);
      model.nodes.push_back(compact_node(nodes_[v], alive[v]));
    }
    for (auto& edge : edges_) {
      if (edge.dead) continue;
      const bool swap = number[at(edge.u)] > number[at(edge.v)];
      const int32_t u = swap ? edge.v : edge.u, v = swap ? edge.u : edge.v;
      auto& kept = model.edges.emplace_back();
      kept.u = number[at(u)];
      kept.v = number[at(v)];
      for (const size_t s : alive[at(u)])
        for (const size_t t : alive[at(v)]) kept.table.push_back(cost(edge, !swap, s, t));
      edge.table = {};
    }
    return model;
  }

  SelectionModel::Node compact_node(const Node& from, const std::vector<size_t>& alive) const {
    SelectionModel::Node node;
    for (const size_t s : alive) node.cost.push_back(from.cost[s]);
    for (const auto& member : from.members) {
      auto& kept = node.members.emplace_back();
      kept.node = member.node;
      for (const size_t s : alive) kept.strategy.push_back(member.strategy[s]);
    }
    return node;
  }

  const SelectionProblem& problem_;
  const std::function<bool()>& go_on_;
  std::vector<Node> nodes_;
  std::vector<Edge> edges_;
  std::deque<int32_t> queue_;
  bool fitting_, infeasible_ = false, late_ = false;
  int64_t steps_ = 0;
};

}  // namespace

double SelectionModel::cost(std::span<const int32_t> states) const {
  double sum = constant;
  for (size_t v = 0; v < nodes.size(); ++v) sum += nodes[v].cost[at(states[v])];
  for (const auto& edge : edges)
    sum += edge.table[at(int64_t{states[at(edge.u)]} * nodes[at(edge.v)].states() +
                         states[at(edge.v)])];
  return sum;
}

SelectionModel make_selection_model(const SelectionProblem& problem,
                                    const std::function<bool()>& go_on, bool fitting) {
  return Reducer(problem, go_on, fitting).run();
}

SelectionModel plain_selection_model(const SelectionProblem& problem) {
  SelectionModel model;
  const auto costs_of = [](std::span<const double> costs) {
    std::vector<double> result(costs.size());
    std::transform(costs.begin(), costs.end(), result.begin(), taken);
    return result;
  };
  model.nodes.resize(at(problem.nodes()));
  for (int32_t v = 0; v < problem.nodes(); ++v) {
    auto& node = model.nodes[at(v)];
    node.cost = costs_of(problem.costs(v));
    node.members.resize(1);
    node.members[0].node = v;
    node.members[0].strategy.resize(node.cost.size());
    std::iota(node.members[0].strategy.begin(), node.members[0].strategy.end(), 0);
  }
  for (size_t e = 0; e < problem.edges.size(); ++e) {
    const auto [from, to] = problem.edges[e];
    auto table = costs_of(problem.edge_table(e));
    if (from == to) {
      auto& cost = model.nodes[at(from)].cost;
      for (size_t s = 0; s < cost.size(); ++s) cost[s] += table[s * cost.size() + s];
      continue;
    }
    model.edges.push_back({from, to, std::move(table)});
  }
  return model;
}

std::vector<int32_t> expand_states(const SelectionModel& model, int32_t nodes,
                                   std::span<const int32_t> states) {
  std::vector<int32_t> choice(at(nodes), 0);
  for (size_t v = 0; v < model.nodes.size(); ++v)
    for (const auto& member : model.nodes[v].members)
      choice[at(member.node)] = member.strategy[at(states[v])];
  return choice;
}

}  // namespace trinity
