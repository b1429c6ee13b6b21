#include "formats/onnx/onnx_scan.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>
#include <onnx/onnx_pb.h>

#include <limits>

namespace trinity::onnx_import {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::io::CodedInputStream;

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
  bool message(const Descriptor& type, int depth) {
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

}  // namespace

bool parses_within(google::protobuf::io::ZeroCopyInputStream& stream, uint64_t limit_bytes) {
  CodedInputStream input(&stream);
  Scanner scanner(input, limit_bytes);
  scanner.message(*onnx::ModelProto::descriptor(), 0);
  return scanner.within_limit();
}

}  // namespace trinity::onnx_import
