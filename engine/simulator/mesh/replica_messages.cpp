#include "simulator/mesh/replica_messages.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/index.h"

namespace trinity {
namespace {

/// Devices of a stage in every `every`-th replica: of its first `width` devices one per part of the sequence.
std::vector<int32_t> replicas(const Mesh& mesh, int32_t stage, int32_t width, int32_t every) {
  std::vector<int32_t> devices;
  for (int32_t r = 0; r < mesh.data; r += every)
    for (int32_t part = 0; part < width; part += mesh.tensor) devices.push_back(mesh.device(stage, r, part));
  std::sort(devices.begin(), devices.end());
  return devices;
}

/// True if rings over these groups leave their common device through a common queue.
bool share_queue(const Problem& problem, const std::vector<int32_t>& a, const std::vector<int32_t>& b,
                 int32_t device) {
  const auto next = [&](const std::vector<int32_t>& ring) {
    const auto found = std::upper_bound(ring.begin(), ring.end(), device);
    return found == ring.end() ? ring.front() : *found;
  };
  const int32_t to = next(a), other = next(b);
  if (problem.rules().queue == QueueModel::sender || to == other) return true;
  if (problem.rules().queue == QueueModel::pair || to == device || other == device) return false;
  for (const int32_t channel : problem.cluster().route(device, to))
    for (const int32_t another : problem.cluster().route(device, other))
      if (channel == another) return true;
  return false;
}

}  // namespace

ReplicaMessages::ReplicaMessages(const Problem& problem, const Mesh& mesh, CollectiveGroups& groups) {
  for (int32_t s = 0; s < mesh.pipeline; ++s) {
    Stage stage;
    std::vector<std::vector<int32_t>> all, alike;
    for (const int32_t width : {mesh.tensor, mesh.parts()}) {
      if (width == mesh.tensor && !all.empty()) continue;
      all.push_back(replicas(mesh, s, width, 1));
      alike.push_back(replicas(mesh, s, width, mesh.expert));
      stage.others.push_back(groups.find(all.back(), false));
      stage.experts.push_back(groups.find(alike.back(), false));
    }
    for (const auto& a : all)
      for (const auto& b : alike)
        stage.serial = stage.serial && share_queue(problem, a, b, mesh.device(s, 0, 0));
    stages_.push_back(std::move(stage));
  }
}

MessageTime ReplicaMessages::time(int32_t stage, CollectiveKind kind, CollectiveAlgorithm algorithm,
                                  const SpreadBytes& bytes, const SpreadBytes& most) const {
  const auto& of = stages_[at(stage)];
  return {time(of.others, kind, algorithm, bytes.all - bytes.spread, most.all),
          time(of.experts, kind, algorithm, bytes.spread, most.spread)};
}

double ReplicaMessages::time(const Groups& groups, CollectiveKind kind, CollectiveAlgorithm algorithm, int64_t bytes,
                             int64_t most) {
  if (bytes <= 0 || groups[0].size() < 2) return 0;
  const int64_t one = std::min(bytes, std::max<int64_t>(most, 1));
  double least = std::numeric_limits<double>::infinity();
  for (const auto& group : groups) {
    const auto carried = group.applies(kind, algorithm) ? algorithm : CollectiveAlgorithm::automatic;
    least = std::min(least, std::floor(group.cost(kind, carried, one).time_s() * 1e9));
  }
  // Each of several messages takes up to a nanosecond less, rounded.
  return one == bytes ? least : std::max(0.0, least - 1) * (static_cast<double>(bytes) / static_cast<double>(one));
}

}  // namespace trinity
