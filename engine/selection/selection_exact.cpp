#include "selection/selection_exact.h"

#include <algorithm>
#include <set>

#include "base/index.h"
#include "base/stop.h"

namespace trinity {
namespace {

/// The graph that shrinks during elimination.
class Planner {
 public:
  Planner(const std::vector<int32_t>& states, const std::vector<std::pair<int32_t, int32_t>>& edges,
          EliminationRule rule)
      : states_(states), rule_(rule), neighbours_(states.size()), key_(states.size()) {
    for (const auto& [u, v] : edges) {
      if (u == v) continue;
      neighbours_[at(u)].insert(v);
      neighbours_[at(v)].insert(u);
    }
    for (int32_t v = 0; v < static_cast<int32_t>(states.size()); ++v) enter(v);
  }

  EliminationOrder run(double most) {
    EliminationOrder elimination;
    while (!queue_.empty()) {
      poll_stop();
      const int32_t v = queue_.begin()->second;
      queue_.erase(queue_.begin());
      std::vector<int32_t> set(neighbours_[at(v)].begin(), neighbours_[at(v)].end());
      if (!count(v, set, most, elimination)) return elimination;
      remove(v, set);
      elimination.order.push_back(v);
      elimination.sets.push_back(std::move(set));
    }
    elimination.complete = true;
    count_held(elimination);
    return elimination;
  }

 private:
  static constexpr int32_t kWidest = 256;  // sets become cliques

  void enter(int32_t v) {
    const auto& near = neighbours_[at(v)];
    double key = static_cast<double>(near.size());
    if (rule_ == EliminationRule::smallest_table) key = entries(near);
    key_[at(v)] = key;
    queue_.insert({key, v});
  }

  template <class Set>
  double entries(const Set& set) const {
    double product = 1;
    for (const int32_t u : set) product *= states_[at(u)];
    return product;
  }

  /// Counts v; returns false if it exceeds the limit.
  bool count(int32_t v, const std::vector<int32_t>& set, double most,
             EliminationOrder& elimination) const {
    const double combinations = entries(set) * states_[at(v)];
    elimination.widest_set = std::max(elimination.widest_set, static_cast<int32_t>(set.size()));
    elimination.combinations += combinations;
    elimination.largest_combinations = std::max(elimination.largest_combinations, combinations);
    elimination.table_entries += entries(set);
    return combinations <= most && elimination.widest_set <= kWidest;
  }

  void remove(int32_t v, const std::vector<int32_t>& set) {
    for (const int32_t u : set) {
      queue_.erase({key_[at(u)], u});
      auto& near = neighbours_[at(u)];
      near.erase(v);
      for (const int32_t w : set)
        if (w != u) near.insert(w);
    }
    for (const int32_t u : set) enter(u);
    neighbours_[at(v)].clear();
  }

  /// A table lives until the first node of its set is eliminated.
  void count_held(EliminationOrder& elimination) const {
    std::vector<size_t> position(states_.size());
    for (size_t i = 0; i < elimination.order.size(); ++i) position[at(elimination.order[i])] = i;
    std::vector<double> freed(states_.size(), 0);
    double held = 0;
    for (size_t i = 0; i < elimination.order.size(); ++i) {
      const double mine = entries(elimination.sets[i]);
      size_t reader = i;
      for (const int32_t u : elimination.sets[i])
        reader = reader == i ? position[at(u)] : std::min(reader, position[at(u)]);
      held += mine;
      elimination.peak_entries = std::max(elimination.peak_entries, held);
      freed[reader] += mine;
      held -= freed[i];
    }
  }

  const std::vector<int32_t>& states_;
  EliminationRule rule_;
  std::vector<std::set<int32_t>> neighbours_;
  std::vector<double> key_;
  std::set<std::pair<double, int32_t>> queue_;
};

/// A function of the states of some nodes; the node eliminated first is last, with stride 1.
struct Factor {
  std::vector<int32_t> scope;
  std::vector<double> table;
};

class Eliminator {
 public:
  Eliminator(const SelectionModel& model, const EliminationOrder& elimination, ThreadPool& pool,
             const Deadline& deadline)
      : model_(model),
        elimination_(elimination),
        pool_(pool),
        deadline_(deadline),
        buckets_(model.nodes.size()),
        position_(model.nodes.size()),
        choices_(model.nodes.size()) {}

