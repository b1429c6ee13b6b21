#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "execute/device.h"
#include "execute/executor.h"
#include "execute/memory.h"
#include "libtorch/torch.h"

namespace trinity {

/// Seconds since a step began. Not thread-safe.
class Clock {
 public:
  void restart() { begin_ = std::chrono::steady_clock::now(); }
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }

 private:
  std::chrono::steady_clock::time_point begin_;
};

/// A device and what its thread records in a step.
struct Worker {
  int32_t device = -1;
  WorkerDevice on;
  int32_t core = -1;
  std::shared_ptr<MemoryAccount> memory;
  double loss = 0;
  std::vector<CopyRun> copies;

  at::Device torch_device() const {
    return on.cuda ? at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(on.index))
                   : at::Device(at::kCPU);
  }
};

/// One worker per device, not yet running. Throws ArgumentError for invalid or too few device
/// names.
std::vector<Worker> make_workers(int32_t devices, const ExecutorOptions& options);

/// Combines the measurements of all processes into the report of the whole step, equal in all of
/// them. Collective: all ranks call it.
void join_reports(Job& job, ExecutedStep& step);

}  // namespace trinity
