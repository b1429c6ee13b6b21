#pragma once

// The process between mpirun and a rank of `trinity launch`: what mpirun itself does not do, in the
// way that it is looked for there. It marks lines with the rank's number, says in one sentence how
// a rank ended, passes on requests to stop without a time limit of a second, and dies with mpirun.

namespace trinity {

/// What a rank ends with, in place of 1, where the reason was told already.
inline constexpr int kToldStatus = 251;

/// Begins each line that a guard writes to standard error, for `trinity launch`, which shows those.
inline constexpr char kGuardMark = '\1';

/// Where `trinity launch` started this process (TRINITY_LAUNCH=ITS_PID:RANKS_A_NODE:ALL_OUTPUT):
/// returns in a child of it, which is the rank, with torchrun's variables (RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, GROUP_RANK, MASTER_ADDR)
/// and TRINITY_LAUNCH=1; this process ends with it. Else does nothing. Call before there are
/// threads.
///
/// SIGUSR1 and SIGUSR2 become SIGTERM and SIGINT for the rank. A rank that was told so, or that
/// ends with 130 or 143, which its guard lets `trinity launch` know for the others, has ended with
/// 0 for mpirun, which kills the others of one that ends with something else. At SIGTERM the rank
/// is killed.
void guard_rank();

}  // namespace trinity
