#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <span>

#include "base/error.h"
#include "base/index.h"
#include "search/pipeline/pipedream_states.h"

namespace trinity {
namespace {

/// Sets of operators are stored as rows of bits, one per operator.
constexpr int32_t kMostOperators = 20000, kMostAntichains = 4000;
/// A state holds all layers up to it: memory is quadratic in the length of a chain.
constexpr int32_t kMostChain = 4000;

/// Layers with their neighbours.
struct Neighbours {
  explicit Neighbours(const PipedreamLayers& from)
      : layers(from), inputs(at(from.count())), readers(at(from.count())) {
    for (const auto& [a, b] : from.edges) {
      inputs[b].push_back(a);
      readers[a].push_back(b);
    }
  }
  int32_t count() const { return layers.count(); }

  const PipedreamLayers& layers;
  std::vector<std::vector<int32_t>> inputs, readers;
};

/// Appends the indices of set bits, ascending.
void append_set(std::span<const uint64_t> words, std::vector<int32_t>& numbers) {
  size_t count = numbers.size();
  for (const uint64_t word : words) count += static_cast<size_t>(std::popcount(word));
  numbers.reserve(count);
  for (size_t w = 0; w < words.size(); ++w)
    for (uint64_t left = words[w]; left != 0; left &= left - 1)
      numbers.push_back(static_cast<int32_t>(w * 64) + std::countr_zero(left));
}

/// The sums of a state over its layers. Members are sorted as bits, because the lists of members
/// dominate a pipeline's cost.
PipedreamState state_of(const PipedreamLayers& layers, const std::vector<int32_t>& held) {
  PipedreamState state;
  std::vector<uint64_t> bits;
  for (const int32_t i : held) {
    for (const int32_t member : layers.members[i]) {
      if (at(member) / 64 >= bits.size()) bits.resize(at(member) / 64 + 1, 0);
      bits[at(member) / 64] |= uint64_t{1} << (member % 64);
    }
    state.time_s += layers.time_s[i];
    state.parameter_bytes += layers.parameter_bytes[i];
    state.activation_bytes += layers.output_bytes[i];
  }
  append_set(bits, state.layers);
  return state;
}

/// Enumerates the antichains of a graph as PipeDream's graph.antichain_dag() does.
class Antichains {
 public:
  Antichains(const Neighbours& layers, const Deadline& deadline)
      : layers_(layers), deadline_(deadline), words_(at(layers.count() + 63) / 64) {
    if (layers.count() > kMostOperators)
      throw LimitError("antichains of {} operators, more than the maximum of {}", layers.count(), kMostOperators);
    before_.assign(at(layers.count()) * words_, 0);
    open_.resize(at(layers.count()));
    for (int32_t i = 0; i < layers.count(); ++i)
      for (const int32_t from : layers.inputs[i]) {
        for (size_t w = 0; w < words_; ++w) row(i)[w] |= row(from)[w];
        row(i)[at(from) / 64] |= uint64_t{1} << (from % 64);
      }
  }

  std::vector<PipedreamState> run() {
    find({layers_.layers.source});
    for (size_t next = 0; next < found_.size(); ++next) {
      deadline_.poll();
      advance(static_cast<int32_t>(next));
    }
    return states();
  }

 private:
  using Set = std::vector<int32_t>;  // ascending

  uint64_t* row(int32_t i) { return before_.data() + at(i) * words_; }
  /// True if there is a path from `a` to `b`.
  bool leads(int32_t a, int32_t b) const {
    return before_[at(b) * words_ + at(a) / 64] >> (a % 64) & 1;
  }

  int32_t find(const Set& antichain) {
    const auto [entry, added] = number_.emplace(antichain, static_cast<int32_t>(found_.size()));
    if (added) {
      if (static_cast<int32_t>(found_.size()) == kMostAntichains)
        throw LimitError("more than {} antichains", kMostAntichains);
      found_.push_back(antichain);
      augmented_.push_back(augment(antichain));
      next_.emplace_back();
    }
    return entry->second;
  }

