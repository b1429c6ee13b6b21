#include "execute/worker.h"

#include "base/error.h"

namespace trinity {

std::vector<Worker> make_workers(int32_t devices, const ExecutorOptions& options) {
  if (!options.devices.empty() && options.devices.size() != static_cast<size_t>(devices))
    throw ArgumentError("execute: expected the names of {} devices, got {}", devices, options.devices.size());
  std::vector<Worker> workers(static_cast<size_t>(devices));
  std::vector<WorkerDevice> all;
  for (int32_t d = 0; d < devices; ++d) {
    Worker& worker = workers[d];
    worker.device = d;
    worker.on = parse_worker_device(options.devices.empty() ? fmt::format("cpu:{}", d)
                                                            : options.devices[d]);
    worker.memory = std::make_shared<MemoryAccount>(worker.on.name, options.memory_limit_bytes,
                                                    worker.on.cuda ? worker.on.index : -1);
    all.push_back(worker.on);
  }
  const auto cores = worker_cores(all);
  for (size_t d = 0; d < workers.size(); ++d) workers[d].core = cores[d];
  return workers;
}

}  // namespace trinity
