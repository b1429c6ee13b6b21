#pragma once

#include "formats/onnx/onnx_model.h"

namespace trinity::onnx_import {

/// Completes shapes and element types of node outputs by libonnx's shape inference. It runs in a
/// forked process (base/apart.h), because untrusted files can crash it. Extents that inference does
/// not find stay kOpen; values that it does not reach stay without a shape.
///
/// Throws FileError if the inference crashed; and, with the line of Python that adds shapes to a
/// file, if the file's opset is later than the library's and a node's output has no shape.
void complete_shapes(Model& model);

}  // namespace trinity::onnx_import
