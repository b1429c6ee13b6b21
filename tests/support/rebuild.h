#pragma once

#include <functional>
#include <memory>

#include "graph/graph.h"
#include "simulator/problem.h"

namespace trinity::test {

/// A builder with a graph under its own numbers, to be changed and built again.
inline GraphBuilder builder_of(const Graph& graph) {
  GraphBuilder builder(graph.name());
  for (const auto& op : graph.operators()) {
    auto bare = op;
    bare.inputs.clear();
    builder.add_operator(std::move(bare));
  }
  for (const auto& tensor : graph.tensors()) builder.add_output(tensor.producer, tensor);
  for (int32_t op = 0; op < graph.operator_count(); ++op)
    for (const int32_t input : graph.op(op).inputs) builder.read(op, input);
  for (int32_t unit = 0; unit < graph.unit_count(); ++unit)
    for (const int32_t member : graph.unit(unit)) builder.colocate(graph.unit(unit)[0], member);
  for (const auto& collective : graph.collectives()) builder.add_collective(collective);
  return builder;
}

/// The changed graph of `problem`, under the same rules on the same cluster description.
inline Problem changed(const Problem& problem, const ClusterSpec& spec,
                       const std::function<void(GraphBuilder&)>& change) {
  auto builder = builder_of(problem.graph());
  change(builder);
  return {std::make_shared<const Graph>(builder.build()), std::make_shared<const Cluster>(spec),
          problem.rules()};
}

}  // namespace trinity::test
