#pragma once

#include <string>

#include "formats/json/imported.h"
#include "formats/onnx/onnx.h"

namespace trinity {

/// Reads a model file of any supported format, chosen by extension and content. .onnx: ONNX; .txt:
/// a PipeDream or DAPPLE profile, or a Doppler graph; .json: trinity's own graph, a
/// dnn-partitioning or a Piper instance. `options` apply to ONNX files. Throws FileError for
/// another extension or a JSON file of unknown format, and the errors of the importers.
Imported read_model(const std::string& path, const OnnxOptions& options = {});

}  // namespace trinity
