#include "graph/fold.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "graph/meaning.h"

namespace trinity {
namespace {

double step_time_s(const Operator& op) {
  if (op.measured_time_s < 0)
    throw ArgumentError("fold_backward: operator '{}' has no measured time; use the graph of a profile", op.name);
  return op.measured_time_s + std::max(0.0, op.measured_backward_time_s) +
         number_attribute(op, "loader_time_s", 0);
}

}  // namespace

Graph fold_backward(const Graph& forward) {
  if (forward.has_backward() || !forward.collectives().empty())
    throw ArgumentError("fold_backward: graph '{}' is a whole training step, expected a forward graph", forward.name());
  std::vector<int32_t> order(static_cast<size_t>(forward.operator_count()));
  std::iota(order.begin(), order.end(), 0);
  const auto position = [&](int32_t op) { return integer_attribute(forward.op(op).attributes, "file_position", op); };
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return position(a) < position(b); });
  GraphBuilder builder(forward);
  for (const int32_t o : order) {
    auto& op = builder.op(o);
    op.measured_time_s = step_time_s(op);
    op.measured_backward_time_s = -1;
    builder.put_before(0, o);
  }
  return builder.build();
}

}  // namespace trinity
