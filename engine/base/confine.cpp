#include "base/confine.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <span>
#include <sstream>

#include "base/file.h"

namespace trinity {
namespace {

namespace fs = std::filesystem;

thread_local std::optional<std::string> t_confinement;
thread_local std::vector<std::string> t_folders;

[[noreturn]] void refuse(const char* what, int code) {
  throw Error("--safe needs a kernel with {}, and this one refuses it: {}", what, std::strerror(code));
}

// Landlock, whose header of Debian 12 ends at version 2.

struct Ruleset {
  uint64_t files, ports, scopes;
};
struct [[gnu::packed]] Rule {
  uint64_t access;
  int32_t parent;
};
constexpr int kRuleOfPath = 1;

enum Access : uint64_t {
  kExecute = 1 << 0,
  kWriteFile = 1 << 1,
  kReadFile = 1 << 2,
  kReadFolder = 1 << 3,
  kRemoveFolder = 1 << 4,
  kRemoveFile = 1 << 5,
  kMakeFolder = 1 << 7,
  kMakeFile = 1 << 8,
  kTruncate = 1 << 14,
  kEverything = (1 << 16) - 1,
  kOfFiles = kExecute | kWriteFile | kReadFile | kTruncate,
  kRead = kReadFile | kReadFolder,
  kWrite = kRead | kWriteFile | kTruncate | kRemoveFolder | kRemoveFile | kMakeFolder | kMakeFile,
};
constexpr uint64_t kPorts = 3;   // bind and connect of TCP
constexpr uint64_t kScopes = 3;  // abstract Unix sockets, signals

void open_path(int ruleset, const std::string& path, uint64_t access, bool needed = false) {
  const Descriptor file(open(path.c_str(), O_PATH | O_CLOEXEC));
  struct stat about;
  if (!file || fstat(file.get(), &about) != 0) {
    if (needed) fail_file(path, "cannot open it to a safe script", errno);
    return;
  }
  if (!S_ISDIR(about.st_mode)) access &= kOfFiles;
  const Rule rule = {access, file.get()};
  // EBADFD: a pipe or the like, which no rule denies.
  if (syscall(SYS_landlock_add_rule, ruleset, kRuleOfPath, &rule, 0) != 0 && errno != EBADFD)
    refuse("Landlock", errno);
}

/// The folder of the library that contains this code.
std::string program_folder() {
  Dl_info own;
  std::error_code error;
  if (dladdr(reinterpret_cast<void*>(&program_folder), &own) == 0) return {};
  return fs::canonical(own.dli_fname, error).parent_path();
}

void open_system(int ruleset) {
  for (const char* folder : {"/usr", "/bin", "/sbin", "/lib", "/lib64"})
    open_path(ruleset, folder, kRead | kExecute);
  for (const char* path : {"/etc/ld.so.cache", "/etc/fonts", "/etc/localtime",
                           "/var/cache/fontconfig", "/proc/cpuinfo", "/proc/meminfo",
                           "/sys/devices/system", "/dev/zero", "/dev/random", "/dev/urandom"})
    open_path(ruleset, path, kRead);
  open_path(ruleset, "/dev/null", kReadFile | kWriteFile);
  const char* given = std::getenv("LD_LIBRARY_PATH");
  std::istringstream folders(given ? given : "");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (!folder.empty()) open_path(ruleset, folder, kRead);
#ifdef TRINITY_TORCH_FOLDER
  open_path(ruleset, TRINITY_TORCH_FOLDER, kRead);
#endif
}

bool contains(const fs::path& folder, const fs::path& path) {
  return std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first ==
         folder.end();
}

/// Refuses folders whose contents trinity, started without --safe, would execute.
void check_writable(const std::string& path, const std::vector<std::string>& own) {
  std::error_code error;
  const auto folder = fs::canonical(path, error);
  if (error || !fs::is_directory(folder))
    fail_file(path, "cannot open it to a safe script", error ? error.value() : ENOTDIR);
  for (const auto& ours : own) {
    const auto place = fs::weakly_canonical(ours, error);
    if (contains(folder, place) || contains(place, folder))
      throw Error("--safe: expected folders to write without files of trinity, got {}, {} {}", path,
                  contains(folder, place) ? "which contains" : "which is in", ours);
  }
}

void confine_files(const OpenFolders& folders, const std::string& start) {
  const auto version = syscall(SYS_landlock_create_ruleset, nullptr, 0, 1);
  if (version < 0) refuse("Landlock (Linux 6.12)", errno);
  if (const auto missing = lacking(static_cast<int>(version)); !missing.empty())
    throw Error("--safe needs version 6 of the kernel's Landlock (Linux 6.12), got version {}, which does not confine "
                "{}", version, missing);
  const Ruleset ruled = {kEverything, kPorts, kScopes};
  const Descriptor ruleset(
      static_cast<int>(syscall(SYS_landlock_create_ruleset, &ruled, sizeof ruled, 0)));
  if (!ruleset) refuse("Landlock", errno);
  const auto program = program_folder();
  std::vector<std::string> own = {folders.home + "/lib", folders.home + "/models",
                                  folders.home + "/scripts"};
  open_system(ruleset.get());
  for (const auto& folder : own) open_path(ruleset.get(), folder, kRead);
  if (!program.empty()) {
    own.push_back(program);
    open_path(ruleset.get(), program, kRead);
  }
  open_path(ruleset.get(), start, kRead, true);
  if (!folders.script.empty()) open_path(ruleset.get(), folders.script, kRead);
  if (!folders.runs.empty()) open_path(ruleset.get(), folders.runs, kRemoveFolder, true);
  for (const auto& folder : folders.writable) {
    check_writable(folder, own);
    open_path(ruleset.get(), folder, kWrite, true);
  }
  if (syscall(SYS_landlock_restrict_self, ruleset.get(), 0) != 0) refuse("Landlock", errno);
}

// seccomp.

#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
constexpr uint32_t kArchitecture = 0;
#endif

/// System calls from 424 on have the same number on all architectures.
constexpr uint32_t kFchmodat2 = 452, kLastKnown = 456;

/// But socketpair; sockets of other processes have names or none.
constexpr uint32_t kSockets[] = {SYS_socket, SYS_connect, SYS_bind,
                                 SYS_listen, SYS_accept,  SYS_accept4};
/// Calls that no filter sees.
constexpr uint32_t kRings[] = {SYS_io_uring_setup, SYS_io_uring_enter, SYS_io_uring_register};
constexpr uint32_t kProcesses[] = {
    SYS_ptrace,          SYS_process_vm_readv, SYS_process_vm_writev,
    SYS_process_madvise, SYS_pidfd_getfd,      SYS_kcmp,
    SYS_setpriority,     SYS_ioprio_set,       SYS_sched_setscheduler,
    SYS_sched_setparam,  SYS_sched_setattr,    SYS_migrate_pages,
    SYS_move_pages,      SYS_perf_event_open};
/// Objects of several processes without a path.
constexpr uint32_t kShared[] = {SYS_shmget,    SYS_shmat,      SYS_shmctl,  SYS_semget,
                                SYS_semop,     SYS_semtimedop, SYS_semctl,  SYS_msgget,
                                SYS_msgsnd,    SYS_msgrcv,     SYS_msgctl,  SYS_mq_open,
                                SYS_mq_unlink, SYS_keyctl,     SYS_add_key, SYS_request_key};
/// Calls on files that Landlock does not cover.
constexpr uint32_t kFiles[] = {SYS_fchmod,           SYS_fchmodat,      kFchmodat2,
                               SYS_fchown,           SYS_fchownat,      SYS_setxattr,
                               SYS_lsetxattr,        SYS_fsetxattr,     SYS_removexattr,
                               SYS_lremovexattr,     SYS_fremovexattr,  SYS_inotify_init1,
                               SYS_fanotify_init,    SYS_fanotify_mark, SYS_name_to_handle_at,
                               SYS_open_by_handle_at};
constexpr uint32_t kNamespaces[] = {SYS_unshare,      SYS_setns,    SYS_chroot,    SYS_pivot_root,
                                    SYS_mount,        SYS_umount2,  SYS_open_tree, SYS_move_mount,
                                    SYS_fsopen,       SYS_fsconfig, SYS_fsmount,   SYS_fspick,
                                    SYS_mount_setattr};
constexpr uint32_t kSystem[] = {
    SYS_bpf,          SYS_userfaultfd,   SYS_personality,     SYS_syslog,
    SYS_acct,         SYS_quotactl,      SYS_swapon,          SYS_swapoff,
    SYS_reboot,       SYS_kexec_load,    SYS_kexec_file_load, SYS_init_module,
    SYS_finit_module, SYS_delete_module, SYS_settimeofday,    SYS_clock_settime,
    SYS_adjtimex,     SYS_clock_adjtime, SYS_sethostname,     SYS_setdomainname,
    SYS_vhangup};
#ifdef __x86_64__
constexpr uint32_t kOld[] = {SYS_chmod,  SYS_chown,     SYS_lchown,       SYS_utime,
                             SYS_utimes, SYS_futimesat, SYS_inotify_init, SYS_iopl,
                             SYS_ioperm, SYS_modify_ldt};
#else
constexpr std::array<uint32_t, 0> kOld = {};
#endif

/// Requests that programs make of a terminal, without TIOCSTI and others that type into it.
constexpr uint32_t kTerminal[] = {TCGETS,     TCSETS,   TCSETSW, TCSETSF,
                                  TIOCGWINSZ, FIONREAD, FIONBIO, FIOCLEX};

class Filter {
 public:
  Filter() {
    load(offsetof(seccomp_data, arch));
    unless_equal(kArchitecture, SECCOMP_RET_KILL_PROCESS);
    load(offsetof(seccomp_data, nr));
    // Later calls, and x32 calls with their own numbers: as on a kernel that has none.
    add(BPF_JMP | BPF_JGT | BPF_K, kLastKnown, 0, 1);
    deny(ENOSYS);
    for (const std::span<const uint32_t> numbers : std::initializer_list<std::span<const uint32_t>>{
             kSockets, kRings, kProcesses, kShared, kFiles, kNamespaces, kSystem, kOld})
      for (const auto number : numbers) {
        add(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1);
        deny(EPERM);
      }
    add(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1);  // its flags cannot be read: clone has them
    deny(ENOSYS);
    of_call(SYS_clone, [this] {
      argument(0);
      add(BPF_JMP | BPF_JSET | BPF_K,
          CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |
              CLONE_NEWPID | CLONE_NEWNET,
          0, 1);
      deny(EPERM);
    });
    of_call(SYS_socketpair, [this] {
      argument(0);
      unless_equal(AF_UNIX, SECCOMP_RET_ERRNO | EPERM);
      argument(1);
      add(BPF_ALU | BPF_AND | BPF_K, 0xf);  // datagrams could go to any address
      unless_equal(SOCK_STREAM, SECCOMP_RET_ERRNO | EPERM);
    });
    of_call(SYS_ioctl, [this] {
      argument(1);
      for (const auto request : kTerminal) {
        add(BPF_JMP | BPF_JEQ | BPF_K, request, 0, 1);
        allow();
      }
      deny(EPERM);
    });
    of_call(SYS_prlimit64, [this] {
      argument(0);
      unless_equal(0, SECCOMP_RET_ERRNO | EPERM);
    });
    of_call(SYS_utimensat, [this] {  // futimens() of an open file has no path
      for (const uint32_t half : {0, 4}) {
        load(offsetof(seccomp_data, args) + 8 + half);
        unless_equal(0, SECCOMP_RET_ERRNO | EPERM);
      }
    });
    allow();
  }

