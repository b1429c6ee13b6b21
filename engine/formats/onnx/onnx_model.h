#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/onnx/onnx.h"

/// Shared by the files of the ONNX importer: the model as numbered nodes and values, checked. The
/// rest of the engine uses formats/onnx/onnx.h only.
///
/// Stages of the import: onnx.cpp parses the bytes; onnx_functions expands functions to one flat
/// list of nodes; onnx_model numbers nodes and values, checks names and sorts the nodes
/// topologically; onnx_walk gives every value a shape and a role (onnx_infer infers missing shapes
/// with libonnx); onnx_graph builds operators and parameters of the remaining nodes.
namespace trinity::onnx_import {

using Shape = std::vector<int64_t>;

/// An unknown extent.
inline constexpr int64_t kOpen = INT64_MIN;
inline constexpr int64_t kMaxBytes = int64_t{1} << 50;  ///< per tensor
inline constexpr size_t kMaxRank = 32;                  ///< dimensions per tensor
inline constexpr size_t kMaxNodes = size_t{1} << 19;    ///< per file
inline constexpr size_t kMaxValues = size_t{1} << 20;
inline constexpr size_t kMaxText = 80;  ///< bytes of a name in a message

/// Role of a value in a training step.
enum class Role : uint8_t {
  activation,  ///< computed from inputs or weights: a tensor of the graph
  weight,      ///< trained: a Parameter, or a Variable
  constant,    ///< equal in every step: not part of the graph
};

/// A tensor of the model (or a sequence, an optional, ..., which never get a shape).
struct Value {
  std::string_view name;
  const onnx::TypeProto* declared = nullptr;  ///< in a graph input, an output or value_info
  int32_t element = 0;                        ///< onnx::TensorProto::DataType; 0: unknown
  std::optional<Shape> shape;
  const onnx::TensorProto* tensor = nullptr;  ///< initializer
  Role role = Role::activation;
  int32_t producer = -1;  ///< node that writes it
  int32_t origin = -1;    ///< of a weight: its initializer (or ConstantOfShape output)
  bool initializer = false;
};

using NamedAttribute = std::pair<std::string_view, const onnx::AttributeProto*>;

/// A node after the expansion of functions. Strings are owned by the ModelProto or
/// FlatModel::texts.
struct FlatNode {
  std::string name, module;
  std::string_view domain, type;
  std::vector<std::string_view> inputs, outputs;
  std::vector<std::string_view> captured;  ///< outer values that its subgraphs read
  std::vector<NamedAttribute> attributes;
};

struct Node {
  std::string name;                      ///< for messages and operators; may be repeated
  std::string module;                    ///< PyTorch module, see module_scope()
  std::string type;                      ///< `domain.Type` outside ONNX's own domain
  std::vector<int32_t> inputs, outputs;  ///< values; -1: omitted
  std::vector<int32_t> captured;
  std::vector<NamedAttribute> attributes;
  bool folded = false;  ///< no operator: its outputs are constants or aliases of a weight

  const onnx::AttributeProto* attribute(std::string_view name) const;
  /// True for ONNX's own operators; others have a dot in their type.
  bool standard() const { return type.find('.') == std::string::npos; }
};

struct Model {
  std::string source;  ///< for messages
  std::string_view producer;
  int64_t opset = 1;  ///< of ONNX's own domain
  std::vector<Value> values;
  std::vector<Node> nodes;                    ///< in topological order
  std::vector<int32_t> inputs, outputs;       ///< values; initializers are not inputs
  std::deque<std::string> texts;              ///< names created by the expansion of functions
  std::deque<onnx::AttributeProto> defaults;  ///< of functions
  size_t control_flow = 0;                    ///< nodes with subgraphs

  Value& value(int32_t id) { return values[id]; }
  const Value& value(int32_t id) const { return values[id]; }
  [[noreturn]] void fail(const Node& node, const std::string& what) const;
};

/// Numbers nodes and values and reads initializers. Throws FileError for repeated or undefined
/// names, cycles, and initializers with impossible dimensions. The ModelProto must outlive the
/// result.
Model load_model(const onnx::ModelProto& proto, const std::string& source);

/// Bytes of one element of an ONNX type, rounded up; 0 for strings and unknown types.
int64_t element_bytes(int32_t element);
bool is_floating(int32_t element);
/// True for types of 8 bits or fewer, which quantised weights have.
bool is_small_integer(int32_t element);

/// Description of what is wrong with a shape ("has a negative dimension, -1"), or "". A shape has
/// at most kMaxRank extents, none negative, and at most kMaxBytes (extents of 0 count as 1).
std::string shape_problem(const Shape& shape, int32_t element);
/// Throws shape_problem() as a FileError; `owner` begins the message.
void check_shape(const Shape& shape, int32_t element, const std::string& owner);
/// Number of elements of a checked shape.
int64_t element_count(const Shape& shape);

/// True if at most one extent differs from 1: a bias, a scale.
bool is_vector(const Shape& shape);

/// A text of the file for a message: cut to kMaxText bytes, made UTF-8, on one line.
std::string clip(std::string_view text);

/// Dimensions of a stored tensor, checked (see check_shape). `owner` begins the message.
Shape tensor_shape(const onnx::TensorProto& tensor, const std::string& owner);

/// Element type and shape of a Constant node's value. Throws FileError for impossible dimensions.
std::pair<int32_t, Shape> constant_type(const Model& model, const Node& node);

/// The nodes of a model with calls of its own functions (ModelProto.functions) replaced by their
/// bodies; values inside a call are renamed to `<call>/<name>`. Attribute references resolve to the
/// call's attributes or the function's defaults.
struct FlatModel {
  std::vector<FlatNode> nodes;
  std::deque<std::string> texts;              ///< names created here
  std::deque<onnx::AttributeProto> defaults;  ///< of functions
  size_t control_flow = 0;                    ///< If, Loop and Scan nodes, each kept as one node
};

/// Throws FileError for functions nested deeper than 32, for an expansion beyond 2^18 nodes or 2^25
/// bytes, for calls with too many arguments, and for names that are not UTF-8.
FlatModel flatten(const onnx::ModelProto& proto, const std::string& source);

/// Completes shapes and element types of node outputs by libonnx's shape inference. It runs in a
/// forked process (base/apart.h), because untrusted files can crash it. Extents that inference does
/// not find stay kOpen; values that it does not reach stay without a shape.
///
/// Throws FileError if the inference crashed; and, with the line of Python that adds shapes to a
/// file, if the file's opset is later than the library's and a node's output has no shape.
void complete_shapes(Model& model);

}  // namespace trinity::onnx_import
