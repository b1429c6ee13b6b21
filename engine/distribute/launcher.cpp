#include "distribute/launcher.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <thread>

#include "base/error.h"
#include "base/stop.h"
#include "distribute/monitor.h"

extern char** environ;

namespace trinity {
namespace {

constexpr const char* kPrefix = "trinity/0/";
constexpr const char* kVerdict = "trinity/0/verdict";
constexpr const char* kTaken = "trinity/0/taken/";
constexpr const char* kPatience = "trinity/0/timeouts";
constexpr double kGrace_s = 3;         // for ranks to end by themselves after a verdict
constexpr double kStop_grace_s = 15;   // for ranks to finish after Ctrl-C or SIGTERM

/// Lines of a rank's stream, passed on with its number before them.
class Stream {
 public:
  Stream(int from, int to, std::string mark) : from_(from), to_(to), mark_(std::move(mark)) {}
  int from() const { return from_; }
  bool is_open() const { return from_ >= 0; }

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

  int from_, to_;
  std::string mark_, pending_;
};

struct Rank {
  pid_t process = -1;
  bool has_joined = false;    // as far as we know
  std::optional<int> status;  // of wait, once it has ended
};

/// Ranks that each took all cores would stand in each other's way.
int threads_of_rank(const LaunchOptions& options) {
  if (options.threads > 0) return options.threads;
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()) / options.processes);
}

bool is_of_launcher(std::string_view variable) {
  for (const char* name :
       {"RANK=", "WORLD_SIZE=", "LOCAL_RANK=", "LOCAL_WORLD_SIZE=", "GROUP_RANK=", "MASTER_ADDR=",
        "MASTER_PORT=", "TORCHELASTIC_", "TRINITY_LAUNCH=", "TRINITY_JOIN=", "OMPI_", "PMIX_", "PMI_",
        "MPI_LOCALRANKID=", "MPI_LOCALNRANKS=", "SLURM_STEP_ID=", "PALS_", "JSM_NAMESPACE_",
        "FLUX_TASK_", "FLUX_JOB_", "JOB_COMPLETION_INDEX="})
    if (variable.starts_with(name)) return true;
  return false;
}

