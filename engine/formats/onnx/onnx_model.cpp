#include "formats/onnx/onnx_model.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "base/error.h"
#include "base/stop.h"
#include "base/utf8.h"
#include "graph/order.h"

namespace trinity::onnx_import {
namespace {

using onnx::TensorProto;

/// Types unknown to Debian's library: float8, 4-bit and 2-bit types.
constexpr int32_t kFirstNew = 17, kLastNew = 26;

class Loader {
 public:
  Loader(const onnx::ModelProto& proto, const std::string& source) : proto_(proto) {
    model_.source = source;
    model_.producer = proto.producer_name();
    for (const auto& import : proto.opset_import())
      if (import.domain().empty() || import.domain() == "ai.onnx") model_.opset = import.version();
  }

  Model run(FlatModel& flat) {
    for (const auto& tensor : graph().initializer()) initializer(tensor);
    for (const auto& tensor : graph().sparse_initializer()) sparse_initializer(tensor);
    for (const auto& input : graph().input()) graph_input(input);
    for (auto& node : flat.nodes) define_outputs(node);
    StopPoll stop;
    for (auto& node : flat.nodes) {
      connect(node);
      stop.step();
    }
    for (const auto& output : graph().output()) graph_output(output);
    for (const auto& info : graph().value_info()) declare(info);
    order();
    return std::move(model_);
  }

 private:
  const onnx::GraphProto& graph() const { return proto_.graph(); }

  template <class... Values>
  [[noreturn]] void fail(fmt::format_string<Values...> what, Values&&... values) const {
    throw FileError("{}: {}", model_.source, fmt::format(what, std::forward<Values>(values)...));
  }

  int32_t define(std::string_view name, const std::string& what) {
    if (!is_utf8(name)) fail("{} has a name that is not UTF-8", what);
    if (model_.values.size() >= kMaxValues)
      fail("has more than {} values", kMaxValues);
    const auto id = static_cast<int32_t>(model_.values.size());
    if (!ids_.emplace(name, id).second)
      fail("{} writes value '{}', which is defined already", what, clip(name));
    model_.values.emplace_back().name = name;
    return id;
  }

  void initializer(const TensorProto& tensor) {
    const auto owner = fmt::format("initializer '{}'", clip(tensor.name()));
    if (tensor.name().empty()) fail("an initializer has no name");
    auto& value = model_.value(define(tensor.name(), owner));
    value.initializer = true;
    value.role = Role::constant;
    value.element = tensor.data_type();
    value.shape = tensor_shape(tensor, model_.source + ": " + owner);
    value.tensor = &tensor;
  }

  /// Only the dense shape is used.
  void sparse_initializer(const onnx::SparseTensorProto& tensor) {
    const auto owner = fmt::format("sparse initializer '{}'", clip(tensor.values().name()));
    if (tensor.values().name().empty()) fail("a sparse initializer has no name");
    auto& value = model_.value(define(tensor.values().name(), owner));
    value.initializer = true;
    value.role = Role::constant;
    value.element = tensor.values().data_type();
    value.shape = Shape(tensor.dims().begin(), tensor.dims().end());
    check_shape(*value.shape, value.element, model_.source + ": " + owner);
  }

  /// Up to IR version 3, inputs include initializers.
  void graph_input(const onnx::ValueInfoProto& input) {
    if (input.name().empty()) fail("an input of the graph has no name");
    const auto known = ids_.find(input.name());
    if (known != ids_.end() && model_.value(known->second).initializer) {
      if (!inputs_.emplace(input.name()).second)
        fail("input '{}' is listed twice", clip(input.name()));
      return;
    }
    const int32_t id = define(input.name(), fmt::format("input '{}'", clip(input.name())));
    model_.value(id).declared = &input.type();
    model_.inputs.push_back(id);
  }

  void define_outputs(const FlatNode& flat) {
    Node node;
    node.name = flat.name;
    node.module = flat.module;
    node.type = qualified(flat);
    for (const auto name : flat.outputs) {
      node.outputs.push_back(-1);
      if (name.empty()) continue;
      const int32_t id = define(name, fmt::format("node '{}'", clip(node.name)));
      model_.value(id).producer = static_cast<int32_t>(model_.nodes.size());
      node.outputs.back() = id;
    }
    if (std::all_of(node.outputs.begin(), node.outputs.end(), [](int32_t id) { return id < 0; }))
      model_.fail(node, "has no outputs");
    model_.nodes.push_back(std::move(node));
  }

