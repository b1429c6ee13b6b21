#include "launch/launcher.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>

#include "base/error.h"
#include "base/stop.h"

extern char** environ;

namespace trinity {
namespace {

constexpr std::chrono::seconds kStop_grace(15);
constexpr int kNoProgram = 127;  // as shells have it

/// Whether a launcher or scheduler around this one says it: mpirun would ask that for its hosts.
bool is_of_launcher(std::string_view variable) {
  for (const char* name :
       {"RANK=", "WORLD_SIZE=", "LOCAL_RANK=", "LOCAL_WORLD_SIZE=", "GROUP_RANK=", "MASTER_ADDR=",
        "MASTER_PORT=", "TORCHELASTIC_", "TRINITY_LAUNCH=", "TRINITY_JOIN=", "OMPI_", "PMIX_",
        "PMI_", "PRTE_", "MPI_LOCALRANKID=", "MPI_LOCALNRANKS=", "SLURM_", "PBS_", "LSB_", "PALS_",
        "JSM_NAMESPACE_", "FLUX_TASK_", "FLUX_JOB_", "JOB_COMPLETION_INDEX="})
    if (variable.starts_with(name)) return true;
  return false;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (auto& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

pid_t start(std::vector<std::string>& words) {
  const pid_t parent = getpid();
  std::vector<std::string> variables;
  for (char** entry = environ; *entry; ++entry)
    if (!is_of_launcher(*entry)) variables.emplace_back(*entry);
  const auto word_list = pointers(words), variable_list = pointers(variables);
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) throw Error(fmt::format("cannot start {}: {}", words[0], std::strerror(errno)));
  if (child > 0) return child;
  setpgid(0, 0);  // Ctrl-C reaches the parent alone, which passes it on
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  for (const int number : {SIGINT, SIGTERM, SIGUSR1, SIGXFSZ}) signal(number, SIG_DFL);
  execvpe(word_list[0], word_list.data(), variable_list.data());
  _exit(kNoProgram);
}

}  // namespace

int run_mpirun(std::vector<std::string> words, int (*stop_signal)()) {
  using Clock = std::chrono::steady_clock;
  const pid_t mpirun = start(words);
  int status = 0, number = 0;  // of the signal that was passed on
  auto until = Clock::time_point::max();
  for (bool has_ended = false; !has_ended;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    has_ended = waitpid(mpirun, &status, WNOHANG) == mpirun;
    if (number == 0 && stop_flag().load()) {
      number = stop_signal();
      until = Clock::now() + kStop_grace;
      if (!has_ended) kill(mpirun, number == SIGINT ? SIGUSR2 : SIGUSR1);
    }
    if (Clock::now() > until) kill(-mpirun, SIGKILL);  // the guards die with it, the ranks with them
  }
  if (number != 0) return 128 + number;
  if (WIFSIGNALED(status)) return 128 + WTERMSIG(status);
  if (WEXITSTATUS(status) == kNoProgram)
    throw Error(fmt::format("processes are started by Open MPI's {}, which is not here (Debian's "
                            "package openmpi-bin)",
                            words[0]));
  return WEXITSTATUS(status);
}

}  // namespace trinity
