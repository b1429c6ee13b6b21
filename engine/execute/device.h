#pragma once

#include <memory>
#include <string>
#include <vector>

namespace trinity {

/// A device that runs a worker: "cpu:N", the N-th core (from 0) that this process may use, or
/// "cuda:N", a GPU of LibTorch.
struct WorkerDevice {
  std::string name;
  bool cuda = false;
  int32_t index = 0;
  int64_t stream = 0;  ///< of a GPU: LibTorch's number of the stream for its kernels, the same in
                       ///< every step: freed memory is reused on the stream that it was taken on
};

/// Throws ArgumentError for other names, and for GPUs that LibTorch does not have.
WorkerDevice parse_worker_device(const std::string& name);

/// The cores that workers are bound to, by worker; -1 for one that is not bound. Workers are bound
/// when each has a core that is there, else none is: one without would have to share with a bound
/// one, which cannot make room.
std::vector<int32_t> worker_cores(const std::vector<WorkerDevice>& devices);

/// Binds the calling thread to a core; where the system refuses, nothing happens.
void bind_to_core(int32_t core);

/// While it lives, this thread's kernels run on a device: for a GPU on its worker's stream.
class DeviceScope {
 public:
  explicit DeviceScope(const WorkerDevice& device);
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;
  /// Waits until everything that this thread began has ended.
  void synchronise() const;

 private:
  struct Stream;
  std::unique_ptr<Stream> stream_;
};

}  // namespace trinity
