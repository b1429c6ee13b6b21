#include "distribute/groups.h"

#include <chrono>
#include <cstdlib>
#include <vector>

#include "base/error.h"
#include "distribute/c10d.h"

namespace trinity {

double InjectedLink::delay_s(double bytes, int members, bool is_broadcast) const {
  const double others = members - 1;
  const double trips = is_broadcast ? 1 : 2 * others / members;
  const double transfer_s = bandwidth_bytes_per_s > 0 ? trips * bytes / bandwidth_bytes_per_s : 0;
  return (is_broadcast ? others : 2 * others) * latency_s + transfer_s;
}

bool Job::Groups::drain(double patience_s) {
  const double until_s = steady_s() + patience_s;
  for (auto& group : scopes) {
    if (!group) continue;
    const auto last = std::make_shared<Work>("end", Scope::world, 0);
    group->lane.begin(last, [] {});
    if (!last->wait_for(std::max(0.1, until_s - steady_s())) || !last->failure().empty())
      return false;
  }
  return true;
}

#ifdef TRINITY_GLOO

struct Group::Backend {
  c10::intrusive_ptr<c10d::ProcessGroupGloo> gloo;
};

namespace {

std::shared_ptr<gloo::transport::Device> device_of(bool on_one_host) {
  using Gloo = c10d::ProcessGroupGloo;
  if (const char* interface = std::getenv("GLOO_SOCKET_IFNAME"))
    return Gloo::createDeviceForInterface(interface);
  return on_one_host ? Gloo::createDeviceForHostname("127.0.0.1") : Gloo::createDefaultDevice();
}

}  // namespace

Group::Group(const JobStore& store, const GroupOptions& options)
    : options_(options), backend_(std::make_unique<Backend>()) {
  if (options.size == 1) return;
  // The monitor ends jobs that hang, long before this.
  auto settings = c10d::ProcessGroupGloo::Options::create(std::chrono::hours(24));
  settings->threads = 1;
  settings->devices.push_back(device_of(options.on_one_host));
  backend_->gloo = c10::make_intrusive<c10d::ProcessGroupGloo>(
      c10::make_intrusive<c10d::PrefixStore>(options.name, store.parts().store), options.rank,
      options.size, settings);
}

Group::~Group() = default;

void Group::delay(double bytes, bool is_broadcast) const {
  const double seconds = options_.link.delay_s(bytes, options_.size, is_broadcast);
  if (seconds > 0) std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

void Group::all_reduce(const at::Tensor& tensor, const AllReduce& options) {
  const auto flat = tensor.view({-1});
  for (int64_t first = 0; first < flat.numel(); first += options.chunk_elements)
    reduce_chunk(flat.narrow(0, first, std::min(options.chunk_elements, flat.numel() - first)),
                 options);
}

void Group::reduce_chunk(const at::Tensor& chunk, const AllReduce& options) {
  if (options.as_bfloat16) {
    reduce_bfloat16(chunk, options.reduction);
    delay(2.0 * static_cast<double>(chunk.numel()), false);
    return;
  }
  std::vector<at::Tensor> tensors{chunk};
  c10d::AllreduceOptions settings;
  settings.reduceOp =
      options.reduction == Reduction::max ? c10d::ReduceOp::MAX : c10d::ReduceOp::SUM;
  backend_->gloo->allreduce(tensors, settings)->wait();
  if (options.reduction == Reduction::mean) tensors[0].div_(options_.size);
  delay(static_cast<double>(chunk.nbytes()), false);
}

void Group::reduce_bfloat16(const at::Tensor& chunk, Reduction reduction) {
  const int64_t members = options_.size, count = chunk.numel();
  const int64_t share = (count + members - 1) / members;
  auto sent = at::zeros({members * share}, at::kBFloat16);
  sent.narrow(0, 0, count).copy_(chunk);
  auto received = at::empty_like(sent);
  auto out = received.view(at::kByte), in = sent.view(at::kByte);
  std::vector<int64_t> equal;
  backend_->gloo->alltoall_base(out, in, equal, equal)->wait();
  auto shares = received.view({members, share}).to(at::kFloat);
  auto sum = reduction == Reduction::max ? std::get<0>(shares.max(0)) : shares[0];
  for (int64_t m = 1; m < members && reduction != Reduction::max; ++m) sum = sum + shares[m];
  if (reduction == Reduction::mean) sum = sum / members;
  std::vector<at::Tensor> mine{sum.to(at::kBFloat16).view(at::kByte)};
  std::vector<std::vector<at::Tensor>> all(1);
  for (int64_t m = 0; m < members; ++m) all[0].push_back(at::empty_like(mine[0]));
  backend_->gloo->allgather(all, mine)->wait();
  chunk.copy_(at::cat(all[0]).view(at::kBFloat16).narrow(0, 0, count));
}

void Group::broadcast(const at::Tensor& tensor, int root) {
  std::vector<at::Tensor> tensors{tensor};
  c10d::BroadcastOptions settings;
  settings.rootRank = root;
  backend_->gloo->broadcast(tensors, settings)->wait();
  delay(static_cast<double>(tensor.nbytes()), true);
}

void Group::barrier() {
  std::vector<at::Tensor> tensors{at::zeros({1})};
  backend_->gloo->allreduce(tensors)->wait();
  delay(0, false);
}

#else

struct Group::Backend {};
Group::Group(const JobStore&, const GroupOptions& options) : options_(options) {}
Group::~Group() = default;
void Group::all_reduce(const at::Tensor&, const AllReduce&) {}
void Group::broadcast(const at::Tensor&, int) {}
void Group::barrier() {}

#endif

}  // namespace trinity
