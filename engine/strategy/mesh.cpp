#include "strategy/mesh.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/index.h"
#include "base/words.h"

namespace trinity {
void check_fields(const Synchronisation& given) {
  const auto refuse = [&](const char* field, const char* kinds) {
    throw ArgumentError("sync: field '{}' needs kind {}, got {}", field, kinds, choice_name(given.kind));
  };
  if (given.inner != 1 && !given.in_runs()) refuse("inner", "hierarchical or daso");
  if (given.every != 1 && !given.seldom()) refuse("every", "local_sgd or daso");
  if (given.servers != 1 && given.kind != Synchronise::parameter_server)
    refuse("servers", "parameter_server");
  if (given.asynchronous && given.kind != Synchronise::parameter_server &&
      given.kind != Synchronise::daso)
    refuse("asynchronous", "parameter_server or daso");
}

int64_t Mesh::device_count() const {
  int64_t count = 1;
  for (const int32_t size : {data, tensor, pipeline, context, placement})
    count = size > 0 && count > kMaxDevices / size ? kMaxDevices : count * size;
  return count;
}

int32_t Mesh::device(int32_t stage, int32_t replica, int32_t part) const {
  const std::array<int32_t, kAxes> size = {tensor, context,       placement,
                                            expert, data / expert, pipeline};
  const std::array<int32_t, kAxes> at = {part % tensor,    part / tensor % context, part / parts(),
                                          replica % expert, replica / expert,        stage};
  int32_t rank = 0, stride = 1;
  const auto add = [&](size_t axis) {
    rank += at[axis] * stride;
    stride *= size[axis];
  };
  for (const Axis axis : order) add(static_cast<size_t>(axis));
  for (size_t i = 0; i < kAxes; ++i)
    if (std::find(order.begin(), order.end(), static_cast<Axis>(i)) == order.end()) add(i);
  return devices.empty() ? rank : devices[static_cast<size_t>(rank)];
}

}  // namespace trinity
