#include "base/workers.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/hold.h"
#include "base/stop.h"

namespace trinity {
namespace {

bool g_in_worker = false;

/// Header of a reply: the size of the payload that follows. The output stays in its file.
struct ReplyHead {
  uint64_t payload_bytes;
};

struct Worker {
  pid_t process = -1;
  int socket = -1;  // sends items, receives replies
  int output = -1;  // the worker's standard output file
  int item = -1;    // current item; -1: idle
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

/// A closed reader is an error code, not SIGPIPE.
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

bool lies_in_memory(int file) {
  struct statfs about;
  return fstatfs(file, &about) == 0 &&
         (about.f_type == TMPFS_MAGIC || about.f_type == RAMFS_MAGIC);
}

/// An anonymous file, on a disk if possible, because memory files escape all limits.
int unnamed_file() {
  const char* chosen = std::getenv("TMPDIR");
  for (const char* folder : {chosen ? chosen : "", "/tmp", "/var/tmp", "."}) {
    const int file = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (file >= 0 && !lies_in_memory(file)) return file;
    if (file >= 0) close(file);
  }
  return memfd_create("trinity output", MFD_CLOEXEC);
}

/// Maximum size of such a file: in memory, the process's own memory limit.
rlim_t most_bytes(int file) {
  rlimit limit{};
  const bool bounded = lies_in_memory(file) && getrlimit(RLIMIT_DATA, &limit) == 0;
  return bounded ? limit.rlim_cur : RLIM_INFINITY;
}

/// Calls take(bytes, size) on each piece of a range of a file, until it returns false.
template <class Take>
void for_pieces(int file, int64_t from, int64_t bytes, const Take& take) {
  char piece[1 << 16];
  while (bytes > 0) {
    const auto most = std::min<int64_t>(bytes, sizeof piece);
    const ssize_t got = pread(file, piece, static_cast<size_t>(most), from);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0 || !take(piece, static_cast<size_t>(got))) return;
    from += got;
    bytes -= got;
  }
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

/// Ends a worker after an unrecoverable error.
[[noreturn]] void give_up(const char* reason) {
  std::fprintf(stderr, "trinity: worker: %s\n", reason);
  std::fflush(nullptr);
  _exit(70);
}

/// Sets up a forked process as a worker. Standard input is empty, because reading ours would lose
/// bytes. SIGINT and SIGTERM are ignored, because terminals and schedulers send them to both parent
/// and workers; the parent forwards them by another signal.
void settle(const Worker& worker, pid_t parent, const WorkerJob& job) {
  g_in_worker = true;
  leave_lock_to_parent();
  if (job.on_interrupt) {
    struct sigaction action = {};
    action.sa_handler = job.on_interrupt;
    sigaction(kInterrupt, &action, nullptr);
  }
  for (const int number : {SIGINT, SIGTERM, SIGUSR1}) signal(number, SIG_IGN);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(70);
  rlimit size{};
  if (getrlimit(RLIMIT_FSIZE, &size) == 0) {
    size.rlim_cur = std::min(size.rlim_cur, most_bytes(worker.output));
    setrlimit(RLIMIT_FSIZE, &size);
    signal(SIGXFSZ, SIG_IGN);
  }
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (nothing < 0 || dup2(nothing, 0) < 0 || dup2(worker.output, 1) < 0) _exit(70);
  close(nothing);
}

/// Ends a worker that has lost output, because the disk or memory is full.
void check_output(int file) {
  if (std::fflush(stdout) == 0 && !std::ferror(stdout)) return;
  const bool writes = write(file, "\n", 1) == 1;
  give_up(fmt::format("cannot store its output: {}",
                      writes ? "a part of it is lost" : std::strerror(errno))
              .c_str());
}

/// Main of a worker. Never returns into the parent's code, whose cleanup must not run here.
[[noreturn]] void serve(const Worker& worker, pid_t parent, const WorkerJob& job) {
  int32_t item = 0;
  try {
    settle(worker, parent, job);
    while (read_all(worker.socket, &item, sizeof item)) {
      empty(worker.output);
      const std::string payload = job.work(item);
      std::fflush(nullptr);
      check_output(worker.output);
      const ReplyHead head = {payload.size()};
      if (!write_all(worker.socket, &head, sizeof head) ||
          !write_all(worker.socket, payload.data(), payload.size()))
        break;
    }
  } catch (const std::exception& error) {
    give_up(error.what());
  } catch (...) {  // Lua errors when its memory is exhausted
    give_up("internal error outside of its item");
  }
  _exit(0);
}

/// The workers of one job; ended by its destructor.
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
  /// Starts a worker; false if the system refuses.
  bool hire() {
    workers_.reserve(limit_);  // nothing may fail between its start and its registration
    Worker worker;
    int ends[2];
    worker.output = unnamed_file();
    if (worker.output < 0) return false;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
      close(worker.output);
      return false;
    }
    std::fflush(nullptr);  // otherwise the child would write our buffers again
    const pid_t parent = getpid();
    worker.process = fork();
    if (worker.process == 0) {
      for (const auto& other : workers_) {
        close(other.socket);
        close(other.output);
      }
      close(ends[0]);
      worker.socket = ends[1];
      serve(worker, parent, job_);
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

  /// Gives every idle worker an item, and starts workers if there are more items. Returns true if
  /// there is something to wait for.
  bool hand_out() {
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
            throw Error("cannot start a worker process: {}", std::strerror(errno));
          limit_ = workers_.size();
          break;
        }
        worker = workers_.end() - 1;
      }
      worker->item = next_++;
      const int32_t item = worker->item;
      // If it has died, its closed socket is noticed when reading.
      write_all(worker->socket, &item, sizeof item);
    }
    return std::any_of(workers_.begin(), workers_.end(),
                       [](const Worker& worker) { return worker.item >= 0; });
  }

