#include "graph/subgraph.h"

#include "base/error.h"
#include "base/index.h"

namespace trinity {

Subgraph subgraph(const Graph& graph, const std::vector<bool>& keep, bool sources) {
  GraphBuilder builder(graph.name());
  std::vector<int32_t> number(at(graph.operator_count()), -1), kept;
  std::vector<int32_t> tensor(graph.tensors().size(), -1);
  const auto add_source = [&](int32_t left_out) {
    Operator source;
    source.name = graph.op(left_out).name + "/outside";
    source.type = "Input";
    const int32_t made = builder.add_operator(std::move(source));
    kept.push_back(-1);
    for (const int32_t output : graph.op(left_out).outputs)
      tensor[output] = builder.add_output(made, graph.tensor(output));
  };
  for (int32_t o = 0; o < graph.operator_count(); ++o) {
    if (!keep[o]) continue;
    for (const int32_t input : graph.op(o).inputs)
      if (sources && tensor[input] < 0) add_source(graph.tensor(input).producer);
    Operator copy = graph.op(o);
    copy.inputs.clear();
    number[o] = builder.add_operator(std::move(copy));
    kept.push_back(o);
    for (const int32_t input : graph.op(o).inputs) {
      if (tensor[input] < 0)
        throw ArgumentError(fmt::format("operator '{}' reads '{}', which is not in the subgraph",
                                        graph.op(o).name, graph.tensor(input).name));
      builder.read(number[o], tensor[input]);
    }
    for (const int32_t output : graph.op(o).outputs)
      tensor[output] = builder.add_output(number[o], graph.tensor(output));
  }
  for (size_t made = 0; made < kept.size(); ++made) {
    if (kept[made] < 0) continue;
    if (const int32_t forward = graph.op(kept[made]).forward; forward >= 0)
      builder.op(static_cast<int32_t>(made)).forward = number[forward];
  }
  for (int32_t unit = 0; unit < graph.unit_count(); ++unit) {
    int32_t lead = -1;
    for (const int32_t o : graph.unit(unit)) {
      if (number[o] < 0) continue;
      if (lead >= 0) builder.colocate(lead, number[o]);
      lead = number[o];
    }
  }
  Subgraph result;
  for (size_t c = 0; c < graph.collectives().size(); ++c) {
    Collective copy = graph.collectives()[c];
    std::erase_if(copy.members, [&](int32_t member) { return number[member] < 0; });
    if (copy.members.empty()) continue;
    for (int32_t& member : copy.members) member = number[member];
    builder.add_collective(std::move(copy));
    result.collective.push_back(static_cast<int32_t>(c));
  }
  std::vector<int32_t> numbers;
  result.graph = builder.build(&numbers);
  for (const int32_t made : numbers) result.origin.push_back(kept[made]);
  return result;
}

}  // namespace trinity
