// The walls of --safe (base/confine.h), tried from within by system calls: what a script could do
// if it got past the allow-list of globals.

#include "base/confine.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/io_uring.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <functional>
#include <sstream>
#include <thread>

#include "base/file.h"
#include "support/tier.h"

using namespace trinity;
namespace fs = std::filesystem;

namespace {

/// A working directory with a writable folder `run`, next to a folder of somebody else. `link` and
/// run/link lead there.
class Site {
 public:
  Site() {
    auto name = (fs::temp_directory_path() / "trinity-walls-XXXXXX").string();
    root_ = fs::canonical(mkdtemp(name.data()));
    for (const char* path :
         {"work/own.txt", "work/run/file.txt", "work/run/inner/file.txt", "outside/secret.txt",
          "outside/.ssh/id", "outside/empty/x", "home/lib/x", "home/lib/deep/x"})
      write_file(at(path), "text", Durability::unsynced);
    fs::remove(at("outside/empty/x"));
    fs::create_directory_symlink(at("outside"), at("work/link"));
    fs::create_directory_symlink(at("outside"), at("work/run/link"));
    fs::create_symlink("the start", at("work/run/.seal"));
    fs::current_path(root_ / "work");
  }
  ~Site() {
    fs::current_path(before_);
    fs::remove_all(root_);
  }
  std::string at(const std::string& path) const { return (root_ / path).string(); }
  OpenFolders folders() const {
    return {.home = at("home"), .script = "", .runs = "", .writable = {at("work/run")}};
  }
  /// Names, sizes and modes of everything but work/run.
  std::string others() const {
    std::string all;
    for (const auto& entry : fs::recursive_directory_iterator(root_)) {
      const auto path = entry.path().string();
      struct stat about;
      if (path.find("/run/") != path.npos || lstat(path.c_str(), &about) != 0) continue;
      all += fmt::format("{} {:o} {}\n", path, about.st_mode,
                         S_ISDIR(about.st_mode) ? 0 : about.st_size);
    }
    return all;
  }

 private:
  fs::path before_ = fs::current_path();
  fs::path root_;
};

/// Calls body() in a process; returns what it says.
std::string in_process(const std::function<std::string()>& body) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    std::string said;
    try {
      said = body();
    } catch (const std::exception& error) {
      said = error.what();
    }
    _exit(write(ends[1], said.data(), said.size()) == static_cast<ssize_t>(said.size()) ? 0 : 1);
  }
  close(ends[1]);
  std::string said;
  char piece[4096];
  for (ssize_t got; (got = read(ends[0], piece, sizeof piece)) > 0;)
    said.append(piece, static_cast<size_t>(got));
  close(ends[0]);
  int status = -1;
  waitpid(child, &status, 0);
  return status == 0 ? said : said + fmt::format("\nended with {}", status);
}

struct Attempt {
  std::string name;
  std::function<long()> call;
};

/// Names of attempts that were not denied, with errno where it is another.
std::string reached(const std::vector<Attempt>& attempts) {
  std::string names;
  for (const auto& attempt : attempts) {
    errno = 0;
    const long got = attempt.call();
    const int code = errno;
    if (got == -1 && (code == EACCES || code == EPERM || code == EXDEV || code == ENOSYS)) continue;
    names += fmt::format("{}: {} {}\n", attempt.name, got, std::strerror(code));
  }
  return names;
}

/// Whether a program ends well; -1 and EPERM otherwise, as a denied call.
long run_program(std::vector<const char*> words) {
  const pid_t child = fork();
  if (child == 0) {
    const int nothing = open("/dev/null", O_WRONLY);
    dup2(nothing, 1);
    dup2(nothing, 2);
    words.push_back(nullptr);
    execv(words[0], const_cast<char**>(words.data()));
    _exit(99);
  }
  int status = -1;
  waitpid(child, &status, 0);
  errno = EPERM;
  return status == 0 ? 0 : -1;
}

