#include "execute/peer_transport.h"

#include "base/error.h"

namespace trinity {

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
  int64_t& kind = kind_[slot];
  if (kind < 0) {
    kind = static_cast<int64_t>(tensor.scalar_type());
    begin(at::full({1}, kind, at::kLong), to, tag(slot, 0) + 1);
  }
  begin(tensor.cpu().contiguous(), to, tag(slot, micro_batch));
}

void PeerTransport::wait(const at::Tensor& tensor, int32_t from, int32_t tag) {
  {
    const std::lock_guard lock(mutex_);
    if (aborted_) throw Interrupted();
    awaited_ = job_->receive(tensor, from, tag);
  }
  bool arrived = false;
  try {
    arrived = awaited_->wait();
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
  int64_t& kind = kind_[slot];
  if (kind < 0) {
    const at::Tensor first = at::empty({1}, at::kLong);
    wait(first, from, tag(slot, 0) + 1);
    kind = first.item<int64_t>();
  }
  at::Tensor made = at::empty(of.shape, static_cast<at::ScalarType>(kind));
  wait(made, from, tag(slot, micro_batch));
  return made;
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
}

}  // namespace trinity
