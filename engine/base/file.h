#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

// Operations on whole files. Files that a confined thread cannot open: base/confine.h.

namespace trinity {

/// An open file, closed on destruction. Movable, not copyable; not thread-safe.
class Descriptor {
 public:
  explicit Descriptor(int file = -1) : file_(file) {}
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(file_, other.file_);
    return *this;
  }
  explicit operator bool() const { return file_ >= 0; }
  int get() const { return file_; }
  int release() { return std::exchange(file_, -1); }
  /// Closes it now; returns 0 or errno.
  int finish();

 private:
  int file_;
};

/// Opens a file for reading. Throws FileError with path and reason, Interrupted if Ctrl-C ends a
/// wait.
Descriptor open_to_read(const std::string& path);

/// The same, but only for a regular file: not for a folder, device or pipe.
Descriptor open_regular(const std::string& path);

/// The contents of a file. Throws FileError with path and reason.
std::string read_file(const std::string& path);

/// True if a file or folder can be opened for reading. Throws FileError if this thread is confined
/// and the system denies it.
bool is_readable(const std::string& path);

/// Names in a folder, sorted, without those that begin with a dot; empty if the folder does not
/// exist or, unless this thread is confined, may not be listed. Throws FileError with path and
/// reason.
std::vector<std::string> list_folder(const std::string& path);

/// Whether a written file survives a power failure. fsync takes about 10 ms on a disk; files that
/// can be recomputed and that are verified when read do without.
enum class Durability { synced, unsynced };

/// Replaces a file atomically: writes a new hidden file in the same folder
/// (.NAME.SYSTEM-RANDOM.part), syncs it, renames it and syncs the folder, so that readers, crashes
/// and full disks never see a partial file. Creates missing folders. Permissions are kept, links
/// are followed, devices and pipes are written to. If synced, it first removes leftovers of killed
/// writers in the folder: hidden files of this form that nobody locks (files of other systems after
/// a day). Throws FileError with path and reason.
void write_file(const std::string& path, std::string_view content,
                Durability durability = Durability::synced);

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

/// Whether this process holds a new folder (base/hold.h).
enum class Hold { no, yes };

/// Creates a folder atomically with `files` in it; also creates its parents. Unless it is empty,
/// `seal` is the target of a symbolic link .seal in the folder, which read_seal() returns; a text
/// that is too long for a link, and a file system without links, leave it out. Returns false if a
/// non-empty folder or a file exists there: exactly one of several processes creates it. Throws
/// FileError with path and reason.
bool make_folder(const std::string& path, const NewFiles& files, const std::string& seal = "",
                 Hold hold = Hold::yes);

/// The text with which a folder was made by a process that was not confined, because a confined one
/// makes no links; empty without one.
std::string read_seal(const std::string& path);

/// Removes leftovers of killed writers in a folder and all below it. Throws FileError with path and
/// reason.
void remove_leftovers(const std::string& path);

/// Removes a file, or a folder with its contents; links are removed, not followed. Throws FileError
/// with path and reason, also if it does not exist.
void remove_tree(const std::string& path);

/// Throws FileError "PATH: WHAT: REASON"; if this thread is confined (base/confine.h) and the
/// system denied the access, the message also says which folders are open.
[[noreturn]] void fail_file(const std::string& path, const char* what, int code);

/// System calls of base/file.cpp and base/hold.cpp. They are repeated after EINTR (opening and
/// reading, which may block, end with Interrupted after Ctrl-C) and fail on demand in tests. Return
/// 0 or more, or -1 and errno.
namespace call {
int open(int folder, const std::string& name, int flags, mode_t mode = 0);
ssize_t read(int file, void* to, size_t bytes);
ssize_t write(int file, const void* from, size_t bytes);
int sync(int file);
int rename(int folder, const std::string& from, const std::string& to, unsigned flags = 0);
int make_folder(int folder, const std::string& name);
int remove(int folder, const std::string& name, int flags = 0);
}  // namespace call

/// For tests: the `nth` next of the calls above (from 1) fails with `code`; 0: none. Returns the
/// number of calls since the last fail_call().
int64_t fail_call(int64_t nth, int code = 0);

}  // namespace trinity
