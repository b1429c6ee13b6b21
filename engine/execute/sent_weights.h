#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "distribute/job.h"
#include "distribute/message.h"
#include "execute/program.h"
#include "execute/run_layout.h"
#include "execute/weights.h"
#include "libtorch/torch.h"

namespace trinity {

/// What was sent in a step and is merged in a later one, by slot of a RunLayout: what a device has
/// sent itself, and in processes what is on its way from others. A slot belongs to one worker;
/// others read it when its step's send is done.
class SentWeights {
 public:
  explicit SentWeights(size_t slots) : sent_(slots) {}

  /// message: what fills the tensor; null: it is there.
  void keep(int32_t slot, int64_t step, at::Tensor tensor, std::shared_ptr<Message> message = {}) {
    sent_[slot].push_back({step, std::move(tensor), std::move(message)});
  }

  struct Sent {
    int64_t step = 0;
    at::Tensor tensor;
    std::shared_ptr<Message> message;
  };

  /// What was sent in a step; null: nothing was.
  Sent* find(int32_t slot, int64_t step) {
    for (auto& entry : sent_[slot])
      if (entry.step == step) return &entry;
    return nullptr;
  }

  /// All of it, in the order of steps.
  const std::deque<Sent>& entries(int32_t slot) const { return sent_[slot]; }

  /// What was sent last, which must be there.
  const at::Tensor& last(int32_t slot) const { return sent_[slot].back().tensor; }

  /// Nobody will merge what was sent until a step, that included. Between steps.
  std::vector<Sent> drop(int32_t slot, int64_t step) {
    std::vector<Sent> old;
    auto& queue = sent_[slot];
    while (!queue.empty() && queue.front().step <= step) {
      old.push_back(std::move(queue.front()));
      queue.pop_front();
    }
    return old;
  }

 private:
  std::vector<std::deque<Sent>> sent_;
};

/// Adds what was sent and not yet merged, for a checkpoint: "<operator>#sent<output>@<step>". In
/// processes (job) of all ranks, which call it together.
void name_sent(const SentWeights& sent, const Program& program, const RunLayout& layout,
               at::ScalarType real, Job* job, std::vector<NamedTensor>& into);

/// Takes it back: every reader in this process has it, as if it had come. Throws ArgumentError for
/// what no operator of the graph sends.
void set_sent(const std::vector<NamedTensor>& values, SentWeights& sent, const Program& program,
              const RunLayout& layout, const Job* job);

}  // namespace trinity
