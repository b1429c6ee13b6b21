#include "execute/peer_transport.h"

#include "base/error.h"

namespace trinity {
namespace {

constexpr int64_t kMostDimensions = 8;

/// Dtype, rank and extents of a tensor.
at::Tensor describe(const at::Tensor& tensor) {
  if (tensor.dim() > kMostDimensions)
    throw Error("a message of {} dimensions, expected at most {}", tensor.dim(), kMostDimensions);
  auto about = at::zeros({2 + kMostDimensions}, at::kLong);
  auto* numbers = about.data_ptr<int64_t>();
  numbers[0] = static_cast<int64_t>(tensor.scalar_type());
  numbers[1] = tensor.dim();
  for (int64_t d = 0; d < tensor.dim(); ++d) numbers[2 + d] = tensor.size(d);
  return about;
}

}  // namespace

void PeerTransport::begin(const at::Tensor& tensor, int32_t to, int32_t tag) {
  const auto message = job_->send(tensor, to, tag);
  {
    const std::lock_guard lock(mutex_);
    sent_.push_back(message);
  }
  stream_.begin(std::make_shared<Work>("send", Scope::world, tag),
                [message, tensor] { message->wait(); });
}

void PeerTransport::send(int32_t slot, int32_t micro_batch, const at::Tensor& tensor) {
  const int32_t to = layout_.slots()[slot].device;
  at::Tensor& about = about_[slot];
  if (!about.defined()) {
    about = describe(tensor);
    begin(about, to, tag(slot, 0) + 1);
  }
  begin(tensor.cpu().contiguous(), to, tag(slot, micro_batch));
}

void PeerTransport::wait(const at::Tensor& tensor, int32_t from, int32_t tag) {
  {
    const std::lock_guard lock(mutex_);
    if (aborted_) throw Interrupted();
    awaited_ = job_->receive(tensor, from, tag);
  }
  wait(awaited_, from);
}

void PeerTransport::wait(const std::shared_ptr<Message>& message, int32_t from) {
  {
    const std::lock_guard lock(mutex_);
    if (aborted_) throw Interrupted();
    awaited_ = message;
  }
  bool arrived = false;
  try {
    arrived = message->wait();
  } catch (const std::exception& error) {
    const std::string text = error.what();
    job_->end_broken(fmt::format("a step, receiving from rank {}", from),
                     text.substr(0, text.find('\n')));
  }
  const std::lock_guard lock(mutex_);
  if (aborted_ || !arrived) throw Interrupted();
  awaited_.reset();
}

at::Tensor PeerTransport::receive(int32_t slot, int32_t micro_batch) {
  const auto& of = graph_.tensor(layout_.slots()[slot].tensor);
  const int32_t from = layout_.device_of(of.producer);
  at::Tensor& about = about_[slot];
  if (!about.defined()) {
    const at::Tensor first = at::empty({2 + kMostDimensions}, at::kLong);
    wait(first, from, tag(slot, 0) + 1);
    about = first;
  }
  const auto* numbers = about.data_ptr<int64_t>();
  at::Tensor made = at::empty(at::IntArrayRef(numbers + 2, static_cast<size_t>(numbers[1])),
                              static_cast<at::ScalarType>(numbers[0]));
  wait(made, from, tag(slot, micro_batch));
  return made;
}

void PeerTransport::send_shares(int32_t gather, int32_t micro_batch, const at::Tensor& shares) {
  begin(shares.cpu().contiguous(), layout_.device_of(gather), share_tag(gather, micro_batch));
}

at::Tensor PeerTransport::receive_shares(int32_t gather, int32_t micro_batch, int32_t from,
                                         int64_t elements, at::ScalarType kind) {
  at::Tensor made = at::empty({elements}, kind);
  wait(made, from, share_tag(gather, micro_batch));
  return made;
}

void PeerTransport::forget_posted() {
  std::erase_if(posted_, [](const auto& message) { return message.expired(); });
}

void PeerTransport::post(int32_t slot, const at::Tensor& tensor) {
  const auto sent = tensor.cpu().contiguous();
  const auto message = job_->send(sent, layout_.slots()[slot].device, tag(slot, 0));
  {
    const std::lock_guard lock(mutex_);
    forget_posted();
    posted_.push_back(message);
  }
  late_.begin(std::make_shared<Work>("send", Scope::world, tag(slot, 0)),
              [message, sent] { message->wait(); });
}

std::shared_ptr<Message> PeerTransport::expect(int32_t slot, const at::Tensor& tensor) {
  const int32_t producer = graph_.tensor(layout_.slots()[slot].tensor).producer;
  auto message = job_->receive(tensor, layout_.device_of(producer), tag(slot, 0));
  const std::lock_guard lock(mutex_);
  forget_posted();
  posted_.push_back(message);
  return message;
}

void PeerTransport::flush() {
  const auto last = std::make_shared<Work>("end of a step", Scope::world, 0);
  stream_.begin(last, [] {});
  job_->wait(*last);
  const std::lock_guard lock(mutex_);
  sent_.clear();
}

void PeerTransport::abort() {
  const std::lock_guard lock(mutex_);
  aborted_ = true;
  if (awaited_) awaited_->abort();
  for (const auto& message : sent_)
    if (const auto there = message.lock()) there->abort();
  for (const auto& message : posted_)
    if (const auto there = message.lock()) there->abort();
}

}  // namespace trinity
