#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/stop.h"
#include "search/pipedream_split.h"

namespace trinity {
namespace {

/// Sets of operators are kept as rows of bits, one an operator.
constexpr int32_t kMostOperators = 20000;
/// States hold all layers up to them: memory grows by the square of a chain.
constexpr int32_t kMostChain = 4000;

size_t at(int32_t i) { return static_cast<size_t>(i); }

/// The operators that take part, with their times and neighbours.
struct Layers {
  std::vector<int32_t> ops;  // ascending; all below are positions in it
  std::vector<std::vector<int32_t>> readers, inputs;
  std::vector<double> time_s, parameter_bytes, output_bytes;

  explicit Layers(const Graph& graph) {
    if (graph.has_backward())
      throw ArgumentError("PipeDream's optimiser takes a forward graph, not a training step");
    const auto position = choose(graph);
    readers.resize(ops.size());
    inputs.resize(ops.size());
    for (size_t i = 0; i < ops.size(); ++i) {
      const auto& op = graph.op(ops[i]);
      if (!op.measured())
        throw ArgumentError(fmt::format(
            "PipeDream's optimiser needs measured times; operator '{}' has none", op.name));
      time_s.push_back(op.measured_time_s + std::max(0.0, op.measured_backward_time_s));
      parameter_bytes.push_back(static_cast<double>(op.parameter_bytes()));
      double bytes = 0;
      for (const int32_t tensor : op.outputs)
        bytes += static_cast<double>(graph.tensor(tensor).bytes);
      output_bytes.push_back(bytes);
      for (const int32_t tensor : op.inputs)
        if (const int32_t from = position[at(graph.tensor(tensor).producer)]; from >= 0)
          inputs[i].push_back(from);
      std::sort(inputs[i].begin(), inputs[i].end());
      inputs[i].erase(std::unique(inputs[i].begin(), inputs[i].end()), inputs[i].end());
      for (const int32_t from : inputs[i]) readers[at(from)].push_back(static_cast<int32_t>(i));
    }
  }

  int32_t count() const { return static_cast<int32_t>(ops.size()); }

 private:
  /// Fills ops; returns the position of every operator, -1 for those that take no part.
  std::vector<int32_t> choose(const Graph& graph) {
    std::vector<int32_t> position(at(graph.operator_count()), -1);
    for (int32_t o = 0; o < graph.operator_count(); ++o) {
      const auto& op = graph.op(o);
      const auto description = op.attributes.find("description");
      const auto* text = description == op.attributes.end()
                             ? nullptr
                             : std::get_if<std::string>(&description->second);
      const bool unread = boost::out_degree(o, graph.csr()) == 0;
      if (op.type == "Input" && op.inputs.empty()) continue;
      if (text && text->rfind("__getitem__", 0) == 0 && unread) continue;
      position[at(o)] = static_cast<int32_t>(ops.size());
      ops.push_back(o);
    }
    if (ops.empty()) throw ArgumentError("PipeDream's optimiser: no operator takes part");
    return position;
  }
};

/// The sums of a state over the layers that it holds.
PipedreamState state_of(const Layers& layers, const std::vector<int32_t>& held) {
  PipedreamState state;
  for (const int32_t i : held) {
    state.layers.push_back(layers.ops[at(i)]);
    state.time_s += layers.time_s[at(i)];
    state.parameter_bytes += layers.parameter_bytes[at(i)];
    state.activation_bytes += layers.output_bytes[at(i)];
  }
  return state;
}

/// Walks the antichains of a graph as PipeDream's graph.antichain_dag() does.
class Antichains {
 public:
  Antichains(const Layers& layers, int32_t most_states)
      : layers_(layers), most_states_(most_states), words_(at(layers.count() + 63) / 64) {
    if (layers.count() > kMostOperators)
      throw LimitError(fmt::format("antichains of {} operators; at most {} are taken",
                                   layers.count(), kMostOperators));
    before_.assign(at(layers.count()) * words_, 0);
    for (int32_t i = 0; i < layers.count(); ++i)
      for (const int32_t from : layers.inputs[at(i)]) {
        for (size_t w = 0; w < words_; ++w) row(i)[w] |= row(from)[w];
        row(i)[at(from) / 64] |= uint64_t{1} << (from % 64);
      }
  }

  std::vector<PipedreamState> run() {
    int32_t source = 0;
    while (!layers_.inputs[at(source)].empty()) ++source;
    find({source});
    for (size_t next = 0; next < found_.size(); ++next) {
      poll_stop();
      advance(static_cast<int32_t>(next));
    }
    return states();
  }

 private:
  using Set = std::vector<int32_t>;  // ascending

  uint64_t* row(int32_t i) { return before_.data() + at(i) * words_; }
  /// Whether `a` leads to `b`.
  bool leads(int32_t a, int32_t b) const {
    return before_[at(b) * words_ + at(a) / 64] >> (a % 64) & 1;
  }

  int32_t find(const Set& antichain) {
    const auto [entry, added] = number_.emplace(antichain, static_cast<int32_t>(found_.size()));
    if (added) {
      if (static_cast<int32_t>(found_.size()) == most_states_)
        throw LimitError(fmt::format("more than {} antichains", most_states_));
      found_.push_back(antichain);
      augmented_.push_back(augment(antichain));
      next_.emplace_back();
    }
    return entry->second;
  }

