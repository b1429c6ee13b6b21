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

/// Weights sent in one step and merged in a later one, by slot of a RunLayout: sent by this device
/// or, between processes, received or in flight. Not thread-safe for one slot: it belongs to one
/// worker, and others read it after its step's send.
class SentWeights {
 public:
  explicit SentWeights(size_t slots) : sent_(slots) {}

  /// message: the transfer that fills the tensor; null: it is filled.
  void keep(int32_t slot, int64_t step, at::Tensor tensor, std::shared_ptr<Message> message = {}) {
    sent_[slot].push_back({step, std::move(tensor), std::move(message)});
  }

  struct Sent {
    int64_t step = 0;
    at::Tensor tensor;
    std::shared_ptr<Message> message;
  };

  /// The entry sent in a step; null: none.
  Sent* find(int32_t slot, int64_t step) {
    for (auto& entry : sent_[slot])
      if (entry.step == step) return &entry;
    return nullptr;
  }

  /// All entries, in order of steps.
  const std::deque<Sent>& entries(int32_t slot) const { return sent_[slot]; }

  /// The last entry, which must exist.
  const at::Tensor& last(int32_t slot) const { return sent_[slot].back().tensor; }

  /// Removes entries up to and including a step, which nobody will merge any more. Call between
  /// steps.
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

/// Appends unmerged entries for a checkpoint: "<operator>#sent<output>@<step>". With a job it is a
/// collective call of all ranks.
void name_sent(const SentWeights& sent, const Program& program, const RunLayout& layout,
               at::ScalarType real, Job* job, std::vector<NamedTensor>& into);

/// Restores entries from a checkpoint for every reader in this process, as if they had arrived.
/// Throws ArgumentError for entries that no operator of the graph sends.
void set_sent(const std::vector<NamedTensor>& values, SentWeights& sent, const Program& program,
              const RunLayout& layout, const Job* job);

}  // namespace trinity