/// True on a kernel on which --safe refuses to start.
bool cannot_confine() {
  return !lacking(static_cast<int>(syscall(SYS_landlock_create_ruleset, nullptr, 0, 1))).empty();
}

}  // namespace

TEST_CASE("no file is reached or changed outside, by any path or call" *
          doctest::skip(cannot_confine())) {
  const Site site;
  const auto before = site.others();
  const int held = open(site.at("outside").c_str(), O_RDONLY | O_DIRECTORY);
  const int path_only = open(site.at("outside/secret.txt").c_str(), O_PATH);
  const auto said = in_process([&] {
    const auto parent = fmt::format("/proc/{}", getppid());
    confine(site.folders());
    const auto read = [](const std::string& path) { return open(path.c_str(), O_RDONLY); };
    const auto secret = site.at("outside/secret.txt"), made = site.at("outside/made");
    std::istringstream paths(
        "../outside/secret.txt link/secret.txt run/link/secret.txt /etc/passwd /root /tmp / /proc "
        "/proc/self/cwd/../outside/secret.txt /proc/self/environ /proc/self/mem /proc/1/cmdline " +
        fmt::format(
            "{0} {1} {1}/.ssh/id /proc/self/root{0} {2}/cwd/../outside/secret.txt {2}/root{0} "
            "{2}/environ /proc/self/fd/{3}",
            secret, site.at("outside"), parent, path_only));
    std::vector<Attempt> attempts;
    for (std::string path; paths >> path;)
      attempts.push_back({"read " + path, [=] { return read(path); }});
    const std::vector<Attempt> calls = {
        {"openat", [&] { return openat(held, "secret.txt", O_RDONLY); }},
        {"openat link", [&] { return openat(held, "../work/link/secret.txt", O_RDONLY); }},
        {"make", [&] { return open(made.c_str(), O_CREAT | O_WRONLY, 0600); }},
        {"make at", [&] { return openat(held, "made", O_CREAT | O_WRONLY, 0600); }},
        {"make by link", [] { return open("run/link/made", O_CREAT | O_WRONLY, 0600); }},
        {"unnamed", [&] { return open(site.at("outside").c_str(), O_TMPFILE | O_RDWR, 0600); }},
        {"write own", [] { return open("own.txt", O_WRONLY); }},
        {"append own", [] { return open("own.txt", O_WRONLY | O_APPEND); }},
        {"make beside own", [] { return open("made", O_CREAT | O_WRONLY, 0600); }},
        {"truncate", [&] { return truncate(secret.c_str(), 0); }},
        {"truncate own", [] { return truncate("own.txt", 0); }},
        {"open truncating", [] { return open("own.txt", O_RDONLY | O_TRUNC); }},
        {"rename out", [&] { return rename("run/file.txt", made.c_str()); }},
        {"rename in", [&] { return rename(secret.c_str(), "run/secret.txt"); }},
        {"rename by link", [] { return rename("run/file.txt", "run/link/made"); }},
        {"rename the folder", [] { return rename("run", "walk"); }},
        {"rename own in", [] { return rename("own.txt", "run/own.txt"); }},
        {"exchange",
         [&] { return renameat2(AT_FDCWD, "run/inner", held, "empty", RENAME_EXCHANGE); }},
        {"exchange with a link",
         [] { return renameat2(AT_FDCWD, "run/inner", AT_FDCWD, "run/link", RENAME_EXCHANGE); }},
        {"link in", [&] { return link(secret.c_str(), "run/hard"); }},
        {"link in by descriptor",
         [&] {
           const auto path = fmt::format("/proc/self/fd/{}", path_only);
           return linkat(AT_FDCWD, path.c_str(), AT_FDCWD, "run/hard", AT_SYMLINK_FOLLOW);
         }},
        {"link out", [&] { return link("run/file.txt", made.c_str()); }},
        {"link own", [] { return link("own.txt", "run/hard"); }},
        {"make a link", [&] { return symlink(secret.c_str(), "run/soft"); }},
        {"make a seal", [] { return symlink("another", "run/inner/.seal"); }},
        {"move the seal", [] { return rename("run/.seal", "run/inner/.seal"); }},
        {"rename the seal", [] { return rename("run/.seal", "run/seal"); }},
        {"copy the seal", [] { return link("run/.seal", "run/seal"); }},
        {"make a pipe", [] { return mkfifo("run/pipe", 0600); }},
        {"make a device", [] { return mknod("run/device", S_IFCHR | 0600, makedev(1, 1)); }},
        {"make a folder", [&] { return mkdir(made.c_str(), 0700); }},
        {"remove", [&] { return unlink(secret.c_str()); }},
        {"remove own", [] { return unlink("own.txt"); }},
        {"remove a folder", [&] { return rmdir(site.at("outside/empty").c_str()); }},
        {"mode", [&] { return chmod(secret.c_str(), 0777); }},
        {"mode of open", [] { return fchmod(open("own.txt", O_RDONLY), 0777); }},
        {"mode at", [&] { return fchmodat(held, "secret.txt", 0777, 0); }},
        {"owner", [&] { return chown(secret.c_str(), 1, 1); }},
        {"attribute", [&] { return setxattr(secret.c_str(), "user.a", "b", 1, 0); }},
        {"attribute by setxattrat, a later call",
         [&] {
           const struct {
             const char* value;
             uint32_t size, flags;
           } given = {"b", 1, 0};
           return syscall(463, AT_FDCWD, secret.c_str(), 0, "user.a", &given, sizeof given);
         }},
        {"times", [&] { return utimensat(AT_FDCWD, secret.c_str(), nullptr, 0); }},
        {"handle", [&] { return syscall(SYS_open_by_handle_at, held, nullptr, O_RDONLY); }},
        {"mount", [] { return mount("/", "run/inner", nullptr, MS_BIND, nullptr); }},
        {"root", [&] { return chroot(site.at("outside").c_str()); }},
        {"namespace", [] { return unshare(CLONE_NEWUSER | CLONE_NEWNS); }},
        {"namespace of a child",
         [] { return syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0); }},
        {"execute what was written",
         [] {
           const int file = open("run/program", O_CREAT | O_WRONLY, 0700);
           return file >= 0 && write(file, "#!/bin/sh\n", 10) == 10 && close(file) == 0
                      ? run_program({"run/program"})
                      : 0;
         }},
        {"child reads",
         [&] {
           return run_program({"/bin/cat", secret.c_str()});
         }},
        {"child makes",
         [&] {
           return run_program({"/bin/sh", "-c", ("echo >" + made).c_str()});
         }},
        {"thread reads", [&] {
           int got = 0, code = 0;
           std::thread([&] { got = read(secret), code = errno; }).join();
           errno = code;
           return got;
         }}};
    return reached(attempts) + reached(calls);
  });
  CHECK(said == "");
  CHECK(site.others() == before);
  CHECK(read_seal(site.at("work/run")) == "the start");
  CHECK(read_seal(site.at("work/run/inner")) == "");
  close(held);
  close(path_only);
}

