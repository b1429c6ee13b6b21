#include "simulator/memory_bound.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/index.h"
#include "base/stop.h"
#include "base/units.h"

namespace trinity {
namespace {

/// Minimum bytes that a tensor takes on a reader's device: its own, or the bytes of the tensor that
/// it views. `storage` receives the original tensor of a chain of views.
int64_t least_bytes(const Problem& problem, const std::vector<int32_t>& producers, int32_t output,
                    int32_t& storage) {
  int64_t bytes = problem.held_bytes()[output];
  storage = output;
  for (;;) {
    const int32_t op = producers[storage];
    if (problem.first_output(op) != storage || problem.alias(op) < 0) return bytes;
    storage = problem.alias(op);
    bytes = std::min(bytes, problem.held_bytes()[storage]);
  }
}

/// Bytes that an operator holds in its slot, wherever it and its inputs are: workspace, inputs
/// (views of one tensor once), outputs (0 for a view of an input).
class OperatorMemory {
 public:
  explicit OperatorMemory(const Problem& problem) : problem_(problem) {
    producers_.resize(at(problem.outputs()));
    for (int32_t o = 0; o < problem.operators(); ++o)
      for (int32_t i = problem.first_output(o); i < problem.first_output(o + 1); ++i)
        producers_[i] = o;
  }

  int64_t bytes(int32_t op) {
    const auto& graph = problem_.graph();
    int64_t sum = graph.op(op).collective < 0 ? graph.op(op).workspace_bytes : 0;
    for (int32_t i = problem_.first_output(op); i < problem_.first_output(op + 1); ++i)
      if (i != problem_.first_output(op) || problem_.alias(op) < 0) sum += problem_.held_bytes()[i];
    if (problem_.rules().broadcast) return sum;  // only the first receiver holds the copy
    const bool last_of_instant = graph.op(op).collective >= 0 || problem_.least_cost_ns(op) > 0;
    inputs_.clear();
    for (const int32_t tensor : graph.op(op).inputs) {
      const int32_t producer = graph.tensor(tensor).producer;
      const int32_t number = tensor - graph.op(producer).outputs.front();
      Input input;
      input.bytes = least_bytes(problem_, producers_, problem_.first_output(producer) + number,
                                input.storage);
      if (last_of_instant || !may_begin_later(input.storage, input.bytes))
        inputs_.push_back(input);
    }
    std::sort(inputs_.begin(), inputs_.end(), [](const Input& a, const Input& b) {
      return a.storage != b.storage ? a.storage < b.storage : a.bytes > b.bytes;
    });
    for (size_t i = 0; i < inputs_.size(); ++i)
      if (i == 0 || inputs_[i].storage != inputs_[i - 1].storage) sum += inputs_[i].bytes;
    return sum;
  }

 private:
  /// True if an input of an operator that takes no time may begin in a later slot: an output of a
  /// collective that takes no time, or a copy that is received in no time.
  bool may_begin_later(int32_t storage, int64_t bytes) const {
    return problem_.graph().op(producers_[storage]).collective >= 0 ||
           problem_.tables().takes_no_time(bytes);
  }

  struct Input {
    int32_t storage = -1;
    int64_t bytes = 0;
  };
  const Problem& problem_;
  std::vector<int32_t> producers_;  // [output]
  std::vector<Input> inputs_;
};

/// Bytes that must exist when an operator starts (see peak_memory_bound()), without fixed bytes.
class InstantMemory {
 public:
  InstantMemory(const Problem& problem, bool runs_differ)
      : problem_(problem), runs_differ_(runs_differ) {
    origin_.resize(at(problem.outputs()));
    bytes_.resize(at(problem.outputs()));
    accumulates_.assign(at(problem.outputs()), false);
    for (int32_t o = 0; runs_differ && o < problem.operators(); ++o)
      for (const auto& reader : problem.readers(o))
        if (!problem.once(o) && problem.once(reader.op))
          accumulates_[at(problem.first_output(o) + reader.output)] = true;
    for (int32_t o = 0; o < problem.operators(); ++o) {
      const bool member = problem.graph().op(o).collective >= 0;
      for (int32_t i = problem.first_output(o); i < problem.first_output(o + 1); ++i) {
        const bool view =
            i == problem.first_output(o) && problem.alias(o) >= 0 && !accumulates_[at(i)];
        origin_[i] = view ? origin_[problem.alias(o)] : i;
        bytes_[i] = member ? 0 : problem.held_bytes()[i];
      }
    }
    counted_.assign(at(problem.outputs()), -1);  // -1: not counted yet
    state_.resize(at(problem.operators()));
  }

