#include "formats/onnx/onnx_model.h"

#include <onnx/shape_inference/implementation.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>

#include "base/apart.h"
#include "base/error.h"

namespace trinity::onnx_import {
namespace {

constexpr int64_t kLastOpset = 17;         // last opset supported by Debian's library (1.12)
constexpr size_t kMaxCopiedBytes = 4096;   // longer initializers contain no shapes
constexpr rlim_t kMaxSeconds = 60;         // CPU time

constexpr const char* kAdvice =
    "add shapes to the file: python -c \"import onnx, sys; onnx.save(onnx.shape_inference."
    "infer_shapes(onnx.load(sys.argv[1]), data_prop=True), sys.argv[2])\" IN.onnx OUT.onnx";

/// Result of the forked process for one value.
struct Found {
  int32_t element = 0, rank = -1;
  std::array<int64_t, kMaxRank> extents{};
};

/// True for a sequence, a map or another value without a shape.
bool is_shapeless(const Value& value) {
  return value.declared && !value.declared->has_tensor_type() &&
         value.declared->value_case() != onnx::TypeProto::VALUE_NOT_SET;
}

bool is_complete(const Model& model, const Value& value) {
  if (is_shapeless(value)) return true;
  if (!value.shape || value.element == 0) return false;
  // Some exporters write a scalar for unknown shapes.
  if (value.shape->empty()) return model.opset > kLastOpset || value.initializer;
  return std::find(value.shape->begin(), value.shape->end(), kOpen) == value.shape->end();
}

void set_type(onnx::TypeProto& type, const Value& value) {
  auto& tensor = *type.mutable_tensor_type();
  tensor.set_elem_type(value.element);
  if (!value.shape) return;
  auto& shape = *tensor.mutable_shape();
  for (const int64_t extent : *value.shape) {
    auto& dimension = *shape.add_dim();
    if (extent >= 0) dimension.set_dim_value(extent);
  }
}

/// False for a node whose outputs are known and cannot be the numbers of a shape: if the library
/// contradicts the file there, it aborts the whole inference.
bool is_asked(const Model& model, const Node& node) {
  return std::any_of(node.outputs.begin(), node.outputs.end(), [&](int32_t id) {
    return id >= 0 && (!is_complete(model, model.value(id)) ||
                       model.value(id).element == onnx::TensorProto::INT64);
  });
}

/// The model for the library: one flat graph of ONNX's own operators, with sizes instead of
/// symbolic dimensions and only the values of small initializers.
onnx::ModelProto flat_proto(const Model& model) {
  onnx::ModelProto proto;
  proto.set_ir_version(8);
  proto.add_opset_import()->set_version(model.opset);
  auto& graph = *proto.mutable_graph();
  for (const auto& value : model.values) {
    if (value.element == 0) continue;
    if (value.tensor && value.tensor->ByteSizeLong() <= kMaxCopiedBytes) {
      *graph.add_initializer() = *value.tensor;
    } else if (value.producer < 0 || is_complete(model, value) ||
               (value.shape && !value.shape->empty())) {
      auto& info = value.producer < 0 ? *graph.add_input() : *graph.add_value_info();
      info.set_name(std::string(value.name));
      set_type(*info.mutable_type(), value);
    }
  }
  for (const auto& node : model.nodes) {
    if (!node.standard() || !is_asked(model, node)) continue;
    auto& added = *graph.add_node();
    added.set_op_type(node.type);
    const auto name = [&](int32_t id) {
      return id < 0 ? std::string() : std::string(model.value(id).name);
    };
    for (const int32_t input : node.inputs) added.add_input(name(input));
    for (const int32_t output : node.outputs) added.add_output(name(output));
    for (const auto& [key, attribute] : node.attributes) {
      auto& copied = *added.add_attribute() = *attribute;
      copied.set_name(std::string(key));
    }
  }
  return proto;
}

void read_type(const onnx::TypeProto& type, Found& found) {
  const auto& tensor = type.tensor_type();
  found.element = tensor.elem_type();
  if (!tensor.has_shape() || static_cast<size_t>(tensor.shape().dim_size()) > kMaxRank) return;
  found.rank = tensor.shape().dim_size();
  for (int i = 0; i < found.rank; ++i) {
    const auto& dimension = tensor.shape().dim(i);
    found.extents[static_cast<size_t>(i)] =
        dimension.has_dim_value() ? dimension.dim_value() : kOpen;
  }
}

/// Runs in the forked process: infers the values `wanted`.
void infer(const Model& model, const std::vector<int32_t>& wanted, std::vector<Found>& found) {
  const rlimit time = {kMaxSeconds, kMaxSeconds};
  setrlimit(RLIMIT_CPU, &time);
  try {
    auto proto = flat_proto(model);
    const onnx::ShapeInferenceOptions options(false, 0, true);  // no checks, with data propagation
    onnx::shape_inference::InferShapes(proto, onnx::OpSchemaRegistry::Instance(), options);
    std::map<std::string_view, const onnx::TypeProto*> types;
    for (const auto& info : proto.graph().value_info()) types[info.name()] = &info.type();
    for (size_t i = 0; i < wanted.size(); ++i)
      if (const auto at = types.find(model.value(wanted[i]).name); at != types.end())
        read_type(*at->second, found[i]);
  } catch (const std::exception&) {  // shapes stay as in the file
  }
}

void take(const Model& model, const Found& found, Value& value) {
  if (value.element == 0) value.element = found.element;
  if (found.rank < 0) return;
  const auto rank = static_cast<size_t>(found.rank);
  if (!value.shape || (value.shape->empty() && model.opset <= kLastOpset))
    value.shape = Shape(rank, kOpen);
  if (value.shape->size() != rank) return;
  for (size_t i = 0; i < rank; ++i)
    if ((*value.shape)[i] == kOpen) (*value.shape)[i] = found.extents[i];
}

/// The library does not infer a Dropout's mask before opset 10.
void complete_mask(Model& model, const Node& node) {
  if (node.type != "Dropout" || node.outputs.size() < 2 || node.outputs[1] < 0 ||
      node.outputs[0] < 0)
    return;
  auto& mask = model.value(node.outputs[1]);
  const auto& data = model.value(node.outputs[0]);
  if (mask.shape) return;
  mask.shape = data.shape;
  mask.element = model.opset < 10 ? data.element : onnx::TensorProto::BOOL;
}

}  // namespace

void complete_shapes(Model& model) {
  std::vector<int32_t> wanted;
  for (size_t i = 0; i < model.values.size(); ++i) {
    const auto id = static_cast<int32_t>(i);
    const auto& value = model.value(id);
    if (value.producer < 0 || is_complete(model, value)) continue;
    if (model.opset > kLastOpset && !value.shape)
      throw FileError("{}: the file does not state the shape of value '{}' and has opset {}; shape inference supports "
                      "opsets up to {}; {}", model.source, clip(value.name), model.opset, kLastOpset, kAdvice);
    wanted.push_back(id);
  }
  if (wanted.empty()) return;
  onnx::OpSchemaRegistry::Schema("Relu");  // once per process, not in each fork
  std::vector<Found> found(wanted.size());
  try {
    call_apart("shape inference", found.data(), found.size() * sizeof(Found),
               [&] { infer(model, wanted, found); });
  } catch (const Error& error) {
    throw FileError("{}: {}; {}", model.source, error.what(), kAdvice);
  }
  for (size_t i = 0; i < wanted.size(); ++i) take(model, found[i], model.value(wanted[i]));
  for (const auto& node : model.nodes) complete_mask(model, node);
}

}  // namespace trinity::onnx_import
