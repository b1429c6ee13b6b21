#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trinity {

/// From now on this thread opens files for scripts of strangers: it reads below the working
/// directory of this moment and below the folders `readable`, and writes below the working
/// directory, but not below those folders, nor files or folders whose names begin with a dot. Links
/// are followed before that is decided. There is no way back.
void restrict_files(const std::vector<std::string>& readable);

/// Throw FileError when restrict_files() forbids it. Whoever opens a file by a name that a script
/// gave calls one of these first.
void check_readable(const std::string& path);
void check_writable(const std::string& path);

/// The whole content of a file. Throws FileError naming path and reason.
std::string read_file(const std::string& path);

/// Replaces a file as a whole: writes beside it, then renames, so that a reader or a crash never
/// sees half of it. Makes missing folders. Throws FileError naming path and reason.
void write_file(const std::string& path, std::string_view content);

}  // namespace trinity
