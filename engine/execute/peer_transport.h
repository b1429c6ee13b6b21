#pragma once

#include <memory>
#include <mutex>
#include <vector>

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
  void send(int32_t slot, int32_t micro_batch, const at::Tensor& tensor);
  /// Waits for the tensor of a slot of this process's device. Throws Interrupted after abort().
  at::Tensor receive(int32_t slot, int32_t micro_batch);
  /// The same for weight shards on their way to a gather, which are not tensors of the graph.
  void send_shares(int32_t gather, int32_t micro_batch, const at::Tensor& shares);
  at::Tensor receive_shares(int32_t gather, int32_t micro_batch, int32_t from, int64_t elements,
                            at::ScalarType kind);
  /// Starts sending a tensor that is read in this step or a later one: flush() does not wait for
  /// it.
  void post(int32_t slot, const at::Tensor& tensor);
  /// A message that fills `tensor` with the data that the producer of a slot posts in this step.
  std::shared_ptr<Message> expect(int32_t slot, const at::Tensor& tensor);
  /// Waits for it. Throws Interrupted after abort().
  void wait(const std::shared_ptr<Message>& message, int32_t from);
  /// Waits until all sends are complete, except posted ones.
  void flush();
  /// Ends all waiting permanently, including messages that nobody will receive any more.
  void abort();

 private:
  int32_t tag(int32_t slot, int32_t micro_batch) const {
    return 2 * (micro_batch * static_cast<int32_t>(layout_.slots().size()) + slot);
  }
  /// After the tags of slots.
  int32_t share_tag(int32_t gather, int32_t micro_batch) const {
    return tag(0, layout_.micro_batches()) + layout_.task(micro_batch, gather);
  }
  void begin(const at::Tensor& tensor, int32_t to, int32_t tag);
  void forget_posted();
  void wait(const at::Tensor& tensor, int32_t from, int32_t tag);

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