TEST_CASE("no socket, process or shared object of others is reached" *
          doctest::skip(cannot_confine())) {
  const Site site;
  const auto said = in_process([&] {
    const pid_t parent = getppid();
    confine(site.folders());
    char byte = 0;
    const iovec here = {&byte, 1}, there = {&byte, 1};
    int pair[2];
    return reached(
        {{"inet", [] { return socket(AF_INET, SOCK_STREAM, 0); }},
         {"inet6", [] { return socket(AF_INET6, SOCK_DGRAM, 0); }},
         {"unix", [] { return socket(AF_UNIX, SOCK_STREAM, 0); }},
         {"netlink", [] { return socket(AF_NETLINK, SOCK_RAW, 0); }},
         {"datagrams", [&] { return socketpair(AF_UNIX, SOCK_DGRAM, 0, pair); }},
         {"uring",
          [] {
            io_uring_params given = {};
            return syscall(SYS_io_uring_setup, 1, &given);
          }},
         {"signal", [&] { return kill(parent, 0); }},
         {"signal to all", [&] { return kill(-parent, 0) == -1 ? kill(1, 0) : 0; }},
         {"trace", [&] { return ptrace(PTRACE_ATTACH, parent, 0, 0); }},
         {"memory", [&] { return process_vm_readv(parent, &here, 1, &there, 1, 0); }},
         {"limits",
          [&] {
            rlimit l = {};
            return prlimit(parent, RLIMIT_CORE, nullptr, &l);
          }},
         {"priority", [&] { return setpriority(PRIO_PROCESS, static_cast<id_t>(parent), 19); }},
         {"segment", [] { return shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600); }},
         {"key", [] { return syscall(SYS_keyctl, 0, -3, 1); }},
         {"type", [&] { return ioctl(0, TIOCSTI, &byte); }},
#ifdef __x86_64__
         {"x32", [] { return syscall(0x40000000 + SYS_getpid); }},
#endif
         {"bpf", [] { return syscall(SYS_bpf, 0, nullptr, 0); }}});
  });
  CHECK(said == "");
}

