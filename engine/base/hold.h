#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/door.h"

// Who works in the folder of a run: its process holds a lock of the file system's on .lock in it,
// which other containers on the same system see and which ends with the process, and touches that
// file every five seconds, for machines that see the folder but no lock.

namespace trinity {

/// Holds a folder for this process until it ends. False where another process holds it. Throws
/// FileError naming path and reason.
bool hold_folder(const std::string& path);

/// For the maker of a folder, before anybody sees it under its name: takes the lock in it. The
/// descriptor is empty where the file system has no locks; errno then says why.
Descriptor lock_new_folder(int folder);
/// Keeps such a lock until the process ends, and touches its file.
void keep_lock(Descriptor lock);

/// Whether a process works in a folder. `same_system`: it was begun on this one, whose locks say
/// all; of others a touch within the last half minute counts, too. Nothing where the folder has no
/// such file.
std::optional<bool> is_held(const std::string& path, bool same_system);

/// Locks an open file until its last descriptor is closed: 0 or the error's number, EAGAIN where
/// somebody else has it. `exclusive`: nobody else has any lock of it then, and the file is open for
/// writing; otherwise others may have such ones, too.
int lock_file(int file, bool exclusive);

/// In a forked worker: the lock stays with the parent.
void leave_lock_to_parent();

/// Names the running system: no other, and not this one after a restart, has the same.
std::string system_id();
/// The same in 32 bits.
uint32_t system_tag();

}  // namespace trinity
