#include "formats/onnx/onnx_walk.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "base/error.h"
#include "base/utf8.h"
#include "graph/operator_types.h"

namespace trinity::onnx_import {
namespace {

using onnx::AttributeProto;
using onnx::TensorProto;

DType dtype_of(int32_t element) {
  switch (element) {
    case TensorProto::UINT8:
      return DType::uint8;
    case TensorProto::INT8:
      return DType::int8;
    case TensorProto::UINT16:
    case TensorProto::INT16:
      return DType::int16;
    case TensorProto::INT32:
    case TensorProto::UINT32:
      return DType::int32;
    case TensorProto::INT64:
    case TensorProto::UINT64:
      return DType::int64;
    case TensorProto::BOOL:
      return DType::boolean;
    case TensorProto::FLOAT16:
      return DType::float16;
    case TensorProto::BFLOAT16:
      return DType::bfloat16;
    case TensorProto::DOUBLE:
    case TensorProto::COMPLEX64:
    case TensorProto::COMPLEX128:
      return DType::float64;
    case TensorProto::STRING:
      return DType::int8;
    default:
      return element_bytes(element) == 1 ? DType::uint8 : DType::float32;
  }
}

/// True for types without a DType; another type of similar size replaces them.
bool is_odd(int32_t element) {
  return element == TensorProto::STRING || element == TensorProto::COMPLEX64 ||
         element == TensorProto::COMPLEX128 || element > TensorProto::BFLOAT16;
}

/// A use of a weight: an argument of a node, or argument -1 for its subgraphs.
struct Read {
  int32_t node, argument;
};

/// Where a weight is stored.
enum class Home : uint8_t { unread, reader, copies, variable };

class Maker {
 public:
  Maker(const Model& model, const std::string& name, const OnnxOptions& options,
        std::vector<std::string>& warnings)
      : model_(model),
        options_(options),
        warnings_(warnings),
        builder_(name),
        alive_(model.nodes.size(), false),
        reads_(model.values.size()),
        homes_(model.values.size(), Home::unread),
        tensors_(model.values.size(), -1) {}

  Graph run() {
    find_alive();
    find_reads();
    try {
      for (const int32_t input : model_.inputs) add_source(input, "Input", {});
      for (size_t id = 0; id < homes_.size(); ++id) settle_home(static_cast<int32_t>(id));
      for (size_t i = 0; i < model_.nodes.size(); ++i)
        if (alive_[i]) add_node(static_cast<int32_t>(i));
      add_warnings();
      return builder_.build();
    } catch (const ArgumentError& error) {
      throw FileError("{}: {}", model_.source, error.what());
    } catch (const LimitError& error) {
      throw FileError("{}: {}", model_.source, error.what());
    }
  }

 private:
  const Node& node(int32_t id) const { return model_.nodes[id]; }

  /// Finds nodes from which an output of the graph is reached (all nodes, if it declares no
  /// outputs). Nodes that only folded nodes read are dropped.
  void find_alive() {
    std::vector<int32_t> pending;
    const auto reach = [&](int32_t value) {
      const int32_t producer = value < 0 ? -1 : model_.value(value).producer;
      if (producer < 0 || alive_[producer] || node(producer).folded) return;
      alive_[producer] = true;
      pending.push_back(producer);
    };
    for (const int32_t output : model_.outputs) reach(output);
    if (model_.outputs.empty())
      for (size_t i = 0; i < model_.nodes.size(); ++i) alive_[i] = !model_.nodes[i].folded;
    while (!pending.empty()) {
      const auto& from = node(pending.back());
      pending.pop_back();
      for (const auto* values : {&from.inputs, &from.captured})
        for (const int32_t value : *values) reach(value);
    }
    for (size_t i = 0; i < alive_.size(); ++i)
      if (!alive_[i] && !model_.nodes[i].folded)
        dropped_.add(fmt::format("'{}'", clip(model_.nodes[i].name)));
  }

