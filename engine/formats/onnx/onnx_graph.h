#pragma once

#include "formats/onnx/onnx_walk.h"

namespace trinity::onnx_import {

/// Makes a graph of a model that walk() has visited: `Input` operators, `Variable` operators for
/// weights that several operators read, then the nodes that are left. Warnings are added to.
/// Throws FileError where GraphBuilder refuses (sizes that add up to more than 2^60 bytes, no
/// operators).
Graph make_graph(const Model& model, const std::string& name, const OnnxOptions& options,
                 std::vector<std::string>& warnings);

}  // namespace trinity::onnx_import
