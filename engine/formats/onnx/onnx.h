#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "formats/json/imported.h"

namespace trinity {

/// How an ONNX model is read.
struct OnnxOptions {
  /// Sizes of dimensions that the file leaves open: by symbolic name ("batch", "sequence"), and for
  /// every one that is not named here, or has no name, `open_dimension`. A file may also write
  /// expressions ("2*sequence"); the names in them count.
  std::map<std::string, int64_t> dimensions;
  int64_t open_dimension = 1;
  /// Exporters store initializers of equal values once, so that all zero biases of an untrained
  /// network seem to be one. True: a vector of weights that several operators read becomes a
  /// parameter of each. False: it becomes a Variable, as shared matrices always do.
  bool copy_shared_vectors = true;
};

/// Reads an ONNX model (.onnx, a protobuf ModelProto of at most 2 GiB) as a forward graph.
///
/// - Nodes become operators with ONNX's type (`domain.Type` outside ONNX's own domain) and
///   attributes (integers, floats, strings, lists of integers), named as in the file, or after
///   their first output where they have no name. Calls of the model's own functions are replaced by
///   the functions' nodes. If, Loop and Scan stay one operator each, whose subgraphs cost nothing.
/// - Inputs of the graph become `Input` operators whose tensors want no gradient.
/// - Initializers of floating point with dimensions are weights, and what ConstantOfShape makes of
///   an initializer; Constant nodes are not. A weight becomes a Parameter of the operator that
///   reads it, or a `Variable` operator where several read it or where its reader reads weights
///   only (a Transpose of a table). Where an operator's parameters do not simply follow its inputs,
///   attribute `parameter_inputs` lists their positions (from 0) among the node's arguments. Moving
///   statistics and 8-bit weights of quantised operators are not trainable.
/// - Nodes that read only constants, and Shape and Size, vanish, as do nodes that reach no output.
/// - Shapes come from the file's value_info, completed by libonnx's shape inference, in a copy of
///   this process. Debian's (1.12) knows opset 17: files of a later one have to say all shapes.
///
/// Weights may be missing (stripped) or in external files, which are not read.
///
/// Throws FileError naming file and node for anything malformed: no protobuf or no graph, values
/// that are defined twice or not at all, cycles, shapes that are missing at a later opset, negative
/// dimensions, tensors of more than 2^50 bytes or 32 dimensions, more than 2^19 nodes or
/// 2^20 values, more parts than 1 GiB can hold. Throws ArgumentError for options that name a
/// dimension which the file does not have. Operators of unknown types and unknown
/// shapes are warnings.
Imported read_onnx(const std::string& path, const OnnxOptions& options = {});

/// The same from bytes; `source` stands for the file name in errors.
Imported parse_onnx(std::string_view bytes, const std::string& source,
                    const std::string& graph_name, const OnnxOptions& options = {});

/// How read_model() calls it: the library that reads ONNX is opened late (base/late.h).
using OnnxReader = void(const std::string& path, const OnnxOptions& options,
                        std::optional<Imported>& imported);

}  // namespace trinity
