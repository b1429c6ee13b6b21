#pragma once

#include "formats/onnx/onnx_model.h"

namespace trinity::onnx_import {

/// The nodes of a model with calls of its own functions (ModelProto.functions) replaced by their
/// bodies; values inside a call are renamed to `<call>/<name>`. Attribute references resolve to the
/// call's attributes or the function's defaults.
struct FlatModel {
  std::vector<FlatNode> nodes;
  std::deque<std::string> texts;              ///< names created here
  std::deque<onnx::AttributeProto> defaults;  ///< of functions
  size_t control_flow = 0;                    ///< If, Loop and Scan nodes, each kept as one node
};

/// Throws FileError for functions nested deeper than 32, for an expansion beyond 2^18 nodes or 2^25
/// bytes, for calls with too many arguments, and for names that are not UTF-8.
FlatModel flatten(const onnx::ModelProto& proto, const std::string& source);

}  // namespace trinity::onnx_import