  /// Predecessors of a layer that have a reader outside the paths to it.
  const Set& open_before(int32_t member) {
    auto& known = open_[member];
    if (known) return *known;
    known.emplace();
    for (size_t w = 0; w < words_; ++w)
      for (uint64_t left = row(member)[w]; left != 0; left &= left - 1) {
        const auto i = static_cast<int32_t>(w * 64) + std::countr_zero(left);
        const auto is_beside = [&](int32_t reader) {
          return reader != member && !leads(reader, member);
        };
        const auto& readers = layers_.readers[i];
        if (std::any_of(readers.begin(), readers.end(), is_beside)) known->push_back(i);
      }
    return *known;
  }

  /// Adds these for all members.
  Set augment(const Set& antichain) {
    Set all = antichain;
    for (const int32_t member : antichain) {
      const auto& open = open_before(member);
      all.insert(all.end(), open.begin(), open.end());
    }
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
  }

  /// Adds all antichains with one operator of the augmented one advanced to a reader.
  void advance(int32_t state) {
    const Set antichain = found_[state], augmented = augmented_[state];
    for (const int32_t member : augmented)
      for (const int32_t reader : layers_.readers[member]) {
        if (std::binary_search(antichain.begin(), antichain.end(), reader)) continue;
        const auto is_behind = [&](int32_t other) { return leads(reader, other); };
        if (std::any_of(augmented.begin(), augmented.end(), is_behind)) continue;
        Set moved;
        for (const int32_t other : augmented) moved.push_back(other == member ? reader : other);
        const int32_t next = find(without_predecessors(moved));
        next_[state].push_back(next);
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

  /// The layers up to an antichain.
  Set held_by(const Set& antichain) const {
    std::vector<uint64_t> bits(words_, 0);
    for (const int32_t member : antichain) {
      for (size_t w = 0; w < words_; ++w) bits[w] |= before_[at(member) * words_ + w];
      bits[at(member) / 64] |= uint64_t{1} << (member % 64);
    }
    Set held;
    append_set(bits, held);
    return held;
  }

  /// The states in order of size, and their precedence.
  std::vector<PipedreamState> states() {
    std::vector<PipedreamState> all;
    for (size_t s = 0; s < found_.size(); ++s) {
      deadline_.poll();
      all.push_back(state_of(layers_.layers, held_by(found_[s])));
      for (const int32_t i : augmented_[s])
        all.back().output_bytes += layers_.layers.output_bytes[i];
    }
    std::vector<int32_t> order(all.size()), place(all.size());
    for (size_t s = 0; s < all.size(); ++s) order[s] = static_cast<int32_t>(s);
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
      return all[a].layers.size() < all[b].layers.size();
    });
    for (size_t s = 0; s < order.size(); ++s) place[order[s]] = static_cast<int32_t>(s);
    std::vector<PipedreamState> sorted;
    for (const int32_t s : order) sorted.push_back(std::move(all[s]));
    const size_t words = sorted.size() / 64 + 1;
    std::vector<uint64_t> before(sorted.size() * words, 0);
    for (size_t s = 0; s < sorted.size(); ++s)
      for (const int32_t next : next_[order[s]]) {
        const size_t reached = at(place[next]) * words;
        for (size_t w = 0; w < words; ++w) before[reached + w] |= before[s * words + w];
        before[reached + s / 64] |= uint64_t{1} << (s % 64);
      }
    for (size_t s = 0; s < sorted.size(); ++s)
      append_set({before.data() + s * words, words}, sorted[s].before);
    return sorted;
  }

