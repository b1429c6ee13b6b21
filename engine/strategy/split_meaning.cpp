#include "strategy/split_meaning.h"

#include <algorithm>

#include "base/error.h"

namespace trinity {
namespace {

/// The mean over a part's rows, as a share of that over all; what is the same in several parts
/// counts once.
void state_loss(const Graph& graph, const SplitLayout& layout, int32_t op, int32_t part,
                const std::vector<int32_t>& coupled, Operator& made) {
  const auto& labels = graph.tensor(graph.op(op).inputs.at(1));
  const auto& cut = layout.cut(op);
  const auto own = block_elements(layout.needed(op, 1, part));
  made.attributes["mean_share"] =
      static_cast<double>(own) / static_cast<double>(std::max<int64_t>(1, labels.elements()));
  int64_t same = cut.factors().back();
  for (const int32_t dimension : coupled) {
    same *= cut.factors()[dimension];
    made.attributes["classes"] = cut.space().dimensions[at(dimension)].size;
  }
  made.attributes["counts"] = 1.0 / static_cast<double>(same);
}

}  // namespace

std::vector<int64_t> begins(const Block& block) {
  std::vector<int64_t> list;
  for (const auto& range : block) list.push_back(range.begin);
  return list;
}

std::vector<int64_t> begins(const Block& block, const Block& within) {
  auto list = begins(block);
  for (size_t i = 0; i < list.size() && i < within.size(); ++i) list[i] -= within[i].begin;
  return list;
}

void state_block(Operator& op, const Block& block, const std::vector<int64_t>& shape) {
  if (block.empty() || block == whole_block(shape)) return;
  op.attributes["block_begin"] = begins(block);
  op.attributes["block_whole"] = shape;
}

void state_range(Operator& op, const Block& block, const Block& within) {
  std::vector<int64_t> axes, starts, ends;
  for (size_t i = 0; i < block.size(); ++i) {
    if (block[i] == within[i]) continue;
    axes.push_back(static_cast<int64_t>(i));
    starts.push_back(block[i].begin - within[i].begin);
    ends.push_back(block[i].end - within[i].begin);
  }
  op.attributes["axes"] = std::move(axes);
  op.attributes["starts"] = std::move(starts);
  op.attributes["ends"] = std::move(ends);
}

void state_part(const Graph& graph, const SplitLayout& layout, int32_t op, int32_t part,
                const std::vector<int32_t>& coupled, Operator& made) {
  const auto& original = graph.op(op);
  const auto& cut = layout.cut(op);
  if (original.phase != Phase::forward) return;
  if (!original.outputs.empty())
    state_block(made, layout.written(op, 0, part), graph.tensor(original.outputs[0]).shape);
  if (!original.inputs.empty()) made.attributes["input_begin"] = begins(layout.needed(op, 0, part));
  for (size_t i = 0; i < original.parameters.size(); ++i) {
    const auto& shape = original.parameters[i].shape;
    const Block block = cut.block(shape, cut.space().parameters[i], part);
    if (block == whole_block(shape)) continue;
    made.attributes[fmt::format("weight{}_begin", i)] = begins(block);
    made.attributes[fmt::format("weight{}_whole", i)] = shape;
  }
  const auto coordinates = cut.coordinates(part);
  int64_t term = 0;
  const auto summed = original.outputs.empty() ? std::vector<int32_t>() : layout.summed(op, 0);
  for (const int32_t dimension : summed) term = std::max<int64_t>(term, coordinates[dimension]);
  if (!summed.empty()) made.attributes["term"] = term;
  if (original.type == "SoftmaxCrossEntropyLoss")
    state_loss(graph, layout, op, part, coupled, made);
}

void state_reduction(const Operator& part, const std::string& reduction, Operator& member) {
  member.attributes["reduction"] = reduction;
  for (const char* name : {"mean_share", "counts"}) {
    const auto found = part.attributes.find(name);
    if (found != part.attributes.end()) member.attributes[name] = found->second;
  }
}

}  // namespace trinity
