#include "base/process.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <sstream>

#include "base/error.h"
#include "base/file.h"

namespace trinity {

std::string system_text(const std::string& path) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  char buffer[4096];
  for (ssize_t got; file && (got = read(file.get(), buffer, sizeof buffer)) != 0;) {
    if (got > 0)
      text.append(buffer, static_cast<size_t>(got));
    else if (errno != EINTR)
      break;
  }
  return text;
}

int64_t process_start_ticks(int64_t pid) {
  const auto text = system_text(fmt::format("/proc/{}/stat", pid));
  // The second field is the program's name in parentheses, which may contain anything.
  const auto end = text.rfind(')');
  if (end == std::string::npos) return 0;
  constexpr int kStart = 20;  // fields between the name and the start time
  std::istringstream fields(text.substr(end + 1));
  std::string field;
  for (int i = 0; i < kStart && (fields >> field); ++i)
    if (i == 0 && (field == "Z" || field == "X")) return 0;  // zombie or dead
  return fields ? std::strtoll(field.c_str(), nullptr, 10) : 0;
}

size_t mappable_bytes(size_t max_bytes, bool is_private) {
  constexpr size_t kStep = size_t{1} << 16;
  size_t fits = 0, fails = max_bytes / kStep + 2;
  while (fails - fits > 1) {
    const size_t tried = fits + (fails - fits) / 2;
    void* memory = mmap(nullptr, tried * kStep, is_private ? PROT_READ | PROT_WRITE : PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory != MAP_FAILED) munmap(memory, tried * kStep);
    (memory == MAP_FAILED ? fails : fits) = tried;
  }
  return std::min(max_bytes, fits * kStep);
}

int terminal_columns(int descriptor) {
  winsize size = {};
  return ioctl(descriptor, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

Machine describe_machine() {
  Machine machine;
  std::istringstream file(system_text("/proc/cpuinfo"));
  for (std::string line; std::getline(file, line) && machine.processor.empty();)
    if (line.starts_with("model name")) machine.processor = line.substr(line.find(':') + 2);
  if (machine.processor.empty()) machine.processor = "unknown";
  cpu_set_t allowed;
  const bool known = sched_getaffinity(0, sizeof allowed, &allowed) == 0;
  machine.cores = known ? CPU_COUNT(&allowed) : static_cast<int32_t>(sysconf(_SC_NPROCESSORS_ONLN));
  machine.memory_bytes =
      static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<int64_t>(sysconf(_SC_PAGE_SIZE));
  return machine;
}

}  // namespace trinity