TEST_CASE("a confined process reads and writes its folders, and starts threads and processes" *
          doctest::skip(cannot_confine())) {
  const Site site;
  fs::create_directory(site.at("runs"));
  fs::create_directory(site.at("runs/empty"));
  write_file(site.at("script.lua"), "script");
  const auto said = in_process([&] {
    auto folders = site.folders();
    folders.script = site.at("script.lua");
    folders.runs = site.at("runs");
    confine(folders);
    std::string wrong;
    const auto check = [&](const char* what, bool holds) {
      wrong += holds ? "" : fmt::format("{}\n", what);
    };
    check("is confined", is_confined());
    check("reads", read_file("own.txt") == "text" && read_file(site.at("home/lib/x")) == "text");
    check("reads the script", read_file(site.at("script.lua")) == "script");
    write_file("run/deep/new.txt", "new");
    append_file("run/log.txt", "line");
    write_file("run/file.txt", "other");
    check("writes", read_file("run/deep/new.txt") + read_file("run/file.txt") == "newother");
    check("lists", list_folder("run") ==
                       std::vector<std::string>{"deep", "file.txt", "inner", "link", "log.txt"});
    remove_tree("run/deep");
    check("removes", !is_readable("run/deep/new.txt"));
    check("removes an empty run", rmdir(site.at("runs/empty").c_str()) == 0);
    check("unnamed file", open("run", O_TMPFILE | O_RDWR, 0600) >= 0 && memfd_create("x", 0) >= 0);
    check("devices", open("/dev/null", O_RDWR) >= 0 && open("/dev/urandom", O_RDONLY) >= 0);
    check("programs", run_program({"/bin/sh", "-c", "/usr/bin/env true | /bin/cat"}) == 0);
    int pair[2];
    check("pairs of sockets", socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
    const pid_t child = fork();
    if (child == 0) pause();
    check("signals its children", kill(child, SIGKILL) == 0 && waitpid(child, nullptr, 0) == child);
    std::thread([&] { check("threads", read_file("own.txt") == "text"); }).join();
    return wrong;
  });
  CHECK(said == "");
}

TEST_CASE("messages name the file and the open folders, and hidden files stay closed" *
          doctest::skip(cannot_confine())) {
  const Site site;
  write_file("run/.hidden/x", "x");
  const auto said = in_process([&] {
    confine(site.folders());
    std::string lines;
    for (const auto& body : std::vector<std::function<void()>>{
             [&] { read_file("../outside/secret.txt"); }, [&] { is_readable("link/secret.txt"); },
             [&] { list_folder("../outside"); }, [&] { write_file("made.txt", "x"); },
             [&] { append_file("own.txt", "x"); }, [&] { remove_tree("own.txt"); },
             [&] { make_folder("../made", {}); }, [&] { check_output("link/x"); },
             [&] { read_file("run/.hidden/x"); },
             [&] { write_file(site.at("work/run/.x/y"), "x"); }}) {
      try {
        body();
        lines += "done\n";
      } catch (const FileError& error) {
        lines += std::string(error.what()) + "\n";
      }
    }
    return lines;
  });
  const auto open = fmt::format(
      " (--safe opens {} for reading and {} for writing; --write FOLDER opens another)\n",
      site.at("work"), site.at("work/run"));
  const auto denied = "Permission denied" + open;
  CHECK(said == "../outside/secret.txt: cannot read: " + denied +
                    "link/secret.txt: cannot read: " + denied +
                    "../outside: cannot list: " + denied + "made.txt: cannot write: " + denied +
                    "own.txt: cannot write: " + denied + "own.txt: cannot remove: " + denied +
                    "../made: cannot make the folder: " + denied + "link/x: cannot write: " +
                    denied + "run/.hidden/x: cannot read: --safe opens no hidden files\n" +
                    site.at("work/run/.x/y") + ": cannot write: --safe opens no hidden files\n");
}

TEST_CASE("a folder that is swapped for a link while files are opened leads nowhere" *
          doctest::skip(cannot_confine())) {
  const Site site;
  const auto before = site.others();
  std::atomic<bool> done{false};
  std::thread swapper([&] {
    const auto a = site.at("work/run/inner"), b = site.at("work/run/link");
    while (!done) renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE);
  });
  const auto said = in_process([&] {
    confine(site.folders());
    int got = 0;
    const auto attempt = [&](const auto& body) {
      try {
        body();
        ++got;
      } catch (const FileError&) {
      }
    };
    for (uint64_t i = 0; i < test::draws(3000) || (got < test::least(30) && i < 1000000); ++i) {
      attempt([] {
        if (is_readable("run/inner/secret.txt")) throw std::runtime_error("read outside");
      });
      attempt([] { write_file("run/inner/new.txt", "x", Durability::unsynced); });
      attempt([] { append_file("run/inner/more.txt", "x"); });
      attempt([] { remove_tree("run/inner/new.txt"); });
    }
    return got >= test::least(30) ? "" : fmt::format("only {} calls met the folder", got);
  });
  done = true;
  swapper.join();
  CHECK(said == "");
  CHECK(site.others() == before);
}

