#include "distribute/groups.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <vector>

#include "base/error.h"
#include "distribute/c10d.h"
#include "distribute/heartbeat.h"

namespace trinity {

double InjectedLink::delay_s(double bytes, int members, bool is_broadcast) const {
  const double others = members - 1;
  const double trips = is_broadcast ? 1 : 2 * others / members;
  const double transfer_s = bandwidth_bytes_per_s > 0 ? trips * bytes / bandwidth_bytes_per_s : 0;
  return (is_broadcast ? others : 2 * others) * latency_s + transfer_s;
}

bool Job::Groups::drain(double timeout_s) {
  const double until_s = steady_s() + timeout_s;
  for (auto& group : scopes) {
    if (!group) continue;
    const auto last = std::make_shared<Work>("end", Scope::world, 0);
    group->stream.begin(last, [] {});
    if (!last->wait_for(std::max(0.1, until_s - steady_s())) || !last->failure().empty())
      return false;
  }
  return true;
}

struct Group::Backend {
  c10::intrusive_ptr<c10d::ProcessGroupGloo> gloo;  // null in a group of one
#ifdef TRINITY_NCCL
  c10::intrusive_ptr<c10d::ProcessGroupNCCL> nccl;  // null unless requested
  auto& collectives() { return nccl ? static_cast<c10d::Backend&>(*nccl) : *gloo; }
#else
  auto& collectives() { return *gloo; }
#endif
};

namespace {

/// Not the address of the machine's own name, Gloo's default: on Debian that is 127.0.1.1.
std::shared_ptr<gloo::transport::Device> device_of(const std::string& address) {
  using Gloo = c10d::ProcessGroupGloo;
  if (const char* interface = std::getenv("GLOO_SOCKET_IFNAME"))
    return Gloo::createDeviceForInterface(interface);
  return Gloo::createDeviceForHostname(address);
}

}  // namespace

Group::Group(const JobStore& store, const GroupOptions& options)
    : options_(options), backend_(std::make_unique<Backend>()) {
  if (options.size == 1) return;
  // The monitor ends hanging jobs long before this.
  auto settings = c10d::ProcessGroupGloo::Options::create(std::chrono::hours(24));
  settings->threads = 1;
  settings->devices.push_back(device_of(options.address));
  backend_->gloo = c10::make_intrusive<c10d::ProcessGroupGloo>(
      c10::make_intrusive<c10d::PrefixStore>(options.name, store.parts().store), options.rank,
      options.size, settings);
  if (options.gpu >= 0) connect_nccl(store);
}

#ifdef TRINITY_NCCL
void require_nccl() {}

void Group::connect_nccl(const JobStore& store) {
  const int gpus = c10::cuda::device_count();
  if (options_.gpu >= gpus)
    throw Error("backend nccl: local rank {} needs cuda:{}, this machine has {} GPUs", options_.gpu, options_.gpu,
                gpus);
  backend_->nccl = c10::make_intrusive<c10d::ProcessGroupNCCL>(
      c10::make_intrusive<c10d::PrefixStore>(options_.name + "nccl/", store.parts().store),
      options_.rank, options_.size);
}
#else
void require_nccl() {
  throw Error("backend nccl: this program was built with a LibTorch that has no NCCL");
}

void Group::connect_nccl(const JobStore&) { require_nccl(); }
#endif

/// Tensor on which collectives compute: a copy on this rank's GPU for NCCL, the tensor itself for
/// Gloo.
at::Tensor Group::staged(const at::Tensor& tensor) const {
  if (options_.gpu < 0) return tensor;
  return tensor.to(at::Device(at::kCUDA, static_cast<at::DeviceIndex>(options_.gpu)));
}

Group::~Group() {
#ifdef TRINITY_NCCL
  // nothing is in progress; shutdown() would wait for peers
  if (backend_->nccl) backend_->nccl->abort();
#endif
}

void Group::delay(double bytes, bool is_broadcast) const {
  const double seconds = options_.link.delay_s(bytes, options_.size, is_broadcast);
  if (seconds > 0) std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

void Group::all_reduce(const at::Tensor& tensor, const AllReduce& options) {
  const auto here = staged(tensor);
  std::vector<at::Tensor> tensors{here};
  c10d::AllreduceOptions settings;
  settings.reduceOp =
      options.reduction == Reduction::max ? c10d::ReduceOp::MAX : c10d::ReduceOp::SUM;
  backend_->collectives().allreduce(tensors, settings)->wait();
  if (options.reduction == Reduction::mean) tensors[0].div_(options_.size);
  if (!here.is_same(tensor)) tensor.copy_(here);
  delay(static_cast<double>(tensor.nbytes()), false);
}

void Group::broadcast(const at::Tensor& tensor, int root) {
  const auto here = staged(tensor);
  std::vector<at::Tensor> tensors{here};
  c10d::BroadcastOptions settings;
  settings.rootRank = root;
  backend_->collectives().broadcast(tensors, settings)->wait();
  if (!here.is_same(tensor)) tensor.copy_(here);
  delay(static_cast<double>(tensor.nbytes()), true);
}

void Group::barrier() {
  std::vector<at::Tensor> tensors{at::zeros({1})};
  backend_->gloo->allreduce(tensors)->wait();
  delay(0, false);
}

namespace {

class GlooMessage final : public Message {
 public:
  explicit GlooMessage(c10::intrusive_ptr<c10d::Work> work) : work_(std::move(work)) {}
  bool wait() override { return work_->wait(); }
  void abort() override { work_->abort(); }

 private:
  c10::intrusive_ptr<c10d::Work> work_;
};

}  // namespace

std::unique_ptr<Message> Group::send(const at::Tensor& tensor, int to, int32_t tag) {
  std::vector<at::Tensor> tensors{tensor};
  return std::make_unique<GlooMessage>(backend_->gloo->send(tensors, to, tag));
}

std::unique_ptr<Message> Group::receive(const at::Tensor& tensor, int from, int32_t tag) {
  std::vector<at::Tensor> tensors{tensor};
  return std::make_unique<GlooMessage>(backend_->gloo->recv(tensors, from, tag));
}

class SlowLink::Delayed final : public Message {
 public:
  bool wait() override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return aborted_ || sent_; });
    if (!sent_) return false;
    lock.unlock();
    return sent_->wait();
  }

  void abort() override {
    const std::lock_guard lock(mutex_);
    aborted_ = true;
    if (sent_) sent_->abort();
    changed_.notify_all();
  }

  /// On the link's thread: waits, then sends, unless abort() comes first.
  void send_after(double seconds, const std::function<std::unique_ptr<Message>()>& send) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return aborted_; });
    if (!aborted_) sent_ = send();
    aborted_ = !sent_;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool aborted_ = false;
  std::unique_ptr<Message> sent_;
};

std::shared_ptr<Message> SlowLink::send(double bytes,
                                        std::function<std::unique_ptr<Message>()> send) {
  auto message = std::make_shared<Delayed>();
  const double came_s = steady_s();
  stream_.begin(std::make_shared<Work>("send", Scope::across, 0),
                [this, bytes, came_s, message, send = std::move(send)] {
                  const double of = link_.bandwidth_bytes_per_s;
                  free_s_ = std::max(free_s_, came_s) + (of > 0 ? bytes / of : 0);
                  message->send_after(std::max(0.0, free_s_ + link_.latency_s - steady_s()), send);
                });
  return message;
}

}  // namespace trinity
