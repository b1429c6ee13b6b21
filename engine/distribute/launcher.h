#pragma once

#include <functional>
#include <string>
#include <vector>

namespace trinity {

struct LaunchOptions {
  std::string program;                 ///< file to run
  std::vector<std::string> arguments;  ///< after the program's name
  int processes = 1;
  int per_node = 0;     ///< ranks that pretend to share a machine; 0: all
  int threads = 0;      ///< worker threads of a rank (--threads); 0: cores over processes, from 1
  std::string backend;  ///< of collectives, "gloo" or "nccl"; empty: as the ranks choose
  std::vector<std::string> program_options;  ///< that every rank gets before the script
  /// What is passed on once stop_flag() is set: SIGINT, or SIGTERM.
  std::function<int()> stop_signal;
  bool all_output = false;  ///< standard output of all ranks, "[2] " before the lines of rank 2
};

/// Runs a job of several processes on this machine, with torchrun's variables (RANK, WORLD_SIZE,
/// LOCAL_RANK, LOCAL_WORLD_SIZE, GROUP_RANK, MASTER_ADDR, MASTER_PORT) and its store kept here.
/// Standard input is empty; standard error of rank 2 appears with "[2] " before its lines. The
/// first rank that dies, hangs or fails ends the job: one message on standard error names it. The
/// ranks die with this process, whatever ends it.
///
/// Returns 0 when all ranks did, else the status of the rank that failed (128 and the signal's
/// number for a signal), 130 or 143 after stop_flag() or when a rank ends with it, which stops the
/// others, too. Throws Error when a process cannot start.
int launch(const LaunchOptions& options);

}  // namespace trinity
