#include "formats/onnx/onnx.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <sys/stat.h>

#include <filesystem>
#include <limits>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "formats/onnx/onnx_walk.h"
#include "graph/operator_types.h"

namespace trinity {
namespace {

using namespace onnx_import;

/// Protobuf's own limit for a message.
constexpr uintmax_t kMaxFileBytes = (uintmax_t{1} << 31) - 1;
/// Memory limit of a parsed model in addition to its encoded size.
constexpr uint64_t kMaxOverheadBytes = uint64_t{1} << 30;

using google::protobuf::FieldDescriptor;
using google::protobuf::io::CodedInputStream;
using google::protobuf::io::ZeroCopyInputStream;

// Bytes measured on Debian 12 and rounded up: per message of this schema, per string, per number of
// a list, per unknown field.
constexpr uint64_t kMessage = 192, kString = 64, kNumber = 16, kUnknown = 96;
constexpr int kMaxMessages = 100;  // protobuf's own

enum WireType : uint32_t { varint = 0, fixed64 = 1, delimited = 2, fixed32 = 5 };

class Scanner {
 public:
  Scanner(CodedInputStream& input, uint64_t limit) : input_(input), limit_(limit) {}

  bool within_limit() const { return overhead_ <= limit_; }

  /// True if a message was read to its end.
  bool message(const google::protobuf::Descriptor& type, int depth) {
    if (depth > kMaxMessages || !within_limit()) return false;
    while (const uint32_t tag = input_.ReadTag()) {
      const auto* field = type.FindFieldByNumber(static_cast<int>(tag >> 3));
      overhead_ += field ? 0 : kUnknown;
      if (!within_limit() || !value(tag & 7, field, depth)) return false;
    }
    return input_.ConsumedEntireMessage();
  }

 private:
  bool value(uint32_t wire, const FieldDescriptor* field, int depth) {
    uint64_t number = 0;
    uint32_t length = 0;
    overhead_ += field && field->is_repeated() ? kNumber : 0;
    switch (wire) {
      case varint:
        return input_.ReadVarint64(&number);
      case fixed64:
        return input_.Skip(8);
      case fixed32:
        return input_.Skip(4);
      case delimited:
        return input_.ReadVarint32(&length) &&
               length <= static_cast<uint32_t>(std::numeric_limits<int>::max()) &&
               block(static_cast<int>(length), field, depth);
      default:
        return false;  // groups are older than ONNX
    }
  }

  bool block(int length, const FieldDescriptor* field, int depth) {
    if (field && field->type() == FieldDescriptor::TYPE_MESSAGE) {
      overhead_ += kMessage;
      const auto limit = input_.PushLimit(length);
      const bool whole = message(*field->message_type(), depth + 1);
      input_.PopLimit(limit);
      return whole;
    }
    const auto type = field ? field->cpp_type() : FieldDescriptor::CPPTYPE_STRING;
    if (type == FieldDescriptor::CPPTYPE_STRING)
      overhead_ += kString;
    else if (type == FieldDescriptor::CPPTYPE_INT64 || type == FieldDescriptor::CPPTYPE_UINT64)
      overhead_ += 8 * static_cast<uint64_t>(length);  // packed, at least one byte per number
    else if (type == FieldDescriptor::CPPTYPE_INT32 || type == FieldDescriptor::CPPTYPE_ENUM)
      overhead_ += 4 * static_cast<uint64_t>(length);
    return input_.Skip(length);
  }