  /// With every operator before a member that has a reader beside the way to that member.
  Set augment(const Set& antichain) const {
    Set all = antichain;
    for (const int32_t member : antichain)
      for (int32_t i = 0; i < layers_.count(); ++i) {
        if (!leads(i, member)) continue;
        for (const int32_t reader : layers_.readers[at(i)])
          if (reader != member && !leads(reader, member)) {
            all.push_back(i);
            break;
          }
      }
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
  }

  /// All antichains with one operator of the augmented one moved on to a reader.
  void advance(int32_t state) {
    const Set antichain = found_[at(state)], augmented = augmented_[at(state)];
    for (const int32_t member : augmented)
      for (const int32_t reader : layers_.readers[at(member)]) {
        if (std::binary_search(antichain.begin(), antichain.end(), reader)) continue;
        const auto is_behind = [&](int32_t other) { return leads(reader, other); };
        if (std::any_of(augmented.begin(), augmented.end(), is_behind)) continue;
        Set moved;
        for (const int32_t other : augmented) moved.push_back(other == member ? reader : other);
        const int32_t next = find(without_predecessors(moved));
        next_[at(state)].push_back(next);
      }
  }

  Set without_predecessors(const Set& set) const {
    Set kept;
    for (const int32_t a : set)
      if (std::none_of(set.begin(), set.end(), [&](int32_t b) { return leads(a, b); }))
        kept.push_back(a);
    std::sort(kept.begin(), kept.end());
    kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
    return kept;
  }

  /// The states in order of size, and what is before what.
  std::vector<PipedreamState> states() {
    std::vector<PipedreamState> all;
    for (size_t s = 0; s < found_.size(); ++s) {
      Set held;
      for (int32_t i = 0; i < layers_.count(); ++i)
        if (std::any_of(found_[s].begin(), found_[s].end(),
                        [&](int32_t member) { return i == member || leads(i, member); }))
          held.push_back(i);
      all.push_back(state_of(layers_, held));
      for (const int32_t i : augmented_[s]) all.back().output_bytes += layers_.output_bytes[at(i)];
    }
    std::vector<int32_t> order(all.size()), place(all.size());
    for (size_t s = 0; s < all.size(); ++s) order[s] = static_cast<int32_t>(s);
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
      return all[at(a)].layers.size() < all[at(b)].layers.size();
    });
    for (size_t s = 0; s < order.size(); ++s) place[at(order[s])] = static_cast<int32_t>(s);
    std::vector<PipedreamState> sorted;
    for (const int32_t s : order) sorted.push_back(std::move(all[at(s)]));
    std::vector<std::vector<bool>> before(sorted.size(), std::vector<bool>(sorted.size(), false));
    for (size_t s = 0; s < sorted.size(); ++s)
      for (const int32_t next : next_[at(order[s])]) {
        auto& reached = before[at(place[at(next)])];
        for (size_t b = 0; b < s; ++b) reached[b] = reached[b] || before[s][b];
        reached[s] = true;
      }
    for (size_t s = 0; s < sorted.size(); ++s)
      for (size_t b = 0; b < s; ++b)
        if (before[s][b]) sorted[s].before.push_back(static_cast<int32_t>(b));
    return sorted;
  }

  const Layers& layers_;
  int32_t most_states_;
  size_t words_;
  std::vector<uint64_t> before_;
  std::map<Set, int32_t> number_;
  std::vector<Set> found_, augmented_;
  std::vector<std::vector<int32_t>> next_;
};

}  // namespace

std::vector<PipedreamState> pipedream_states(const Graph& forward, int32_t most_states) {
  const Layers layers(forward);
  auto states = Antichains(layers, most_states).run();
  if (states.back().layers.size() == layers.ops.size()) return states;
  // Operators that no path from the first source reaches join at the end.
  std::vector<int32_t> all(layers.ops.size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int32_t>(i);
  auto last = state_of(layers, all);
  for (size_t s = 0; s < states.size(); ++s) last.before.push_back(static_cast<int32_t>(s));
  states.push_back(std::move(last));
  return states;
}

std::vector<PipedreamState> pipedream_chain(const Graph& forward) {
  const Layers layers(forward);
  if (layers.count() > kMostChain)
    throw LimitError(
        fmt::format("PipeDream's optimiser: a chain of {} operators; at most {} are "
                    "taken",
                    layers.count(), kMostChain));
  std::vector<PipedreamState> states;
  std::vector<int32_t> held;
  for (int32_t i = 0; i < layers.count(); ++i) {
    held.push_back(i);
    auto state = state_of(layers, held);
    for (const int32_t h : held)
      if (!layers.readers[at(h)].empty() && layers.readers[at(h)].back() > i)
        state.output_bytes += layers.output_bytes[at(h)];
    for (int32_t b = 0; b < i; ++b) state.before.push_back(b);
    states.push_back(std::move(state));
  }
  return states;
}

}  // namespace trinity