  int64_t bytes(int32_t op) {
    mark(op);
    ++round_;
    int64_t sum = problem_.graph().op(op).workspace_bytes;
    for (int32_t o = 0; o <= op; ++o) {
      if (state_[o] != State::before) continue;
      for (const auto& reader : problem_.readers(o)) {
        const int32_t output = problem_.first_output(o) + reader.output;
        if (state_[reader.op] == State::after && binds(o, reader.op) && keeps(output, reader.op))
          sum += count(output);
      }
    }
    for (int32_t i = problem_.first_output(op); i < problem_.first_output(op + 1); ++i)
      sum += count(i);
    return sum;
  }

  /// True if an edge imposes an order in every run of the graph.
  bool binds(int32_t from, int32_t to) const {
    return !runs_differ_ || !problem_.once(from) || problem_.once(to);
  }

 private:
  enum class State : uint8_t { aside, before, after };

  /// True if an output exists until a reader starts. Outputs that accumulate over micro-batches,
  /// and views of them, exist until readers that run once; other readers may come later
  /// (simulator.h).
  bool keeps(int32_t output, int32_t reader) const {
    return !accumulates_[at(origin_[output])] || (origin_[output] == output && problem_.once(reader));
  }

  /// Marks ancestors of an operator as `before`, itself and its descendants as `after`.
  void mark(int32_t op) {
    std::fill(state_.begin(), state_.end(), State::aside);
    state_[op] = State::before;  // so that its ancestors are found
    for (int32_t o = op - 1; o >= 0; --o)
      for (const auto& reader : problem_.readers(o))
        if (reader.op <= op && state_[reader.op] == State::before && binds(o, reader.op)) {
          state_[o] = State::before;
          break;
        }
    state_[op] = State::after;
    for (int32_t o = op; o < problem_.operators(); ++o) {
      if (state_[o] != State::after) continue;
      for (const auto& reader : problem_.readers(o))
        if (binds(o, reader.op)) state_[reader.op] = State::after;
    }
  }

  /// A tensor's bytes, or 0 if it or another view of it was counted in this round.
  int64_t count(int32_t output) {
    const int32_t origin = origin_[output];
    if (counted_[origin] == round_) return 0;
    counted_[origin] = round_;
    return bytes_[origin];
  }

  const Problem& problem_;
  const bool runs_differ_;        // some operators run once, others in every micro-batch
  std::vector<int32_t> origin_;   // [output]: original tensor of a chain of views
  std::vector<int64_t> bytes_;    // [output that is not a view]
  std::vector<bool> accumulates_;  // [output]: over micro-batches
  std::vector<int32_t> counted_;  // [original tensor]: last round in which it was counted
  int32_t round_ = -1;
  std::vector<State> state_;
};

/// Operators that occupy a device along the path that writes the most bytes.
std::vector<int32_t> heaviest_path(const Problem& problem, const InstantMemory& memory) {
  std::vector<int64_t> weight(at(problem.operators()), 0);
  std::vector<int32_t> next(at(problem.operators()), -1);
  int32_t start = 0;
  for (int32_t o = problem.operators() - 1; o >= 0; --o) {
    auto& mine = weight[o];
    for (const auto& reader : problem.readers(o))
      if (weight[reader.op] > mine && memory.binds(o, reader.op)) {
        mine = weight[reader.op];
        next[o] = reader.op;
      }
    mine += 1;  // ties: the longer path
    for (int32_t i = problem.first_output(o); i < problem.first_output(o + 1); ++i)
      mine += problem.held_bytes()[i];
    if (mine >= weight[start]) start = o;
  }
  std::vector<int32_t> path;
  for (int32_t o = start; o >= 0; o = next[o])
    if (problem.graph().op(o).collective < 0) path.push_back(o);
  return path;
}

/// Searches for the largest instant among candidate operators.
class InstantSearch {
 public:
  InstantSearch(const Problem& problem, bool runs_differ) : memory_(problem, runs_differ) {
    path_ = heaviest_path(problem, memory_);
  }

  /// Tries `tries` operators of the path, equally spaced, then ever closer to the best.
  void along_path(size_t tries) {
    if (path_.empty()) return;
    size_t step = path_.size() / tries + 1, middle = 0;
    int64_t most = -1;
    const auto try_place = [&](size_t place) {
      if (place >= path_.size()) return;
      const int64_t bytes = try_operator(path_[place]);
      if (bytes > most) most = bytes, middle = place;
    };
    for (size_t place = 0; place < path_.size(); place += step) try_place(place);
    while (step > 1) {
      step /= 2;
      const size_t from = middle;
      try_place(from + step);
      if (from >= step) try_place(from - step);
    }
  }

