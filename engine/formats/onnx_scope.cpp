#include "formats/onnx_scope.h"

#include <google/protobuf/unknown_field_set.h>

#include <vector>

namespace trinity::onnx_import {
namespace {

constexpr int kMetadataProps = 9;
constexpr size_t kLongest = 4096;  ///< bytes of a list of scopes that are looked at

/// The strings of a Python list of strings. Paths of modules have no quotes in them.
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

}  // namespace

std::string module_scope(const onnx::NodeProto& node) {
  const auto& unknown = node.GetReflection()->GetUnknownFields(node);
  for (int i = 0; i < unknown.field_count(); ++i) {
    const auto& field = unknown.field(i);
    if (field.number() != kMetadataProps ||
        field.type() != google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED)
      continue;
    onnx::StringStringEntryProto entry;
    if (!entry.ParseFromString(field.length_delimited()) ||
        entry.key() != "pkg.torch.onnx.name_scopes" || entry.value().size() > kLongest)
      continue;
    const auto scopes = quoted(entry.value());
    return scopes.size() < 2 ? "" : scopes[scopes.size() - 2];
  }
  return "";
}

}  // namespace trinity::onnx_import
