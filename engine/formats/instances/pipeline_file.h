#pragma once

#include <optional>
#include <string>
#include <vector>

#include "search/pipeline/pipeline_network.h"

namespace trinity {

/// Reads a file as a network to be cut: a dnn-partitioning or Piper instance (.json), a PipeDream
/// or DAPPLE profile (.txt). Nothing for other kinds of files, which are models (read_model()).
/// Times stay in the file's unit: milliseconds of dnn-partitioning, seconds of profiles; what
/// Piper's files say is taken as seconds, though gnmt.json and resnet.json are in milliseconds by
/// their magnitude (their authors add seconds of transfers to them, and so does this).
///
/// A profile's layer needs memory for its weights and one micro-batch's outputs; sources called
/// Input cost nothing and send nothing, as in PipeDream. A Piper layer is its plain configuration
/// of degree 1 where a method knows no others, with one micro-batch in flight, and its output the
/// largest of its edges. Throws FileError as the readers of these formats do.
std::optional<PipelineNetwork> read_pipeline_network(const std::string& path);

/// Reads a cut of a dnn-partitioning instance (`{"fpgas": [...], "cpus": [...]}`, as the
/// published experts' are) as the device of every node in the order of the file: accelerators from
/// 0, then CPUs. Nodes of a unit that the cut leaves out go with it. Throws FileError for nodes
/// that do not exist, stand twice or are missing, and for another kind of instance.
std::vector<int32_t> read_pipeline_cut(const std::string& path, const std::string& instance_path);

}  // namespace trinity
