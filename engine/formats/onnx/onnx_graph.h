#pragma once

#include "formats/onnx/onnx_walk.h"

namespace trinity::onnx_import {

/// Builds the graph of a model after walk(): `Input` operators, `Variable` operators for weights
/// that several operators read, then the remaining nodes. Appends to `warnings`. Throws FileError
/// if GraphBuilder refuses (more than 2^60 bytes in total, no operators).
Graph make_graph(const Model& model, const std::string& name, const OnnxOptions& options,
                 std::vector<std::string>& warnings);

}  // namespace trinity::onnx_import