  const Neighbours& layers_;
  const Deadline& deadline_;
  size_t words_;
  std::vector<uint64_t> before_;
  std::map<Set, int32_t> number_;
  std::vector<std::optional<Set>> open_;  // [layer], on demand
  std::vector<Set> found_, augmented_;
  std::vector<std::vector<int32_t>> next_;
};

/// `most` states of the layers in their order, with equal numbers of layers between them.
std::vector<PipedreamState> states_in_order(const PipedreamLayers& layers, int32_t most,
                                            const Deadline& deadline) {
  std::vector<int32_t> last_reader(at(layers.count()), -1);
  for (const auto& [a, b] : layers.edges) last_reader[a] = std::max(last_reader[a], b);
  std::vector<PipedreamState> states;
  std::vector<int32_t> held;
  for (int32_t i = 0; i < layers.count(); ++i) {
    held.push_back(i);
    if (int64_t{i + 1} * most / layers.count() == int64_t{i} * most / layers.count()) continue;
    deadline.poll();
    auto state = state_of(layers, held);
    for (const int32_t h : held)
      if (last_reader[h] > i) state.output_bytes += layers.output_bytes[h];
    for (size_t b = 0; b < states.size(); ++b) state.before.push_back(static_cast<int32_t>(b));
    states.push_back(std::move(state));
  }
  return states;
}

}  // namespace

PipedreamLayers compress_branches(const PipedreamLayers& layers) {
  const Neighbours graph(layers);
  std::vector<int32_t> chain(at(layers.count()), -1);  // [layer]: the first layer of its chain
  for (int32_t i = 0; i < layers.count(); ++i) {
    if (graph.inputs[i].size() != 1) continue;
    const int32_t from = graph.inputs[i][0];
    // A chain begins after a branch and continues while nothing joins or leaves it.
    if (graph.readers[from].size() > 1)
      chain[i] = i;
    else
      chain[i] = chain[from];
  }
  PipedreamLayers made;
  std::vector<int32_t> number(at(layers.count()));
  for (int32_t i = 0; i < layers.count(); ++i) {
    const bool merged = chain[i] >= 0 && chain[i] != i;
    const int32_t layer = merged ? number[chain[i]] : made.count();
    number[i] = layer;
    if (!merged) {
      made.members.emplace_back();
      made.time_s.push_back(0);
      made.parameter_bytes.push_back(0);
      made.output_bytes.push_back(0);
    }
    auto& members = made.members[layer];
    members.insert(members.end(), layers.members[i].begin(), layers.members[i].end());
    made.time_s[layer] += layers.time_s[i];
    made.parameter_bytes[layer] += layers.parameter_bytes[i];
    made.output_bytes[layer] = layers.output_bytes[i];
  }
  for (const auto& [a, b] : layers.edges)
    if (number[a] != number[b]) made.edges.emplace_back(number[a], number[b]);
  std::sort(made.edges.begin(), made.edges.end());
  made.edges.erase(std::unique(made.edges.begin(), made.edges.end()), made.edges.end());
  made.source = number[layers.source];
  return made;
}

std::vector<PipedreamState> pipedream_states(const PipedreamLayers& layers,
                                             const Deadline& deadline) {
  const Neighbours graph(layers);
  auto states = Antichains(graph, deadline).run();
  size_t members = 0;
  for (const auto& list : layers.members) members += list.size();
  if (states.back().layers.size() == members) return states;
  // Layers that no path from the first source reaches are added at the end.
  std::vector<int32_t> all(at(layers.count()));
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int32_t>(i);
  auto last = state_of(layers, all);
  for (size_t s = 0; s < states.size(); ++s) last.before.push_back(static_cast<int32_t>(s));
  states.push_back(std::move(last));
  return states;
}

std::vector<PipedreamState> pipedream_chain(const PipedreamLayers& layers,
                                            const Deadline& deadline) {
  if (layers.count() > kMostChain)
    throw LimitError("PipeDream's optimiser: a chain of {} operators, more than the maximum of {}", layers.count(),
                     kMostChain);
  return states_in_order(layers, layers.count(), deadline);
}

std::vector<PipedreamState> pipedream_few(const PipedreamLayers& layers, int32_t most) {
  return states_in_order(layers, std::clamp(most, 1, layers.count()), {});
}

}  // namespace trinity
