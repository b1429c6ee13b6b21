#pragma once

#include "formats/onnx/onnx_model.h"

namespace trinity::onnx_import {

/// Completes shapes and element types of the nodes' outputs by libonnx's shape inference, which runs in a
/// copy of this process (base/apart.h), because files of others can end it. Extents that
/// inference does not find stay kOpen. Values that it does not reach stay without a shape.
///
/// Throws FileError, with the line of Python that adds shapes to a file, where the file's opset is
/// later than the library's and it does not say what a node makes, and where the inference ended
/// with its process.
void complete_shapes(Model& model);

}  // namespace trinity::onnx_import
