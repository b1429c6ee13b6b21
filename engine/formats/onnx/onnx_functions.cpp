#include "formats/onnx/onnx_model.h"

#include <google/protobuf/unknown_field_set.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "base/utf8.h"

namespace trinity::onnx_import {
namespace {

constexpr int kMaxCalls = 32;
constexpr size_t kMaxExpandedNodes = size_t{1} << 18;
constexpr size_t kMaxExpandedBytes = size_t{1} << 25;
constexpr size_t kNameBytes = 32;   // assumed per name, in addition to its text
constexpr int kDefaultsField = 11;  // FunctionProto.attribute_proto, newer than Debian's library

[[maybe_unused]] constexpr int kMetadataProps = 9;
constexpr size_t kLongest = 4096;  ///< bytes of a list of scopes that are read

/// The strings of a Python list of strings. Module paths contain no quotes.
std::vector<std::string> quoted(const std::string& text) {
  std::vector<std::string> entries;
  size_t at = 0;
  while ((at = text.find_first_of("'\"", at)) != std::string::npos) {
    const size_t end = text.find(text[at], at + 1);
    if (end == std::string::npos) break;
    entries.push_back(text.substr(at + 1, end - at - 1));
    at = end + 1;
  }
  return entries;
}

/// The scopes of a node in the metadata written by PyTorch's exporter; or empty.
template <class Node>
std::string scopes_of(const Node& node) {
  constexpr std::string_view kKey = "pkg.torch.onnx.name_scopes";
  if constexpr (requires { node.metadata_props(); }) {
    for (const auto& entry : node.metadata_props())
      if (entry.key() == kKey) return entry.value();
  } else {  // ONNX before 1.16 lacks the field
    const auto& unknown = node.GetReflection()->GetUnknownFields(node);
    for (int i = 0; i < unknown.field_count(); ++i) {
      const auto& field = unknown.field(i);
      onnx::StringStringEntryProto entry;
      if (field.number() == kMetadataProps &&
          field.type() == google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED &&
          entry.ParseFromString(field.length_delimited()) && entry.key() == kKey)
        return entry.value();
    }
  }
  return "";
}

/// The PyTorch module that a node was exported from, as named by `model.named_modules()`, or "".
/// Current PyTorch exporters write the path into the node's metadata (NodeProto.metadata_props,
/// field 9, newer than the installed ONNX) under "pkg.torch.onnx.name_scopes": a Python list like
/// ['', 'layer1', 'layer1.0', 'layer1.0.conv1', 'conv2d_5'], whose last entry is the operation.
std::string module_scope(const onnx::NodeProto& node) {
  const auto text = scopes_of(node);
  if (text.size() > kLongest) return "";
  const auto scopes = quoted(text);
  return scopes.size() < 2 ? "" : scopes[scopes.size() - 2];
}

bool standard_domain(std::string_view domain) { return domain.empty() || domain == "ai.onnx"; }

/// Names visible in a call's body, and their names in the flat model. The main graph has no scope;
/// its names are unchanged.
struct Scope {
  std::unordered_map<std::string_view, std::string_view> names;
  std::map<std::string_view, const onnx::AttributeProto*> attributes;
  std::string prefix;
};

/// Names that a graph reads but does not define, in the order of first appearance.
class FreeNames {
 public:
  std::vector<std::string_view> of(const onnx::NodeProto& node) {
    for (const auto& attribute : node.attribute()) collect(attribute);
    return std::move(found_);
  }

 private:
  void collect(const onnx::AttributeProto& attribute) {
    if (attribute.has_g()) collect(attribute.g());
    for (const auto& graph : attribute.graphs()) collect(graph);
  }

  /// `bound_` counts the enclosing graphs that define a name.
  void collect(const onnx::GraphProto& graph) {
    std::vector<std::string_view> defined;
    const auto define = [&](std::string_view name) { defined.push_back(name); };
    for (const auto& input : graph.input()) define(input.name());
    for (const auto& tensor : graph.initializer()) define(tensor.name());
    for (const auto& tensor : graph.sparse_initializer()) define(tensor.values().name());
    for (const auto& node : graph.node())
      for (const auto& output : node.output()) define(output);
    for (const auto name : defined) ++bound_[name];
    for (const auto& node : graph.node()) {
      for (const auto& input : node.input()) read(input);
      for (const auto& attribute : node.attribute()) collect(attribute);
    }
    for (const auto& output : graph.output()) read(output.name());
    for (const auto name : defined) --bound_[name];
  }

