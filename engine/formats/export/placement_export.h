#pragma once

#include <string>
#include <vector>

#include "strategy/strategy.h"

namespace trinity {

/// The placement of a strategy's forward operators for an external training program (PyTorch), as
/// JSON text that ends in a newline:
///
///   format     "trinity.placement"
///   version    1
///   graph      name, number of operators, fingerprint
///   devices    list of {name, cluster_device, node (if the cluster names one)}
///   operators  {operator: device}: every forward operator, by its name in the graph
///   modules    {module path: device}: every module whose own operators are on one device. An entry
///              covers the module's own operators, not its submodules' operators: apply shorter
///              paths first.
///   split_modules  {module path: [devices]}: the other modules, which need a finer placement
///                  (omitted if there are none)
///   schedule   {name, micro_batches}, if not the default
///   stages     for pipelines, in order: {device, operators, modules}, with the modules of that
///              stage only
///
/// Devices are named by `device_names`, one entry per device of the cluster ("cuda:0", ...), or by
/// the cluster's names if that is empty. Equal inputs give equal bytes.
///
/// Throws the errors of check_placement() and check_schedule(); ArgumentError for a wrong number of
/// names, a repeated name, or a stage on two devices.
std::string placement_to_json(const Strategy& strategy, const Graph& graph, const Cluster& cluster,
                              const std::vector<std::string>& device_names = {});

/// The module of an operator as named by PyTorch's `model.named_modules()`: attribute `module`, or
/// the scope that PyTorch's ONNX exporter puts into names ("/layer1/layer1.0/conv1/Conv" is
/// layer1.0.conv1), or "".
std::string module_path(const Operator& op);

}  // namespace trinity
