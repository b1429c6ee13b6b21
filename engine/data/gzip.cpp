#include "data/gzip.h"

#include <zlib.h>

#include <algorithm>

#include "base/error.h"
#include "base/stop.h"

namespace trinity {
namespace {

[[noreturn]] void damaged(const std::string& path, const std::string& reason) {
  throw FileError("{}: {}", path, reason);
}

}  // namespace

std::string decompressed(const std::string& path, const std::string& content, size_t most_bytes) {
  z_stream stream{};
  if (inflateInit2(&stream, 16 + MAX_WBITS) != Z_OK) damaged(path, "not enough memory to "
                                                                   "decompress it");
  const std::unique_ptr<z_stream, int (*)(z_stream*)> closing(&stream, inflateEnd);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  const auto* const end = stream.next_in + content.size();
  std::string text, part(1 << 18, '\0');
  int state = Z_OK;
  while (state == Z_OK) {
    poll_stop();
    stream.avail_in = static_cast<uInt>(std::min<std::ptrdiff_t>(end - stream.next_in, 1 << 30));
    stream.next_out = reinterpret_cast<Bytef*>(part.data());
    stream.avail_out = static_cast<uInt>(part.size());
    state = inflate(&stream, Z_NO_FLUSH);
    text.append(part.data(), part.size() - stream.avail_out);
    if (text.size() > most_bytes)
      damaged(path, fmt::format("expected at most {} bytes, decompressed", most_bytes));
    if (state == Z_OK && stream.next_in == end && stream.avail_out > 0) state = Z_BUF_ERROR;
    // Concatenated files are one file (RFC 1952, 2.2); zeros after them are tape padding.
    while (state == Z_STREAM_END && stream.next_in < end && *stream.next_in == 0) ++stream.next_in;
    if (state == Z_STREAM_END && stream.next_in < end) state = inflateReset(&stream);
  }
  if (state != Z_STREAM_END)
    damaged(path, fmt::format("byte {}: expected a complete gzip file",
                              content.size() - static_cast<size_t>(end - stream.next_in)));
  return text;
}

}  // namespace trinity
