#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "base/error.h"
#include "distribute/job.h"
#include "distribute/message.h"
#include "execute/run_layout.h"
#include "libtorch/torch.h"

namespace trinity {

/// Copies between workers that are processes. A tensor is sent to all its readers as soon as it is
/// produced, and received when it is first read. A message's tag is its slot and micro-batch. Dtype
/// and shape are sent once per slot, in a message of their own. Sends complete on a thread of their
/// own, so workers never wait for readers. For one worker; abort() may be called from any thread.
class PeerTransport {
 public:
  PeerTransport(const RunLayout& layout, const Graph& graph, std::shared_ptr<Job> job)
      : layout_(layout), graph_(graph), job_(std::move(job)), about_(layout.slots().size()) {}
  ~PeerTransport() { abort(); }

  /// Starts sending a tensor to the device of a slot.
  void send(int32_t slot, int32_t micro_batch, const at::Tensor& tensor) {
    const int32_t to = layout_.slots()[slot].device;
    at::Tensor& about = about_[slot];
    if (!about.defined()) {
      about = describe(tensor);
      begin(about, to, tag(slot, 0) + 1);
    }
    begin(tensor.cpu().contiguous(), to, tag(slot, micro_batch));
  }

  /// Waits for the tensor of a slot of this process's device. Throws Interrupted after abort().
  at::Tensor receive(int32_t slot, int32_t micro_batch) {
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

  /// The same for weight shards on their way to a gather, which are not tensors of the graph.
  void send_shares(int32_t gather, int32_t micro_batch, const at::Tensor& shares) {
    begin(shares.cpu().contiguous(), layout_.device_of(gather), share_tag(gather, micro_batch));
  }

  at::Tensor receive_shares(int32_t gather, int32_t micro_batch, int32_t from, int64_t elements,
                            at::ScalarType kind) {
    at::Tensor made = at::empty({elements}, kind);
    wait(made, from, share_tag(gather, micro_batch));
    return made;
  }

  /// Starts sending a tensor that is read in this step or a later one: flush() does not wait for
  /// it.
  void post(int32_t slot, const at::Tensor& tensor) {
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

  /// A message that fills `tensor` with the data that the producer of a slot posts in this step.
  std::shared_ptr<Message> expect(int32_t slot, const at::Tensor& tensor) {
    const int32_t producer = graph_.tensor(layout_.slots()[slot].tensor).producer;
    auto message = job_->receive(tensor, layout_.device_of(producer), tag(slot, 0));
    const std::lock_guard lock(mutex_);
    forget_posted();
    posted_.push_back(message);
    return message;
  }

  /// Waits for it. Throws Interrupted after abort().
  void wait(const std::shared_ptr<Message>& message, int32_t from) {
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

  /// Waits until all sends are complete, except posted ones.
  void flush() {
    const auto last = std::make_shared<Work>("end of a step", Scope::world, 0);
    stream_.begin(last, [] {});
    job_->wait(*last);
    const std::lock_guard lock(mutex_);
    sent_.clear();
  }

  /// Ends all waiting permanently, including messages that nobody will receive any more.
  void abort() {
    const std::lock_guard lock(mutex_);
    aborted_ = true;
    if (awaited_) awaited_->abort();
    for (const auto& message : sent_)
      if (const auto there = message.lock()) there->abort();
    for (const auto& message : posted_)
      if (const auto there = message.lock()) there->abort();
  }

 private:
  static constexpr int64_t kMostDimensions = 8;

  /// Dtype, rank and extents of a tensor.
  static at::Tensor describe(const at::Tensor& tensor) {
    if (tensor.dim() > kMostDimensions)
      throw Error("a message of {} dimensions, expected at most {}", tensor.dim(), kMostDimensions);
    auto about = at::zeros({2 + kMostDimensions}, at::kLong);
    auto* numbers = about.data_ptr<int64_t>();
    numbers[0] = static_cast<int64_t>(tensor.scalar_type());
    numbers[1] = tensor.dim();
    for (int64_t d = 0; d < tensor.dim(); ++d) numbers[2 + d] = tensor.size(d);
    return about;
  }

  int32_t tag(int32_t slot, int32_t micro_batch) const {
    return 2 * (micro_batch * static_cast<int32_t>(layout_.slots().size()) + slot);
  }
  /// After the tags of slots.
  int32_t share_tag(int32_t gather, int32_t micro_batch) const {
    return tag(0, layout_.micro_batches()) + layout_.task(micro_batch, gather);
  }

  void begin(const at::Tensor& tensor, int32_t to, int32_t tag) {
    const auto message = job_->send(tensor, to, tag);
    {
      const std::lock_guard lock(mutex_);
      sent_.push_back(message);
    }
    stream_.begin(std::make_shared<Work>("send", Scope::world, tag),
                  [message, tensor] { message->wait(); });
  }

  void forget_posted() {
    std::erase_if(posted_, [](const auto& message) { return message.expired(); });
  }

  void wait(const at::Tensor& tensor, int32_t from, int32_t tag) {
    {
      const std::lock_guard lock(mutex_);
      if (aborted_) throw Interrupted();
      awaited_ = job_->receive(tensor, from, tag);
    }
    wait(awaited_, from);
  }

  const RunLayout& layout_;
  const Graph& graph_;
  std::shared_ptr<Job> job_;
  std::vector<at::Tensor> about_;  // by slot: dtype, rank, extents; once known
  std::mutex mutex_;           // guards the members below
  std::shared_ptr<Message> awaited_;
  std::vector<std::weak_ptr<Message>> sent_;  // since the last flush
  std::vector<std::weak_ptr<Message>> posted_;  // and expected
  bool aborted_ = false;
  CommunicationStream stream_, late_;  // late_: posted messages
};

}  // namespace trinity
