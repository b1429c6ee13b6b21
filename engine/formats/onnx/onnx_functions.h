#pragma once

#include "formats/onnx/onnx_model.h"

namespace trinity::onnx_import {

/// The nodes of a model with calls of its own functions (ModelProto.functions) replaced by their
/// bodies, values inside a call renamed to `<call>/<name>`. Attributes that a body refers to are
/// the call's, or the function's defaults.
struct FlatModel {
  std::vector<FlatNode> nodes;
  std::deque<std::string> texts;              ///< names made here
  std::deque<onnx::AttributeProto> defaults;  ///< of functions
  size_t control_flow = 0;                    ///< If, Loop and Scan nodes, kept as one node each
};

/// Throws FileError for functions that nest deeper than 32 or grow a model beyond 2^18 nodes or
/// 2^25 bytes, for calls with too many arguments, and for names that are not UTF-8.
FlatModel flatten(const onnx::ModelProto& proto, const std::string& source);

}  // namespace trinity::onnx_import
