#include "graph/subgraph.h"

#include "base/index.h"

namespace trinity {

Subgraph subgraph(const Graph& graph, const std::vector<bool>& keep, bool sources) {
  GraphBuilder builder(graph);
  std::vector<int32_t> source(keep.size(), -1);
  const auto add_source = [&](int32_t left_out, int32_t before) {
    Operator made;
    made.name = graph.op(left_out).name + "/outside";
    made.type = "Input";
    source[at(left_out)] = builder.add_operator(std::move(made));
    builder.put_before(before, source[at(left_out)]);
    for (const int32_t output : graph.op(left_out).outputs) builder.move_output(output, source[at(left_out)]);
  };
  for (int32_t o = 0; o < graph.operator_count(); ++o) {
    if (!keep[at(o)]) builder.remove(o);
    for (const int32_t input : graph.op(o).inputs) {
      const int32_t from = graph.tensor(input).producer;
      if (sources && keep[at(o)] && !keep[at(from)] && source[at(from)] < 0) add_source(from, o);
    }
  }
  Subgraph result;
  auto collectives = builder.take_collectives();
  for (size_t c = 0; c < collectives.size(); ++c) {
    std::erase_if(collectives[c].members, [&](int32_t member) { return !keep[at(member)]; });
    if (collectives[c].members.empty()) continue;
    builder.add_collective(std::move(collectives[c]));
    result.collective.push_back(static_cast<int32_t>(c));
  }
  result.graph = builder.build(&result.origin);
  for (int32_t& op : result.origin)
    if (op >= graph.operator_count()) op = -1;
  return result;
}

}  // namespace trinity
