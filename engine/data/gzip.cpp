#include "data/gzip.h"

#include <zlib.h>

#include "base/error.h"
#include "base/stop.h"

namespace trinity {
namespace {

[[noreturn]] void damaged(const std::string& path, const std::string& reason) {
  throw FileError(fmt::format("{}: {}", path, reason));
}

}  // namespace

std::string decompressed(const std::string& path, const std::string& content, size_t most_bytes) {
  z_stream stream{};
  if (inflateInit2(&stream, 16 + MAX_WBITS) != Z_OK) damaged(path, "no memory to decompress it");
  const std::unique_ptr<z_stream, int (*)(z_stream*)> closing(&stream, inflateEnd);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  std::string text, part(1 << 18, '\0');
  int state = Z_OK;
  while (state == Z_OK) {
    poll_stop();
    stream.next_out = reinterpret_cast<Bytef*>(part.data());
    stream.avail_out = static_cast<uInt>(part.size());
    state = inflate(&stream, Z_NO_FLUSH);
    text.append(part.data(), part.size() - stream.avail_out);
    if (text.size() > most_bytes)
      damaged(path, fmt::format("expected at most {} bytes, decompressed", most_bytes));
    if (state == Z_OK && stream.avail_in == 0 && stream.avail_out > 0) state = Z_BUF_ERROR;
  }
  if (state != Z_STREAM_END)
    damaged(path, fmt::format("byte {}: expected a whole file of gzip's format", stream.total_in));
  return text;
}

}  // namespace trinity