  /// Prevents types that only trinity has from being used in a file.
  static std::string qualified(const FlatNode& flat) {
    constexpr std::string_view own[] = {"Input", "Variable", "VariableV2", "Update", "LSTMCell"};
    const bool taken = std::find(std::begin(own), std::end(own), flat.type) != std::end(own);
    if (flat.domain.empty() && !taken) return std::string(flat.type);
    return fmt::format("{}.{}", flat.domain.empty() ? "ai.onnx" : flat.domain, flat.type);
  }

  void connect(FlatNode& flat) {
    auto& node = model_.nodes[connected_++];
    for (const auto name : flat.inputs) node.inputs.push_back(name.empty() ? -1 : find(node, name));
    for (const auto name : flat.captured) node.captured.push_back(find(node, name));
    node.attributes = std::move(flat.attributes);
  }

  int32_t find(const Node& node, std::string_view name) const {
    const auto found = ids_.find(name);
    if (found == ids_.end())
      model_.fail(node, fmt::format("reads undefined value '{}'", clip(name)));
    return found->second;
  }

  void graph_output(const onnx::ValueInfoProto& output) {
    const auto found = ids_.find(output.name());
    if (found == ids_.end())
      fail("no node writes output '{}'", clip(output.name()));
    model_.outputs.push_back(found->second);
    declare(output);
  }

  /// The first declaration with a shape is used: inputs, then outputs, then value_info.
  void declare(const onnx::ValueInfoProto& info) {
    const auto found = ids_.find(info.name());
    if (found == ids_.end() || model_.value(found->second).initializer) return;
    auto& declared = model_.value(found->second).declared;
    if (!declared || !declared->tensor_type().has_shape()) declared = &info.type();
  }

  /// Sorts nodes topologically, keeping the file's order where dependencies allow.
  void order() {
    std::vector<Arrow> arrows;
    for (size_t i = 0; i < model_.nodes.size(); ++i)
      for (const auto* reads : {&model_.nodes[i].inputs, &model_.nodes[i].captured})
        for (const int32_t id : *reads)
          if (id >= 0 && model_.value(id).producer >= 0)
            arrows.emplace_back(model_.value(id).producer, static_cast<int32_t>(i));
    const auto count = static_cast<int32_t>(model_.nodes.size());
    const auto taken = stable_order(count, arrows);
    if (taken.size() < model_.nodes.size())
      fail("its nodes form a cycle: {}", cycle_text(arrows, find_cycle(count, arrows),
                                                    [this](int32_t node) { return clip(model_.nodes[node].name); }));
    renumber(taken);
  }

  void renumber(const std::vector<int32_t>& taken) {
    std::vector<int32_t> number(taken.size());
    std::vector<Node> nodes;
    nodes.reserve(taken.size());
    for (size_t i = 0; i < taken.size(); ++i) {
      number[taken[i]] = static_cast<int32_t>(i);
      nodes.push_back(std::move(model_.nodes[taken[i]]));
    }
    model_.nodes = std::move(nodes);
    for (auto& value : model_.values)
      if (value.producer >= 0) value.producer = number[value.producer];
  }

