#include "launch/launch_variables.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "base/error.h"
#include "base/hash.h"

namespace trinity {
namespace {

std::atomic<bool> g_knows_of_copies = false;  // joined a job, or was warned

constexpr int kMaxRanks = 1 << 20;

/// The variables of one launcher; an empty name is one that it does not have.
struct Names {
  const char *source, *rank, *size, *local_rank, *local_size, *node, *nodes;
};

constexpr Names kTorchrun = {
    "torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", ""};
constexpr Names kOpenMpi = {"Open MPI",
                            "OMPI_COMM_WORLD_RANK",
                            "OMPI_COMM_WORLD_SIZE",
                            "OMPI_COMM_WORLD_LOCAL_RANK",
                            "OMPI_COMM_WORLD_LOCAL_SIZE",
                            "",
                            ""};
constexpr Names kJsm = {"JSM",
                        "JSM_NAMESPACE_RANK",
                        "JSM_NAMESPACE_SIZE",
                        "JSM_NAMESPACE_LOCAL_RANK",
                        "JSM_NAMESPACE_LOCAL_SIZE",
                        "",
                        ""};
constexpr Names kFlux = {"Flux", "FLUX_TASK_RANK", "FLUX_JOB_SIZE", "FLUX_TASK_LOCAL_ID", "", "",
                         "FLUX_JOB_NNODES"};
// PALS sets rank and node, PMI sets the size.
constexpr Names kPals = {"Cray PALS",         "PALS_RANKID",    "PMI_SIZE",
                         "PALS_LOCAL_RANKID", "PMI_LOCAL_SIZE", "PALS_NODEID",
                         ""};
constexpr Names kMpich = {"MPICH",           "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID",
                          "MPI_LOCALNRANKS", "",         ""};
constexpr Names kSlurm = {"Slurm",         "SLURM_PROCID", "SLURM_NTASKS",       "SLURM_LOCALID",
                          "",              "SLURM_NODEID", "SLURM_STEP_NUM_NODES"};
// Launchers whose variables name only the rank: the caller sets the size.
constexpr Names kKubernetes = {"Kubernetes", "JOB_COMPLETION_INDEX", "WORLD_SIZE", "", "", "", ""};
constexpr Names kPmix = {"PMIx", "PMIX_RANK", "WORLD_SIZE", "", "", "", ""};

class Reader {
 public:
  explicit Reader(const Environment& environment) : environment_(environment) {}

  std::optional<std::string> text(const char* name) const {
    return *name ? environment_(name) : std::nullopt;
  }

  std::optional<int> integer(const char* name, int low, int high) const {
    const auto value = text(name);
    if (!value) return std::nullopt;
    int number = 0;
    const auto [end, error] = std::from_chars(value->data(), value->data() + value->size(), number);
    if (error != std::errc() || end != value->data() + value->size() || number < low ||
        number > high)
      throw ArgumentError("{} is '{}', expected an integer from {} to {}", name, *value, low, high);
    return number;
  }

  /// Reads the variables of a launcher; nullopt if it did not start this process.
  std::optional<LaunchVariables> read(const Names& names) const {
    const auto size = integer(names.size, 1, kMaxRanks);
    const auto rank = integer(names.rank, 0, kMaxRanks - 1);
    if (!size && !rank) return std::nullopt;
    if (!size || !rank)
      throw ArgumentError("{} is set but {} is not: {} sets both", size ? names.size : names.rank,
                          size ? names.rank : names.size, names.source);
    LaunchVariables found;
    found.source = names.source;
    found.rank = *rank;
    found.size = *size;
    if (*rank >= *size) refuse_above(names.rank, *rank, names.size, *size);
    found.local_size = integer(names.local_size, 1, kMaxRanks).value_or(-1);
    found.local_rank = integer(names.local_rank, 0, kMaxRanks - 1).value_or(-1);
    if (found.local_size > 0 && found.local_rank >= found.local_size)
      refuse_above(names.local_rank, found.local_rank, names.local_size, found.local_size);
    if (found.local_size > found.size)
      throw ArgumentError("{} is {}, more than the {} ranks of {}", names.local_size, found.local_size, found.size,
                          names.size);
    if (integer(names.nodes, 1, kMaxRanks) == 1) found.local_size = found.size;
    found.node = text(names.node).value_or("");
    return found;
  }

 private:
  [[noreturn]] static void refuse_above(const char* rank, int rank_value, const char* size,
                                        int size_value) {
    throw ArgumentError("{} is {}, expected 0 to {} because {} is {}", rank, rank_value, size_value - 1, size,
                        size_value);
  }