std::vector<std::string> environment_of(int rank, const LaunchOptions& options, int port) {
  std::vector<std::string> variables;
  for (char** entry = environ; *entry; ++entry) {
    const bool replaced =
        !options.backend.empty() && std::string_view(*entry).starts_with("TRINITY_BACKEND=");
    if (!is_of_launcher(*entry) && !replaced) variables.emplace_back(*entry);
  }
  const int per_node = options.per_node > 0 ? options.per_node : options.processes;
  const auto add = [&](const char* name, int value) {
    variables.push_back(fmt::format("{}={}", name, value));
  };
  add("RANK", rank);
  add("WORLD_SIZE", options.processes);
  add("LOCAL_RANK", rank % per_node);
  add("LOCAL_WORLD_SIZE", per_node);
  add("GROUP_RANK", rank / per_node);
  add("MASTER_PORT", port);
  add("TRINITY_LAUNCH", 1);
  add("TRINITY_JOIN", 1);
  if (!options.backend.empty()) variables.push_back("TRINITY_BACKEND=" + options.backend);
  variables.emplace_back("MASTER_ADDR=127.0.0.1");
  variables.emplace_back("TORCHELASTIC_USE_AGENT_STORE=True");
  return variables;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (auto& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

std::string describe_end(int status) {
  if (WIFSIGNALED(status))
    return fmt::format("by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  return fmt::format("with exit status {}", WEXITSTATUS(status));
}

int exit_status(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/// The ranks of one job. Its end is theirs.
class Crew {
 public:
  explicit Crew(const LaunchOptions& options)
      : options_(options),
        store_(JobStore::serve("127.0.0.1", 0)),
        observer_(*store_, kPrefix, options.processes),
        ranks_(static_cast<size_t>(options.processes)) {}
  ~Crew() {
    kill_all(SIGKILL);
    for (auto& rank : ranks_)
      while (rank.process > 0 && !rank.status && waitpid(rank.process, nullptr, 0) < 0 &&
             errno == EINTR) {
      }
    for (auto& stream : streams_)
      if (stream.is_open()) close(stream.from());
  }
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  int run() {
    for (int r = 0; r < options_.processes; ++r) start(r);
    while (!all_ended()) {
      pass_on(100);
      look_for_ends();
      look_for_verdict();
      look_for_missing();
      look_for_ctrl_c();
      if (until_s_ > 0 && steady_s() > until_s_) kill_all(SIGKILL);
    }
    pass_on(0);
    return status_;
  }

 private:
  bool all_ended() const {
    return std::all_of(ranks_.begin(), ranks_.end(),
                       [](const Rank& rank) { return rank.status.has_value(); });
  }
  void kill_all(int signal) const {
    for (const auto& rank : ranks_)
      if (rank.process > 0 && !rank.status) kill(-rank.process, signal);
  }
  void start(int r);
  void pass_on(int patience_ms);
  void look_for_ends();
  void look_for_verdict();
  bool ends_soon();
  void look_for_missing();
  bool has_joined(size_t r);
  std::string name(size_t r) const;
  void look_for_ctrl_c();
  void stop_all(int signal);
  void end_job(const std::string& message, int status);

  const LaunchOptions& options_;
  std::unique_ptr<JobStore> store_;
  Observer observer_;
  std::vector<Rank> ranks_;
  std::vector<Stream> streams_;
  Timeouts timeouts_;
  bool knows_timeouts_ = false, stopping_ = false;
  double looked_s_ = 0, until_s_ = 0;
  int status_ = 0;
};

[[noreturn]] void become(char** arguments, char** environment, int output, int errors,
                         pid_t parent) {
  setpgid(0, 0);  // Ctrl-C reaches the launcher alone, which passes it on
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(70);
  const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (nothing < 0 || dup2(nothing, 0) < 0) _exit(70);
  if (dup2(output == -1 ? nothing : output, 1) < 0 || dup2(errors, 2) < 0) _exit(70);
  signal(SIGPIPE, SIG_DFL);
  execve(arguments[0], arguments, environment);
  _exit(127);
}

void Crew::start(int r) {
  int errors[2], output[2] = {-1, -1};
  const bool takes_output = r > 0 && options_.all_output;
  if (pipe2(errors, O_CLOEXEC) != 0 || (takes_output && pipe2(output, O_CLOEXEC) != 0))
    throw Error(fmt::format("cannot start rank {}: {}", r, std::strerror(errno)));
  std::vector<std::string> words = {options_.program, "--threads",
                                    std::to_string(threads_of_rank(options_))};
  words.insert(words.end(), options_.program_options.begin(), options_.program_options.end());
  words.insert(words.end(), options_.arguments.begin(), options_.arguments.end());
  auto variables = environment_of(r, options_, store_->port());
  const auto argument_list = pointers(words), environment = pointers(variables);
  const pid_t parent = getpid();
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0)
    become(const_cast<char**>(argument_list.data()), const_cast<char**>(environment.data()),
           r == 0 ? 1 : output[1], errors[1], parent);
  const int error = errno;
  close(errors[1]);
  const auto mark = fmt::format("[{}] ", r);
  streams_.emplace_back(errors[0], 2, mark);
  if (takes_output) {
    close(output[1]);
    streams_.emplace_back(output[0], 1, mark);
  }
  if (child < 0) throw Error(fmt::format("cannot start rank {}: {}", r, std::strerror(error)));
  setpgid(child, child);
  ranks_[r].process = child;
}

void Crew::pass_on(int patience_ms) {
  std::vector<pollfd> files;
  for (const auto& stream : streams_) files.push_back({stream.from(), POLLIN, 0});
  while (poll(files.data(), files.size(), patience_ms) > 0) {
    bool any_open = false;
    for (size_t i = 0; i < files.size(); ++i) {
      if (files[i].revents == 0 || !streams_[i].is_open()) continue;
      streams_[i].pass_on();
      files[i].fd = streams_[i].from();
      any_open = any_open || streams_[i].is_open();
    }
    if (patience_ms > 0 || !any_open) return;  // at the end, until nothing is left
  }
}

void Crew::look_for_ends() {
  for (size_t r = 0; r < ranks_.size(); ++r) {
    int status = 0;
    if (ranks_[r].status || waitpid(ranks_[r].process, &status, WNOHANG) <= 0) continue;
    ranks_[r].status = status;
    if (status == 0 || status_ != 0) continue;
    pass_on(0);  // what it said comes before what we say
    const int code = exit_status(status);
    if (WIFEXITED(status) && (code == 128 + SIGINT || code == 128 + SIGTERM)) {
      stop_all(code - 128);
      std::fprintf(stderr, "trinity: a rank was asked to end by %s: all ranks stop\n",
                   code == 128 + SIGINT ? "Ctrl-C" : "SIGTERM");
      continue;
    }
    const auto verdict = store_->get(kVerdict);
    end_job(verdict ? *verdict : fmt::format("{} ended {}", name(r), describe_end(status)),
            code);
  }
}

std::string Crew::name(size_t r) const {
  const int per_node = options_.per_node > 0 ? options_.per_node : options_.processes;
  if (per_node == options_.processes) return fmt::format("rank {}", r);
  return fmt::format("rank {} (node {})", r, r / static_cast<size_t>(per_node));
}

bool Crew::has_joined(size_t r) {
  if (!ranks_[r].has_joined)
    ranks_[r].has_joined = store_->get(fmt::format("{}{}", kTaken, r)).has_value();
  return ranks_[r].has_joined;
}

/// A rank whose script ended well without meeting the others, who wait for it.
void Crew::look_for_missing() {
  const auto is_waiting = [this](size_t r) { return !ranks_[r].status && has_joined(r); };
  for (size_t r = 0; r < ranks_.size() && status_ == 0 && !stopping_; ++r) {
    if (!ranks_[r].status || has_joined(r)) continue;
    for (size_t other = 0; other < ranks_.size(); ++other)
      if (is_waiting(other))
        return end_job(fmt::format("{} ended {} before it joined the job, for which rank {} waits",
                                   name(r), describe_end(*ranks_[r].status), other),
                       1);
  }
}

void Crew::look_for_verdict() {
  if (status_ != 0 || stopping_ || steady_s() - looked_s_ < 0.5) return;
  looked_s_ = steady_s();
  if (!knows_timeouts_)
    if (const auto text = store_->get(kPatience))
      knows_timeouts_ =
          std::sscanf(text->c_str(), "%lf %lf", &timeouts_.silent_s, &timeouts_.waiting_s) == 2;
  const auto verdict = store_->get(kVerdict);
  if (verdict) return end_job(*verdict, 1);
  if (!knows_timeouts_) return;  // nobody has joined yet: ranks say what they miss
  const auto found = observer_.look(timeouts_);
  if (found && !ends_soon()) end_job(*found, 1);
}

/// Whether a rank ends within a second with a status of its own: one that was asked to end has left
/// the job before its process does, which tells more.
bool Crew::ends_soon() {
  const double until_s = steady_s() + 1;
  while (steady_s() < until_s && status_ == 0) {
    pass_on(50);
    look_for_ends();
  }
  return status_ != 0;
}

void Crew::look_for_ctrl_c() {
  if (stopping_ || !stop_flag().load()) return;
  stop_all(options_.stop_signal ? options_.stop_signal() : SIGINT);
}

void Crew::stop_all(int signal) {
  stopping_ = true;
  status_ = 128 + signal;
  kill_all(signal);
  until_s_ = steady_s() + kStop_grace_s;
}

void Crew::end_job(const std::string& message, int status) {
  status_ = status;
  until_s_ = steady_s() + kGrace_s;
  store_->set(kVerdict, message);
  std::fprintf(stderr, "trinity: %s\n", message.c_str());
}

}  // namespace

int launch(const LaunchOptions& options) {
  if (options.processes < 1) throw ArgumentError("a job needs at least one process");
  if (options.per_node > 0 && options.processes % options.per_node != 0)
    throw ArgumentError(
        fmt::format("{} processes do not fill nodes of {}", options.processes, options.per_node));
  return Crew(options).run();
}

}  // namespace trinity