  const onnx::ModelProto& proto_;
  Model model_;
  std::unordered_map<std::string_view, int32_t> ids_;
  std::set<std::string_view> inputs_;  // initializers listed as inputs
  size_t connected_ = 0;
};

}  // namespace

const onnx::AttributeProto* Node::attribute(std::string_view wanted) const {
  for (const auto& [key, found] : attributes)
    if (key == wanted) return found;
  return nullptr;
}

void Model::fail(const Node& node, const std::string& what) const {
  throw FileError("{}: node '{}' ({}): {}", source, clip(node.name), clip(node.type), what);
}

Model load_model(const onnx::ModelProto& proto, const std::string& source) {
  auto flat = flatten(proto, source);
  auto model = Loader(proto, source).run(flat);
  model.texts = std::move(flat.texts);
  model.defaults = std::move(flat.defaults);
  model.control_flow = flat.control_flow;
  return model;
}

int64_t element_bytes(int32_t element) {
  constexpr int64_t bytes[] = {0, 4, 1, 1, 2, 2, 4, 8, 0, 1, 2, 8, 4, 8, 8, 16, 2};
  if (element >= 0 && element < kFirstNew) return bytes[element];
  return element <= kLastNew && element > 0 ? 1 : 0;
}

bool is_floating(int32_t element) {
  return element == TensorProto::FLOAT || element == TensorProto::FLOAT16 ||
         element == TensorProto::DOUBLE || element == TensorProto::BFLOAT16;
}

bool is_small_integer(int32_t element) {
  return element == TensorProto::INT8 || element == TensorProto::UINT8 ||
         (element >= kFirstNew && element <= kLastNew);
}

std::string shape_problem(const Shape& shape, int32_t element) {
  if (shape.size() > kMaxRank)
    return fmt::format("has {} dimensions, more than {}", shape.size(), kMaxRank);
  int64_t bytes = std::max<int64_t>(1, element_bytes(element));
  for (const int64_t extent : shape) {
    if (extent < 0) return fmt::format("has a negative dimension, {}", extent);
    if (__builtin_mul_overflow(bytes, std::max<int64_t>(1, extent), &bytes) || bytes > kMaxBytes)
      return "has more than 2^50 bytes";
  }
  return "";
}

void check_shape(const Shape& shape, int32_t element, const std::string& owner) {
  if (const auto problem = shape_problem(shape, element); !problem.empty())
    throw FileError(owner + " " + problem);
}

int64_t element_count(const Shape& shape) {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  return count;
}

bool is_vector(const Shape& shape) {
  return std::count_if(shape.begin(), shape.end(), [](int64_t extent) { return extent != 1; }) <= 1;
}

std::string clip(std::string_view text) {
  std::string cut(text);
  if (text.size() > kMaxText) {
    size_t length = kMaxText - 3;
    while (length > 0 && (static_cast<unsigned char>(text[length]) & 0xC0) == 0x80) --length;
    cut = std::string(text.substr(0, length)) + "...";
  }
  if (!is_utf8(cut))
    for (char& c : cut)
      if (static_cast<unsigned char>(c) >= 0x80) c = '?';
  for (char& c : cut)
    if (static_cast<unsigned char>(c) < 0x20) c = '?';
  return cut;
}

Shape tensor_shape(const TensorProto& tensor, const std::string& owner) {
  if (static_cast<size_t>(tensor.dims_size()) > kMaxRank)
    throw FileError("{} has {} dimensions, more than {}", owner, tensor.dims_size(), kMaxRank);
  Shape shape(tensor.dims().begin(), tensor.dims().end());
  check_shape(shape, tensor.data_type(), owner);
  return shape;
}

std::pair<int32_t, Shape> constant_type(const Model& model, const Node& node) {
  const auto owner = fmt::format("{}: node '{}' (Constant)", model.source, clip(node.name));
  if (const auto* value = node.attribute("value"))
    return {value->t().data_type(), tensor_shape(value->t(), owner)};
  if (const auto* value = node.attribute("sparse_value")) {
    const auto& sparse = value->sparse_tensor();
    Shape shape(sparse.dims().begin(), sparse.dims().end());
    check_shape(shape, sparse.values().data_type(), owner);
    return {sparse.values().data_type(), shape};
  }
  if (node.attribute("value_int")) return {TensorProto::INT64, {}};
  if (const auto* value = node.attribute("value_ints"))
    return {TensorProto::INT64, {value->ints_size()}};
  if (node.attribute("value_float")) return {TensorProto::FLOAT, {}};
  if (const auto* value = node.attribute("value_floats"))
    return {TensorProto::FLOAT, {value->floats_size()}};
  if (const auto* value = node.attribute("value_strings"))
    return {TensorProto::STRING, {value->strings_size()}};
  return {TensorProto::STRING, {}};  // value_string
}

}  // namespace trinity::onnx_import
