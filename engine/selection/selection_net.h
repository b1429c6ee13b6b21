#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/index.h"
#include "selection/selection_memory.h"
#include "selection/selection_model.h"

namespace trinity {

inline void add(float* __restrict sum, const float* __restrict values, int32_t width) {
  for (int32_t s = 0; s < width; ++s) sum[s] += values[s];
}

/// A selection model laid out for message passing: floats, every vector of states padded to a
/// multiple of four, every edge's table in both directions. Floats are for finding selections and
/// messages only; what is reported is added up in doubles from the model.
///
/// A vector by node and state has state_entries() entries; those of node v begin at first(v).
class SelectionNet {
 public:
  SelectionNet(const SelectionModel& model, const SelectionMemory& memory);

  /// An edge as one of its ends sees it. `table` has a row a state of the other end: padded
  /// vectors over the states of this one.
  struct Link {
    int32_t other;          ///< node
    int32_t edge;           ///< number in the model
    const float* to_me;     ///< [state of other][my states, padded]
    const float* to_other;  ///< [my state][states of other, padded]
    int64_t message;        ///< of the message from other to me, in a vector of message_entries()
    int64_t reply;          ///< of the message from me to other
  };

  int32_t nodes() const { return static_cast<int32_t>(first_.size()) - 1; }
  int32_t states(int32_t v) const { return states_[at(v)]; }
  int64_t first(int32_t v) const { return first_[at(v)]; }
  /// States of v, padded.
  int32_t width(int32_t v) const { return static_cast<int32_t>(first_[at(v) + 1] - first_[at(v)]); }
  int64_t state_entries() const { return first_.back(); }
  int64_t message_entries() const { return message_entries_; }
  /// Of node v, by rising number of the other.
  std::span<const Link> links(int32_t v) const {
    return std::span(links_).subspan(at(first_link_[at(v)]),
                                     at(first_link_[at(v) + 1] - first_link_[at(v)]));
  }
  /// Costs by node and state.
  const float* costs(int32_t v) const { return costs_.data() + first_[at(v)]; }

  const SelectionModel& model() const { return model_; }
  const SelectionMemory& memory() const { return memory_; }

  /// What the usages of v's states cost at prices of slots: `tail` has their sums from each slot
  /// to the end, slots() + 1 of them. Written to `out`, a padded vector.
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

/// out[t] = min over s < states of in[s] + table[s][t], for t < width, which is a multiple of four;
/// `table` has rows of that width.
void min_plus(const float* in, int32_t states, const float* table, int32_t width, float* out);

}  // namespace trinity
