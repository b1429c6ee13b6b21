#pragma once

#include <functional>
#include <optional>
#include <string>

// What launchers tell a process of its job, by environment variables. Ranks count from 0, as all of
// them do.

namespace trinity {

/// Value of a variable; nullopt when it is not set.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

struct LaunchVariables {
  int rank = 0, size = 1;
  int local_rank = -1, local_size = -1;  ///< within the node; -1 when nobody said
  std::string node;         ///< the node's number where the launcher gives one, else empty
  std::string address;      ///< where rank 0 (or the launcher) keeps the store; empty for size 1
  int port = 0;             ///< of the store
  bool has_store = false;   ///< the launcher keeps the store, not rank 0
  bool is_watched = false;  ///< `trinity launch` watches over the job and speaks for it
  /// Tells apart attempts that share a launcher's store (torchrun restarts).
  std::string attempt;
  std::string source = "none";  ///< "torchrun", "Open MPI", "MPICH", "Slurm", "none"
};

/// Reads the variables of torchrun and `trinity launch` (RANK, WORLD_SIZE, LOCAL_RANK,
/// LOCAL_WORLD_SIZE, GROUP_RANK, MASTER_ADDR, MASTER_PORT), else Open MPI's mpirun
/// (OMPI_COMM_WORLD_RANK, ...), else MPICH's (PMI_RANK, ...), else those of a Slurm step started by
/// srun (SLURM_PROCID, ...). Without any: a job of one process.
///
/// The address is MASTER_ADDR, else the first host of Slurm's list, else this machine when all
/// ranks are on it; the port MASTER_PORT, else one that follows from the launcher's job number,
/// else 29500.
///
/// Throws ArgumentError naming the variable for a value that is no number in its range, a rank
/// without a size or the other way round, two launchers that disagree, and several nodes without
/// MASTER_ADDR. Slurm's variables are not compared: under srun, mpirun's and torchrun's children
/// inherit those of their daemons.
LaunchVariables read_launch_variables(const Environment& environment);

/// The same but for the store (address, port, has_store, attempt), which it does not ask for.
LaunchVariables read_ranks(const Environment& environment);

/// The environment of this process.
std::optional<std::string> process_environment(const std::string& name);

/// Warns on standard error, once a process and on rank 0 alone, where a launcher other than
/// `trinity launch` has started several processes and this one has joined no job: each then does
/// the whole work, into the same files.
void warn_of_copies();
/// This process has joined a job: there is nothing to warn of.
void know_of_copies();

/// The first host of Slurm's list: "jwb[0017,0020-24]" gives "jwb0017".
std::string first_host(const std::string& list);

}  // namespace trinity