TEST_CASE("without what it needs --safe refuses to start, with the reason") {
  const Site site;
  CHECK(lacking(0) == "files");
  CHECK(lacking(2) == "truncation");
  CHECK(lacking(5) == "signals and abstract sockets");
  CHECK(lacking(6) == "");
  CHECK(lacking(99) == "");
  const auto refused = [&](long denied) {
    return in_process([&]() -> std::string {
      sock_filter code[] = {{BPF_LD | BPF_W | BPF_ABS, 0, 0, 0},
                            {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, static_cast<uint32_t>(denied)},
                            {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | ENOSYS},
                            {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}};
      const sock_fprog program = {4, code};
      prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
      syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
      confine(site.folders());
      return "confined";
    });
  };
  CHECK(refused(SYS_landlock_create_ruleset) ==
        "--safe needs a kernel with Landlock (Linux 6.12), and this one refuses it: Function not "
        "implemented");
  CHECK(refused(SYS_seccomp) ==
        "--safe needs a kernel with filters of seccomp, and this one refuses it: Function not "
        "implemented");
  const auto with = [&](const std::string& folder) {
    return in_process([&]() -> std::string {
      auto folders = site.folders();
      folders.writable = {folder};
      confine(folders);
      return "confined";
    });
  };
  CHECK(with("/nowhere") == "/nowhere: cannot open it to a safe script: No such file or directory");
  CHECK(with("own.txt") == "own.txt: cannot open it to a safe script: Not a directory");
  CHECK(with("/").starts_with(
      "--safe: expected folders to write without files of trinity, got /, which contains "));
  CHECK(with("../home/lib/deep").find("which is in " + site.at("home/lib")) != std::string::npos);
}
