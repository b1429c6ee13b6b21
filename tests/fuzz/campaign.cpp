#include "fuzz/campaign.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/hash.h"
#include "fuzz/shared.h"

// The sanitizers' settings: every report ends the process; operator new above 2 GB is one, malloc
// returns null.
extern "C" const char* __asan_default_options() {
  return "detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=2048:quarantine_size_"
         "mb=32:exitcode=99";
}
extern "C" const char* __ubsan_default_options() {
  return "halt_on_error=1:print_stacktrace=1:exitcode=99";
}

namespace trinity::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr double kLifetime_s = 30, kPoll_s = 0.02;
constexpr size_t kMostFailures = 10, kMostReportLines = 40;
constexpr int kBeginnings = 3;  // of a session in a row that fail before that is a failure

#ifdef __SANITIZE_ADDRESS__
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

double now_s() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_text(const std::string& path, std::string_view text) {
  std::ofstream(path, std::ios::binary)
      .write(text.data(), static_cast<std::streamsize>(text.size()));
}

/// Processor time and resident memory of a process, and whether it could run; zeros once it is
/// gone.
struct Usage {
  double cpu_s = 0, memory_bytes = 0;
  bool runnable = false;
};

Usage usage_of(pid_t pid) {
  const auto root = fmt::format("/proc/{}/", pid);
  const auto stat = read_text(root + "stat");
  const auto after_name = stat.rfind(')');
  long user = 0, system = 0, total = 0, resident = 0;
  char state = 'R';
  if (after_name != std::string::npos)
    std::sscanf(stat.c_str() + after_name, ") %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %ld %ld",
                &state, &user, &system);
  std::sscanf(read_text(root + "statm").c_str(), "%ld %ld", &total, &resident);
  return {static_cast<double>(user + system) / static_cast<double>(sysconf(_SC_CLK_TCK)),
          static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE)), state == 'R'};
}

/// Bounds what the process may map from now on. Sanitizers map far more than they use.
void limit_memory(double growth_bytes) {
  if (kSanitized) return;
  long total = 0;
  std::sscanf(read_text("/proc/self/statm").c_str(), "%ld", &total);
  const auto bytes = static_cast<double>(total) * static_cast<double>(sysconf(_SC_PAGESIZE));
  const auto limit = static_cast<rlim_t>(bytes + growth_bytes);
  const rlimit limits{limit, limit};
  setrlimit(RLIMIT_AS, &limits);
}

/// A folder that goes when this does.
struct Scratch {
  Scratch() {
    auto name = (fs::temp_directory_path() / "trinity-fuzz-XXXXXX").string();
    if (!mkdtemp(name.data())) throw FileError(name + ": cannot make a folder");
    path = name;
  }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::string path;
};

class Campaign {
 public:
  Campaign(const Target& target, const CampaignOptions& options)
      : target_(target), options_(options), memory_(1), places_(place_count()) {}

  CampaignResult run() {
    load_corpus();
    const double start = now_s();
    const double end_s = start + options_.seconds;
    do {
      if (!run_child(std::clamp(end_s - now_s(), 0.0, kLifetime_s))) break;
    } while (now_s() < end_s || shared().replayed < shared().seeds || late_ > 0);
    result_.seconds = now_s() - start;
    result_.inputs = shared().inputs;
    result_.seeds = shared().seeds;
    result_.corpus = shared().count;
    const auto* seen = shared().seen;
    result_.pairs =
        static_cast<uint64_t>(std::count_if(seen, seen + kPairs, [](auto c) { return c; }));
    if (!options_.places.empty()) write_places(places_.get(), options_.places);
    if (!options_.keep.empty()) keep_corpus();
    return result_;
  }

 private:
  Shared& shared() const { return *memory_.get(); }

  void load_corpus() {
    auto files = options_.files;
    if (files.empty() && fs::is_directory(options_.corpus))
      for (const auto& entry : fs::directory_iterator(options_.corpus))
        if (entry.is_regular_file()) files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    for (const auto& file : files) {
      if (!fs::is_regular_file(file)) throw FileError(file + ": no such file");
      shared().add(read_text(file).substr(0, kMostBytes));
    }
    // A session's own seeds come first in its worker; here they are still unknown.
    shared().seeds = options_.files.empty() ? 0 : shared().count;
  }

  void keep_corpus() const {
    fs::create_directories(options_.keep);
    for (uint32_t i = shared().seeds; i < shared().count; ++i)
      write_text(name_in(options_.keep, shared().entry(i)), shared().entry(i));
  }

