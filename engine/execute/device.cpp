#include "execute/device.h"

#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "libtorch/setup.h"
#include "libtorch/torch.h"

namespace trinity {
namespace {

c10::Device gpu_of(const WorkerDevice& device) {
  return {c10::DeviceType::CUDA, static_cast<c10::DeviceIndex>(device.index)};
}

}  // namespace

WorkerDevice parse_worker_device(const std::string& name) {
  WorkerDevice device{name, name.starts_with("cuda:"), 0};
  const size_t colon = name.find(':');
  const char* end = name.data() + name.size();
  const bool known = device.cuda || name.starts_with("cpu:");
  if (!known || name.size() > colon + 5 ||
      std::from_chars(name.data() + colon + 1, end, device.index).ptr != end ||
      colon + 1 == name.size() || device.index < 0)
    throw ArgumentError("device '{}': expected cpu:0, cpu:1, ... or cuda:0, ...{}", name,
                        suggestion(name, {"cpu:0", "cuda:0"}));
  if (device.cuda && device.index >= static_cast<int>(torch::cuda::device_count()))
    throw ArgumentError(
        torch::cuda::device_count() == 0
            ? fmt::format("device '{}': this LibTorch has no CUDA devices", name)
            : fmt::format("device '{}': LibTorch has {} CUDA devices, numbered from 0", name,
                          torch::cuda::device_count()));
  if (device.cuda) {
    use_exact_gpu_kernels();
    const c10::impl::VirtualGuardImpl implementation(c10::DeviceType::CUDA);
    device.stream = implementation.getStreamFromGlobalPool(gpu_of(device)).id();
  }
  return device;
}

std::vector<int32_t> worker_cores(const std::vector<WorkerDevice>& devices) {
  std::vector<int32_t> cores(devices.size(), -1);
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return cores;
  std::vector<int32_t> there;
  for (int32_t core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &allowed)) there.push_back(core);
  for (size_t i = 0; i < devices.size(); ++i) {
    if (devices[i].cuda) continue;
    if (static_cast<size_t>(devices[i].index) >= there.size())
      return std::vector<int32_t>(devices.size(), -1);
    cores[i] = there[devices[i].index];
  }
  return cores;
}

void bind_to_core(int32_t core) {
  if (core < 0) return;
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(core, &only);
  pthread_setaffinity_np(pthread_self(), sizeof only, &only);
}

struct DeviceScope::Stream {
  c10::Stream stream;
  c10::StreamGuard guard;
  WarningsOnce warnings;
  explicit Stream(c10::Stream given) : stream(given), guard(given) {}
};

DeviceScope::DeviceScope(const WorkerDevice& device) {
  if (!device.cuda) return;
  stream_ = std::make_unique<Stream>(
      c10::Stream(c10::Stream::UNSAFE, gpu_of(device), static_cast<c10::StreamId>(device.stream)));
}

DeviceScope::~DeviceScope() = default;

void DeviceScope::sync() const {
  if (stream_) stream_->stream.synchronize();
}

}  // namespace trinity