  void find_reads() {
    for (size_t i = 0; i < alive_.size(); ++i) {
      if (!alive_[i]) continue;
      const auto& reader = model_.nodes[i];
      for (size_t k = 0; k < reader.inputs.size(); ++k)
        if (reads_weight(model_, reader, k))
          add_read(reader.inputs[k], {static_cast<int32_t>(i), static_cast<int32_t>(k)});
      for (const int32_t value : reader.captured)
        if (captures_weight(model_, value)) add_read(value, {static_cast<int32_t>(i), -1});
    }
  }

  void add_read(int32_t value, Read read) { reads_[model_.value(value).origin].push_back(read); }

  /// A weight belongs to its only reader if that also reads data. An operator on weights alone (a
  /// Transpose of a table) cannot own them. A table belongs to the operator that indexes it.
  bool may_own(const Read& read) const {
    const auto& reader = node(read.node);
    if (reader.type == "Einsum") return false;  // its cost rule needs all operands as inputs
    if (reader.type.starts_with("Gather") && read.argument == 0) return true;
    for (size_t i = 0; i < reader.inputs.size(); ++i)
      if (reader.inputs[i] >= 0 && model_.value(reader.inputs[i]).role == Role::activation)
        return true;
    return std::any_of(reader.captured.begin(), reader.captured.end(),
                       [&](int32_t value) { return model_.value(value).role == Role::activation; });
  }

  void settle_home(int32_t id) {
    const auto& reads = reads_[id];
    if (reads.empty()) return;
    const auto& value = model_.value(id);
    auto& home = homes_[id];
    const bool all_own =
        std::all_of(reads.begin(), reads.end(), [&](const Read& read) { return may_own(read); });
    if (reads.size() == 1 && all_own) {
      home = Home::reader;
    } else if (all_own && options_.copy_shared_vectors && is_vector(*value.shape) &&
               !read_inside(reads)) {
      home = Home::copies;
      copied_.add(fmt::format("'{}' by {}", clip(value.name), reads.size()));
    } else {
      home = Home::variable;
      std::vector<Parameter> owned;
      const auto& first = reads.front();
      owned.push_back(parameter(id, node(first.node), first.argument));
      add_source(id, "Variable", std::move(owned));
    }
  }

  /// True if a subgraph reads the vector; its use there is unknown.
  static bool read_inside(const std::vector<Read>& reads) {
    return std::any_of(reads.begin(), reads.end(),
                       [](const Read& read) { return read.argument < 0; });
  }

  Parameter parameter(int32_t id, const Node& reader, int32_t argument) const {
    const auto& value = model_.value(id);
    Parameter made;
    made.name = std::string(value.name);
    made.shape = *value.shape;
    made.dtype = dtype_of(value.element);
    made.trainable = argument < 0
                         ? is_floating(value.element)
                         : is_trainable(reader, static_cast<size_t>(argument), value.element);
    return made;
  }

  /// Adds operators without inputs; data get no gradient, weights do.
  void add_source(int32_t id, const char* type, std::vector<Parameter> parameters) {
    Operator op;
    op.name = unique(model_.value(id).name, "");
    op.type = type;
    op.parameters = std::move(parameters);
    const int32_t added = builder_.add_operator(std::move(op));
    Tensor made = tensor(id);
    made.gradient = made.gradient && is_variable(builder_.op(added));
    tensors_[id] = builder_.add_output(added, std::move(made));
  }

  Tensor tensor(int32_t id) {
    const auto& value = model_.value(id);
    Tensor made;
    made.name = std::string(value.name);
    made.dtype = dtype_of(value.element);
    made.gradient = value.element == 0 || is_floating(value.element);
    if (is_odd(value.element)) odd_.add(fmt::format("'{}'", clip(value.name)));
    if (!value.shape) {
      shapeless_.add(fmt::format("'{}'", clip(value.name)));
    } else {
      made.shape = *value.shape;
      if (made.shape.empty()) made.bytes = dtype_bytes(made.dtype);
    }
    return made;
  }

