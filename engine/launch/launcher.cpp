#include "launch/launcher.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "base/stop.h"
#include "launch/rank_guard.h"

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

/// Standard error of mpirun: what guards say is passed on, its own words are kept.
class Errors {
 public:
  explicit Errors(int from) : from_(from) {}
  ~Errors() { close(from_); }
  Errors(const Errors&) = delete;
  Errors& operator=(const Errors&) = delete;

  /// Waits so long for more; whether there was some.
  bool pass_on(int patience_ms) {
    pollfd end = {from_, POLLIN, 0};
    char bytes[1 << 14];
    const bool comes = poll(&end, 1, has_ended_ ? 0 : patience_ms) > 0 && !has_ended_;
    const ssize_t got = comes ? read(from_, bytes, sizeof bytes) : 0;
    has_ended_ = has_ended_ || (comes && got == 0);
    if (has_ended_ && patience_ms > 0) poll(nullptr, 0, patience_ms);
    if (got <= 0) return false;
    pending_.append(bytes, static_cast<size_t>(got));
    size_t end_of_line = 0;
    while ((end_of_line = pending_.find('\n')) != std::string::npos) {
      take(pending_.substr(0, end_of_line + 1));
      pending_.erase(0, end_of_line + 1);
    }
    return true;
  }
  /// Whether a guard has said something.
  bool has_told() const { return has_told_; }
  /// Its own words, unless one has.
  void tell_own() const {
    if (!has_told_) std::fputs((own_ + pending_).c_str(), stderr);
  }

 private:
  void take(const std::string& line) {
    if (line[0] != kGuardMark) {
      own_ += line;
      return;
    }
    has_told_ = true;
    std::fwrite(line.data() + 1, 1, line.size() - 1, stderr);  // unbuffered
  }

  int from_;
  bool has_ended_ = false, has_told_ = false;
  std::string pending_, own_;
};

pid_t start(std::vector<std::string>& words, int errors) {
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
  dup2(errors, 2);
  execvpe(word_list[0], word_list.data(), variable_list.data());
  _exit(kNoProgram);
}

}  // namespace

int run_mpirun(std::vector<std::string> words, int (*stop_signal)()) {
  using Clock = std::chrono::steady_clock;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    throw Error(fmt::format("cannot start {}: {}", words[0], std::strerror(errno)));
  Errors errors(ends[0]);
  const pid_t mpirun = start(words, ends[1]);
  close(ends[1]);
  int status = 0, number = 0;  // of the signal that was passed on
  auto until = Clock::time_point::max();
  for (bool has_ended = false; !has_ended;) {
    errors.pass_on(50);
    has_ended = waitpid(mpirun, &status, WNOHANG) == mpirun;
    if (number == 0 && stop_flag().load()) {
      number = stop_signal();
      until = Clock::now() + kStop_grace;
      if (!has_ended) kill(mpirun, number == SIGINT ? SIGUSR2 : SIGUSR1);
    }
    if (Clock::now() > until) kill(-mpirun, SIGKILL);  // the guards die with it, the ranks with them
  }
  while (errors.pass_on(0)) continue;
  if (number != 0) return 128 + number;
  if (status != 0) errors.tell_own();
  if (WIFSIGNALED(status)) return 128 + WTERMSIG(status);
  if (WEXITSTATUS(status) == kNoProgram && !errors.has_told()) return kNoMpirun;
  return WEXITSTATUS(status);
}

}  // namespace trinity
