#pragma once

#include <string>
#include <vector>

namespace trinity {

/// Runs `words`, a command of Open MPI's mpirun for this machine alone, whose processes become ranks
/// under guards (launch/rank_guard.h). They inherit the environment less what launchers and
/// schedulers say in it. All of them die with this process, whatever ends it.
///
/// mpirun answers SIGINT and SIGTERM by killing the ranks a second later. So that they finish in
/// order, once stop_flag() is set, it gets SIGUSR2 where `stop_signal()` is SIGINT, else SIGUSR1,
/// which it passes on to the guards, and 15 s.
///
/// Returns mpirun's status: 0 when all ranks did, else that of the first that failed, 128 and the
/// signal's number for a signal; after stop_flag() 128 and that of `stop_signal()`; kNoMpirun where
/// there is none. Throws Error where the system has no room for it.
inline constexpr int kNoMpirun = -1;
int run_mpirun(std::vector<std::string> words, int (*stop_signal)());

}  // namespace trinity
