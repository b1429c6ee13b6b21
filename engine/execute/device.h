#pragma once

#include <memory>
#include <string>
#include <vector>

namespace trinity {

/// A device that runs a worker: "cpu:N", the N-th core (from 0) available to this process, or
/// "cuda:N", a GPU of LibTorch.
struct WorkerDevice {
  std::string name;
  bool cuda = false;
  int32_t index = 0;
  /// GPU: LibTorch's id of its stream, constant over steps, so that freed memory is reused on it
  int64_t stream = 0;
};

/// Throws ArgumentError for other names, and for GPUs that LibTorch does not have.
WorkerDevice parse_worker_device(const std::string& name);

/// [worker]: the core that it is bound to, or -1. Workers are bound only if every one has an
/// existing core of its own; otherwise unbound ones would compete with bound ones.
std::vector<int32_t> worker_cores(const std::vector<WorkerDevice>& devices);

/// Binds the calling thread to a core; does nothing if the system refuses.
void bind_to_core(int32_t core);

/// RAII: during its lifetime this thread's kernels run on a device, for a GPU on its worker's
/// stream.
class DeviceScope {
 public:
  explicit DeviceScope(const WorkerDevice& device);
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;
  /// Waits for everything that this thread has started.
  void sync() const;

 private:
  struct Stream;
  std::unique_ptr<Stream> stream_;
};

}  // namespace trinity
