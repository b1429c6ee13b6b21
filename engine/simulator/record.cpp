#include "simulator/record.h"

#include <algorithm>

namespace trinity {

void Record::begin(const Problem& problem, const Plan& plan, bool limited) {
  const auto placement = plan.placement;
  const Schedule* schedule = plan.schedule;
  micro_batches = schedule ? schedule->runs() : 1;
  stream = schedule && schedule->stream > 0;
  weight_versions = {};
  if (schedule) weight_versions = schedule->weight_versions;
  run_end_ns.assign(stream ? static_cast<size_t>(micro_batches) : 0, 0);
  const auto n = static_cast<size_t>(problem.operators());
  const auto d_count = static_cast<size_t>(plan.devices(problem));
  const size_t all = n * static_cast<size_t>(micro_batches);
  devices.assign(d_count, {});
  for (size_t d = 0; d < d_count; ++d)
    devices[d].cost_ns = problem.costs(plan.cluster_device(static_cast<int32_t>(d))).data();
  step_ns = last_ns = 0;
  transfers = 0;
  rejected = swept = false;
  copy_count = 0;
  order.clear();
  collectives.clear();
  if (limited)
    for (size_t o = 0; o < n; ++o) {
      auto& device = devices[placement[o]];
      const bool once = micro_batches == 1 || (!stream && problem.once(static_cast<int32_t>(o)));
      device.remaining_ns += device.cost_ns[o] * (once ? 1 : micro_batches);
    }
  if (!tasks) return;
  first_position.assign(d_count + 1, 0);
  const bool members = !problem.graph().collectives().empty();
  for (size_t o = 0; o < n; ++o) {
    const auto op = static_cast<int32_t>(o);
    if (members && problem.graph().op(op).collective >= 0) continue;
    first_position[static_cast<size_t>(placement[o]) + 1] +=
        micro_batches == 1 || (!stream && problem.once(op)) ? 1 : micro_batches;
  }
  start_at.resize(all + 2 * d_count);
  for (size_t d = 0; d < d_count; ++d) {
    const int32_t first = first_position[d], count = first_position[d + 1];
    first_position[d + 1] = first + std::max(count, 1) + 1;
    if (count == 0) start_at[first] = 0;
  }
  position.resize(all);
  order.reserve(all);
  if (times) {
    ready_ns.assign(all, -1);
    end_ns.assign(all, -1);
  }
}

}  // namespace trinity
