#pragma once

#include <string>

namespace trinity {

/// Finds out whether write_file() can write a file, before the work whose result is to go there:
/// makes missing folders and leaves nothing else. Throws FileError naming path and reason.
void check_output(const std::string& path);

}  // namespace trinity
