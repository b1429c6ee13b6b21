#include "graph/deadlock.h"

#include <algorithm>

#include "base/error.h"

namespace trinity {
namespace {

/// The graph in which a collective is one node: node numbers are those of the operators, then of
/// the collectives.
class Contraction {
 public:
  Contraction(const std::vector<Operator>& operators, const std::vector<Tensor>& tensors,
              const std::vector<Collective>& collectives)
      : operators_(operators),
        tensors_(tensors),
        collectives_(collectives),
        missing_(operators.size() + collectives.size(), 0),
        readers_(operators.size() + collectives.size()) {
    for (size_t i = 0; i < operators.size(); ++i)
      for (const int32_t tensor : operators[i].inputs) {
        readers_[node(producer(tensor))].push_back(node(i));
        ++missing_[node(i)];
      }
  }

  /// Takes away everything that can run; returns whether nothing is left.
  bool run() {
    std::vector<size_t> ready;
    for (size_t i = 0; i < missing_.size(); ++i)
      if (missing_[i] == 0) ready.push_back(i);
    while (!ready.empty()) {
      const size_t at = ready.back();
      ready.pop_back();
      for (const size_t reader : readers_[at])
        if (--missing_[reader] == 0) ready.push_back(reader);
    }
    return std::all_of(missing_.begin(), missing_.end(), [](int32_t m) { return m == 0; });
  }

  struct Members {
    int32_t collective;
    size_t leaving, entering;  // operators
  };

  /// After run() has left something: walks backwards along what is blocked until the walk closes.
  /// In its loop some collective is entered by one member and left by another, since the operators
  /// alone have no cycle.
  Members blocked() const {
    std::vector<Step> steps;
    std::vector<int32_t> seen(missing_.size(), -1);
    size_t at = 0;
    while (missing_[at] == 0) ++at;
    while (seen[at] < 0) {
      seen[at] = static_cast<int32_t>(steps.size());
      steps.push_back(blocked_input(at));
      at = node(steps.back().producer);
    }
    const auto first = static_cast<size_t>(seen[at]);
    for (size_t i = first; i < steps.size(); ++i) {
      const size_t leaving = steps[i].producer;
      const size_t entering = steps[i + 1 < steps.size() ? i + 1 : first].reader;
      if (leaving != entering) return {operators_[leaving].collective, leaving, entering};
    }
    throw Error("the operators of a graph form a cycle");
  }

 private:
  /// An input that cannot arrive, of one operator of a node.
  struct Step {
    size_t producer, reader;
  };

  size_t producer(int32_t tensor) const {
    return static_cast<size_t>(tensors_[static_cast<size_t>(tensor)].producer);
  }
  size_t node(size_t op) const {
    const int32_t collective = operators_[op].collective;
    return collective < 0 ? op : operators_.size() + static_cast<size_t>(collective);
  }

  Step blocked_input(size_t at) const {
    const auto blocked = [&](size_t op) {
      const auto& inputs = operators_[op].inputs;
      return std::find_if(inputs.begin(), inputs.end(),
                          [&](int32_t tensor) { return missing_[node(producer(tensor))] > 0; });
    };
    if (at < operators_.size()) return {producer(*blocked(at)), at};
    for (const int32_t member : collectives_[at - operators_.size()].members) {
      const auto op = static_cast<size_t>(member);
      if (const auto input = blocked(op); input != operators_[op].inputs.end())
        return {producer(*input), op};
    }
    throw Error("a blocked collective has no blocked input");
  }

  const std::vector<Operator>& operators_;
  const std::vector<Tensor>& tensors_;
  const std::vector<Collective>& collectives_;
  std::vector<int32_t> missing_;              // per node: inputs that have not arrived
  std::vector<std::vector<size_t>> readers_;  // per node
};

}  // namespace

void check_deadlock(const std::string& graph, const std::vector<Operator>& operators,
                    const std::vector<Tensor>& tensors,
                    const std::vector<Collective>& collectives) {
  if (collectives.empty()) return;
  Contraction contraction(operators, tensors, collectives);
  if (contraction.run()) return;
  const auto found = contraction.blocked();
  throw ArgumentError(fmt::format(
      "graph '{}': collective '{}' waits for itself: its member '{}' needs what its member '{}' "
      "gives out",
      graph, collectives[static_cast<size_t>(found.collective)].name,
      operators[found.entering].name, operators[found.leaving].name));
}

}  // namespace trinity