  /// `name`, or `other` if the first is empty or taken, or that with a number.
  std::string unique(std::string_view name, std::string_view other) {
    if (name.empty()) name = other;
    if (builder_.find(name) < 0) return std::string(name);
    if (!other.empty() && builder_.find(other) < 0) return std::string(other);
    auto& next = numbers_.try_emplace(std::string(name), 2).first->second;
    std::string made;
    do made = fmt::format("{}_{}", name, next++);
    while (builder_.find(made) >= 0);
    return made;
  }

  void add_node(int32_t id) {
    const auto& from = node(id);
    Operator op;
    std::string_view output;
    for (const int32_t value : from.outputs)
      if (value >= 0 && output.empty()) output = model_.value(value).name;
    op.name = unique(from.name, output);
    op.type = from.type;
    add_attributes(from, op);
    if (!from.module.empty() && is_utf8(from.module)) op.attributes["module"] = from.module;
    std::vector<int64_t> positions;
    for (size_t i = 0; i < from.inputs.size(); ++i) add_argument(id, i, op, positions);
    for (const int32_t value : from.captured) add_captured(id, value, op);
    add_inner_weights(from, op);
    for (size_t i = 0; i < positions.size(); ++i)
      if (positions[i] != static_cast<int64_t>(op.inputs.size() + i)) {
        op.attributes["parameter_inputs"] = positions;
        break;
      }
    std::vector<Tensor> outputs;
    for (const int32_t value : from.outputs)
      if (value >= 0) outputs.push_back(tensor(value));
    op.flops = cost(from, op, outputs);
    const int32_t added = builder_.add_operator(std::move(op));
    auto made = outputs.begin();
    for (const int32_t value : from.outputs)
      if (value >= 0) tensors_[value] = builder_.add_output(added, std::move(*made++));
  }

  void add_argument(int32_t id, size_t argument, Operator& op, std::vector<int64_t>& positions) {
    const auto& from = node(id);
    const int32_t value = from.inputs[argument];
    if (value < 0) return;
    if (reads_weight(model_, from, argument)) {
      const int32_t origin = model_.value(value).origin;
      if (homes_[origin] == Home::variable) {
        op.inputs.push_back(tensors_[origin]);
        return;
      }
      op.parameters.push_back(parameter(origin, from, static_cast<int32_t>(argument)));
      positions.push_back(static_cast<int64_t>(argument));
    } else if (model_.value(value).role == Role::activation) {
      op.inputs.push_back(tensors_[value]);
    }
  }

  void add_captured(int32_t id, int32_t value, Operator& op) {
    const auto& from = model_.value(value);
    if (from.role == Role::activation) {
      op.inputs.push_back(tensors_[value]);
    } else if (captures_weight(model_, value)) {
      if (homes_[from.origin] == Home::variable)
        op.inputs.push_back(tensors_[from.origin]);
      else
        op.parameters.push_back(parameter(from.origin, node(id), -1));
    }
  }

  /// Adds weights stored in the subgraphs of control flow.
  void add_inner_weights(const Node& from, Operator& op) const {
    for (const auto& [name, attribute] : from.attributes) {
      if (attribute->has_g()) add_initializers(attribute->g(), op);
      for (const auto& graph : attribute->graphs()) add_initializers(graph, op);
    }
  }

  void add_initializers(const onnx::GraphProto& graph, Operator& op) const {
    for (const auto& tensor : graph.initializer()) {
      if (!is_floating(tensor.data_type()) || tensor.dims().empty()) continue;
      Parameter made;
      made.name = clip(tensor.name());
      made.shape = std::vector<int64_t>(tensor.dims().begin(), tensor.dims().end());
      made.dtype = dtype_of(tensor.data_type());
      check_shape(made.shape, tensor.data_type(),
                  fmt::format("{}: initializer '{}' of a subgraph", model_.source, made.name));
      op.parameters.push_back(std::move(made));
    }
    for (const auto& node : graph.node())
      for (const auto& attribute : node.attribute()) {
        if (attribute.has_g()) add_initializers(attribute.g(), op);
        for (const auto& inner : attribute.graphs()) add_initializers(inner, op);
      }
  }

