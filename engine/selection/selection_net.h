#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/index.h"
#include "selection/selection_memory.h"
#include "selection/selection_model.h"

namespace trinity {

inline void add(float* __restrict sum, const float* __restrict values, int32_t width) {
  for (int32_t s = 0; s < width; ++s) sum[s] += values[s];
}

/// A selection model laid out for message passing: floats, state vectors padded to a multiple of
/// four, edge tables in both directions. Floats are used only to find selections and messages;
/// reported costs are sums in doubles over the model. Immutable.
///
/// A vector by node and state has state_entries() entries; node v's entries begin at first(v).
class SelectionNet {
 public:
  SelectionNet(const SelectionModel& model, const SelectionMemory& memory);

  /// An edge as seen from one end. `table` has one row per state of the other end: padded vectors
  /// over this end's states.
  struct Link {
    int32_t other;          ///< node
    int32_t edge;           ///< index in the model
    const float* to_me;     ///< [state of other][my states, padded]
    const float* to_other;  ///< [my state][states of other, padded]
    int64_t message;  ///< index of the message from other to me, in a vector of message_entries()
    int64_t reply;          ///< index of the message from me to other
  };

  int32_t nodes() const { return static_cast<int32_t>(first_.size()) - 1; }
  int32_t states(int32_t v) const { return states_[at(v)]; }
  int64_t first(int32_t v) const { return first_[at(v)]; }
  /// Number of states of v, padded.
  int32_t width(int32_t v) const { return static_cast<int32_t>(first_[at(v) + 1] - first_[at(v)]); }
  int64_t state_entries() const { return first_.back(); }
  int64_t message_entries() const { return message_entries_; }
  /// Edges of node v, ascending by the other node.
  std::span<const Link> links(int32_t v) const {
    return std::span(links_).subspan(at(first_link_[at(v)]),
                                     at(first_link_[at(v) + 1] - first_link_[at(v)]));
  }
  /// Costs by node and state.
  const float* costs(int32_t v) const { return costs_.data() + first_[at(v)]; }

  const SelectionModel& model() const { return model_; }
  const SelectionMemory& memory() const { return memory_; }

  /// Writes to `out`, a padded vector, the costs of usages of v's states at slot prices. `tail`:
  /// sums of prices from each slot to the end, slots() + 1 entries.
  void price(int32_t v, std::span<const double> tail, float* out) const;

 private:
  const SelectionModel& model_;
  const SelectionMemory& memory_;
  std::vector<int32_t> states_;
  std::vector<int64_t> first_, first_link_;
  std::vector<float> costs_, tables_;
  std::vector<Link> links_;
  int64_t message_entries_ = 0;
};

/// out[t] = min over s < states of in[s] + table[s][t], for t < width, a multiple of four; `table`
/// has rows of that width.
void min_plus(const float* in, int32_t states, const float* table, int32_t width, float* out);

}  // namespace trinity
