#pragma once

#include <string>

#include "graph/graph.h"

namespace trinity {

/// Reads a PipeDream profile (graph.txt) as a forward graph. Node lines read
/// `<id> -- <description> -- forward_compute_time=F, backward_compute_time=B, activation_size=A,
/// parameter_size=P[ -- stage_id=S]` (milliseconds, bytes, A a number or `[a; b; ...]`), edge lines
/// `TAB <source id> -- <target id>` follow (indented by any white space, as DAPPLE's profiles in
/// this format are). The measured times become the operators' measured times of both directions.
/// Layer names become ONNX's types where they tell it; others keep their name as type, without the
/// number that counts layers. Loader time of `Input` sources is dropped, as PipeDream does before
/// planning; attribute `loader_time_s` keeps both directions' sum. Attribute `file_position` counts
/// the node lines from 1, `stage` keeps a stage_id. An activation list becomes one tensor of the
/// summed size.
///
/// Throws FileError naming file, line and field for anything malformed, and for cycles.
Graph read_pipedream(const std::string& path);

/// The same from text; `source` stands for the file name in errors.
Graph parse_pipedream(const std::string& text, const std::string& source,
                      const std::string& graph_name);

}  // namespace trinity
