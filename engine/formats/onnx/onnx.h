#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "formats/json/imported.h"

namespace trinity {

/// How an ONNX model is read.
struct OnnxOptions {
  /// Sizes of symbolic dimensions by name ("batch", "sequence"); `open_dimension` for every other
  /// one, named or not. In expressions ("2*sequence") the names in them count.
  std::map<std::string, int64_t> dimensions;
  int64_t open_dimension = 1;
  /// Exporters store initializers of equal values once, so all zero biases of an untrained network
  /// share one. True: a vector of weights that several operators read becomes a parameter of each.
  /// False: it becomes a Variable, as shared matrices always do.
  bool copy_shared_vectors = true;
};

/// Reads an ONNX model (.onnx, a protobuf ModelProto of at most 2 GiB) as a forward graph.
///
/// - Nodes become operators with ONNX's type (`domain.Type` outside ONNX's own domain) and
///   attributes (integers, floats, strings, lists of integers). They have the name in the file, or
///   the name of their first output. Calls of the model's own functions are replaced by the
///   functions' nodes. If, Loop and Scan stay one operator each, whose subgraphs cost nothing.
/// - Inputs of the graph become `Input` operators whose tensors need no gradient.
/// - Weights are floating-point initializers with dimensions, and the result of ConstantOfShape of
///   an initializer; Constant nodes are not weights. A weight becomes a Parameter of the operator
///   that reads it, or a `Variable` operator if several read it or if its reader reads weights only
///   (a Transpose of a table). If an operator's parameters do not simply follow its inputs,
///   attribute `parameter_inputs` lists their positions (from 0) among the node's arguments. Moving
///   statistics and 8-bit weights of quantised operators are not trainable.
/// - Nodes that read only constants, Shape and Size, and nodes that reach no output are removed.
/// - Shapes come from the file's value_info, completed by libonnx's shape inference in a forked
///   process. Debian's libonnx (1.12) supports opset 17: files of a later one must state all
///   shapes.
///
/// Weights may be missing (stripped) or in external files, which are not read.
///
/// Throws FileError with file and node for malformed input: no protobuf or no graph, values that
/// are defined twice or not at all, cycles, missing shapes at a later opset, negative dimensions,
/// tensors of more than 2^50 bytes or 32 dimensions, more than 2^19 nodes or 2^20 values, more
/// content than fits into 1 GiB. Throws ArgumentError for options that name a dimension that the
/// file does not have. Unknown operator types and shapes are warnings.
Imported read_onnx(const std::string& path, const OnnxOptions& options = {});

/// The same from bytes; `source` is the file name in errors.
Imported parse_onnx(std::string_view bytes, const std::string& source,
                    const std::string& graph_name, const OnnxOptions& options = {});

/// Entry point for scripts: the library that reads ONNX is loaded lazily (base/late.h).
using OnnxReader = void(const std::string& path, const OnnxOptions& options,
                        std::optional<Imported>& imported);

}  // namespace trinity