  int64_t try_operator(int32_t op) {
    poll_stop();
    const int64_t bytes = memory_.bytes(op);
    most_ = std::max(most_, bytes);
    return bytes;
  }

  int64_t most() const { return most_; }

 private:
  InstantMemory memory_;
  std::vector<int32_t> path_;
  int64_t most_ = 0;
};

int64_t bound_slots(const Problem& problem, bool runs_differ) {
  std::vector<int64_t> unit_fixed(at(problem.graph().unit_count()), 0);
  const auto units = problem.graph().units();
  int64_t fixed = 0;
  for (int32_t o = 0; o < problem.operators(); ++o) {
    fixed += problem.fixed_bytes(o);
    unit_fixed[units[o]] += problem.fixed_bytes(o);
  }
  int64_t most = 0;
  OperatorMemory memory(problem);
  std::vector<std::pair<int64_t, int32_t>> largest;  // by their own need
  for (int32_t o = 0; o < problem.operators(); ++o) {
    const int64_t bytes = memory.bytes(o);
    most = std::max(most, unit_fixed[units[o]] + bytes);
    if (problem.graph().op(o).collective < 0) largest.emplace_back(-bytes, o);
  }
  const size_t tries = problem.operators() <= 100000 ? 16 : 4;
  const size_t tried = std::min(tries, largest.size());
  std::partial_sort(largest.begin(), largest.begin() + static_cast<std::ptrdiff_t>(tried),
                    largest.end());
  InstantSearch search(problem, runs_differ);
  search.along_path(tries);
  for (size_t i = 0; i < tried; ++i) search.try_operator(largest[i].second);
  const int64_t together = fixed + search.most();
  return problem.framework_bytes() +
         std::max(most, together / problem.devices() + (together % problem.devices() > 0 ? 1 : 0));
}

/// The published rules release a tensor 1 us before its last reader ends, even if that precedes its
/// allocation. Such a release cannot hide the outputs of an operator of at least 1 us, because it
/// comes after that operator's start. If no operator can release that early, all count.
int64_t bound_outputs(const Problem& problem) {
  constexpr int64_t kEarlyNs = 1000;
  bool early = false;
  int64_t all = 0, of_long_ones = 0;
  for (int32_t o = 0; o < problem.operators(); ++o) {
    int64_t bytes = 0, reader_ns = 0;
    for (int32_t i = problem.first_output(o); i < problem.first_output(o + 1); ++i)
      bytes += problem.all_output_bytes()[i];
    for (const auto& reader : problem.readers(o))
      reader_ns = std::max(reader_ns, problem.least_cost_ns(reader.op));
    const int64_t cost = problem.least_cost_ns(o);
    early = early || (!problem.readers(o).empty() && bytes > 0 && cost + reader_ns < kEarlyNs);
    all = std::max(all, bytes);
    if (cost >= kEarlyNs) of_long_ones = std::max(of_long_ones, bytes);
  }
  return early ? of_long_ones : all;
}

}  // namespace

void check_memory(const Problem& problem) {
  const auto& graph = problem.graph();
  const auto& cluster = problem.cluster();
  int64_t largest = 0, together = 0, fixed = 0;
  for (int32_t d = 0; d < problem.devices(); ++d) {
    const int64_t room = cluster.capacity_bytes(d) - problem.framework_bytes(d);
    largest = std::max(largest, room);
    together += room;
  }
  std::vector<int64_t> unit_fixed(at(graph.unit_count()), 0);
  OperatorMemory memory(problem);
  for (int32_t o = 0; o < problem.operators(); ++o) {
    fixed += problem.fixed_bytes(o);
    auto& unit = unit_fixed[graph.op(o).unit];
    unit += problem.fixed_bytes(o);
    const int64_t alone = unit + memory.bytes(o);
    if (alone > largest)
      throw LimitError("graph '{}' does not fit: operator '{}' alone needs {} and the largest device of cluster '{}' "
                       "has {}", graph.name(), graph.op(o).name, format_bytes(alone), cluster.name(),
                       format_bytes(largest));
  }
  if (fixed > together)
    throw LimitError("graph '{}' does not fit: weights and optimiser state need {} and all {} devices of cluster '{}' "
                     "together have {}", graph.name(), format_bytes(fixed), problem.devices(), cluster.name(),
                     format_bytes(together));
}

int64_t peak_memory_bound(const Problem& problem, int32_t micro_batches, bool stream) {
  switch (problem.rules().memory) {
    case MemoryModel::slots:
      return bound_slots(problem, micro_batches > 1 && !stream);
    case MemoryModel::outputs_only:
      return bound_outputs(problem);
    case MemoryModel::none:
      break;
  }
  return 0;
}

}  // namespace trinity
