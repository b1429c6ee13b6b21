#pragma once

#include <string>
#include <vector>

#include "strategy/strategy.h"

namespace trinity {

/// The place of a strategy's forward operators for a training program outside trinity (PyTorch), as
/// JSON text ending in a newline:
///
///   format     "trinity.placement"
///   version    1
///   graph      name, number of operators, fingerprint
///   devices    list of {name, cluster_device, node (where the cluster names one)}
///   operators  {operator: device}: every forward operator, by its name in the graph
///   modules    {module path: device}: every module whose own operators are on one device. A
///   module's
///              entry is about its own operators, not its submodules': apply shorter paths first.
///   split_modules  {module path: [devices]}: the other modules, which only a finer cut can place
///              (left out where there are none)
///   schedule   {name, micro_batches}, where it is not the default
///   stages     for pipelines, in order: {device, operators, modules}, the modules of that stage
///              alone
///
/// Devices are called by `device_names`, an entry a device of the cluster ("cuda:0", ...), or,
/// where that is empty, by the cluster's names. Equal inputs give equal bytes.
///
/// Throws what check_placement() and check_schedule() throw, ArgumentError for another number of
/// names, a name that repeats, a stage on two devices.
std::string placement_to_json(const Strategy& strategy, const Graph& graph, const Cluster& cluster,
                              const std::vector<std::string>& device_names = {});

/// The module that an operator belongs to, as `model.named_modules()` calls it in PyTorch:
/// attribute `module`; or read off the scope that PyTorch's exporter to ONNX puts into names
/// ("/layer1/layer1.0/conv1/Conv" is layer1.0.conv1); "" where neither is there.
std::string module_path(const Operator& op);

}  // namespace trinity
