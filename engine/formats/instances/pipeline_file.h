#pragma once

#include <optional>
#include <string>
#include <vector>

#include "search/pipeline/pipeline_network.h"

namespace trinity {

/// Reads a file as a network for pipeline planners: a dnn-partitioning or Piper instance (.json), a
/// PipeDream or DAPPLE profile (.txt). Returns none for other files, which are models
/// (read_model()). Times stay in the file's unit: milliseconds for dnn-partitioning, seconds for
/// profiles. Piper's times are taken as seconds, although gnmt.json and resnet.json are in
/// milliseconds by their magnitude (their authors add transfer seconds to them, and so does this
/// code).
///
/// A profile's layer needs memory for its weights and one micro-batch's outputs; sources called
/// Input cost and send nothing, as in PipeDream. For methods without configurations, a Piper layer
/// has its plain configuration of degree 1, with one micro-batch in flight, and its largest edge as
/// output. Throws FileError as the readers of these formats do.
std::optional<PipelineNetwork> read_pipeline_network(const std::string& path);

/// Reads a cut of a dnn-partitioning instance (`{"fpgas": [...], "cpus": [...]}`, as the published
/// experts') as the device of every node in file order: accelerators from 0, then CPUs. Nodes that
/// the cut omits go with their unit. Throws FileError for nodes that do not exist, are repeated or
/// missing, and for another type of instance.
std::vector<int32_t> read_pipeline_cut(const std::string& path, const std::string& instance_path);

}  // namespace trinity
