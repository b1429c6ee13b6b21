// Runs the kept inputs of every target, tests/fuzz/corpus/TARGET/*, and those that its session makes.
//   fuzz [TARGET [FILE ...]]   one target; those files only
//   fuzz --list                prints the targets
// A target runs in a child process, and after a failure the rest of its inputs in another one.
// Closes with "P passed, F failed, S skipped", a target each, and ends with 1 where one failed.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <string_view>

#include "base/error.h"
#include "base/late.h"
#include "fuzz/target.h"

namespace trinity::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostFailures = 10, kMostReportLines = 40;
constexpr double kMemory_bytes = 2e9;  // that a child may grow by

/// The report of a child in addition to its death.
struct Shared {
  size_t next;  ///< the input to begin with
  char name[1024], reason[4096];
};

class Replay {
 public:
  Replay(const Target& target, std::vector<std::string> files)
      : target_(target), files_(std::move(files)) {
    auto name = (fs::temp_directory_path() / "trinity-fuzz-XXXXXX").string();
    if (!mkdtemp(name.data())) throw FileError(name + ": cannot make a folder");
    scratch_ = name;
    void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw LimitError("no memory to share");
    shared_ = static_cast<Shared*>(memory);
  }
  ~Replay() { munmap(shared_, sizeof(Shared)); }
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

  enum class Outcome { passed, failed, skipped };

  /// Whether every input passed; skipped where the session needs a part that was not built. The
  /// folder of a target that failed stays: it holds the seeds.
  Outcome run() {
    const auto start = std::chrono::steady_clock::now();
    size_t failures = 0;
    for (bool done = false; !done && failures < kMostFailures;) {
      done = run_child();
      if (!done && lacks_part()) {
        fs::remove_all(scratch_);
        fmt::print("skip  {}: {}\n", target_.name, shared_->reason);
        return Outcome::skipped;
      }
      if (!done) ++failures;
      if (!done && shared_->next == 0) break;  // no session begins
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    fmt::print("{:.6f} s: {}\n", took.count(), target_.name);
    fmt::print("{:5} {:16} {} inputs\n", failures ? "FAIL" : "ok", target_.name, shared_->next);
    if (failures == 0) fs::remove_all(scratch_);
    return failures == 0 ? Outcome::passed : Outcome::failed;
  }

 private:
  bool lacks_part() const {
    return !is_built(kTorchPart) &&
           std::string_view(shared_->reason).find("needs LibTorch") != std::string_view::npos;
  }

  /// Whether it came to the end.
  bool run_child() {
    std::snprintf(shared_->name, sizeof shared_->name, "its session cannot begin");
    shared_->reason[0] = '\0';
    std::fflush(nullptr);
    const pid_t pid = fork();
    if (pid < 0) throw LimitError("cannot start a process");
    if (pid == 0) _exit(be_child());
    int status = 0;
    waitpid(pid, &status, 0);
    if (status == 0) return true;
    std::string reason = shared_->reason;
    if (reason.empty() && WIFSIGNALED(status))
      reason = WTERMSIG(status) == SIGABRT ? "aborted, or took more than 10 s (SIGABRT)"
                                           : fmt::format("ended by signal {}", WTERMSIG(status));
    if (reason.empty()) reason = fmt::format("ended with status {}", WEXITSTATUS(status));
    if (lacks_part()) return false;
    fmt::print("FAIL  {}: {}: {}\n", target_.name, shared_->name, reason);
    std::ifstream log(scratch_ + "/log");
    std::string line;
    for (size_t i = 0; i < kMostReportLines && std::getline(log, line); ++i)
      fmt::print("      {}\n", line.substr(0, 300));
    return false;
  }

  int be_child() {
    const int log = open((scratch_ + "/log").c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600);
    const int nothing = open("/dev/null", O_RDWR);
    dup2(nothing, STDIN_FILENO), dup2(nothing, STDOUT_FILENO), dup2(log, STDERR_FILENO);
    try {
      const auto folder = scratch_ + "/session";
      fs::remove_all(folder);
      fs::create_directory(folder);
      fs::current_path(folder);  // programs write where they are
      limit_process();
      return run_inputs(target_.begin(folder));
    } catch (const std::exception& error) {
      std::snprintf(shared_->reason, sizeof shared_->reason, "%s", error.what());
      return 1;
    }
  }

  static void limit_process() {
    const rlimit no_core{0, 0}, files{64 << 20, 64 << 20};
    setrlimit(RLIMIT_CORE, &no_core), setrlimit(RLIMIT_FSIZE, &files);
    signal(SIGXFSZ, SIG_IGN);
    long pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const auto now_bytes = static_cast<double>(pages) * static_cast<double>(sysconf(_SC_PAGESIZE));
    const auto limit = static_cast<rlim_t>(now_bytes + kMemory_bytes);
    const rlimit memory{limit, limit};
    setrlimit(RLIMIT_AS, &memory);
  }

  int run_inputs(const Session& session) {
    auto files = files_;
    if (files.empty()) files = all_inputs(session);
    for (size_t i = shared_->next; i < files.size(); ++i) {
      std::snprintf(shared_->name, sizeof shared_->name, "%s", files[i].c_str());
      shared_->next = i + 1;
      const auto reason = fuzz::run(session, read_text(files[i]));
      if (reason.empty()) continue;
      std::snprintf(shared_->reason, sizeof shared_->reason, "%s", reason.c_str());
      return 1;
    }
    return 0;
  }

  std::vector<std::string> all_inputs(const Session& session) const {
    std::vector<std::string> files;
    const auto corpus = fmt::format("{}/tests/fuzz/corpus/{}", TRINITY_SOURCE_DIR, target_.name);
    if (fs::is_directory(corpus))
      for (const auto& entry : fs::directory_iterator(corpus)) files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    for (size_t i = 0; i < session.seeds.size(); ++i) {
      files.push_back(fmt::format("{}/seed_{}", scratch_, i + 1));
      write_text(files.back(), session.seeds[i]);
    }
    return files;
  }

  const Target& target_;
  std::vector<std::string> files_;
  std::string scratch_;
  Shared* shared_ = nullptr;
};

int replay(const std::vector<std::string>& words) {
  auto targets = all_targets();
  if (!words.empty() && words[0] == "--list") {
    for (const auto& target : targets) fmt::print("{:16} {}\n", target.name, target.about);
    return 0;
  }
  if (!words.empty()) targets = {find_target(words[0])};
  std::vector<std::string> files;
  for (size_t i = 1; i < words.size(); ++i) files.push_back(fs::absolute(words[i]));
  std::map<Replay::Outcome, int> counts;
  for (const auto& target : targets) ++counts[Replay(target, files).run()];
  fmt::print("{} passed, {} failed, {} skipped\n", counts[Replay::Outcome::passed],
             counts[Replay::Outcome::failed], counts[Replay::Outcome::skipped]);
  return counts[Replay::Outcome::failed] > 0 ? 1 : 0;
}

}  // namespace
}  // namespace trinity::fuzz

int main(int count, char** words) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  try {
    return trinity::fuzz::replay({words + 1, words + count});
  } catch (const trinity::Error& error) {
    std::fprintf(stderr, "fuzz: %s\n", error.what());
    return 2;
  }
}
