#pragma once

#include <string>

#include "graph/graph.h"

namespace trinity {

/// Reads the text of a PipeDream profile (graph.txt) as a forward graph. Node lines are `<id> -- <description>
/// -- forward_compute_time=F, backward_compute_time=B, activation_size=A, parameter_size=P[ --
/// stage_id=S]` (milliseconds, bytes, A a number or `[a; b; ...]`). Edge lines `TAB <source id> --
/// <target id>` follow, indented by any white space, as in DAPPLE's profiles. The times become the
/// operators' measured times in both directions. Layer names become ONNX types if they match one;
/// otherwise the name without its counter is the type. The loader time of `Input` sources is
/// dropped, as PipeDream does before planning; attribute `loader_time_s` keeps its sum over both
/// directions. Attribute `file_position` counts node lines from 1, `stage` keeps a stage_id. An
/// activation list becomes one tensor of the total size.
///
/// Throws FileError with file, line and field for malformed input, and for cycles. `source` is the file name in errors.
Graph parse_pipedream(const std::string& text, const std::string& source,
                      const std::string& graph_name);

}  // namespace trinity
