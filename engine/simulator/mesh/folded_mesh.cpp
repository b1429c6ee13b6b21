#include "simulator/mesh/folded_mesh.h"

#include <algorithm>
#include <mutex>
#include <numeric>

#include "base/index.h"
#include "graph/nameless.h"

namespace trinity {
namespace {

/// Layers of a graph, shared by all problems with it.
std::shared_ptr<FewerLayers> layers_of(const Graph& graph) {
  struct Known {
    const Graph* graph;
    std::weak_ptr<FewerLayers> layers;
  };
  static std::mutex mutex;
  static std::list<Known> known;  // entries in use, whose graph exists
  const std::lock_guard lock(mutex);
  known.remove_if([](const Known& one) { return one.layers.expired(); });
  for (const auto& one : known)
    if (auto found = one.layers.lock(); found && one.graph == &graph) return found;
  auto made = std::make_shared<FewerLayers>(graph);
  known.push_back({&graph, made});
  return made;
}

/// Number of network layers that are lowered.
int32_t network_layers(const FoldSizes& sizes) {
  return std::accumulate(sizes.few_stages.begin(), sizes.few_stages.end(), 0);
}

std::optional<LaneFold> lanes_of(const Parallelism& given, const FoldSizes& sizes,
                                 const ReplicaLanes& few) {
  return LaneFold::make(few, given.mesh, sizes.few_pipeline, sizes.pipeline);
}

/// Restricts a replica to some devices of every stage (FoldRuns::parts).
LoweredReplica kept_parts(const LoweredReplica& replica, const ReplicaLanes& lanes,
                          const std::vector<int32_t>& parts) {
  const int32_t width = replica.of.mesh.width();
  std::vector<bool> devices;
  for (int32_t device = 0; device < replica.of.mesh.pipeline * width; ++device) {
    const int32_t lane = lanes.lane_of(device);
    devices.push_back(parts.empty()
                          ? lanes.lanes()[at(lane)].kind == lane
                          : std::binary_search(parts.begin(), parts.end(), device % width));
  }
  return kept(replica, devices);
}

}  // namespace

std::shared_ptr<const FoldedMesh> FoldedMeshes::make(const Parallelism& given,
                                                     const Runs& runs) {
  if (given.mesh.placement > 1) return nullptr;
  std::call_once(once_, [this] { layers_ = layers_of(problem_->graph()); });
  if (!layers_->alike()) return nullptr;
  const auto all_sizes = fold_sizes(given, layers_->layers().count);
  const auto guess = guessed(given, all_sizes, runs);
  for (const auto& sizes : all_sizes)
    if (auto made = make(given, sizes, runs, guess)) return made;
  return nullptr;
}

/// FoldRuns::parts as found with the fewest layers. If sequence parts share a node, other devices
/// than the first of a class may be needed; otherwise the next size to try would be lowered twice.
std::vector<int32_t> FoldedMeshes::guessed(const Parallelism& given,
                                           const std::vector<FoldSizes>& all_sizes,
                                           const Runs& runs) {
  const auto& mesh = given.mesh;
  const auto node = [&](int32_t part) {
    return problem_->cluster().device(mesh.device(0, 0, part)).node;
  };
  const auto fewest = std::min_element(
      all_sizes.begin(), all_sizes.end(),
      [](const auto& a, const auto& b) { return network_layers(a) < network_layers(b); });
  if (mesh.context == 1 || fewest == all_sizes.begin() || node(0) != node(mesh.tensor))
    return {};
  const auto shown = one(with_few_stages(given, *fewest), network_layers(*fewest), {});
  const auto lanes = lanes_of(given, *fewest, shown->lanes);
  return lanes ? runs(lanes->lanes(mesh)).parts : std::vector<int32_t>{};
}

std::shared_ptr<const FoldedMesh> FoldedMeshes::make(const Parallelism& given,
                                                     const FoldSizes& sizes, const Runs& runs,
                                                     const std::vector<int32_t>& guess) {
  const int32_t layers = network_layers(sizes);
  const bool by_layer = sizes.layers == layers_->layers().count;
  if (layers < layers_->least() || (by_layer && sizes.ends < layers_->front())) return nullptr;
  const Parallelism of = with_few_stages(given, sizes);
  const auto all = lanes_of(given, sizes, one(of, layers, guess)->lanes);
  if (!all) return nullptr;
  const FoldRuns what = runs(all->lanes(given.mesh));
  if (what.replicas == 0) return nullptr;
  auto made = std::make_shared<FoldedMesh>();
  made->few = few(of, layers, what);
  made->fold = LayerFold::make(sizes, made->few->one->lanes, of.mesh, made->few->copies, what,
                               *made->few->problem);
  if (!made->fold) return nullptr;
  made->home = home(given);
  const auto& rank = made->few->one->replica.home_rank;
  if (!rank.empty())
    for (const int32_t op : layers_->like(layers)) made->home_rank.push_back(rank[at(op)]);
  return made;
}

std::vector<int32_t> FoldedMeshes::home(const Parallelism& given) const {
  const int32_t layers = layers_->layers().count;
  const auto chunks = static_cast<int32_t>(given.mesh.pipeline * given.virtual_stages);
  std::vector<int32_t> device_of_layer;
  for (int32_t chunk = 0; chunk < chunks; ++chunk)
    device_of_layer.insert(
        device_of_layer.end(),
        at(given.stages.empty() ? layers / chunks : given.stages[at(chunk)]),
        device_of_chunk(schedule_of(given), given.mesh.pipeline, chunk) * given.mesh.width());
  std::vector<int32_t> device;
  device.reserve(layers_->layers().of.size());
  for (const int32_t layer : layers_->layers().of)
    device.push_back(device_of_layer[at(std::clamp(layer, 0, layers - 1))]);
  return device;
}

std::shared_ptr<const FewLayersReplica> FoldedMeshes::one(const Parallelism& of, int32_t layers,
                                                          const std::vector<int32_t>& parts) {
  const Key key{of, layers, {0, {}, parts}};
  return ones_.find(key, [&] { return lower_one(key); });
}

std::shared_ptr<const FewLayersLowered> FoldedMeshes::few(const Parallelism& of, int32_t layers,
                                                          const FoldRuns& runs) {
  return few_.find({of, layers, runs}, [&] {
    auto made = std::make_shared<FewLayersLowered>();
    made->layers = layers;
    made->runs = runs;
    made->one = one(of, layers, runs.parts);
    const Nameless nameless;  // operator names of a group do not matter
    made->copies = copy_replica(made->one->replica, runs.replicas, runs.numbers);
    const std::shared_ptr<const Graph> graph(std::shared_ptr<void>(), &made->copies.lowered.graph);
    made->problem = std::make_unique<Problem>(graph, *problem_);
    return made;
  });
}

std::shared_ptr<const FewLayersReplica> FoldedMeshes::lower_one(const Key& key) {
  const auto graph = layers_->of(key.layers);
  const auto& parts = key.runs.parts;
  auto lane = lower_lane(key.of, *graph, problem_->cluster(), parts_of(key.layers), parts);
  const bool one_of_kind = lane.has_value();
  std::optional<Nameless> nameless;
  if (!key.of.scatter_gather) nameless.emplace();  // otherwise parts are found by name
  if (!lane) lane = lower_replica(key.of, *graph, problem_->cluster());
  ReplicaLanes lanes(*lane, false);
  auto runs = one_of_kind ? std::move(*lane) : kept_parts(*lane, lanes, parts);
  return std::make_shared<const FewLayersReplica>(
      FewLayersReplica{std::move(runs), std::move(lanes)});
}

LaneParts& FoldedMeshes::parts_of(int32_t layers) {
  const std::lock_guard lock(mutex_);
  return parts_[layers];
}

}  // namespace trinity
