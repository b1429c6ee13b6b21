#include "formats/onnx/onnx_scope.h"

#include <google/protobuf/unknown_field_set.h>

#include <string_view>
#include <vector>

namespace trinity::onnx_import {
namespace {

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

}  // namespace

std::string module_scope(const onnx::NodeProto& node) {
  const auto text = scopes_of(node);
  if (text.size() > kLongest) return "";
  const auto scopes = quoted(text);
  return scopes.size() < 2 ? "" : scopes[scopes.size() - 2];
}

}  // namespace trinity::onnx_import
