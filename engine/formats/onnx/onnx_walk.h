#pragma once

#include "formats/onnx/onnx_dimensions.h"

namespace trinity::onnx_import {

/// A finding for the user: number of occurrences, and the first one.
struct Finding {
  size_t count = 0;
  std::string first;

  void add(const std::string& text) {
    if (count++ == 0) first = text;
  }
};

/// Gives every value its element type, shape and role. Shapes in the file take precedence over
/// inferred ones (complete_shapes()); dimensions that both leave open take the options' size. Marks
/// nodes that need no operator as `folded`: those that read only constants, Shape and Size of known
/// shapes, aliases of weights. Throws FileError as complete_shapes() does, and with the node's name
/// for sizes that check_shape refuses.
void walk(Model& model, Dimensions& dimensions);

/// True if a node reads an argument as a weight: a floating-point initializer with dimensions (or
/// the result of ConstantOfShape), or an 8-bit one where quantised weights are expected, at a
/// position that takes weights. See onnx_weights.cpp.
bool reads_weight(const Model& model, const Node& node, size_t argument);
/// The same for a value that a node's subgraphs read.
bool captures_weight(const Model& model, int32_t value);
/// False for arguments that hold moving statistics, and for quantised weights.
bool is_trainable(const Node& node, size_t argument, int32_t element);

/// True for If, Loop and Scan.
bool is_control_flow(const Node& node);

/// Builds the graph of a model after walk(): `Input` operators, `Variable` operators for weights
/// that several operators read, then the remaining nodes. Appends to `warnings`. Throws FileError
/// if GraphBuilder refuses (more than 2^60 bytes in total, no operators).
Graph make_graph(const Model& model, const std::string& name, const OnnxOptions& options,
                 std::vector<std::string>& warnings);

}  // namespace trinity::onnx_import
