#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

// All access to the file system goes through this file. A name is resolved and checked once;
// afterwards files are opened relative to the descriptor of a folder, never by name again. For
// untrusted scripts the system itself takes every step below a permitted folder without following
// links (openat2): replacing a folder by a link between check and opening yields an error.
// base/file.h operates on whole files.

namespace trinity {

/// An open file, closed on destruction.
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

/// Restricts this thread, permanently, to the file access of untrusted scripts. It may read below
/// the present working directory and the folders `writable` and `readable`. It may write below
/// `writable` and the folder of its run (own_folder()), but never below `readable` or in the
/// program's folder. Refused in addition: names and folders that begin with a dot, paths deeper
/// than 64 folders, and writing run.json or the script.lua next to one, which are the program's
/// record of a run. Links are followed before these checks. Throws FileError for a writable folder
/// that does not exist, and Error if the system lacks openat2 (Linux 5.6).
void restrict_files(const std::vector<std::string>& writable,
                    const std::vector<std::string>& readable);

/// A restricted thread may not open this file.
class ForbiddenFile : public FileError {
 public:
  using FileError::FileError;
};

/// Purpose of opening a file. `record`: the program writes a run's record, in a folder below the
/// working directory or a writable one.
enum class Purpose { read, write, record };

/// Makes a folder the process's run folder, below which restricted threads may write. Throws
/// FileError if they may not have runs there.
void own_folder(const std::string& path);

/// A name in an open folder; for a file that an unrestricted thread reads, AT_FDCWD and the full
/// path.
struct Place {
  Descriptor folder;
  int at;  ///< the folder's descriptor, or AT_FDCWD
  std::string name;
};

/// Resolves a path. make_folders: creates missing folders. Throws FileError if the path is
/// forbidden or its folder cannot be opened.
Place find_place(const std::string& path, Purpose purpose, bool make_folders = false);

/// True if this thread is restricted.
bool is_restricted();

/// Opens a file for reading. Throws FileError with path and reason, Interrupted if Ctrl-C ends a
/// wait.
Descriptor open_to_read(const std::string& path);

/// The same, but only for a regular file: not for a folder, device or pipe.
Descriptor open_regular(const std::string& path);

/// Throws FileError "PATH: WHAT: REASON".
[[noreturn]] void fail_file(const std::string& path, const char* what, int code);

/// System calls of this file. They are repeated after EINTR (opening and reading, which may block,
/// end with Interrupted after Ctrl-C) and fail on demand in tests. Return 0 or more, or -1 and
/// errno.
namespace call {
int open(int folder, const std::string& name, int flags, mode_t mode = 0);
/// openat2 (Linux 5.6): opens `path` below the folder; fails if a link or .. is on the way, even if
/// folders are replaced meanwhile.
int open_beneath(int folder, const std::string& path, int flags);
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
