#include "graph/recompute.h"

#include <algorithm>
#include <map>
#include <string>

#include "base/error.h"
#include "base/index.h"
#include "graph/meaning.h"

namespace trinity {
namespace {

constexpr const char* kSuffix = "/recompute";

class Recomputation {
 public:
  Recomputation(const Graph& graph, std::span<const int32_t> stage, const RecomputeOptions& options)
      : graph_(graph),
        stage_(stage),
        options_(options),
        builder_(graph.name()),
        id_(at(graph.operator_count()), -1),
        copy_(at(graph.operator_count()), -1),
        tensor_(graph.tensors().size(), -1),
        again_(graph.tensors().size(), -1) {}

  DerivedGraph run() {
    find_stages();
    builder_.reserve(at(graph_.operator_count()), graph_.tensors().size());
    for (int32_t op = 0; op < graph_.operator_count(); ++op) {
      if (graph_.op(op).phase == Phase::backward) add_copies(stage_[op]);
      add_original(op);
    }
    for (int32_t op = 0; op < graph_.operator_count(); ++op) connect(op);
    builder_.colocate_as(graph_, id_);
    add_collectives();
    return finish();
  }

 private:
  /// Operators that a stage repeats, and the first gradient that arrives there, by device.
  struct Stage {
    std::vector<int32_t> repeated;
    std::map<int32_t, int32_t> gates;
    bool added = false;
  };

  int32_t device(int32_t op) const { return options_.device.empty() ? 0 : options_.device[op]; }

  void find_stages() {
    for (int32_t op = 0; op < graph_.operator_count(); ++op) {
      const auto& about = graph_.op(op);
      const int32_t s = stage_[op];
      if (about.phase != Phase::backward || s < 0) continue;
      auto& entry = stages_[s];
      for (const int32_t input : about.inputs) {
        const int32_t from = graph_.tensor(input).producer;
        const bool gradient = graph_.op(from).phase == Phase::backward && stage_[from] != s;
        if (!gradient) continue;
        int32_t& gate = entry.gates.emplace(device(op), input).first->second;
        gate = std::min(gate, input);
      }
    }
    for (int32_t op = 0; op < graph_.operator_count(); ++op) {
      const auto& about = graph_.op(op);
      const auto found = stages_.find(stage_[op]);
      if (about.phase == Phase::forward && !about.inputs.empty() && found != stages_.end())
        found->second.repeated.push_back(op);
    }
  }

  void add_original(int32_t op) {
    Operator added = graph_.op(op);
    added.inputs.clear();
    if (added.forward >= 0) added.forward = id_[added.forward];
    id_[op] = builder_.add_operator(std::move(added));
    origin_.push_back(op);
    for (const int32_t output : graph_.op(op).outputs)
      tensor_[output] = builder_.add_output(id_[op], graph_.tensor(output));
  }

  /// Added before the first backward operator of the stage, so that they stay there if several
  /// orders are possible.
  void add_copies(int32_t s) {
    const auto found = stages_.find(s);
    if (found == stages_.end() || found->second.added) return;
    found->second.added = true;
    for (const int32_t op : found->second.repeated) {
      Operator copy = graph_.op(op);
      copy.name += kSuffix;
      copy.phase = Phase::backward;
      copy.inputs.clear();
      copy.parameters.clear();
      copy.extra_parameter_bytes = copy.persistent_bytes = 0;
      copy.measured_backward_time_s = -1;
      copy.forward = id_[op];
      if (has_meaning(copy)) copy.attributes["replay"] = int64_t{1};
      copy_[op] = builder_.add_operator(std::move(copy));
      origin_.push_back(op);
      builder_.colocate(id_[op], copy_[op]);
      for (const int32_t output : graph_.op(op).outputs) {
        Tensor tensor = graph_.tensor(output);
        tensor.name += kSuffix;
        again_[output] = builder_.add_output(copy_[op], std::move(tensor));
      }
    }
  }

  bool repeated_in(int32_t tensor, int32_t s) const {
    return again_[tensor] >= 0 && stage_[graph_.tensor(tensor).producer] == s;
  }

  void connect(int32_t op) {
    const auto& about = graph_.op(op);
    const int32_t s = stage_[op];
    for (const int32_t input : about.inputs) {
      const bool second = about.phase == Phase::backward && repeated_in(input, s);
      builder_.read(id_[op], second ? again_[input] : tensor_[input]);
    }
    if (copy_[op] < 0) return;
    bool first = true;  // it reads no other copy
    for (const int32_t input : about.inputs) {
      const bool second = repeated_in(input, s);
      first = first && !second;
      builder_.read(copy_[op], second ? again_[input] : tensor_[input]);
    }
    const auto& gates = stages_.at(s).gates;
    const auto gate = gates.find(device(op));
    if (first && gate != gates.end() && !options_.eager)
      builder_.read(copy_[op], tensor_[gate->second]);
  }

  void add_collectives() {
    for (const auto& collective : graph_.collectives()) {
      Collective same = collective, again = collective;
      for (int32_t& member : same.members) member = id_[member];
      builder_.add_collective(std::move(same));
      for (int32_t& member : again.members) member = copy_[member];
      const auto missing = std::count(again.members.begin(), again.members.end(), -1);
      if (missing == static_cast<std::ptrdiff_t>(again.members.size())) continue;
      if (missing > 0)
        throw ArgumentError(fmt::format(
            "recomputing graph '{}': only some members of collective '{}' would be recomputed",
            graph_.name(), collective.name));
      again.name += kSuffix;
      builder_.add_collective(std::move(again));
    }
  }

  DerivedGraph finish() {
    DerivedGraph result;
    std::vector<int32_t> numbers;
    result.graph = builder_.build(&numbers);
    for (const int32_t number : numbers) result.origin.push_back(origin_[number]);
    return result;
  }

  const Graph& graph_;
  std::span<const int32_t> stage_;
  const RecomputeOptions& options_;
  GraphBuilder builder_;
  std::map<int32_t, Stage> stages_;      // those with backward operators
  std::vector<int32_t> id_, copy_;       // in the builder, per operator; -1 without a copy
  std::vector<int32_t> tensor_, again_;  // in the builder, per tensor; -1 without a copy
  std::vector<int32_t> origin_;          // per operator of the builder
};

}  // namespace

bool is_recomputed(const Operator& op) {
  return op.phase == Phase::backward && op.name.find(kSuffix) != std::string::npos;
}

DerivedGraph recompute(const Graph& graph, std::span<const int32_t> stage,
                     const RecomputeOptions& options) {
  if (stage.size() != at(graph.operator_count()))
    throw ArgumentError(
        fmt::format("recomputing graph '{}': expected the stages of {} operators, "
                    "got {}",
                    graph.name(), graph.operator_count(), stage.size()));
  if (!graph.has_backward())
    throw ArgumentError(
        fmt::format("recomputing graph '{}': it has no backward operators", graph.name()));
  return Recomputation(graph, stage, options).run();
}

}  // namespace trinity
