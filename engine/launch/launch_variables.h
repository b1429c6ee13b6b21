#pragma once

#include <functional>
#include <optional>
#include <string>

// A process's job by the environment variables of launchers. Ranks count from 0, as all of
// them do.

namespace trinity {

/// Value of a variable; nullopt when it is not set.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

struct LaunchVariables {
  int rank = 0, size = 1;
  int local_rank = -1, local_size = -1;  ///< within the node; -1 if unknown
  std::string node;         ///< the node's number where the launcher gives one, else empty
  std::string address;      ///< where rank 0 (or the launcher) keeps the store; empty for size 1
  int port = 0;             ///< of the store
  bool has_store = false;  ///< the launcher keeps the store, not rank 0
  /// Distinguishes attempts that share a launcher's store (torchrun restarts).
  std::string attempt;
  /// "torchrun", "Open MPI", "JSM", "Flux", "Cray PALS", "MPICH", "Slurm", "Kubernetes", "PMIx",
  /// "none"
  std::string source = "none";
};

/// Reads the variables of torchrun (RANK, WORLD_SIZE, LOCAL_RANK,
/// LOCAL_WORLD_SIZE, GROUP_RANK, MASTER_ADDR, MASTER_PORT), else Open MPI's mpirun
/// (OMPI_COMM_WORLD_RANK, ...), else IBM's jsrun (JSM_NAMESPACE_RANK, ...), else Flux
/// (FLUX_TASK_RANK, ...), else Cray's PALS (PALS_RANKID with PMI_SIZE), else MPICH's (PMI_RANK,
/// ...), else a Slurm step started by srun (SLURM_PROCID, ...), else, each with
/// WORLD_SIZE, an indexed job of Kubernetes (JOB_COMPLETION_INDEX; without WORLD_SIZE its pods are
/// no job) and other launchers that speak PMIx (PMIX_RANK). Without any: a job of one process.
///
/// The address is MASTER_ADDR, else the first host of Slurm's list, else this machine when all
/// ranks are on it, else the host of mpirun, where Open MPI starts rank 0 by default;
/// the port MASTER_PORT, else one that follows from the launcher's job number, else 29500.
///
/// Throws ArgumentError naming the variable for a value that is no number in its range, a rank
/// without a size or the other way round (PMIX_RANK without WORLD_SIZE, too), two launchers that disagree, and several nodes without
/// MASTER_ADDR. Slurm's variables are not compared: under srun, mpirun's and torchrun's children
/// inherit the variables of their daemons.
LaunchVariables read_launch_variables(const Environment& environment);

/// The same but for the store (address, port, has_store, attempt), which it does not ask for.
LaunchVariables read_ranks(const Environment& environment);

/// The environment of this process.
std::optional<std::string> process_environment(const std::string& name);

/// Warns on standard error, once a process and on rank 0 alone, where a launcher has started
/// several processes and this one has joined no job: each then does the whole work, into the same
/// files.
void warn_of_copies();
/// Where TRINITY_JOIN=1 asks for processes that share their searches, standard output is rank 0's:
/// the output of other ranks is discarded.
void silence_other_ranks();
/// This process has joined a job: there is nothing to warn of.
void know_of_copies();

/// The first host of Slurm's list: "jwb[0017,0020-24]" gives "jwb0017".
std::string first_host(const std::string& list);

}  // namespace trinity