  ExactSelection run(const std::function<void()>& tick) {
    for (size_t i = 0; i < elimination_.order.size(); ++i)
      position_[at(elimination_.order[i])] = static_cast<int32_t>(i);
    double cost = model_.constant;
    for (const auto& edge : model_.edges) add_edge(edge);
    for (size_t i = 0; i < elimination_.order.size(); ++i) {
      deadline_.poll();
      if (tick) tick();
      cost += eliminate(elimination_.order[i], elimination_.sets[i]);
    }
    return {cost, back_substitute()};
  }

 private:
  /// Iteration over a factor of a bucket: by the states of the set, then of the node.
  struct Walk {
    const double* table;
    std::vector<size_t> stride;  // by node of the set, outermost first
  };

  /// A factor along a row.
  struct Moving {
    const double* table;
    size_t step;
  };

  void add_edge(const SelectionModel::Edge& edge) {
    const bool u_first = position_[at(edge.u)] < position_[at(edge.v)];
    const size_t rows = model_.nodes[at(edge.u)].cost.size();
    const size_t columns = model_.nodes[at(edge.v)].cost.size();
    Factor factor{{u_first ? edge.v : edge.u, u_first ? edge.u : edge.v}, edge.table};
    if (u_first)
      for (size_t s = 0; s < rows; ++s)
        for (size_t t = 0; t < columns; ++t)
          factor.table[t * rows + s] = edge.table[s * columns + t];
    buckets_[at(u_first ? edge.u : edge.v)].push_back(std::move(factor));
  }

  std::vector<int32_t> sorted_set(std::vector<int32_t> set) const {
    std::sort(set.begin(), set.end(),
              [&](int32_t a, int32_t b) { return position_[at(a)] > position_[at(b)]; });
    return set;
  }

  Walk walk(const Factor& factor, const std::vector<int32_t>& set) const {
    Walk result{factor.table.data(), std::vector<size_t>(set.size(), 0)};
    size_t stride = model_.nodes[at(factor.scope.back())].cost.size();
    for (size_t i = factor.scope.size() - 1; i-- > 0;) {
      const auto place = std::find(set.begin(), set.end(), factor.scope[i]) - set.begin();
      result.stride[at(place)] = stride;
      stride *= model_.nodes[at(factor.scope[i])].cost.size();
    }
    return result;
  }

  /// Eliminates v and passes the table to the first node of its set; returns its cost if there is
  /// none.
  double eliminate(int32_t v, const std::vector<int32_t>& unsorted) {
    const auto set = sorted_set(unsorted);
    size_t entries = 1;
    for (const int32_t u : set) entries *= model_.nodes[at(u)].cost.size();
    const size_t states = model_.nodes[at(v)].cost.size();
    auto& choices = choices_[at(v)];
    choices.set = set;
    if (states <= 65536)
      choices.narrow.resize(entries);
    else
      choices.wide.resize(entries);
    std::vector<Walk> walks;
    for (const auto& factor : buckets_[at(v)]) walks.push_back(walk(factor, set));
    std::vector<double> out(entries);
    // A row: all states of the innermost node of the set, the one with the smallest stride.
    const size_t row = set.empty() ? 1 : model_.nodes[at(set.back())].cost.size();
    const size_t rows = entries / row;
    constexpr size_t kWork = 1 << 18;
    const size_t chunk = std::max<size_t>(1, kWork / (row * states));
    const auto chunks = static_cast<int>((rows + chunk - 1) / chunk);
    const auto body = [&](int i, int) {
      deadline_.poll();
      const size_t begin = static_cast<size_t>(i) * chunk;
      fill_rows(v, set, walks, begin, std::min(rows, begin + chunk), out);
    };
    if (chunks == 1)
      body(0, 0);
    else
      pool_.parallel_for(chunks, body);
    buckets_[at(v)] = {};
    if (set.empty()) return out[0];
    buckets_[at(set.back())].push_back({set, std::move(out)});
    return 0;
  }

