#include "base/machine.h"

#include <sched.h>
#include <unistd.h>

#include <sstream>

#include "base/process.h"

namespace trinity {

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
