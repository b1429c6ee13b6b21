#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/door.h"

// Operations on whole files. base/door.h defines which files each thread may open.

namespace trinity {

/// The contents of a file. Throws FileError with path and reason.
std::string read_file(const std::string& path);

/// True if a file or folder can be opened for reading. Throws ForbiddenFile.
bool is_readable(const std::string& path);

/// Names in a folder, sorted, without those that begin with a dot; empty if the folder does not
/// exist or may not be listed. Throws FileError with path and reason.
std::vector<std::string> list_folder(const std::string& path);

/// Whether a written file survives a power failure. fsync takes about 10 ms on a disk; files that
/// can be recomputed and that are verified when read do without.
enum class Durability { synced, unsynced };

/// Replaces a file atomically: writes a new hidden file in the same folder
/// (.NAME.SYSTEM-RANDOM.part), syncs it, renames it and syncs the folder, so that readers, crashes
/// and full disks never see a partial file. Creates missing folders. Permissions are kept, links
/// are followed, devices and pipes are written to. If synced, it first removes leftovers of killed
/// writers in the folder: hidden files of this form that nobody locks (those of other systems after
/// a day). Throws FileError with path and reason.
void write_file(const std::string& path, std::string_view content,
                Durability durability = Durability::synced, Purpose purpose = Purpose::write);

/// Checks that write_file() can write a file, before the work that produces its contents: creates
/// missing folders, removes leftovers of killed writers, and leaves nothing else. Throws FileError
/// with path and reason.
void check_output(const std::string& path);

/// Appends to a file, which is created if missing (its folder must exist) and must not be a link. A
/// record appended by a killed process may be incomplete: readers ignore an unfinished last record.
/// Throws FileError with path and reason.
void append_file(const std::string& path, std::string_view content,
                 Durability durability = Durability::unsynced);

/// Names and contents.
using NewFiles = std::vector<std::pair<std::string, std::string>>;

/// Creates a folder atomically with `files` in it and held by this process (base/hold.h); also
/// creates its parents. Returns false if a non-empty folder or a file exists there: exactly one of
/// several processes creates it. Throws FileError with path and reason.
bool make_folder(const std::string& path, const NewFiles& files);

/// Removes leftovers of killed writers in a folder and all below it. Throws FileError with path and
/// reason.
void remove_leftovers(const std::string& path);

/// Removes a file, or a folder with its contents; links are removed, not followed. Throws FileError
/// with path and reason, also if it does not exist.
void remove_tree(const std::string& path);

}  // namespace trinity
