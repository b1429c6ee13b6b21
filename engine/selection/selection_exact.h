#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "base/deadline.h"
#include "base/thread_pool.h"
#include "selection/selection_model.h"

namespace trinity {

/// An order of elimination with what it takes (papers/notes.md "PaSE: elimination"): node order[i]
/// is minimised out over all assignments of sets[i], its neighbours by then that come later, PaSE's
/// dependent set.
struct EliminationOrder {
  std::vector<int32_t> order;
  std::vector<std::vector<int32_t>> sets;
  int32_t widest_set = 0;
  double combinations = 0;          ///< of a node and its set, in all: the work
  double largest_combinations = 0;  ///< of one node
  double table_entries = 0;         ///< of all tables
  double peak_entries = 0;          ///< held at one time at most
  bool complete = false;            ///< false: given up when one node needed too much
};

/// How the next node is picked.
enum class EliminationRule {
  generate_seq,   ///< the fewest neighbours left, then the lowest number: PaSE's GenerateSeq
  smallest_table  ///< the fewest combinations of neighbours
};

/// The order of eliminating nodes with so many `states` and distinct neighbours `edges`. Gives up
/// where one node needs more than `most` combinations.
EliminationOrder elimination_order(const std::vector<int32_t>& states,
                                   const std::vector<std::pair<int32_t, int32_t>>& edges,
                                   EliminationRule rule, double most);

/// Bytes held at most while an elimination runs: tables and choices.
double elimination_bytes(const EliminationOrder& elimination);

struct ExactSelection {
  double cost = 0;
  std::vector<int32_t> states;
};

/// The best states of a model without regard to memory, by bucket elimination in a complete
/// order of it: streaming minima over index arithmetic, no tuple is ever made. Of states
/// equally good the lowest is taken, in the reverse order of elimination; results do not depend on
/// the number of threads. Throws Interrupted on stop_flag(), TimeIsUp. `tick` is called before
/// every node.
ExactSelection eliminate(const SelectionModel& model, const EliminationOrder& elimination,
                         ThreadPool& pool, const std::function<void()>& tick = {},
                         const Deadline& deadline = {});

}  // namespace trinity