  void read(std::string_view name) {
    if (name.empty()) return;
    const auto bound = bound_.find(name);
    if (bound != bound_.end() && bound->second > 0) return;
    if (seen_.insert(name).second) found_.push_back(name);
  }

  std::unordered_map<std::string_view, int> bound_;
  std::unordered_set<std::string_view> seen_;
  std::vector<std::string_view> found_;
};

class Flattener {
 public:
  Flattener(const onnx::ModelProto& proto, const std::string& source)
      : proto_(proto), source_(source) {
    for (const auto& function : proto.functions()) {
      const auto domain = standard_domain(function.domain()) ? "" : function.domain();
      functions_.emplace(std::pair(domain, std::string_view(function.name())), &function);
    }
  }

  FlatModel run() {
    if (static_cast<size_t>(proto_.graph().node_size()) > kMaxNodes)
      fail("the graph",
           fmt::format("has {} nodes, more than {}", proto_.graph().node_size(), kMaxNodes));
    for (const auto& node : proto_.graph().node()) add(node, nullptr, 0);
    return std::move(flat_);
  }

 private:
  [[noreturn]] void fail(std::string_view what, const std::string& why) const {
    throw FileError("{}: {} {}", source_, what, why);
  }

  std::string_view keep(std::string text) { return flat_.texts.emplace_back(std::move(text)); }

  const onnx::FunctionProto* function_of(const onnx::NodeProto& node) const {
    const auto domain = standard_domain(node.domain()) ? "" : node.domain();
    const auto found = functions_.find({domain, std::string_view(node.op_type())});
    return found == functions_.end() ? nullptr : found->second;
  }

  void add(const onnx::NodeProto& node, Scope* scope, int depth) {
    FlatNode flat = translate(node, scope);
    if (scope) count(1, node.ByteSizeLong() + scope->prefix.size());
    const auto* function = function_of(node);
    if (!function) {
      if (!flat.captured.empty() || standard_control(flat)) ++flat_.control_flow;
      flat_.nodes.push_back(std::move(flat));
      return;
    }
    if (depth >= kMaxCalls)
      fail(fmt::format("node '{}'", clip(flat.name)),
           fmt::format("calls function '{}': functions nest deeper than {}", clip(node.op_type()),
                       kMaxCalls));
    expand(flat, *function, depth);
  }

  static bool standard_control(const FlatNode& node) {
    return node.domain.empty() && (node.type == "If" || node.type == "Loop" || node.type == "Scan");
  }

  /// Limits the growth of nested calls.
  void count(size_t nodes, size_t bytes) {
    expanded_nodes_ += nodes;
    expanded_bytes_ += bytes;
    if (expanded_nodes_ > kMaxExpandedNodes || expanded_bytes_ > kMaxExpandedBytes)
      fail("the model's functions", fmt::format("expand to more than {} nodes or {} bytes",
                                                kMaxExpandedNodes, kMaxExpandedBytes));
  }

  /// A node as it appears in the flat model.
  FlatNode translate(const onnx::NodeProto& node, Scope* scope) {
    FlatNode flat;
    flat.domain = standard_domain(node.domain()) ? std::string_view() : node.domain();
    flat.type = node.op_type();
    for (const auto& name : node.output()) flat.outputs.push_back(resolve(name, scope));
    for (const auto& name : node.input()) flat.inputs.push_back(resolve(name, scope));
    flat.name = label(node, flat, scope);
    flat.module = module_scope(node);
    for (const auto* text : {&node.name(), &node.domain(), &node.op_type()})
      if (!is_utf8(*text)) fail("a node", "has a name, domain or type that is not UTF-8");
    if (node.op_type().empty())
      fail(fmt::format("node '{}'", clip(flat.name)), "has no operator type");
    for (const auto& attribute : node.attribute()) {
      const auto* value = scope ? referred(attribute, *scope) : &attribute;
      if (!value) continue;
      if (scope && value != &attribute) count(0, value->ByteSizeLong());
      flat.attributes.emplace_back(attribute.name(), value);
    }
    for (const auto name : FreeNames().of(node)) flat.captured.push_back(resolve(name, scope));
    return flat;
  }

