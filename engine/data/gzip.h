#pragma once

#include <string>

namespace trinity {

/// Decompresses a file in gzip's format (RFC 1952); `path` is its name in errors. Polls the stop
/// flag. Throws FileError if the content is damaged, ends early or exceeds `most_bytes`.
std::string decompressed(const std::string& path, const std::string& content,
                         size_t most_bytes = size_t{1} << 40);

}  // namespace trinity
