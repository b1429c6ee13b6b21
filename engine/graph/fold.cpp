#include "graph/fold.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"

namespace trinity {
namespace {

template <class T>
T attribute(const Operator& op, const char* name, T fallback) {
  const auto found = op.attributes.find(name);
  const auto* value = found == op.attributes.end() ? nullptr : std::get_if<T>(&found->second);
  return value ? *value : fallback;
}

double step_time_s(const Operator& op) {
  if (op.measured_time_s < 0)
    throw ArgumentError(
        fmt::format("fold_backward: operator '{}' has no measured time; use the graph of a profile",
                    op.name));
  return op.measured_time_s + std::max(0.0, op.measured_backward_time_s) +
         attribute(op, "loader_time_s", 0.0);
}

}  // namespace

Graph fold_backward(const Graph& forward) {
  if (forward.has_backward() || !forward.collectives().empty())
    throw ArgumentError(
        fmt::format("fold_backward: graph '{}' is a whole training step, expected a forward graph",
                    forward.name()));
  std::vector<int32_t> order(static_cast<size_t>(forward.operator_count()));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return attribute(forward.op(a), "file_position", int64_t{a}) <
           attribute(forward.op(b), "file_position", int64_t{b});
  });
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
