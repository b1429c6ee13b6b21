#include "launch/rank_guard.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/error.h"
#include "launch/launch_variables.h"

namespace trinity {
namespace {

std::atomic<int> g_asked{0};     // SIGTERM or SIGINT, that the rank is to get
std::atomic<bool> g_ends{false};  // mpirun ends the job

void on_signal(int number) {
  if (number == SIGUSR1) g_asked = SIGTERM;
  else if (number == SIGUSR2) g_asked = SIGINT;
  else g_ends = true;
}

/// Lines of a rank's stream, passed on with its number before them.
class Stream {
 public:
  Stream() = default;
  Stream(int from, int to, std::string mark) : from_(from), to_(to), mark_(std::move(mark)) {}
  int from() const { return from_; }

  void pass_on() {
    char bytes[1 << 14];
    const ssize_t got = read(from_, bytes, sizeof bytes);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (got > 0) pending_.append(bytes, static_cast<size_t>(got));
    if (got <= 0 && !pending_.empty()) pending_ += '\n';
    size_t end = 0;
    while ((end = pending_.find('\n')) != std::string::npos) {
      write_line(mark_ + pending_.substr(0, end + 1));
      pending_.erase(0, end + 1);
    }
    if (got > 0) return;
    close(from_);
    from_ = -1;
  }

 private:
  void write_line(const std::string& line) const {
    size_t done = 0;
    while (done < line.size()) {
      const ssize_t sent = write(to_, line.data() + done, line.size() - done);
      if (sent < 0 && errno == EINTR) continue;
      if (sent <= 0) return;
      done += static_cast<size_t>(sent);
    }
  }

  int from_ = -1, to_ = -1;
  std::string mark_, pending_;
};

struct Place {
  pid_t front = 0;  // `trinity launch`
  int per_node = 1, all_output = 0, rank = 0, size = 1;
  std::string name() const {
    return per_node == size ? fmt::format("rank {}", rank)
                            : fmt::format("rank {} (node {})", rank, rank / per_node);
  }
};

/// In place of mpirun's variables torchrun's, which scripts know.
void set_variables(const Place& place) {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                           "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", "PMIX_RANK"})
    unsetenv(name);
  const auto set = [](const char* name, int value) {
    setenv(name, std::to_string(value).c_str(), 1);
  };
  set("RANK", place.rank);
  set("WORLD_SIZE", place.size);
  set("LOCAL_RANK", place.rank % place.per_node);
  set("LOCAL_WORLD_SIZE", place.per_node);
  set("GROUP_RANK", place.rank / place.per_node);
  set("TRINITY_LAUNCH", 1);
  setenv("MASTER_ADDR", "127.0.0.1", 1);
}

class Guard {
 public:
  Guard(const Place& place, pid_t rank, std::array<Stream, 2> streams)
      : place_(place), rank_(rank), streams_(std::move(streams)) {}

  /// The status for mpirun.
  int run() {
    int status = 0;
    bool is_told = false;
    while (waitpid(rank_, &status, WNOHANG) != rank_) {
      if (g_ends) {
        kill(-rank_, SIGKILL);
        return 128 + SIGTERM;
      }
      if (const int number = g_asked.exchange(0)) {
        is_told = true;
        kill(-rank_, number);
      }
      pass_on(50);
    }
    while (pass_on(0)) continue;  // what it said comes before what is said here
    return is_told ? 0 : status_of(status);
  }

 private:
  /// Whether something was passed on.
  bool pass_on(int patience_ms) {
    std::array<pollfd, 2> files;
    for (size_t i = 0; i < files.size(); ++i) files[i] = {streams_[i].from(), POLLIN, 0};
    if (poll(files.data(), files.size(), patience_ms) <= 0) return false;
    for (size_t i = 0; i < files.size(); ++i)
      if (files[i].revents != 0) streams_[i].pass_on();
    return true;
  }

  void say(const std::string& what) const {
    std::fprintf(stderr, "%ctrinity: %s %s\n", kGuardMark, place_.name().c_str(), what.c_str());
  }

  int status_of(int status) const {
    if (WIFEXITED(status)) {
      const int code = WEXITSTATUS(status);
      if (code == 0 || code == kToldStatus) return code == 0 ? 0 : 1;
      if (code == 128 + SIGINT || code == 128 + SIGTERM) {
        kill(place_.front, code - 128);
        return 0;
      }
      say(fmt::format("ended with exit status {}", code));
      return code;
    }
    const int number = WTERMSIG(status);
    say(fmt::format("ended by signal {} ({})", number, strsignal(number)));
    return 128 + number;
  }

  Place place_;
  pid_t rank_;
  std::array<Stream, 2> streams_;
};

/// Opens a pipe, or ends the process.
std::array<int, 2> pipe_or_end() {
  std::array<int, 2> ends;
  if (pipe2(ends.data(), O_CLOEXEC) == 0) return ends;
  std::fprintf(stderr, "trinity: cannot start a rank: %s\n", std::strerror(errno));
  _exit(1);
}

}  // namespace

void guard_rank() {
  Place place;
  const char* launch = std::getenv("TRINITY_LAUNCH");
  if (!launch || std::sscanf(launch, "%d:%d:%d", &place.front, &place.per_node,
                             &place.all_output) != 3)
    return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const auto found = read_ranks(process_environment);
  place.rank = found.rank;
  place.size = found.size;
  set_variables(place);
  const auto errors = pipe_or_end();
  const bool takes_output = place.rank > 0 && place.all_output != 0;
  const auto output = takes_output ? pipe_or_end() : std::array<int, 2>{-1, -1};
  for (const int number : {SIGUSR1, SIGUSR2, SIGTERM, SIGINT}) signal(number, on_signal);
  const pid_t guard = getpid(), rank = fork();
  if (rank < 0) {
    std::fprintf(stderr, "trinity: cannot start a rank: %s\n", std::strerror(errno));
    _exit(1);
  }
  if (rank > 0) {
    setpgid(rank, rank);
    close(errors[1]);
    if (takes_output) close(output[1]);
    const auto mark = fmt::format("[{}] ", place.rank);
    _exit(Guard(place, rank, {Stream(errors[0], 2, kGuardMark + mark), Stream(output[0], 1, mark)})
              .run());
  }
  setpgid(0, 0);  // with its own children, of which mpirun knows nothing
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != guard) _exit(1);
  for (const int number : {SIGUSR1, SIGUSR2, SIGTERM, SIGINT}) signal(number, SIG_DFL);
  const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (nothing < 0 || dup2(nothing, 0) < 0 || dup2(errors[1], 2) < 0) _exit(1);
  if (place.rank > 0 && dup2(takes_output ? output[1] : nothing, 1) < 0) _exit(1);
}

}  // namespace trinity
