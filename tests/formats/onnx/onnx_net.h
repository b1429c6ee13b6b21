#pragma once

#ifndef ONNX_ML
#define ONNX_ML 1
#define ONNX_NAMESPACE onnx
#endif
#include <onnx/onnx_pb.h>

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "formats/onnx/onnx.h"

namespace trinity {

using Dims = std::vector<int64_t>;
/// Attributes of a node: integers, floats, strings, lists of integers.
using OnnxAttribute = std::pair<const char*, std::variant<int64_t, float, const char*, Dims>>;

/// Builds small ONNX models, in memory, for tests.
struct OnnxNet {
  onnx::ModelProto model;

  explicit OnnxNet(int64_t opset = 17, int64_t ir_version = 8) {
    model.set_ir_version(ir_version);
    model.add_opset_import()->set_version(opset);
  }

  onnx::GraphProto& graph() { return *model.mutable_graph(); }

  static void set_type(onnx::ValueInfoProto& value, const std::string& name,
                       const std::vector<std::string>& dims, int element) {
    value.set_name(name);
    auto* tensor = value.mutable_type()->mutable_tensor_type();
    tensor->set_elem_type(element);
    auto* shape = tensor->mutable_shape();
    for (const auto& dim : dims) {
      auto* added = shape->add_dim();
      const bool number = !dim.empty() && (dim[0] == '-' || (dim[0] >= '0' && dim[0] <= '9'));
      if (number && dim.find_first_not_of("-0123456789") == std::string::npos)
        added->set_dim_value(std::stoll(dim));
      else if (!dim.empty())
        added->set_dim_param(dim);
    }
  }

  /// Dimensions as text: a number, a name or an expression, or "" for an open one.
  OnnxNet& input(const std::string& name, const std::vector<std::string>& dims,
                 int element = onnx::TensorProto::FLOAT) {
    set_type(*graph().add_input(), name, dims, element);
    return *this;
  }

  OnnxNet& output(const std::string& name) {
    graph().add_output()->set_name(name);
    return *this;
  }

  OnnxNet& info(const std::string& name, const std::vector<std::string>& dims,
                int element = onnx::TensorProto::FLOAT) {
    set_type(*graph().add_value_info(), name, dims, element);
    return *this;
  }

  /// An initializer whose data are missing.
  OnnxNet& weight(const std::string& name, const Dims& dims,
                  int element = onnx::TensorProto::FLOAT) {
    auto* tensor = graph().add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(element);
    for (const int64_t dim : dims) tensor->add_dims(dim);
    return *this;
  }

  /// An int64 initializer of one dimension, as shapes are given.
  OnnxNet& integers(const std::string& name, const Dims& numbers) {
    auto* tensor = graph().add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(onnx::TensorProto::INT64);
    tensor->add_dims(static_cast<int64_t>(numbers.size()));
    for (const int64_t number : numbers) tensor->add_int64_data(number);
    return *this;
  }

  static void set(onnx::AttributeProto& attribute, const OnnxAttribute& from) {
    attribute.set_name(from.first);
    if (const auto* number = std::get_if<int64_t>(&from.second)) {
      attribute.set_type(onnx::AttributeProto::INT);
      attribute.set_i(*number);
    } else if (const auto* real = std::get_if<float>(&from.second)) {
      attribute.set_type(onnx::AttributeProto::FLOAT);
      attribute.set_f(*real);
    } else if (const auto* text = std::get_if<const char*>(&from.second)) {
      attribute.set_type(onnx::AttributeProto::STRING);
      attribute.set_s(*text);
    } else {
      attribute.set_type(onnx::AttributeProto::INTS);
      for (const int64_t entry : std::get<Dims>(from.second)) attribute.add_ints(entry);
    }
  }

  static onnx::NodeProto& fill(onnx::NodeProto& node, const std::string& type,
                               const std::vector<std::string>& inputs,
                               const std::vector<std::string>& outputs,
                               const std::vector<OnnxAttribute>& attributes = {}) {
    node.set_op_type(type);
    for (const auto& name : inputs) node.add_input(name);
    for (const auto& name : outputs) node.add_output(name);
    for (const auto& attribute : attributes) set(*node.add_attribute(), attribute);
    return node;
  }

  OnnxNet& node(const std::string& type, const std::vector<std::string>& inputs,
                const std::vector<std::string>& outputs,
                const std::vector<OnnxAttribute>& attributes = {}) {
    fill(*graph().add_node(), type, inputs, outputs, attributes);
    return *this;
  }

  std::string bytes() const { return model.SerializeAsString(); }
  Imported read(const OnnxOptions& options = {}) const {
    return parse_onnx(bytes(), "net.onnx", "net", options);
  }
};

/// The operator called `name`, which the graph must have.
inline const Operator& operator_named(const Graph& graph, std::string_view name) {
  return graph.op(graph.find(name));
}

/// Shape of an operator's output.
inline Dims output_shape(const Graph& graph, const std::string& name, size_t output = 0) {
  return graph.tensor(operator_named(graph, name).outputs.at(output)).shape;
}

inline bool mentions(const std::vector<std::string>& warnings, const std::string& text) {
  for (const auto& warning : warnings)
    if (warning.find(text) != std::string::npos) return true;
  return false;
}

}  // namespace trinity
