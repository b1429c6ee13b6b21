#include "execute/measure.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "base/stop.h"
#include "execute/device.h"
#include "libtorch/setup.h"
#include "libtorch/torch.h"

namespace trinity {
namespace {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

at::Device torch_device(const WorkerDevice& device) {
  if (!device.cuda) return at::kCPU;
  return {at::kCUDA, static_cast<at::DeviceIndex>(device.index)};
}

/// Runs `body` as a worker does: in a thread of its own, on its core or stream, with one LibTorch
/// thread. Rethrows its exceptions.
template <class Body>
void as_worker(const WorkerDevice& device, int32_t core, Body body) {
  std::exception_ptr failure;
  std::thread([&] {
    try {
      bind_to_core(core);
      use_one_torch_thread();
      const DeviceScope scope(device);
      const at::NoGradGuard guard;
      body(scope);
    } catch (...) {
      failure = std::current_exception();
    }
  }).join();
  if (failure) std::rethrow_exception(failure);
}

/// A tensor that one worker passes to another, which removes it.
class Exchange {
 public:
  void put(at::Tensor tensor) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !tensor_.defined() || closed_; });
    tensor_ = std::move(tensor);
    changed_.notify_all();
  }
  /// Undefined after close().
  at::Tensor look() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return tensor_.defined() || closed_; });
    return tensor_;
  }
  void clear() {
    const std::lock_guard lock(mutex_);
    tensor_ = at::Tensor();
    changed_.notify_all();
  }
  void wait_until_clear() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !tensor_.defined() || closed_; });
  }
  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }
  bool closed() {
    const std::lock_guard lock(mutex_);
    return closed_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  at::Tensor tensor_;
  bool closed_ = false;
};

/// A new tensor full of `value`; undefined after Ctrl-C (the largest ones take a quarter of a
/// second).
at::Tensor filled(int64_t numbers, float value, const at::TensorOptions& options) {
  constexpr int64_t kPart = int64_t{1} << 22;
  at::Tensor made = at::empty({numbers}, options);
  for (const at::Tensor& part : made.split(kPart)) {
    if (stop_flag()) return {};
    part.fill_(value);
  }
  return made;
}

/// Writes the tensors that the receiver copies; stops when the exchange is closed, and closes it on
/// Ctrl-C.
void send(Exchange& exchange, const WorkerDevice& device, const std::vector<int64_t>& bytes,
          int32_t repeats, const DeviceScope& scope) {
  const auto options = at::TensorOptions(torch_device(device)).dtype(at::kFloat);
  for (const int64_t size : bytes)
    for (int32_t r = 0; r <= repeats; ++r) {
      if (exchange.closed()) return;
      at::Tensor made = filled(size / 4, static_cast<float>(r), options);
      if (!made.defined()) return exchange.close();
      scope.sync();
      exchange.put(std::move(made));
      exchange.wait_until_clear();
    }
}

}  // namespace

std::vector<double> measure_copies(const std::string& from, const std::string& to,
                                   const std::vector<int64_t>& bytes, int32_t repeats) {
  if (repeats < 1) throw ArgumentError("measure_copies: expected at least one repeat");
  for (const int64_t size : bytes)
    if (size < 4)
      throw ArgumentError("measure_copies: expected sizes of 4 bytes, got {}", size);
  const std::vector<WorkerDevice> devices = {parse_worker_device(from), parse_worker_device(to)};
  const auto cores = worker_cores(devices);
  Exchange exchange;
  std::exception_ptr failure;
  std::thread sender([&] {
    try {
      as_worker(devices[0], cores[0], [&](const DeviceScope& scope) {
        send(exchange, devices[0], bytes, repeats, scope);
      });
    } catch (...) {
      failure = std::current_exception();
      exchange.close();
    }
  });
  std::vector<std::vector<double>> times(bytes.size());
  std::exception_ptr stopped;
  try {
    as_worker(devices[1], cores[1], [&](const DeviceScope& scope) {
      for (auto& list : times)
        for (int32_t r = 0; r <= repeats; ++r) {
          poll_stop();
          const at::Tensor source = exchange.look();
          poll_stop();
          if (!source.defined()) return;
          const auto begin = std::chrono::steady_clock::now();
          const at::Tensor copy = source.to(torch_device(devices[1]), at::kFloat, false, true);
          scope.sync();
          if (r > 0)
            list.push_back(
                std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
          exchange.clear();
        }
    });
  } catch (...) {
    stopped = std::current_exception();
  }
  exchange.close();
  sender.join();
  if (failure) std::rethrow_exception(failure);
  if (stopped) std::rethrow_exception(stopped);
  std::vector<double> result;
  for (auto& list : times) result.push_back(median(std::move(list)));
  return result;
}

DeviceRates measure_rates(const std::string& device) {
  const auto worker = parse_worker_device(device);
  constexpr int64_t kRows = 1024, kNumbers = int64_t{1} << 24;
  constexpr int kRepeats = 9;
  DeviceRates rates;
  as_worker(worker, worker_cores({worker})[0], [&](const DeviceScope& scope) {
    const auto options = at::TensorOptions(torch_device(worker)).dtype(at::kFloat);
    const at::Tensor a = at::ones({kRows, kRows}, options);
    at::Tensor product = at::empty({kRows, kRows}, options),
               numbers = at::ones({kNumbers}, options);
    std::vector<double> multiply_s, add_s;
    const auto timed = [&](auto body) {
      poll_stop();
      const auto begin = std::chrono::steady_clock::now();
      body();
      scope.sync();
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    };
    for (int i = 0; i < kRepeats; ++i) {
      multiply_s.push_back(timed([&] { at::mm_out(product, a, a); }));
      add_s.push_back(timed([&] { numbers.add_(1); }));
    }
    rates.flops_per_s = 2.0 * kRows * kRows * kRows / median(std::move(multiply_s));
    rates.memory_bytes_per_s = 8.0 * kNumbers / median(std::move(add_s));
  });
  return rates;
}

}  // namespace trinity
