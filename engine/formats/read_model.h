#pragma once

#include <string>

#include "formats/json/imported.h"
#include "formats/onnx/onnx.h"

namespace trinity {

/// Reads a model file of any kind that has an importer: by its ending ONNX (.onnx), and by what it
/// holds a text (.txt): a PipeDream or DAPPLE profile, a graph of Doppler; and a JSON file (.json):
/// our own graph, a dnn-partitioning or a Piper instance. `options` are for ONNX files. Throws FileError for another
/// ending, for a JSON file of no known kind, and what the importers throw.
Imported read_model(const std::string& path, const OnnxOptions& options = {});

}  // namespace trinity
