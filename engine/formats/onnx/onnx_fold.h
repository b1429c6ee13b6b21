#pragma once

#include "formats/onnx/onnx_model.h"

namespace trinity::onnx_import {

/// Computes the numbers of a node's outputs where those of its inputs are known, few, and of rank 0
/// or 1: what exported files do with shapes (Shape, Gather, Concat, Slice, arithmetic, ...). Needs
/// the shapes of the outputs; leaves alone what it cannot compute, such as a division by 0.
void fold_numbers(Model& model, const Node& node);

}  // namespace trinity::onnx_import
