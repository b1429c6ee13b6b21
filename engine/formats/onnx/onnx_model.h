#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/onnx/onnx.h"

/// What the ONNX importer's files share: the model as numbered nodes and values, checked. Not for
/// the rest of the engine, which sees formats/onnx/onnx.h only.
///
/// The road of a file: onnx.cpp parses the bytes; onnx_functions expands functions to one flat list
/// of nodes; onnx_model numbers nodes and values, checks names and puts the nodes in topological
/// order; onnx_walk gives every value a shape, which libonnx infers where the file does not say it
/// (onnx_infer), and a role; onnx_graph makes operators and parameters of what remains.
namespace trinity::onnx_import {

using Shape = std::vector<int64_t>;

/// An extent that is not known.
inline constexpr int64_t kOpen = INT64_MIN;
inline constexpr int64_t kMaxBytes = int64_t{1} << 50;  ///< of one tensor
inline constexpr size_t kMaxRank = 32;                  ///< dimensions of a tensor
inline constexpr size_t kMaxNodes = size_t{1} << 19;    ///< of a file
inline constexpr size_t kMaxValues = size_t{1} << 20;
inline constexpr size_t kMaxText = 80;  ///< bytes of a name in a message

/// What a value is to a training step.
enum class Role : uint8_t {
  activation,  ///< computed from inputs or weights: a tensor of the graph
  weight,      ///< trained: a parameter, or a Variable
  constant,    ///< the same in every step: not part of the graph
};

/// A tensor of the model (or a sequence, an optional, ...: those never get a shape).
struct Value {
  std::string_view name;
  const onnx::TypeProto* declared = nullptr;  ///< by a graph input, an output or value_info
  int32_t element = 0;                        ///< onnx::TensorProto::DataType, 0 where not known
  std::optional<Shape> shape;
  const onnx::TensorProto* tensor = nullptr;  ///< of an initializer
  Role role = Role::activation;
  int32_t producer = -1;  ///< node that writes it
  int32_t origin = -1;    ///< the initializer (or ConstantOfShape output) a weight comes from
  bool initializer = false;
};

using NamedAttribute = std::pair<std::string_view, const onnx::AttributeProto*>;

/// A node after the expansion of functions. Strings live in the ModelProto or in FlatModel::texts.
struct FlatNode {
  std::string name, module;
  std::string_view domain, type;
  std::vector<std::string_view> inputs, outputs;
  std::vector<std::string_view> captured;  ///< outer values that its subgraphs read
  std::vector<NamedAttribute> attributes;
};

struct Node {
  std::string name;                      ///< for messages and operators; may repeat
  std::string module;                    ///< of PyTorch, see onnx_scope.h
  std::string type;                      ///< `domain.Type` outside ONNX's own domain
  std::vector<int32_t> inputs, outputs;  ///< values; -1 where left out
  std::vector<int32_t> captured;
  std::vector<NamedAttribute> attributes;
  bool folded = false;  ///< no operator: its outputs are constants or another name of a weight

  const onnx::AttributeProto* attribute(std::string_view name) const;
  /// ONNX's own operators; the others have a dot in their type.
  bool standard() const { return type.find('.') == std::string::npos; }
};

struct Model {
  std::string source;  ///< for messages
  std::string_view producer;
  int64_t opset = 1;  ///< of ONNX's own domain
  std::vector<Value> values;
  std::vector<Node> nodes;                    ///< in topological order
  std::vector<int32_t> inputs, outputs;       ///< values; initializers are no inputs
  std::deque<std::string> texts;              ///< names made by the expansion of functions
  std::deque<onnx::AttributeProto> defaults;  ///< of functions
  size_t control_flow = 0;                    ///< nodes with subgraphs

  Value& value(int32_t id) { return values[id]; }
  const Value& value(int32_t id) const { return values[id]; }
  [[noreturn]] void fail(const Node& node, const std::string& what) const;
};

/// Numbers nodes and values and reads initializers. Throws FileError for names that repeat or that
/// nothing defines, for cycles, and for initializers with impossible dimensions. The ModelProto
/// must outlive the result.
Model load_model(const onnx::ModelProto& proto, const std::string& source);

/// Bytes of one element of an ONNX type, rounded up; 0 for strings and unknown types.
int64_t element_bytes(int32_t element);
bool is_floating(int32_t element);
/// 8 bits or fewer, the types of quantised weights.
bool is_small_integer(int32_t element);

/// What is wrong with a shape ("has a negative dimension, -1"), or "": at most kMaxRank extents,
/// none negative, at most kMaxBytes (extents of 0 count as 1).
std::string shape_problem(const Shape& shape, int32_t element);
/// Throws that as a FileError; `owner` begins the message.
void check_shape(const Shape& shape, int32_t element, const std::string& owner);
/// Elements of a checked shape.
int64_t element_count(const Shape& shape);

/// All extents but one are 1: a bias, a scale.
bool is_vector(const Shape& shape);

/// A name or another text of the file as it may stand in a message: cut to kMaxText bytes, made
/// UTF-8, on one line.
std::string clip(std::string_view text);

}  // namespace trinity::onnx_import
