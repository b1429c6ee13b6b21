#pragma once

#include <string>

namespace trinity {

/// What a whole file in gzip's format (RFC 1952) holds; `path` names it in errors. Can be stopped.
/// Throws FileError where the content is damaged, ends early or would come to more than
/// `most_bytes`.
std::string decompressed(const std::string& path, const std::string& content,
                         size_t most_bytes = size_t{1} << 40);

}  // namespace trinity
