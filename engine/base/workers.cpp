#include "base/workers.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

#include "base/stop.h"

namespace trinity {
namespace {

bool g_in_worker = false;

/// What begins a reply: sizes of payload and output, which follow.
struct ReplyHead {
  uint64_t payload_bytes, output_bytes;
};

struct Worker {
  pid_t process = -1;
  int socket = -1;  // items go out, replies come in
  int output = -1;  // the memory file that is the worker's standard output
  int item = -1;    // what it works on; -1: idle
  std::string received;
};

bool read_all(int socket, void* data, size_t size) {
  auto* at = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t got = recv(socket, at, size, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    size -= static_cast<size_t>(got);
  }
  return true;
}

/// A gone reader is an answer, not a signal.
bool write_all(int socket, const void* data, size_t size) {
  const auto* at = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t sent = send(socket, at, size, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    at += sent;
    size -= static_cast<size_t>(sent);
  }
  return true;
}

std::string contents(int file) {
  std::string text;
  const off_t size = lseek(file, 0, SEEK_END);
  if (size <= 0) return text;
  text.resize(static_cast<size_t>(size));
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t got =
        pread(file, text.data() + done, text.size() - done, static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    done += static_cast<size_t>(got);
  }
  text.resize(done);
  return text;
}

constexpr int kInterrupt = SIGUSR2;

void empty(int file) {
  if (ftruncate(file, 0) != 0 || lseek(file, 0, SEEK_SET) != 0) _exit(70);
}

std::string describe_end(int status) {
  if (WIFSIGNALED(status))
    return fmt::format("signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  return fmt::format("exit status {}", WIFEXITED(status) ? WEXITSTATUS(status) : status);
}

/// What makes a forked process a worker. Standard input is nobody's: ours would lose bytes to it.
/// Ctrl-C is its parent's to tell, by another signal, since terminals send theirs to both.
void settle(const Worker& worker, pid_t parent, const WorkerJob& job) {
  g_in_worker = true;
  if (job.on_interrupt) {
    struct sigaction action = {};
    action.sa_handler = job.on_interrupt;
    sigaction(kInterrupt, &action, nullptr);
  }
  signal(SIGINT, SIG_IGN);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(70);
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (nothing < 0 || dup2(nothing, 0) < 0 || dup2(worker.output, 1) < 0) _exit(70);
  close(nothing);
}

/// The life of a worker. It never returns into the parent's code, whose cleanup is not its own.
[[noreturn]] void serve(const Worker& worker, const WorkerJob& job) {
  int32_t item = 0;
  try {
    while (read_all(worker.socket, &item, sizeof item)) {
      empty(worker.output);
      const std::string payload = job.work(item);
      std::fflush(nullptr);
      const std::string output = contents(worker.output);
      const ReplyHead head = {payload.size(), output.size()};
      if (!write_all(worker.socket, &head, sizeof head) ||
          !write_all(worker.socket, payload.data(), payload.size()) ||
          !write_all(worker.socket, output.data(), output.size()))
        break;
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "trinity: worker: %s\n", error.what());
    std::fflush(nullptr);
    _exit(70);
  }
  _exit(0);
}

/// The workers of one job. Its end is theirs.
class Crew {
 public:
  explicit Crew(const WorkerJob& job)
      : job_(job),
        wanted_(job.items),
        limit_(static_cast<size_t>(std::min(job.workers, job.items))) {}
  ~Crew() {
    if (stop_flag() && job_.on_interrupt) interrupt();
    for (const auto& worker : workers_) kill(worker.process, SIGKILL);  // all, then wait for each
    while (!workers_.empty()) dismiss(workers_.size() - 1);
  }
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  void run() {
    while (hand_out()) {
      poll_stop();
      listen();
    }
  }

 private:
  bool hire();
  bool hand_out();
  void listen();
  void take(size_t index);
  void deliver(WorkerReply reply);
  void interrupt();
  int dismiss(size_t index, bool ends = false);

  const WorkerJob& job_;
  std::vector<Worker> workers_;
  int next_ = 0, wanted_;
  size_t limit_;
};

/// Starts a worker; false when the system has no room for one more.
bool Crew::hire() {
  Worker worker;
  int ends[2];
  worker.output = memfd_create("trinity output", MFD_CLOEXEC);
  if (worker.output < 0) return false;
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    close(worker.output);
    return false;
  }
  std::fflush(nullptr);  // else the child would write what our buffers hold once more
  const pid_t parent = getpid();
  worker.process = fork();
  if (worker.process == 0) {
    for (const auto& other : workers_) {
      close(other.socket);
      close(other.output);
    }
    close(ends[0]);
    worker.socket = ends[1];
    settle(worker, parent, job_);
    serve(worker, job_);
  }
  const int error = errno;
  close(ends[1]);
  worker.socket = ends[0];
  if (worker.process < 0) {
    close(worker.socket);
    close(worker.output);
    errno = error;
    return false;
  }
  workers_.push_back(std::move(worker));
  return true;
}

/// Gives every idle worker an item, hiring where there are more items than workers. Returns
/// whether anything is left to wait for.
bool Crew::hand_out() {
  const auto idle = [this] {
    return std::find_if(workers_.begin(), workers_.end(),
                        [](const Worker& worker) { return worker.item < 0; });
  };
  while (next_ < wanted_) {
    auto worker = idle();
    if (worker == workers_.end()) {
      if (workers_.size() >= limit_) break;
      if (!hire()) {
        if (workers_.empty())
          throw Error(fmt::format("cannot start a worker process: {}", std::strerror(errno)));
        limit_ = workers_.size();
        break;
      }
      worker = workers_.end() - 1;
    }
    worker->item = next_++;
    const int32_t item = worker->item;
    // Should it have died, its closed socket says so when we listen.
    write_all(worker->socket, &item, sizeof item);
  }
  return std::any_of(workers_.begin(), workers_.end(),
                     [](const Worker& worker) { return worker.item >= 0; });
}

/// Waits a moment for replies and takes them.
void Crew::listen() {
  std::vector<pollfd> sockets;
  for (const auto& worker : workers_) sockets.push_back({worker.socket, POLLIN, 0});
  if (poll(sockets.data(), sockets.size(), 50) <= 0) return;
  // From the end: taking a reply may dismiss workers, which moves those after them.
  for (size_t i = sockets.size(); i-- > 0;)
    if (sockets[i].revents != 0 && i < workers_.size() && workers_[i].socket == sockets[i].fd)
      take(i);
}

/// Reads what worker `index` sent, or learns of its end.
void Crew::take(size_t index) {
  auto& worker = workers_[index];
  char bytes[1 << 16];
  const ssize_t got = recv(worker.socket, bytes, sizeof bytes, MSG_DONTWAIT);
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  WorkerReply reply;
  reply.item = worker.item;
  if (got <= 0) {
    reply.output = contents(worker.output);
    reply.death = describe_end(dismiss(index, true));
    if (reply.item >= 0) deliver(std::move(reply));
    return;
  }
  worker.received.append(bytes, static_cast<size_t>(got));
  ReplyHead head;
  if (worker.received.size() < sizeof head) return;
  std::memcpy(&head, worker.received.data(), sizeof head);
  if (worker.received.size() < sizeof head + head.payload_bytes + head.output_bytes) return;
  reply.payload = worker.received.substr(sizeof head, head.payload_bytes);
  reply.output = worker.received.substr(sizeof head + head.payload_bytes);
  worker.received.clear();
  worker.item = -1;
  deliver(std::move(reply));
}

void Crew::deliver(WorkerReply reply) {
  wanted_ = std::min(wanted_, job_.receive(std::move(reply)));
  for (size_t i = workers_.size(); i-- > 0;)
    if (workers_[i].item >= wanted_) dismiss(i);
}

/// Tells all workers of Ctrl-C and gives them a tenth of a second to keep what they have.
void Crew::interrupt() {
  for (auto& worker : workers_) {
    kill(worker.process, kInterrupt);
    shutdown(worker.socket, SHUT_RDWR);
  }
  const auto has_ended = [](const Worker& worker) {
    siginfo_t about = {};
    return waitid(P_PID, static_cast<id_t>(worker.process), &about,
                  WEXITED | WNOHANG | WNOWAIT) == 0 &&
           about.si_pid != 0;
  };
  for (int tries = 0; tries < 100; ++tries) {
    if (std::all_of(workers_.begin(), workers_.end(), has_ended)) return;
    usleep(1000);
  }
}

/// Forgets worker `index` and returns its wait status. One that `ends` by itself gets a second to
/// do so, the others are ended.
int Crew::dismiss(size_t index, bool ends) {
  const Worker worker = std::move(workers_[index]);
  workers_.erase(workers_.begin() + static_cast<std::ptrdiff_t>(index));
  close(worker.socket);
  close(worker.output);
  int status = 0;
  for (int tries = 0; ends && tries < 1000; ++tries) {
    if (waitpid(worker.process, &status, WNOHANG) != 0) return status;
    usleep(1000);
  }
  kill(worker.process, SIGKILL);
  while (waitpid(worker.process, &status, 0) < 0 && errno == EINTR) continue;
  return status;
}

}  // namespace

void run_workers(const WorkerJob& job) { Crew(job).run(); }

bool in_worker() { return g_in_worker; }

}  // namespace trinity