  void set() {
    const sock_fprog program = {static_cast<unsigned short>(code_.size()), code_.data()};
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0)
      refuse("filters of seccomp", errno);
  }

 private:
  void add(uint16_t code, uint32_t value, uint8_t if_true = 0, uint8_t if_false = 0) {
    code_.push_back({code, if_true, if_false, value});
  }
  void load(size_t offset) { add(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset)); }
  /// The lower half, of little-endian machines.
  void argument(size_t index) { load(offsetof(seccomp_data, args) + 8 * index); }
  void deny(int code) { add(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<uint32_t>(code)); }
  void allow() { add(BPF_RET | BPF_K, SECCOMP_RET_ALLOW); }
  void unless_equal(uint32_t value, uint32_t action) {
    add(BPF_JMP | BPF_JEQ | BPF_K, value, 1, 0);
    add(BPF_RET | BPF_K, action);
  }
  /// Adds the filter of one system call: allowed at the end of `decide`.
  template <class Decide>
  void of_call(uint32_t number, const Decide& decide) {
    add(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 0);
    const size_t jump = code_.size() - 1;
    decide();
    allow();
    code_[jump].jf = static_cast<uint8_t>(code_.size() - jump - 1);
  }

  std::vector<sock_filter> code_;
};

}  // namespace