  /// Integers, floats, strings and lists of integers; the first of a name counts.
  static void add_attributes(const Node& from, Operator& op) {
    for (const auto& [name, attribute] : from.attributes) {
      if (!is_utf8(name)) continue;
      const std::string key(name);
      if (attribute->has_i())
        op.attributes.emplace(key, attribute->i());
      else if (attribute->has_f() && std::isfinite(attribute->f()))
        op.attributes.emplace(key, static_cast<double>(attribute->f()));
      else if (attribute->has_s() && is_utf8(attribute->s()))
        op.attributes.emplace(key, attribute->s());
      else if (attribute->ints_size() > 0)
        op.attributes.emplace(
            key, std::vector<int64_t>(attribute->ints().begin(), attribute->ints().end()));
    }
  }

  /// FLOP by forward_flops(), which finds the weights of convolutions and recurrent operators among
  /// the parameters and the operands of matmuls among the inputs, wherever they are stored here.
  double cost(const Node& from, const Operator& op, const std::vector<Tensor>& outputs) const {
    Operator like;
    like.type = op.type;
    like.attributes = op.attributes;
    const bool weighted = from.type.starts_with("Conv") || from.type == "LSTM" ||
                          from.type == "GRU" || from.type == "RNN";
    std::vector<Tensor> arguments;
    for (size_t i = 0; i < from.inputs.size(); ++i) {
      Tensor made;
      if (from.inputs[i] >= 0) {
        const auto& value = model_.value(from.inputs[i]);
        made.dtype = dtype_of(value.element);
        if (value.shape) made.shape = *value.shape;
        made.bytes = value.shape ? element_count(made.shape) * dtype_bytes(made.dtype) : 0;
      }
      if (weighted && (i == 1 || i == 2) && from.inputs[i] >= 0)  // W and R, or W and bias
        like.parameters.push_back({"", made.shape, made.dtype});
      else
        arguments.push_back(std::move(made));
    }
    std::vector<const Tensor*> inputs, results;
    for (const auto& argument : arguments) inputs.push_back(&argument);
    std::vector<Tensor> sized = outputs;
    for (auto& output : sized) {
      if (!output.shape.empty())
        output.bytes = element_count(output.shape) * dtype_bytes(output.dtype);
      results.push_back(&output);
    }
    return forward_flops(like, inputs, results);
  }

  void add_warnings() {
    const auto add = [&](const Finding& finding, const char* what, const char* rest) {
      if (finding.count > 0)
        warnings_.push_back(
            fmt::format("{}: {} (the first: {}){}", what, finding.count, finding.first, rest));
    };
    add(dropped_, "nodes that reach no output of the graph and were left out", "");
    add(shapeless_, "tensors of unknown shape, which count as empty", "");
    add(copied_, "vectors of weights that several operators read",
        "; each reader got a copy, because exporters merge weights of equal values (option "
        "copy_shared_vectors)");
    add(odd_, "tensors of text, complex numbers or another type that trinity does not have",
        "; the nearest type is used instead");
  }

  const Model& model_;
  const OnnxOptions& options_;
  std::vector<std::string>& warnings_;
  GraphBuilder builder_;
  std::vector<bool> alive_;               // [node]
  std::vector<std::vector<Read>> reads_;  // [value]: uses as a weight
  std::vector<Home> homes_;               // [value]
  std::vector<int32_t> tensors_;          // [value]: the builder's tensor, or -1
  std::unordered_map<std::string, int> numbers_;
  Finding dropped_, shapeless_, copied_, odd_;
};

}  // namespace

Graph make_graph(const Model& model, const std::string& name, const OnnxOptions& options,
                 std::vector<std::string>& warnings) {
  return Maker(model, name, options, warnings).run();
}

}  // namespace trinity::onnx_import
