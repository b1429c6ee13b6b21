#include "graph/replicas.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <unordered_map>

#include "base/error.h"
#include "base/free_aside.h"

namespace trinity {
namespace {

/// Gradients that are reduced together.
struct Bucket {
  std::vector<int32_t> gradients;  // tensors of the original graph, ascending
  int64_t bytes = 0;
};

class Replication {
 public:
  Replication(const Graph& graph, int32_t replicas, const ReplicaOptions& options)
      : graph_(graph), replicas_(replicas), options_(options), builder_(graph.name()) {}

  Replicated run() {
    const AsideOnStop aside(reduced_, number_);
    find_gradients();
    fill_buckets();
    for (int32_t replica = 0; replica < replicas_; ++replica) copy(replica);
    copy_collectives();
    for (size_t k = 0; k < buckets_.size(); ++k) add_all_reduce(k);
    for (int32_t replica = 0; replica < replicas_; ++replica) connect_updates(replica);
    return finish();
  }

 private:
  /// Number in the builder of the copy of an operator or tensor: copies come first, replica by
  /// replica, in the order of the graph (which numbers tensors as their producers).
  int32_t copy_of(int32_t op, int32_t replica) const {
    return replica * graph_.operator_count() + op;
  }
  int32_t tensor_of(int32_t tensor, int32_t replica) const {
    return replica * static_cast<int32_t>(graph_.tensors().size()) + tensor;
  }
  std::string name_of(const std::string& name, int32_t replica) const {
    return fmt::format("{}@{}", name, replica);
  }
  const Operator& producer(int32_t tensor) const {
    return graph_.op(graph_.tensor(tensor).producer);
  }

  void find_gradients() {
    is_gradient_.assign(graph_.tensors().size(), false);
    for (const auto& op : graph_.operators())
      for (const int32_t input : op.inputs)
        if (op.phase == Phase::update && producer(input).phase == Phase::backward)
          is_gradient_[static_cast<size_t>(input)] = true;
  }

  /// Tensors are in the order of their producers.
  void fill_buckets() {
    std::map<int32_t, size_t> open;  // by device or unit
    for (size_t t = 0; t < is_gradient_.size(); ++t) {
      if (!is_gradient_[t]) continue;
      const auto& tensor = graph_.tensors()[t];
      const int32_t place = options_.device_of.empty()
                                ? graph_.op(tensor.producer).unit
                                : options_.device_of[static_cast<size_t>(tensor.producer)];
      const auto found = open.find(place);
      if (found == open.end() ||
          buckets_[found->second].bytes + tensor.bytes > options_.bucket_bytes) {
        open[place] = buckets_.size();
        buckets_.emplace_back();
      }
      auto& bucket = buckets_[open[place]];
      bucket.gradients.push_back(static_cast<int32_t>(t));
      bucket.bytes += tensor.bytes;
    }
  }

  /// Updates get their inputs later, see connect_updates().
  void copy(int32_t replica) {
    for (const auto& op : graph_.operators()) {
      Operator added = op;
      added.name = name_of(op.name, replica);
      added.inputs.clear();
      if (op.phase != Phase::update)
        for (const int32_t input : op.inputs) added.inputs.push_back(tensor_of(input, replica));
      if (op.forward >= 0) added.forward = copy_of(op.forward, replica);
      const int32_t id = builder_.add_operator(std::move(added));
      for (const int32_t output : op.outputs) {
        Tensor tensor = graph_.tensor(output);
        tensor.name = name_of(tensor.name, replica);
        builder_.add_output(id, std::move(tensor));
      }
    }
    for (int32_t unit = 0; unit < graph_.unit_count(); ++unit)
      for (const int32_t member : graph_.unit(unit))
        builder_.colocate(copy_of(graph_.unit(unit)[0], replica), copy_of(member, replica));
  }

  void copy_collectives() {
    for (int32_t replica = 0; replica < replicas_; ++replica)
      for (Collective collective : graph_.collectives()) {
        collective.name = name_of(collective.name, replica);
        for (int32_t& member : collective.members) member = copy_of(member, replica);
        builder_.add_collective(std::move(collective));
      }
  }

  bool one_unit(const Bucket& bucket) const {
    return std::all_of(bucket.gradients.begin(), bucket.gradients.end(), [&](int32_t gradient) {
      return producer(gradient).unit == producer(bucket.gradients[0]).unit;
    });
  }