std::string lacking(int landlock_version) {
  constexpr const char* kSince[] = {"files",      "renames and links between folders",
                                    "truncation", "network ports",
                                    "devices",    "signals and abstract sockets"};
  const auto at = static_cast<size_t>(std::max(landlock_version, 0));
  return at < std::size(kSince) ? kSince[at] : "";
}

void confine(const OpenFolders& folders) {
  if (kArchitecture == 0) throw Error("--safe needs an x86-64 or AArch64 CPU");
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) refuse("no_new_privs", errno);
  const auto start = fs::current_path().string();
  confine_files(folders, start);
  Filter().set();
  const rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
  t_folders = folders.writable;
  t_folders.insert(t_folders.end(), {start, folders.home});
  std::string written;
  for (const auto& folder : folders.writable) written += (written.empty() ? "" : ", ") + folder;
  t_confinement =
      fmt::format("--safe opens {} for reading and {} for writing; --write FOLDER opens another",
                  start, written.empty() ? "nothing" : written);
}

bool is_confined() { return t_confinement.has_value(); }

const std::string& confinement() { return *t_confinement; }

void refuse_hidden(const std::string& path, const char* what) {
  if (!is_confined()) return;
  size_t known = 0;  // folders above may be hidden
  for (const auto& folder : t_folders)
    if (path.starts_with(folder + "/")) known = std::max(known, folder.size());
  for (const auto& part : fs::path(path.substr(known)))
    if (part.native().starts_with('.') && part != "." && part != "..")
      throw FileError("{}: {}: --safe opens no hidden files", path, what);
}

}  // namespace trinity