  /// Rows [begin, end) of the table of v. Factors that are constant along a row are added once.
  void fill_rows(int32_t v, const std::vector<int32_t>& set, const std::vector<Walk>& walks,
                 size_t begin, size_t end, std::vector<double>& out) {
    const auto& cost = model_.nodes[at(v)].cost;
    const size_t states = cost.size();
    const size_t row = set.empty() ? 1 : model_.nodes[at(set.back())].cost.size();
    auto& choices = choices_[at(v)];
    std::vector<double> base(states), sum(states);
    std::vector<Moving> moving;
    for (size_t r = begin; r < end; ++r) {
      base = cost;
      moving.clear();
      for (const auto& walk : walks) {
        const double* table = walk.table + row_offset(walk, set, r);
        if (!set.empty() && walk.stride.back() != 0)
          moving.push_back({table, walk.stride.back()});
        else
          for (size_t s = 0; s < states; ++s) base[s] += table[s];
      }
      for (size_t c = 0; c < row; ++c) {
        const double* values = base.data();
        for (const auto& factor : moving) {
          const double* table = factor.table + c * factor.step;
          for (size_t s = 0; s < states; ++s) sum[s] = values[s] + table[s];
          values = sum.data();
        }
        const auto best = static_cast<size_t>(std::min_element(values, values + states) - values);
        out[r * row + c] = values[best];
        if (choices.wide.empty())
          choices.narrow[r * row + c] = static_cast<uint16_t>(best);
        else
          choices.wide[r * row + c] = static_cast<int32_t>(best);
      }
    }
  }

  /// Start of a factor's values for row r, which counts the states of all nodes of the set but the
  /// last.
  size_t row_offset(const Walk& walk, const std::vector<int32_t>& set, size_t r) const {
    size_t offset = 0;
    for (size_t i = set.size(); i-- > 1;) {
      const size_t radix = model_.nodes[at(set[i - 1])].cost.size();
      offset += r % radix * walk.stride[i - 1];
      r /= radix;
    }
    return offset;
  }

  std::vector<int32_t> back_substitute() const {
    std::vector<int32_t> states(model_.nodes.size(), 0);
    for (size_t i = elimination_.order.size(); i-- > 0;) {
      const auto v = at(elimination_.order[i]);
      const auto& choices = choices_[v];
      size_t index = 0;
      for (const int32_t u : choices.set)
        index = index * model_.nodes[at(u)].cost.size() + at(states[at(u)]);
      states[v] = choices.wide.empty() ? choices.narrow[index] : choices.wide[index];
    }
    return states;
  }

  const SelectionModel& model_;
  const EliminationOrder& elimination_;
  ThreadPool& pool_;
  const Deadline& deadline_;
  std::vector<std::vector<Factor>> buckets_;
  std::vector<int32_t> position_;
  struct Choices {
    std::vector<int32_t> set;
    std::vector<uint16_t> narrow;  // best state by assignment of the set
    std::vector<int32_t> wide;     // the same for nodes of more than 65536 states
  };
  std::vector<Choices> choices_;
};

}  // namespace

EliminationOrder elimination_order(const std::vector<int32_t>& states,
                                   const std::vector<std::pair<int32_t, int32_t>>& edges,
                                   EliminationRule rule, double most) {
  return Planner(states, edges, rule).run(most);
}

double elimination_bytes(const EliminationOrder& elimination) {
  return elimination.peak_entries * sizeof(double) + elimination.table_entries * sizeof(int32_t);
}

ExactSelection eliminate(const SelectionModel& model, const EliminationOrder& elimination,
                         ThreadPool& pool, const std::function<void()>& tick,
                         const Deadline& deadline) {
  return Eliminator(model, elimination, pool, deadline).run(tick);
}

}  // namespace trinity