  const Environment& environment_;
};

void check_agreement(const LaunchVariables& one, const Names& one_names,
                     const LaunchVariables& other, const Names& other_names) {
  const auto compare = [&](const char* a, int a_value, const char* b, int b_value) {
    if (a_value >= 0 && b_value >= 0 && a_value != b_value)
      throw ArgumentError("{} is {} but {} is {}: two launchers disagree, unset the variables of one", a, a_value, b,
                          b_value);
  };
  compare(one_names.size, one.size, other_names.size, other.size);
  compare(one_names.rank, one.rank, other_names.rank, other.rank);
  compare(one_names.local_size, one.local_size, other_names.local_size, other.local_size);
  compare(one_names.local_rank, one.local_rank, other_names.local_rank, other.local_rank);
}

/// True if srun started this process: the batch shell and interactive steps have numbers near 2^32.
bool in_slurm_step(const Reader& reader) {
  const auto step = reader.text("SLURM_STEP_ID");
  return step && !step->empty() && step->size() < 10 &&
         step->find_first_not_of("0123456789") == std::string::npos;
}

/// A port that jobs on one machine do not share, where the launcher numbers its jobs.
int default_port(const Reader& reader) {
  std::string job;
  for (const char* name :
       {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "PMI_JOBID", "SLURM_JOB_ID", "SLURM_STEP_ID",
        "FLUX_JOB_ID", "PALS_APID", "LSB_JOBID"})
    job += reader.text(name).value_or("");
  if (job.empty()) return 29500;
  return 20000 + static_cast<int>(Hasher().add(job).value() % 10000);
}

/// Returns the first host of mpirun's address, as in "1.0;tcp://10.0.0.1,10.1.0.1:57655".
std::string host_of_uri(const std::string& uri) {
  constexpr std::string_view kScheme = "tcp://";
  const auto at = uri.find(kScheme);
  if (at == std::string::npos) return "";
  const auto from = at + kScheme.size();
  return uri.substr(from, uri.find_first_of(",:", from) - from);
}

/// The most likely host of rank 0, as far as the launcher says; empty where it does not.
std::string host_of_rank_0(const Reader& reader, const LaunchVariables& found) {
  if (found.source == "Slurm") {
    auto hosts = reader.text("SLURM_STEP_NODELIST");
    if (!hosts) hosts = reader.text("SLURM_JOB_NODELIST");
    if (hosts) return first_host(*hosts);
  }
  if (found.local_size == found.size) return "127.0.0.1";
  if (found.source == "Open MPI")
    return host_of_uri(reader.text("OMPI_MCA_orte_hnp_uri").value_or(""));
  return "";
}

void find_store(const Reader& reader, LaunchVariables& found) {
  found.port = reader.integer("MASTER_PORT", 1, 65535).value_or(default_port(reader));
  found.address = reader.text("MASTER_ADDR").value_or("");
  if (found.address.empty()) found.address = host_of_rank_0(reader, found);
  if (found.address.empty())
    throw ArgumentError("MASTER_ADDR is not set: it names the machine of rank 0, and {} starts ranks on several",
                        found.source);
}

/// Launchers that name only the rank, which WORLD_SIZE completes.
std::optional<LaunchVariables> read_incomplete(const Reader& reader) {
  if (reader.text("RANK")) return std::nullopt;
  for (const Names* names : {&kKubernetes, &kPmix}) {
    if (!reader.text(names->rank)) continue;
    if (reader.text("WORLD_SIZE")) return reader.read(*names);
    // An index of a Kubernetes job is often all that there is: its pods work on their own.
    if (names == &kKubernetes) return std::nullopt;
    throw ArgumentError("{} is set, but the number of ranks is unknown: set WORLD_SIZE, too", names->rank);
  }
  return std::nullopt;
}

}  // namespace

LaunchVariables read_ranks(const Environment& environment) {
  const Reader reader(environment);
  std::optional<LaunchVariables> found;
  const Names* from = nullptr;
  const bool is_torchrun = reader.text("RANK") || !(reader.text("JOB_COMPLETION_INDEX") ||
                                                   reader.text("PMIX_RANK"));
  for (const Names* names : {&kTorchrun, &kOpenMpi, &kJsm, &kFlux, &kPals, &kMpich}) {
    if (names == &kTorchrun && !is_torchrun) continue;
    if (names == &kPals && !reader.text(names->rank)) continue;
    auto here = reader.read(*names);
    if (!here) continue;
    if (found)
      check_agreement(*found, *from, *here, *names);
    else
      found = std::move(here), from = names;
  }
  if (!found && in_slurm_step(reader)) found = reader.read(kSlurm);
  if (!found) found = read_incomplete(reader);
  if (!found) return {};
  return *found;
}

LaunchVariables read_launch_variables(const Environment& environment) {
  const Reader reader(environment);
  auto found = read_ranks(environment);
  if (found.size == 1) return found;
  find_store(reader, found);
  found.has_store = reader.text("TORCHELASTIC_USE_AGENT_STORE") == "True";
  found.attempt = reader.text("TORCHELASTIC_RESTART_COUNT").value_or("0");
  return found;
}

std::optional<std::string> process_environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value ? std::optional<std::string>(value) : std::nullopt;
}

std::string first_host(const std::string& list) {
  const auto bracket = list.find('[');
  const auto comma = list.find(',');
  if (bracket == std::string::npos || comma < bracket) return list.substr(0, comma);
  const auto end = list.find_first_of(",-]", bracket);
  const auto close = list.find(']', bracket);
  const auto after = close == std::string::npos ? "" : list.substr(close + 1);
  return list.substr(0, bracket) + list.substr(bracket + 1, end - bracket - 1) +
         after.substr(0, after.find(','));
}

void warn_of_copies() {
  if (g_knows_of_copies.exchange(true)) return;
  LaunchVariables variables;
  try {
    variables = read_ranks(process_environment);
  } catch (const ArgumentError&) {  // joining reports it
  }
  const bool joins = process_environment("TRINITY_JOIN") == "1";
  if (variables.size == 1 || variables.rank != 0 || joins) return;
  std::fprintf(stderr,
               "trinity: warning: %s started %d processes of this script, which has joined no job: "
               "each does all of the work, into the same files; trinity.dist.init() joins them, "
               "as does TRINITY_JOIN=1 for a search\n",
               variables.source.c_str(), variables.size);
}

void silence_other_ranks() {
  if (process_environment("TRINITY_JOIN") != "1") return;
  try {
    if (read_ranks(process_environment).rank == 0) return;
  } catch (const ArgumentError&) {  // joining reports it
    return;
  }
  const int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nothing >= 0) dup2(nothing, STDOUT_FILENO);
}

void know_of_copies() { g_knows_of_copies = true; }

}  // namespace trinity