  /// Waits briefly for replies and processes them.
  void listen() {
    std::vector<pollfd> sockets;
    for (const auto& worker : workers_) sockets.push_back({worker.socket, POLLIN, 0});
    if (poll(sockets.data(), sockets.size(), 50) <= 0) return;
    // In reverse order: processing a reply may dismiss workers, which moves those after them.
    for (size_t i = sockets.size(); i-- > 0;)
      if (sockets[i].revents != 0 && i < workers_.size() && workers_[i].socket == sockets[i].fd)
        take(i);
  }

  /// Reads from worker `index`, or notices its end.
  void take(size_t index) {
    auto& worker = workers_[index];
    char bytes[1 << 16];
    const ssize_t got = recv(worker.socket, bytes, sizeof bytes, MSG_DONTWAIT);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
    WorkerReply reply;
    reply.item = worker.item;
    if (got <= 0) {
      reply.output = keep_output(worker);
      reply.death = describe_end(dismiss(index, true));
      if (reply.item >= 0) deliver(std::move(reply));
      return;
    }
    worker.received.append(bytes, static_cast<size_t>(got));
    ReplyHead head;
    if (worker.received.size() < sizeof head) return;
    std::memcpy(&head, worker.received.data(), sizeof head);
    if (worker.received.size() < sizeof head + head.payload_bytes) return;
    reply.payload = worker.received.substr(sizeof head, head.payload_bytes);
    reply.output = keep_output(worker);
    worker.received.clear();
    worker.item = -1;
    deliver(std::move(reply));
  }

  /// Appends a worker's output to the kept outputs, because its file is reused for the next item.
  WorkerOutput keep_output(const Worker& worker) {
    const int64_t from = outputs_bytes_;
    for_pieces(worker.output, 0, lseek(worker.output, 0, SEEK_END), [&](const char* at, size_t size) {
      while (size > 0) {
        const auto put = pwrite(outputs_->get(), at, size, outputs_bytes_);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0)
          throw FileError("cannot store a worker's output: {}", std::strerror(errno));
        if (static_cast<rlim_t>(outputs_bytes_ + put) > most_bytes(outputs_->get()))
          throw LimitError(
              "workers printed too much for the memory limit, and no temporary directory on a disk "
              "is available (set TMPDIR)");
        outputs_bytes_ += put;
        at += put;
        size -= static_cast<size_t>(put);
      }
      return true;
    });
    return {outputs_, from, outputs_bytes_ - from};
  }

  void deliver(WorkerReply reply) {
    wanted_ = std::min(wanted_, job_.receive(std::move(reply)));
    for (size_t i = workers_.size(); i-- > 0;)
      if (workers_[i].item >= wanted_) dismiss(i);
  }

  /// Signals Ctrl-C to all workers and gives them a tenth of a second to save their results.
  void interrupt() {
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

  /// Removes worker `index` and returns its wait status. With `ends` it gets a second to exit by
  /// itself; otherwise it is killed.
  int dismiss(size_t index, bool ends = false) {
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

  const WorkerJob& job_;
  std::vector<Worker> workers_;
  int next_ = 0, wanted_;
  size_t limit_;
  std::shared_ptr<const Descriptor> outputs_ = std::make_shared<const Descriptor>(unnamed_file());
  int64_t outputs_bytes_ = 0;
};

}  // namespace

void WorkerOutput::write_to(std::FILE* out) const {
  if (bytes_ == 0) return;
  for_pieces(file_->get(), from_, bytes_, [&](const char* at, size_t size) {
    return std::fwrite(at, 1, size, out) == size;
  });
}

std::string WorkerOutput::text() const {
  std::string all;
  if (bytes_ == 0) return all;
  for_pieces(file_->get(), from_, bytes_, [&](const char* at, size_t size) {
    all.append(at, size);
    return true;
  });
  return all;
}

void run_workers(const WorkerJob& job) { Crew(job).run(); }

bool in_worker() { return g_in_worker; }

}  // namespace trinity
