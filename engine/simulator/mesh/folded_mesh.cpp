#include "simulator/mesh/folded_mesh.h"

#include <algorithm>
#include <mutex>

#include "base/error.h"
#include "base/index.h"
#include "graph/nameless.h"

namespace trinity {
namespace {

/// The layers of a graph, which all problems of it have together.
std::shared_ptr<FewerLayers> layers_of(const Graph& graph) {
  struct Known {
    const Graph* graph;
    std::weak_ptr<FewerLayers> layers;
  };
  static std::mutex mutex;
  static std::list<Known> known;  // those that some pricer has, whose graph lives
  const std::lock_guard lock(mutex);
  known.remove_if([](const Known& one) { return one.layers.expired(); });
  for (const auto& one : known)
    if (auto found = one.layers.lock(); found && one.graph == &graph) return found;
  auto made = std::make_shared<FewerLayers>(graph);
  known.push_back({&graph, made});
  return made;
}

}  // namespace

std::shared_ptr<const FoldedMesh> FoldedMeshes::make(const Parallelism& given) {
  const auto& mesh = given.mesh;
  if (mesh.context > 1 || mesh.expert > 1 || mesh.placement > 1) return nullptr;
  if (!layers_) layers_ = layers_of(problem_->graph());
  if (!layers_->alike()) return nullptr;
  const auto sizes = fold_sizes(given, layers_->layers().count);
  if (!sizes) return nullptr;
  auto made = std::make_shared<FoldedMesh>();
  made->few = few(with_few_stages(given, *sizes), sizes->few_layers);
  if (!made->few->problem) return nullptr;
  made->fold = LayerFold::make(*sizes, *made->few->lanes, mesh.width(), made->few->copies,
                               *made->few->problem);
  if (!made->fold) return nullptr;
  made->home = home(given, *sizes);
  return made;
}

std::vector<int32_t> FoldedMeshes::home(const Parallelism& given, const FoldSizes& sizes) const {
  std::vector<int32_t> device;
  device.reserve(layers_->layers().of.size());
  for (const int32_t layer : layers_->layers().of) {
    const int32_t chunk = sizes.chunk_of[at(std::clamp(layer, 0, sizes.layers - 1))];
    device.push_back(device_of_chunk(sizes.schedule, sizes.pipeline, chunk) * given.mesh.width());
  }
  return device;
}

std::shared_ptr<const FewLayersLowered> FoldedMeshes::few(const Parallelism& of, int32_t layers) {
  const auto found = std::find_if(few_.begin(), few_.end(), [&](const auto& kept) {
    return kept->layers == layers && kept->of == of;
  });
  if (found != few_.end()) {
    few_.splice(few_.begin(), few_, found);
    return few_.front();
  }
  few_.push_front(lower(of, layers));
  if (few_.size() > kMostFew) few_.pop_back();
  return few_.front();
}

std::shared_ptr<const FewLayersLowered> FoldedMeshes::lower(const Parallelism& of,
                                                            int32_t layers) {
  auto made = std::make_shared<FewLayersLowered>();
  made->of = of;
  made->layers = layers;
  made->graph = layers_->of(layers);
  auto lane = lower_lane(of, *made->graph, problem_->cluster(), parts_[layers]);
  if (!lane) return made;
  made->replica = std::move(*lane);
  made->lanes.emplace(made->replica, false);
  try {
    const Nameless nameless;
    made->copies = copy_replica(made->replica, 1);
    const std::shared_ptr<const Graph> graph(std::shared_ptr<void>(), &made->copies.lowered.graph);
    made->problem = std::make_unique<Problem>(graph, problem_->shared_cluster(), problem_->rules());
  } catch (const ArgumentError&) {
  } catch (const LimitError&) {
  }
  return made;
}

}  // namespace trinity
