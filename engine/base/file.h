#pragma once

#include <string>
#include <string_view>

namespace trinity {

/// The whole content of a file. Throws FileError naming path and reason.
std::string read_file(const std::string& path);

/// Replaces a file as a whole: writes beside it, then renames, so that a reader or a crash never
/// sees half of it. Makes missing folders. Throws FileError naming path and reason.
void write_file(const std::string& path, std::string_view content);

}  // namespace trinity
