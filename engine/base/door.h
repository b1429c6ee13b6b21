#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

// The one door to the file system. A name is decided on once, and what is opened then is found
// from the descriptor of a folder, never by the name again. For scripts of strangers every step
// from a permitted folder on is taken by the system itself without following a link (openat2):
// whoever swaps a folder for a link between the decision and the
// opening gets an error. base/file.h has what is done with files.

namespace trinity {

/// An open file, closed in the end.
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
  /// Closes it now; 0 or the error's number.
  int finish();

 private:
  int file_;
};

/// From now on this thread opens files for scripts of strangers, all others for whom it likes. It
/// reads below the working directory of this moment, the folders `writable` and the folders
/// `readable`; it writes below `writable` and the folder of its run (own_folder()), but never below
/// `readable` nor in the folder of the program. Nothing whose name or folder's name begins with a
/// dot is opened, nor anything more than 64 folders deep, and no run.json is written, nor the
/// script.lua beside one: these are the program's record of a run. Links are followed before all
/// that is decided. There is no way back. Throws FileError for a writable folder that is none, and
/// Error where the system has no openat2 (Linux 5.6).
void restrict_files(const std::vector<std::string>& writable,
                    const std::vector<std::string>& readable);

/// A restricted thread may not open that.
class ForbiddenFile : public FileError {
 public:
  using FileError::FileError;
};

/// What a file is opened for. `record`: the program writes it of a run, in a folder below the
/// working directory or a writable one.
enum class Purpose { read, write, record };

/// Makes a folder that of the process's run: restricted threads write below it. Throws FileError
/// where they may not have runs there.
void own_folder(const std::string& path);

/// A name in an open folder; of a file that an unrestricted thread reads AT_FDCWD and all of its
/// path.
struct Place {
  Descriptor folder;
  int at;  ///< the folder's descriptor, or AT_FDCWD
  std::string name;
};

/// Where a name leads. Throws FileError when it is forbidden or its folder cannot be opened.
/// `make_folders`: those that are missing are made.
Place find_place(const std::string& path, Purpose purpose, bool make_folders = false);

/// Whether this thread opens files for scripts of strangers.
bool is_restricted();

/// Opens it for reading. Throws FileError naming path and reason, Interrupted where Ctrl-C ends a
/// wait.
Descriptor open_to_read(const std::string& path);

/// The same of what must be a file, not a folder, device or pipe.
Descriptor open_regular(const std::string& path);

/// "PATH: WHAT: REASON", thrown.
[[noreturn]] void fail_file(const std::string& path, const char* what, int code);

/// System calls as the door makes them: begun again where a signal breaks in (opening and reading,
/// which may wait for others, end with Interrupted after Ctrl-C), and failing on demand. 0 or more,
/// or -1 and errno.
namespace call {
int open(int folder, const std::string& name, int flags, mode_t mode = 0);
/// openat2 (Linux 5.6): `path` below the folder, or an error where a link or .. is on the way, even
/// if somebody swaps folders meanwhile.
int open_beneath(int folder, const std::string& path, int flags);
ssize_t read(int file, void* to, size_t bytes);
ssize_t write(int file, const void* from, size_t bytes);
int sync(int file);
int rename(int folder, const std::string& from, const std::string& to, unsigned flags = 0);
int make_folder(int folder, const std::string& name);
int remove(int folder, const std::string& name, int flags = 0);
}  // namespace call

/// For tests: from now on the `nth` of the calls above (from 1) fails with `code`, and none after
/// it; 0: none. Returns how many were made since it was last called.
int64_t fail_call(int64_t nth, int code = 0);

}  // namespace trinity
