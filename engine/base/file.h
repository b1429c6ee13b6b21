#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trinity {

/// From now on this thread opens files for scripts of strangers: it reads and writes below the
/// working directory of this moment and the folders `allowed`, but nothing whose name or folder's
/// name there begins with a dot; it reads below the folders `readable` and does not write there.
/// Links are followed before that is decided. There is no way back. Throws FileError for an allowed
/// folder that is none.
void restrict_files(const std::vector<std::string>& allowed,
                    const std::vector<std::string>& readable);

/// Throw FileError when restrict_files() forbids it. Whoever opens a file by a name that a script
/// gave calls one of these first.
void check_readable(const std::string& path);
void check_writable(const std::string& path);

/// The whole content of a file. Throws FileError naming path and reason.
std::string read_file(const std::string& path);

/// Whether a file outlives a loss of power once it is written. fsync takes some 10 ms on a disk, so
/// what can be found anew and shows that it is broken is left to the system's own pace.
enum class Durability { synced, unsynced };

/// Replaces a file as a whole: writes all of it to a hidden name in the same folder
/// (.NAME.PID-COUNT.part), syncs that, renames it and syncs the folder, so that a reader, a crash
/// or a full disk never leaves half of it. Makes missing folders. The file keeps its permissions,
/// and a link stays one; a device or pipe is written to. Throws FileError naming path and reason.
void write_file(const std::string& path, std::string_view content,
                Durability durability = Durability::synced);

/// Adds to the end of a file, which is made where it is missing (its folder is not). What a killed
/// process appended may be cut short: readers leave an unfinished last record out. Throws FileError
/// naming path and reason.
void append_file(const std::string& path, std::string_view content,
                 Durability durability = Durability::unsynced);

/// Makes a folder that has the file `first` in it from its first moment, and the folders that it is
/// to lie in. False where one with anything in it (or a file) is there already: of several
/// processes one makes it. Throws FileError naming path and reason.
bool make_folder(const std::string& path, const std::string& first, std::string_view content);

/// Removes what writers that were killed left beside their files, in a folder and all below it.
/// Throws FileError naming path and reason.
void remove_leftovers(const std::string& path);

/// Removes a file, or a folder with all that is in it; links are removed, not followed. Throws
/// FileError naming path and reason, also where there is nothing.
void remove_tree(const std::string& path);

}  // namespace trinity
