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
  Recomputation(Graph graph, std::span<const int32_t> stage, const RecomputeOptions& options)
      : stage_(stage),
        options_(options),
        builder_(std::move(graph)),
        operators_(builder_.operator_count()),
        copy_(at(operators_), -1),
        again_(at(builder_.tensor_count()), -1) {}

  DerivedGraph run() {
    find_stages();
    for (int32_t op = 0; op < operators_; ++op)
      if (builder_.op(op).phase == Phase::backward) add_copies(stage_[op], op);
    for (int32_t op = 0; op < operators_; ++op) connect(op);
    add_collectives();
    return builder_.derive(origin_);
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
    for (int32_t op = 0; op < operators_; ++op) {
      const auto& about = builder_.op(op);
      const int32_t s = stage_[op];
      if (about.phase != Phase::backward || s < 0) continue;
      auto& entry = stages_[s];
      for (const int32_t input : about.inputs) {
        const int32_t from = builder_.tensor(input).producer;
        const bool gradient = builder_.op(from).phase == Phase::backward && stage_[from] != s;
        if (!gradient) continue;
        int32_t& gate = entry.gates.emplace(device(op), input).first->second;
        gate = std::min(gate, input);
      }
    }
    for (int32_t op = 0; op < operators_; ++op) {
      const auto& about = builder_.op(op);
      const auto found = stages_.find(stage_[op]);
      if (about.phase == Phase::forward && !about.inputs.empty() && found != stages_.end())
        found->second.repeated.push_back(op);
    }
  }

  /// Added before the first backward operator of the stage, so that they stay there if several
  /// orders are possible.
  void add_copies(int32_t s, int32_t before) {
    const auto found = stages_.find(s);
    if (found == stages_.end() || found->second.added) return;
    found->second.added = true;
    for (const int32_t op : found->second.repeated) {
      Operator copy = builder_.op(op);
      copy.name += kSuffix;
      copy.phase = Phase::backward;
      copy.inputs.clear();
      copy.parameters.clear();
      copy.extra_parameter_bytes = copy.persistent_bytes = 0;
      copy.measured_backward_time_s = -1;
      copy.forward = op;
      if (has_meaning(copy)) copy.attributes["replay"] = int64_t{1};
      copy_[op] = builder_.add_operator(std::move(copy));
      origin_.push_back(op);
      builder_.put_before(before, copy_[op]);
      builder_.colocate(op, copy_[op]);
      for (const int32_t output : builder_.op(op).outputs) {
        Tensor tensor = builder_.tensor(output);
        tensor.name += kSuffix;
        again_[output] = builder_.add_output(copy_[op], std::move(tensor));
      }
    }
  }

  bool repeated_in(int32_t tensor, int32_t s) const {
    return again_[tensor] >= 0 && stage_[builder_.tensor(tensor).producer] == s;
  }

  void connect(int32_t op) {
    auto& about = builder_.op(op);
    const int32_t s = stage_[op];
    if (about.phase == Phase::backward)
      for (int32_t& input : about.inputs)
        if (repeated_in(input, s)) input = again_[input];
    if (copy_[op] < 0) return;
    bool first = true;  // it reads no other copy
    for (const int32_t input : about.inputs) {
      const bool second = repeated_in(input, s);
      first = first && !second;
      builder_.read(copy_[op], second ? again_[input] : input);
    }
    const auto& gates = stages_.at(s).gates;
    const auto gate = gates.find(device(op));
    if (first && gate != gates.end() && !options_.eager) builder_.read(copy_[op], gate->second);
  }

  void add_collectives() {
    for (auto& collective : builder_.take_collectives()) {
      Collective again = collective;
      builder_.add_collective(std::move(collective));
      for (int32_t& member : again.members) member = copy_[member];
      const auto missing = std::count(again.members.begin(), again.members.end(), -1);
      if (missing == static_cast<std::ptrdiff_t>(again.members.size())) continue;
      if (missing > 0)
        throw ArgumentError("recomputing graph '{}': only some members of collective '{}' would be recomputed",
                            builder_.name(), again.name);
      again.name += kSuffix;
      builder_.add_collective(std::move(again));
    }
  }

  std::span<const int32_t> stage_;
  const RecomputeOptions& options_;
  GraphBuilder builder_;
  int32_t operators_;                // of the graph
  std::map<int32_t, Stage> stages_;  // those with backward operators
  std::vector<int32_t> copy_;        // [operator of the graph], or -1
  std::vector<int32_t> again_;       // [tensor of the graph]: its copy, or -1
  std::vector<int32_t> origin_;      // [copy]
};

}  // namespace

bool is_recomputed(const Operator& op) {
  return op.phase == Phase::backward && op.name.find(kSuffix) != std::string::npos;
}

DerivedGraph recompute(Graph graph, std::span<const int32_t> stage, const RecomputeOptions& options) {
  if (stage.size() != at(graph.operator_count()))
    throw ArgumentError("recomputing graph '{}': expected the stages of {} operators, got {}", graph.name(),
                        graph.operator_count(), stage.size());
  if (!graph.has_backward())
    throw ArgumentError("recomputing graph '{}': it has no backward operators", graph.name());
  return Recomputation(std::move(graph), stage, options).run();
}

}  // namespace trinity