  CodedInputStream& input_;
  uint64_t limit_;
  uint64_t overhead_ = 0;
};

/// True if parsing a ModelProto is estimated to take at most `limit_bytes` of memory in addition to
/// its encoded size: a file of two-byte messages grows a hundredfold, weights do not grow. Reads
/// the stream to its end, to the limit or to the first damage, and keeps nothing.
bool parses_within(ZeroCopyInputStream& stream, uint64_t limit_bytes) {
  CodedInputStream input(&stream);
  Scanner scanner(input, limit_bytes);
  scanner.message(*onnx::ModelProto::descriptor(), 0);
  return scanner.within_limit();
}

/// `first` and `second` are two passes over the same bytes.
onnx::ModelProto parse(ZeroCopyInputStream& first, ZeroCopyInputStream& second,
                       const std::string& source) {
  if (!parses_within(first, kMaxOverheadBytes))
    throw FileError(source + ": has too many parts: parsed, they would exceed 1 GiB");
  onnx::ModelProto proto;
  if (!proto.ParsePartialFromZeroCopyStream(&second))
    throw FileError(source +
                    ": not an ONNX model: its protobuf is truncated, damaged or nested too deeply");
  if (!proto.has_graph()) throw FileError(source + ": contains no graph; is this an ONNX model?");
  return proto;
}

/// Protobuf input streams over a file.
class FileStream {
 public:
  explicit FileStream(const std::string& path) : file_(open_regular(path)) {
    stream_.emplace(file_.get());
  }
  uintmax_t bytes() const {
    struct stat about;
    return fstat(file_.get(), &about) == 0 ? static_cast<uintmax_t>(about.st_size) : 0;
  }
  ZeroCopyInputStream& stream() { return *stream_; }

 private:
  Descriptor file_;
  std::optional<google::protobuf::io::FileInputStream> stream_;
};

/// Types without a cost rule, sorted.
std::vector<std::string> unknown_types(const Graph& graph) {
  std::set<std::string> types;
  for (const auto& op : graph.operators())
    if (!has_operator_rule(op.type)) types.insert(op.type);
  return {types.begin(), types.end()};
}

void add_warnings(const Model& model, const Dimensions& dimensions,
                  std::vector<std::string>& warnings) {
  if (auto text = dimensions.report(); !text.empty()) warnings.push_back(std::move(text));
  if (model.control_flow > 0)
    warnings.push_back(
        fmt::format("nodes that hold subgraphs (If, Loop, Scan): {}; each is one "
                    "operator, whose inner nodes cost nothing",
                    model.control_flow));
}

Imported import_model(const onnx::ModelProto& proto, const std::string& source,
                      const std::string& graph_name, const OnnxOptions& options) {
  Dimensions dimensions(options);
  dimensions.check_options(proto.graph());
  auto model = load_model(proto, source);
  walk(model, dimensions);
  Imported imported;
  add_warnings(model, dimensions, imported.warnings);
  imported.graph = make_graph(model, graph_name, options, imported.warnings);
  imported.unknown_types = unknown_types(imported.graph);
  if (!imported.unknown_types.empty())
    imported.warnings.push_back(
        fmt::format("operators without a cost rule of their own count as element-wise: {}",
                    clip(fmt::format("{}", fmt::join(imported.unknown_types, ", ")))));
  return imported;
}

}  // namespace

Imported parse_onnx(std::string_view bytes, const std::string& source,
                    const std::string& graph_name, const OnnxOptions& options) {
  if (bytes.size() > kMaxFileBytes)
    throw FileError("{}: {} bytes, more than 2 GiB", source, bytes.size());
  const auto size = static_cast<int>(bytes.size());
  google::protobuf::io::ArrayInputStream first(bytes.data(), size), second(bytes.data(), size);
  return import_model(parse(first, second, source), source, graph_name, options);
}

Imported read_onnx(const std::string& path, const OnnxOptions& options) {
  FileStream first(path), second(path);
  const auto bytes = first.bytes();
  if (bytes > kMaxFileBytes)
    throw FileError("{}: cannot read: {} bytes, more than 2 GiB; weights can be stored in a file of their own", path,
                    bytes);
  const auto proto = parse(first.stream(), second.stream(), path);
  return import_model(proto, path, std::filesystem::path(path).stem().string(), options);
}

}  // namespace trinity

/// Entry point for scripts, which load this library lazily.
extern "C" void trinity_read_onnx(const std::string& path, const trinity::OnnxOptions& options,
                                  std::optional<trinity::Imported>& imported) {
  imported = trinity::read_onnx(path, options);
}
