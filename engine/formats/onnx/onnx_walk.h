#pragma once

#include "formats/onnx/onnx_dimensions.h"

namespace trinity::onnx_import {

/// What a walk met that a person should know: how often, and the first case.
struct Finding {
  size_t count = 0;
  std::string first;

  void add(const std::string& text) {
    if (count++ == 0) first = text;
  }
};

/// Gives every value its element type, shape and role. What the file says of a shape comes before
/// what libonnx infers (onnx_infer.h); a dimension that both leave open takes the options' size. Nodes
/// that need no operator become `folded`: those that read only constants, Shape and Size of known
/// shapes, other names of weights. Throws FileError as complete_shapes() does, and naming the node
/// for sizes beyond check_shape's.
void walk(Model& model, Dimensions& dimensions);

/// Whether an argument of a node is read as a weight: an initializer (or what ConstantOfShape makes
/// of one) of floating point with dimensions, or one of 8 bits where quantised weights stand, at a
/// position that takes weights. See onnx_weights.cpp.
bool reads_weight(const Model& model, const Node& node, size_t argument);
/// The same for a value that a node's subgraphs read.
bool captures_weight(const Model& model, int32_t value);
/// False for the arguments that hold moving statistics, and for quantised weights.
bool is_trainable(const Node& node, size_t argument, int32_t element);

/// If, Loop or Scan.
bool is_control_flow(const Node& node);

}  // namespace trinity::onnx_import
