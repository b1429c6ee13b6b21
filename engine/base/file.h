#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/door.h"

// Files as a whole. What each function may open, base/door.h says.

namespace trinity {

/// The whole content of a file. Throws FileError naming path and reason.
std::string read_file(const std::string& path);

/// Whether a file or folder can be opened for reading. Throws ForbiddenFile.
bool is_readable(const std::string& path);

/// The names in a folder, sorted, without those that begin with a dot; none where there is no such
/// folder or nobody may list it. Throws FileError naming path and reason.
std::vector<std::string> list_folder(const std::string& path);

/// Whether a file outlives a loss of power once it is written. fsync takes some 10 ms on a disk, so
/// what can be found anew and shows that it is broken is left to the system's own pace.
enum class Durability { synced, unsynced };

/// Replaces a file as a whole: writes all of it to a new hidden file in the same folder
/// (.NAME.SYSTEM-RANDOM.part), syncs that, renames it and syncs the folder, so that a reader, a
/// crash or a full disk never leaves half of it. Makes missing folders. The file keeps its
/// permissions, and a link stays one; a device or pipe is written to. Synced, it first removes what
/// killed writers left in the folder: hidden files of that form which nobody locks (of other
/// systems a day later). Throws FileError naming path and reason.
void write_file(const std::string& path, std::string_view content,
                Durability durability = Durability::synced, Purpose purpose = Purpose::write);

/// Finds out whether write_file() can write a file, before the work whose result is to go there:
/// makes missing folders, removes what killed writers left, and leaves nothing else. Throws
/// FileError naming path and reason.
void check_output(const std::string& path);

/// Adds to the end of a file, which is made where it is missing (its folder is not) and is no link.
/// What a killed process appended may be cut short: readers leave an unfinished last record out.
/// Throws FileError naming path and reason.
void append_file(const std::string& path, std::string_view content,
                 Durability durability = Durability::unsynced);

/// Names and contents.
using NewFiles = std::vector<std::pair<std::string, std::string>>;

/// Makes a folder that has `files` in it from its first moment and is held by this process
/// (base/hold.h), and the folders that it is to lie in. False where one with anything in it (or a
/// file) is there already: of several processes one makes it. Throws FileError naming path and
/// reason.
bool make_folder(const std::string& path, const NewFiles& files);

/// Removes what writers that were killed left beside their files, in a folder and all below it.
/// Throws FileError naming path and reason.
void remove_leftovers(const std::string& path);

/// Removes a file, or a folder with all that is in it; links are removed, not followed. Throws
/// FileError naming path and reason, also where there is nothing.
void remove_tree(const std::string& path);

}  // namespace trinity
