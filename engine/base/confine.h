#pragma once

#include <string>
#include <vector>

// The walls of --safe: Landlock confines files, signals and network ports, seccomp the system calls
// that Landlock does not cover, setrlimit core dumps. The kernel enforces them on this thread and
// on every thread and process that it starts, and nothing removes them.

namespace trinity {

/// Files and folders of a confined thread, each with everything below.
struct OpenFolders {
  std::string home;                   ///< of trinity: lib, models and scripts are readable
  std::string script;                 ///< one more readable file; empty: none
  std::string runs;                   ///< in which empty folders may be removed; empty: none
  std::vector<std::string> writable;  ///< readable, too
};

/// Confines this thread, permanently. Readable are the working directory, the system's programs and
/// libraries (which may be executed), fonts, and `folders`. Nothing else is opened, made, removed,
/// renamed, linked or truncated, by any path; links are made nowhere. Denied in addition: sockets
/// apart from pairs of connected ones, signals to other processes, ptrace, namespaces, mounts,
/// io_uring, changes of mode, owner and attributes of files, System V and POSIX message objects,
/// keyrings, and commands to a terminal. Names, sizes and times of files stay visible, and memory,
/// CPU time, processes and disk space are not limited.
///
/// Threads that exist already stay unconfined. Throws Error if the kernel lacks one of these
/// (Landlock 6 of Linux 6.12, seccomp), or if a writable folder contains trinity's own files or
/// lies among them, and FileError if it does not exist. The thread may then be confined in part.
void confine(const OpenFolders& folders);

/// True if this thread called confine().
bool is_confined();

/// For messages: which folders are open.
const std::string& confinement();

/// Throws FileError if a confined thread names a file or folder that begins with a dot, below a
/// folder of confine() or in a relative path.
void refuse_hidden(const std::string& path, const char* what);

/// The promises of confine() that a version of Landlock cannot keep; empty: it keeps all.
std::string lacking(int landlock_version);

}  // namespace trinity