  static std::string label(const onnx::NodeProto& node, const FlatNode& flat, const Scope* scope) {
    if (!node.name().empty()) return scope ? scope->prefix + node.name() : node.name();
    for (const auto name : flat.outputs)
      if (!name.empty()) return std::string(name);
    return (scope ? scope->prefix : "") + node.op_type();
  }

  static const onnx::AttributeProto* referred(const onnx::AttributeProto& attribute,
                                              const Scope& scope) {
    if (attribute.ref_attr_name().empty()) return &attribute;
    const auto found = scope.attributes.find(attribute.ref_attr_name());
    return found == scope.attributes.end() ? nullptr : found->second;
  }

  /// The outer name of a name inside a call. A new name is a value of the body.
  std::string_view resolve(std::string_view name, Scope* scope) {
    if (!scope || name.empty()) return name;
    const auto found = scope->names.find(name);
    if (found != scope->names.end()) return found->second;
    const auto made = keep(fmt::format("{}{}", scope->prefix, name));
    count(0, made.size() + kNameBytes);
    scope->names.emplace(name, made);
    return made;
  }

  void expand(const FlatNode& call, const onnx::FunctionProto& function, int depth) {
    const auto owner = fmt::format("node '{}'", clip(call.name));
    if (call.inputs.size() > static_cast<size_t>(function.input_size()) ||
        call.outputs.size() > static_cast<size_t>(function.output_size()))
      fail(owner, fmt::format("passes {} inputs to and takes {} outputs from function '{}', which "
                              "has {} and {}",
                              call.inputs.size(), call.outputs.size(), clip(function.name()),
                              function.input_size(), function.output_size()));
    const auto& defaults = defaults_of(function);
    count(0, 16 * (static_cast<size_t>(function.input_size() + function.output_size()) +
                   defaults.size()));
    Scope scope;
    scope.prefix = unique_prefix(call.name);
    for (int i = 0; i < function.input_size(); ++i) {
      const auto at = static_cast<size_t>(i);
      scope.names[function.input(i)] = at < call.inputs.size() ? call.inputs[at] : "";
    }
    for (size_t i = 0; i < call.outputs.size(); ++i) {
      const auto& inner = function.output(static_cast<int>(i));
      if (call.outputs[i].empty()) continue;
      if (!scope.names.emplace(inner, call.outputs[i]).second)
        fail(owner, fmt::format("calls function '{}', whose output '{}' is an input or repeats",
                                clip(function.name()), clip(inner)));
    }
    for (const auto* attribute : defaults) scope.attributes[attribute->name()] = attribute;
    for (const auto& [name, attribute] : call.attributes) scope.attributes[name] = attribute;
    for (const auto& node : function.node()) add(node, &scope, depth + 1);
  }

  /// Makes the prefix of a call unique, because two calls may share a name.
  std::string unique_prefix(const std::string& call) {
    const int times = ++prefixes_[call];
    return times == 1 ? call + "/" : fmt::format("{}#{}/", call, times);
  }

  /// Default attributes of a function, which Debian's library stores as an unknown field.
  const std::vector<const onnx::AttributeProto*>& defaults_of(const onnx::FunctionProto& function) {
    const auto [entry, fresh] = defaults_.try_emplace(&function);
    if (!fresh) return entry->second;
    const auto& unknown = function.unknown_fields();
    for (int i = 0; i < unknown.field_count(); ++i) {
      const auto& field = unknown.field(i);
      if (field.number() != kDefaultsField ||
          field.type() != google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED)
        continue;
      auto& parsed = flat_.defaults.emplace_back();
      if (parsed.ParsePartialFromString(field.length_delimited())) entry->second.push_back(&parsed);
    }
    return entry->second;
  }

  const onnx::ModelProto& proto_;
  const std::string& source_;
  std::map<std::pair<std::string, std::string_view>, const onnx::FunctionProto*> functions_;
  std::map<const onnx::FunctionProto*, std::vector<const onnx::AttributeProto*>> defaults_;
  std::unordered_map<std::string, int> prefixes_;
  size_t expanded_nodes_ = 0, expanded_bytes_ = 0;
  FlatModel flat_;
};

}  // namespace

FlatModel flatten(const onnx::ModelProto& proto, const std::string& source) {
  return Flattener(proto, source).run();
}

}  // namespace trinity::onnx_import
