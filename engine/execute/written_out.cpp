#include <map>

#include "execute/run_layout.h"

namespace trinity {
namespace {

/// Adds tensors for the parts that go to other devices, if any.
class PartTensors {
 public:
  PartTensors(const Graph& graph, const RunLayout& layout, GraphBuilder& builder)
      : graph_(graph), layout_(layout), builder_(builder) {}

  /// Returns the tensor that an operator reads in place of another one.
  int32_t read(int32_t op, int32_t tensor) {
    const auto& of = graph_.op(op);
    const int32_t producer = graph_.tensor(tensor).producer;
    const bool here = layout_.device_of(producer) == layout_.device_of(op);
    if (of.collective < 0 || !needs_part(of) || here) return tensor;
    const auto [found, is_new] = parts_.try_emplace(tensor, -1);
    if (is_new) {
      const auto members =
          static_cast<int64_t>(graph_.collectives()[of.collective].members.size());
      Tensor part;
      part.name = graph_.tensor(tensor).name + "/part";
      part.bytes = (graph_.tensor(tensor).bytes + members - 1) / members;
      found->second = builder_.add_output(producer, std::move(part));
    }
    return found->second;
  }

 private:
  const Graph& graph_;
  const RunLayout& layout_;
  GraphBuilder& builder_;
  std::map<int32_t, int32_t> parts_;  // by tensor
};

}  // namespace

bool needs_part(const Operator& member) {
  return member.type == "ReduceScatter" || member.type.starts_with("AllToAll");
}

WrittenOut write_out(const Graph& graph, const RunLayout& layout) {
  GraphBuilder builder(graph);
  builder.take_collectives();
  PartTensors parts(graph, layout, builder);
  for (int32_t op = 0; op < graph.operator_count(); ++op) builder.op(op).inputs.clear();
  for (int32_t op = 0; op < graph.operator_count(); ++op)
    for (const int32_t input : layout.reads(op)) builder.read(op, parts.read(op, input));
  WrittenOut result;
  result.graph = builder.build(&result.origin);
  std::vector<int32_t> number(result.origin.size());
  for (size_t op = 0; op < result.origin.size(); ++op)
    number[result.origin[op]] = static_cast<int32_t>(op);
  for (int32_t device = 0; device < layout.devices(); ++device) {
    auto& order = result.order.emplace_back();
    for (const int32_t task : layout.queue(device))
      order.push_back(layout.task(layout.micro_batch_of(task), number[layout.operator_of(task)]));
  }
  return result;
}

}  // namespace trinity