  void add_all_reduce(size_t k) {
    const Bucket& bucket = buckets_[k];
    Collective collective;
    collective.name = fmt::format("all_reduce{}", k);
    collective.algorithm = options_.algorithm;
    collective.bytes = bucket.bytes;
    for (int32_t replica = 0; replica < replicas_; ++replica) {
      Operator member;
      member.name = name_of(collective.name, replica);
      member.type = "AllReduce";
      member.phase = Phase::update;
      member.traffic_bytes = 0;
      for (const int32_t gradient : bucket.gradients)
        member.inputs.push_back(tensor_of(gradient, replica));
      const int32_t id = builder_.add_operator(std::move(member));
      for (const int32_t gradient : bucket.gradients) {
        Tensor reduced = graph_.tensor(gradient);
        reduced.name = name_of(reduced.name + "/reduced", replica);
        reduced_[{gradient, replica}] = builder_.add_output(id, std::move(reduced));
      }
      if (one_unit(bucket))
        builder_.colocate(id, copy_of(graph_.tensor(bucket.gradients[0]).producer, replica));
      collective.members.push_back(id);
    }
    builder_.add_collective(std::move(collective));
  }

  void connect_updates(int32_t replica) {
    poll_stop();
    for (int32_t op = 0; op < graph_.operator_count(); ++op) {
      if (graph_.op(op).phase != Phase::update) continue;
      for (const int32_t input : graph_.op(op).inputs)
        builder_.read(copy_of(op, replica), is_gradient_[static_cast<size_t>(input)]
                                                ? reduced_.at({input, replica})
                                                : tensor_of(input, replica));
    }
  }

  /// Building renumbers the operators; their names tell where they come from.
  Replicated finish() {
    const int32_t copies = replicas_ * graph_.operator_count();
    StopPoll stop;
    for (int32_t id = 0; id < builder_.operator_count(); ++id, stop.step())
      number_.emplace(builder_.op(id).name, id);
    Replicated result;
    result.graph = builder_.build();
    const AsideOnStop aside(result.graph);
    for (const auto& op : result.graph.operators()) {
      stop.step();
      const int32_t id = number_.at(op.name);
      result.origin.push_back(id < copies ? id % graph_.operator_count() : -1);
      result.replica.push_back(id < copies ? id / graph_.operator_count()
                                           : (id - copies) % replicas_);
    }
    return result;
  }

  const Graph& graph_;
  int32_t replicas_;
  const ReplicaOptions& options_;
  GraphBuilder builder_;
  std::vector<bool> is_gradient_;  // per tensor
  std::vector<Bucket> buckets_;
  std::map<std::pair<int32_t, int32_t>, int32_t> reduced_;  // by gradient and replica
  std::unordered_map<std::string, int32_t> number_;         // of an operator in the builder
};

void check_options(const Graph& graph, int32_t replicas, const ReplicaOptions& options) {
  const auto owner = fmt::format("replicating graph '{}'", graph.name());
  if (replicas < 1)
    throw ArgumentError(fmt::format("{}: expected at least 1 replica, got {}", owner, replicas));
  if (options.bucket_bytes < 1)
    throw ArgumentError(
        fmt::format("{}: bucket_bytes must be at least 1, got {}", owner, options.bucket_bytes));
  const auto count = static_cast<size_t>(graph.operator_count());
  if (!options.device_of.empty() && options.device_of.size() != count)
    throw ArgumentError(fmt::format("{}: expected the devices of {} operators, got {}", owner,
                                    count, options.device_of.size()));
  const auto copies = static_cast<size_t>(replicas);
  if (copies * count > kMaxOperators ||
      copies * graph.tensors().size() > std::numeric_limits<int32_t>::max())
    throw LimitError(fmt::format("{}: {} copies of {} operators are more than {}", owner, replicas,
                                 count, kMaxOperators));
}

}  // namespace

Replicated replicate(const Graph& graph, int32_t replicas, const ReplicaOptions& options) {
  check_options(graph, replicas, options);
  if (replicas > 1) return Replication(graph, replicas, options).run();
  Replicated result{graph, {}, {}};
  result.origin.resize(static_cast<size_t>(graph.operator_count()));
  std::iota(result.origin.begin(), result.origin.end(), 0);
  result.replica.assign(result.origin.size(), 0);
  return result;
}

}  // namespace trinity
