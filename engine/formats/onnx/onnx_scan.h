#pragma once

#include <google/protobuf/io/zero_copy_stream.h>

#include <cstdint>

namespace trinity::onnx_import {

/// True if parsing a ModelProto is estimated to take at most `limit_bytes` of memory in addition to
/// its encoded size: a file of two-byte messages grows a hundredfold, weights do not grow. Reads
/// the stream to its end, to the limit or to the first damage, and keeps nothing.
bool parses_within(google::protobuf::io::ZeroCopyInputStream& stream, uint64_t limit_bytes);

}  // namespace trinity::onnx_import