  std::string name_in(const std::string& folder, std::string_view text) const {
    return fmt::format("{}/{}-{:016x}", folder, target_.name, Hasher().add(text).value());
  }

  [[noreturn]] void be_child(double lifetime_s) {
    const int log = open((scratch_.path + "/log").c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600);
    const int nothing = open("/dev/null", O_RDWR);
    dup2(nothing, STDIN_FILENO), dup2(nothing, STDOUT_FILENO), dup2(log, STDERR_FILENO);
    const auto folder = scratch_.path + "/session";
    fs::remove_all(folder);
    fs::create_directory(folder);
    fs::current_path(folder);  // programs write where they are
    const rlimit no_core{0, 0}, files{64 << 20, 64 << 20};
    setrlimit(RLIMIT_CORE, &no_core), setrlimit(RLIMIT_FSIZE, &files);
    signal(SIGXFSZ, SIG_IGN);
    int status = 1;
    try {
      limit_memory(options_.memory_bytes);
      status = run_worker(target_, shared(), places_.get(), folder, options_.seed, generation_,
                          lifetime_s, options_.seconds <= 0);
    } catch (const std::exception& error) {
      std::snprintf(shared().message, sizeof shared().message, "cannot begin: %s", error.what());
    }
    _exit(status);
  }

  /// False when it is no use to start another one.
  bool run_child(double lifetime_s) {
    ++generation_;
    shared().running = shared().ready = false;
    shared().message[0] = '\0';
    std::fflush(nullptr);
    const pid_t pid = fork();
    if (pid < 0) throw LimitError("cannot start a process");
    if (pid == 0) be_child(lifetime_s);
    std::string reason = watch(pid);
    if (reason.empty()) {
      late_ = 0;
      return true;
    }
    if (shared().message[0]) reason = shared().message;
    // On a machine that is too busy a session may take too long to begin: once is no finding.
    late_ = shared().ready ? 0 : late_ + 1;
    if (late_ > 0 && late_ < kBeginnings) return true;
    record(reason);
    return shared().ready && result_.failures.size() < kMostFailures;
  }

  /// Waits for the child's end and stops it where it takes too long or too much. Returns why it
  /// failed, or "".
  std::string watch(pid_t pid) {
    uint64_t input = 0;
    Usage before = usage_of(pid);
    double since_s = now_s();
    for (;;) {
      int status = 0;
      if (waitpid(pid, &status, WNOHANG) == pid) {
        if (WIFEXITED(status)) {
          const int code = WEXITSTATUS(status);
          return code == 0 ? "" : fmt::format("ended with status {}", code);
        }
        return fmt::format("ended by signal {}", WTERMSIG(status));
      }
      usleep(static_cast<useconds_t>(kPoll_s * 1e6));
      const auto now = usage_of(pid);
      // Waiting for a turn on a busy machine is no hang.
      if (now.runnable) since_s = now_s();
      if (shared().inputs != input || !shared().running)
        input = shared().inputs, before = now, since_s = now_s();
      const double over = now.memory_bytes - options_.memory_bytes * (kSanitized ? 2 : 1);
      const bool hangs =
          now.cpu_s - before.cpu_s > options_.hang_s || now_s() - since_s > 6 * options_.hang_s;
      if (over < 0 && !hangs) continue;
      kill(pid, SIGKILL);
      waitpid(pid, &status, 0);
      if (!hangs) return fmt::format("took {:.0f} MB of memory", now.memory_bytes / 1e6);
      return fmt::format("hung: {:.0f} s, {:.0f} s of processor time", now_s() - since_s,
                         now.cpu_s - before.cpu_s);
    }
  }

  void record(const std::string& reason) {
    const std::string_view input(shared().input, shared().input_size);
    fs::create_directories(options_.failures);
    const auto path = name_in(options_.failures, input);
    write_text(path, input);
    fmt::print("FAIL  {}: {}\n      input: {}\n", target_.name, reason, path);
    std::ifstream log(scratch_.path + "/log");
    std::string line;
    for (size_t i = 0; i < kMostReportLines && std::getline(log, line); ++i)
      fmt::print("      {}\n", line.substr(0, 300));
    result_.failures.push_back(fmt::format("{} ({})", reason, path));
  }

  const Target& target_;
  const CampaignOptions& options_;
  SharedMemory<Shared> memory_;
  SharedMemory<uint8_t> places_;
  Scratch scratch_;
  CampaignResult result_;
  uint64_t generation_ = 0;
  int late_ = 0;  // beginnings in a row that failed
};

}  // namespace

CampaignResult run_campaign(const Target& target, const CampaignOptions& options) {
  return Campaign(target, options).run();
}

}  // namespace trinity::fuzz
