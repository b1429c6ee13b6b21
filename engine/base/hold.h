#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/file.h"

// Marks a run's folder as in use. The process holds a file lock on .lock in the folder, which other
// containers on the same system see and which ends with the process, and touches the file every
// five seconds for machines that see the folder but not the lock.

namespace trinity {

/// Holds a folder for this process until it exits. Returns false if another process holds it.
/// Throws FileError with path and reason.
bool hold_folder(const std::string& path);

/// Takes the lock in a new folder before it is visible under its name. The descriptor is empty if
/// the file system has no locks; errno then has the reason.
Descriptor lock_new_folder(int folder);
/// Keeps such a lock until the process exits, and touches its file.
void keep_lock(Descriptor lock);

/// True if a process holds the folder; none if it has no lock file. same_system: the holder would
/// run on this system, whose locks are reliable; otherwise a touch within the last half minute also
/// counts.
std::optional<bool> is_held(const std::string& path, bool same_system);

/// Locks an open file until its last descriptor is closed. Returns 0 or errno; EAGAIN if another
/// process holds it. exclusive: no other lock may exist, and the file must be open for writing;
/// otherwise shared locks are allowed.
int lock_file(int file, bool exclusive);

/// To be called in a forked worker: the lock stays with the parent.
void leave_lock_to_parent();

/// Identifies the running system, distinct from all other systems and from this one after a
/// restart.
std::string system_id();
/// The same in 32 bits.
uint32_t system_tag();

}  // namespace trinity
